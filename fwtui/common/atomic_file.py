"""Atomic writes of files: a reader sees the old file or the complete new one."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from fwtui.common.errors import Refused, os_error_reason
from fwtui.common.signals import undo_on_signal
from fwtui.common.text import sanitise

_F_FULLFSYNC = 51  # sys/fcntl.h of macOS
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


@contextlib.contextmanager
def atomic_write(
    path: str | Path, done: str = "written", instead: str = "choose another place", force: bool = True, devices: bool = True
) -> Iterator[IO[bytes]]:
    """Open a temporary binary file that takes the path once it is complete.

    Pipes and devices such as /dev/null are written directly; without `devices` they are replaced, so that no pipe is waited for.
    Raises Refused on a disk error, and without `force` if a file exists; `done` is the verb of its message ("written").
    """
    out = Path(path)
    try:
        if devices and _is_device(out):
            with open(out, "wb") as device:
                yield device
            return
        if not force:
            _check_new(out)
        temporary = out.parent / f".{out.name[:100]}.{secrets.token_hex(4)}"
        with _removed_unless_whole(temporary):
            with open(temporary, "xb") as file:
                yield file
            _sync_path(temporary)  # a power cut leaves the old file or the new one, never an empty one
            if not force:
                _check_new(out)
            os.replace(temporary, out)
            sync_folder(out.parent)
    except (OSError, ValueError) as error:
        if isinstance(error, Refused):
            raise
        if isinstance(error, OSError) and error.errno is None:  # NumPy raises it without errno after a partial write
            error = OSError(errno.ENOSPC, "no space left, or no file may be that large")
        raise _unwritable(out, error, done, instead) from None


def _is_device(path: Path) -> bool:
    """Return True for a device or a pipe, which a regular file must not replace."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # open() reports the reason
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def check_writable(path: str | os.PathLike[str], *read: str, force: bool = True) -> None:
    """Check before the work starts that the file can be written.

    Raises Refused if the path is not writable, if it is one of the input files `read`, or, without `force`, if the file exists.
    """
    out = Path(path)
    try:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(out).st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with tempfile.TemporaryFile(dir=out.parent):
            pass
    except (OSError, ValueError) as error:
        raise _unwritable(out, error) from None
    for source in filter(None, read):
        same = False
        with contextlib.suppress(OSError, ValueError):  # open() later reports the reason
            same = os.path.samefile(path, source)
        if same:
            raise Refused(f"{sanitise(out.name)} is the input, and would be overwritten; choose another name")
    if not force and not _is_device(out):
        _check_new(out, ", or pass --force")


def _check_new(out: Path, way: str = "") -> None:
    if os.path.lexists(out):
        raise _exists(out, way)


def _exists(path: str | os.PathLike[str], way: str = "") -> Refused:
    name = sanitise(os.fspath(path))
    if not os.path.exists(path):
        return Refused(f"{name} is a link to a file that does not exist; remove the link, or choose another name")
    return Refused(f"{name} exists already and is not overwritten; choose another name{way}")


def _unwritable(out: Path, error: OSError | ValueError, done: str = "written", instead: str = "choose another place") -> Refused:
    return Refused(f"{sanitise(out.name)} cannot be {done}: {os_error_reason(error)}; {instead}")


def new_file(path: str | os.PathLike[str], done: str = "written") -> int:
    """Return the descriptor of a new, empty file. Raises Refused if that fails; `done` is the verb of the message."""
    name = sanitise(os.fspath(path))
    try:
        return os.open(path, NEW, 0o644)
    except FileExistsError:
        raise _exists(path) from None
    except (OSError, ValueError) as error:
        raise Refused(f"{name} cannot be {done}: {os_error_reason(error)}; choose another path") from None


def sync(descriptor: int, platform: str = sys.platform, control: Callable[[int, int], object] = fcntl.fcntl) -> None:
    """Flush the file to stable storage. Raises OSError."""
    if platform == "darwin":  # fsync() of macOS leaves data in the disk's cache; some file systems lack F_FULLFSYNC
        with contextlib.suppress(OSError):
            control(descriptor, _F_FULLFSYNC)
            return
    os.fsync(descriptor)


def _sync_path(path: Path, flags: int = 0) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Flush the folder's entry of a new file to stable storage, if the file system supports it."""
    with contextlib.suppress(OSError):
        _sync_path(folder, os.O_DIRECTORY)


@contextlib.contextmanager
def _removed_unless_whole(path: Path) -> Iterator[None]:
    """Remove the file if an error or a signal ends the block."""
    with undo_on_signal(path.unlink):
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink()
            raise
