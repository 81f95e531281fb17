"""Files that are written whole or not at all, and new ones that never replace another."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fwtui.common.errors import Refused, why
from fwtui.common.signals import undone_by
from fwtui.common.text import clean

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], done: str = "written", instead: str = "choose another place") -> Iterator[IO[bytes]]:
    """A binary file beside the path that takes its place when everything is written; whatever was there stays till then.

    Raises Refused where the disk says no: what cannot be `done`, and what to do `instead`.
    """
    out = Path(path)
    try:
        temporary = out.parent / f".{out.name[:100]}.{secrets.token_hex(4)}"
        with undone_by(temporary.unlink):
            try:
                with open(temporary, "xb") as file:
                    yield file
                os.replace(temporary, out)
            except BaseException:
                with contextlib.suppress(OSError):
                    temporary.unlink()
                raise
    except (OSError, ValueError) as error:
        if isinstance(error, Refused):
            raise
        if isinstance(error, OSError) and error.errno is None:  # NumPy's, of what was written in part
            error = OSError(errno.ENOSPC, "no space left, or no file may be that large")
        raise _unwritable(out, error, done, instead) from None


def check_place(path: str | os.PathLike[str], *read: str) -> None:
    """Raises Refused, before the work, where nothing can be written, or where one of the files that are read would be lost."""
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
        with contextlib.suppress(OSError, ValueError):  # what opens it says what is wrong
            same = os.path.samefile(path, source)
        if same:
            raise Refused(f"{clean(out.name)} is what is read, and would be overwritten; choose another name")


def _unwritable(out: Path, error: OSError | ValueError, done: str = "written", instead: str = "choose another place") -> Refused:
    return Refused(f"{clean(out.name)} cannot be {done}: {why(error)}; {instead}")


def new_file(path: str | os.PathLike[str], done: str = "written") -> int:
    """A descriptor of a new, empty file. Raises Refused where something is there already or nothing can be `done`."""
    name = clean(os.fspath(path))
    try:
        return os.open(path, NEW, 0o644)
    except FileExistsError:
        raise Refused(f"{name} exists already and is not overwritten; choose another name") from None
    except (OSError, ValueError) as error:
        raise Refused(f"{name} cannot be {done}: {why(error)}; choose another path") from None
