"""Reading of small files, safe against pipes, devices, folders and huge files."""

from __future__ import annotations

import errno
import os
import stat


def read_regular(path: str | os.PathLike[str], max_bytes: int, private: bool = False) -> bytes:
    """Return the contents of a regular file of at most `max_bytes`. Raises OSError for any other file.

    With `private`, also rejects a file that another user can have written. Never waits for a pipe.
    """
    # O_NONBLOCK: open() would wait for the writer of a pipe
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0) as file:
        state = os.fstat(file.fileno())
        mode = state.st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "It is not a regular file", path)
        if private and (state.st_uid != os.getuid() or mode & (stat.S_IWGRP | stat.S_IWOTH)):
            raise PermissionError(errno.EPERM, "Another user can have written it", path)
        contents = file.read(max_bytes + 1)
    if len(contents) > max_bytes:
        raise OSError(errno.EFBIG, f"It has more than {max_bytes:,} bytes", path)
    return contents
