"""Reading of small files, safe against pipes, devices, folders and huge files."""

from __future__ import annotations

import errno
import os
import stat


def open_at_once(path: str, flags: int) -> int:
    """Return the descriptor for open(opener=), which closes it if it is a folder's. Never waits for the writer of a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def read_regular(path: str | os.PathLike[str], max_bytes: int, private: bool = False) -> bytes:
    """Return the contents of a regular file of at most `max_bytes`. Raises OSError for any other file.

    With `private`, also rejects a file that another user can have written.
    """
    with open(path, "rb", buffering=0, opener=open_at_once) as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "It is not a regular file", path)
        if private and (state.st_uid != os.getuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
            raise PermissionError(errno.EPERM, "Another user can have written it", path)
        contents = file.read(max_bytes + 1)
    if len(contents) > max_bytes:
        raise OSError(errno.EFBIG, f"It has more than {max_bytes:,} bytes", path)
    return contents
