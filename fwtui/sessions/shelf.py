"""The user's own sessions as things that can be renamed, described and thrown away, and every one of these undone."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fwtui.common.atomic_file import whole_file
from fwtui.common.errors import Refused, why
from fwtui.common.text import clean, shown
from fwtui.sessions.folders import KEPT, SUFFIX, own_folder
from fwtui.sessions.reader import open_session
from fwtui.sessions.recorder import safe_slug
from fwtui.sessions.rewrite import retitled
from fwtui.stream.codec import MAX_LINE

BIN = ".deleted"  # a folder beside the sessions
MOST_DELETED = 20  # that are kept there


class Shelf:
    """Changes to the sessions of one folder, by default the user's own, and to those kept beside it.

    Every method raises Refused in one sentence.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = own_folder() if folder is None else folder
        self._undone_by: list[tuple[str, Path, Callable[[], None]]] = []  # what that means, where it leaves the session, and how

    def rename(self, path: Path, name: str) -> Path:
        """Give a session another name (its suffix is kept); the new path. What has a name is no longer kept by itself alone."""
        self._refuse_foreign(path)
        target = self.folder / f"{_stem(name)}{SUFFIX}"
        if target != path:
            self._make(self.folder)
            _move(path, target)
            self._undone_by.append((f"{_name(target)} is called {_name(path)} again", path, lambda: _move(target, path)))
        return target

    def annotate(self, path: Path, title: str) -> None:
        """Say in a few words what a session is: its title. Nothing else of its bytes changes."""
        self._refuse_foreign(path)
        with open_session(path) as session:
            before = session.header.title
        _retitle(path, title)
        self._undone_by.append((f"{_name(path)} has its title again", path, lambda: _retitle(path, before)))

    def delete(self, path: Path) -> None:
        """Put a session aside; only the last twenty that were deleted can come back."""
        self._refuse_foreign(path)
        aside = self.folder / BIN
        self._make(aside)
        names = [path.name, *(f"{path.name.removesuffix(SUFFIX)}-{number}{SUFFIX}" for number in range(2, 1000))]
        target = next((aside / name for name in names if not os.path.lexists(aside / name)), aside / names[-1])
        _move(path, target)
        now = time.time_ns()
        os.utime(target, ns=(now, now))  # its age is how long it has been here
        self._undone_by.append((f"{_name(path)} is back", path, lambda: _move(target, path)))
        for old in sorted(aside.iterdir(), key=lambda file: file.stat().st_mtime_ns)[:-MOST_DELETED]:
            with suppress(OSError):
                old.unlink()

    @property
    def can_undo(self) -> bool:
        return bool(self._undone_by)

    def undo(self) -> tuple[str, Path]:
        """Take the last change back; what that was, and where its session is now.

        Raises Refused where it cannot be, and forgets it then too.
        """
        if not self._undone_by:
            raise Refused("there is nothing to undo; only what was changed since the program began can be")
        words, path, act = self._undone_by.pop()
        act()
        return words, path

    def _make(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            what = "deleted sessions" if folder.name == BIN else "sessions"
            raise Refused(f"the folder for {what} cannot be made: {why(error)}; look at its folder") from None

    def _refuse_foreign(self, path: Path) -> None:
        if path.parent.resolve() not in (self.folder.resolve(), self.folder.with_name(KEPT).resolve()):
            raise Refused(f"{_name(path)} is not one of your own sessions; `fwtui trim` writes a part of it as your own")


def _stem(name: str) -> str:
    stem = name.strip().removesuffix(SUFFIX)
    if not stem or stem.startswith(".") or "/" in stem or stem != clean(stem) or len(os.fsencode(stem)) > 200:
        raise Refused(f"{shown(name)} is no name for a session; give something like {safe_slug(name)}")
    return stem


def _name(path: Path) -> str:
    return clean(path.name.removesuffix(SUFFIX))


def _move(source: Path, target: Path) -> None:
    """Rename within a file system, never onto another file. Raises Refused."""
    try:
        _renamed(source, target)
    except FileExistsError:
        raise Refused(f"{_name(target)} exists already and is not overwritten; choose another name") from None
    except OSError as error:
        raise Refused(f"{_name(source)} cannot be moved: {why(error)}; look at its folder") from None


def _renamed(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise
        # a file system without links: two steps instead of one
        if os.path.lexists(target):
            raise FileExistsError from None
        os.rename(source, target)
    else:
        os.unlink(source)


def _retitle(path: Path, title: str) -> None:
    """The same bytes after another header, in the same place at once."""
    with open_session(path):  # refuses what is no session
        pass
    with open(path, "rb") as old:
        header = retitled(old.readline(MAX_LINE + 1)[:-1], title)
        with whole_file(path, "changed", "look at its folder") as new:
            os.fchmod(new.fileno(), os.fstat(old.fileno()).st_mode & 0o777)
            new.write(header + b"\n")
            shutil.copyfileobj(old, new)
