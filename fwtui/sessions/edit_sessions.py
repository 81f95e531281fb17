"""Rename, describe and delete the user's own sessions, and undo each of these."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fwtui.common.atomic_file import whole_file
from fwtui.common.errors import Refused, refusing
from fwtui.common.text import clean, quoted
from fwtui.sessions.folders import AUTOSAVED, PACKED, bare, own_folder, stem
from fwtui.sessions.reader import open_session
from fwtui.sessions.recorder import safe_slug
from fwtui.sessions.rewrite import retitled
from fwtui.stream.codec import MAX_LINE

BIN = ".deleted"  # a folder beside the sessions
MOST_DELETED = 20  # deleted sessions to keep


class Shelf:
    """Changes to the sessions of one folder, by default the user's own, and to those kept beside it.

    Every method may raise Refused.
    """

    def __init__(self, folder: Path | None = None, most_deleted: int = MOST_DELETED, link: Callable[..., None] = os.link) -> None:
        """`link` makes a hard link, where the file system can."""
        self.folder = own_folder() if folder is None else folder
        self._most_deleted, self._link = most_deleted, link
        self._undone_by: list[tuple[str, Path, Callable[[], None]]] = []  # message, path afterwards, action

    def rename(self, path: Path, name: str) -> Path:
        """Rename a session (its suffix is kept); return the new path. A renamed session is no longer just a kept one."""
        self._refuse_foreign(path)
        target = self.folder / f"{_stem(name)}{_suffix(path)}"
        if target != path:
            self._make(self.folder)
            self._move(path, target)
            self._undone_by.append((f"{_name(target)} is called {_name(path)} again", path, lambda: self._move(target, path)))
        return target

    def annotate(self, path: Path, title: str) -> None:
        """Set a session's title. No other byte changes."""
        self._refuse_foreign(path)
        if _suffix(path) == PACKED:
            raise Refused(f"{_name(path)} is packed, and so is its title; unpack it with gunzip")
        with open_session(path) as session:
            before = session.header.title
        _retitle(path, title)
        self._undone_by.append((f"{_name(path)} has its title again", path, lambda: _retitle(path, before)))

    def delete(self, path: Path) -> None:
        """Move a session to the deleted ones; only the last twenty can be restored."""
        self._refuse_foreign(path)
        aside = self.folder / BIN
        self._make(aside)
        names = [path.name, *(f"{stem(path)}-{number}{_suffix(path)}" for number in range(2, 1000))]
        target = next((aside / name for name in names if not os.path.lexists(aside / name)), aside / names[-1])
        self._move(path, target)
        now = time.time_ns()
        os.utime(target, ns=(now, now))  # its age counts from its deletion
        self._undone_by.append((f"{_name(path)} is back", path, lambda: self._move(target, path)))
        for old in sorted(aside.iterdir(), key=lambda file: file.stat().st_mtime_ns)[: -self._most_deleted]:
            with suppress(OSError):
                old.unlink()

    @property
    def can_undo(self) -> bool:
        return bool(self._undone_by)

    def undo(self) -> tuple[str, Path]:
        """Undo the last change; return what it was and the session's path.
        If it cannot be undone, raises Refused and forgets the change.
        """
        if not self._undone_by:
            raise Refused("there is nothing to undo; only changes since the program began can be undone")
        words, path, act = self._undone_by.pop()
        act()
        return words, path

    def _move(self, source: Path, target: Path) -> None:
        """Rename within a file system, never replacing a file. Raises Refused."""
        there = Refused(f"{_name(target)} exists already and is not overwritten; choose another name")
        with refusing(f"{_name(source)} cannot be moved", "look at its folder"):
            try:
                self._link(source, target, follow_symlinks=False)
            except FileExistsError:
                raise there from None
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
                    raise
                # without hard links it takes two steps
                if os.path.lexists(target):
                    raise there from None
                os.rename(source, target)
            else:
                os.unlink(source)

    def _make(self, folder: Path) -> None:
        what = "deleted sessions" if folder.name == BIN else "sessions"
        with refusing(f"the folder for {what} cannot be made", "look at its folder"):
            folder.mkdir(parents=True, exist_ok=True)

    def _refuse_foreign(self, path: Path) -> None:
        if path.parent.resolve() not in (self.folder.resolve(), self.folder.with_name(AUTOSAVED).resolve()):
            raise Refused(f"{_name(path)} is not one of your own sessions; `fwtui trim` copies a part of it as your own")


def _stem(name: str) -> str:
    stem = bare(name.strip())
    if not stem or stem.startswith(".") or "/" in stem or stem != clean(stem) or len(os.fsencode(stem)) > 200:
        raise Refused(f"{quoted(name)} is not a session name; give something like {safe_slug(name)}")
    return stem


def _suffix(path: Path) -> str:
    return path.name.removeprefix(stem(path))


def _name(path: Path) -> str:
    return clean(stem(path))


def _retitle(path: Path, title: str) -> None:
    """Replace the header of a session in place; all other bytes stay."""
    with open_session(path):  # refuses a file that is not a session
        pass
    with open(path, "rb") as old:
        header = retitled(old.readline(MAX_LINE + 1)[:-1], title)
        with whole_file(path, "changed", "look at its folder") as new:
            os.fchmod(new.fileno(), os.fstat(old.fileno()).st_mode & 0o777)
            new.write(header + b"\n")
            shutil.copyfileobj(old, new)
