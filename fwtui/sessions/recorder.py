"""The writer of sessions: a header, lines, and an end that counts them."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

from fwtui.common import units
from fwtui.common.atomic_file import NEW, new_file, sync, sync_folder
from fwtui.common.errors import Refused, as_refused, os_error_reason
from fwtui.common.signals import hold_signals
from fwtui.common.text import sanitise
from fwtui.sessions.folders import SUFFIX, make, own_folder
from fwtui.stream.codec import Line, as_line, encode
from fwtui.stream.event import earlier
from fwtui.stream.events import CodeText, End, Event, Header, RunDone

_BLOCK = 65536  # bytes of copied lines that are written at once
_MAX_SAME_NAME = 1000


class SessionWriter:
    """A session being written.

    Every write is unbuffered, so accepted lines survive the death of this process; the end is also synced to disk. The
    first failure ends the session for good: a partly written line is cut off, `failure` states the reason, and `error` is
    its cause. Only Stopped is raised, after a whole line.
    """

    began = 0.0  # session time at time 0 of the file

    def __init__(self, path: Path, descriptor: int, header: bytes, t: float = 0.0) -> None:
        """Begin with `header`, a line with newline at time `t`; close() also closes the descriptor."""
        self.path = path
        self.failure: str | None = None
        self.error: OSError | None = None
        self.bytes = 0
        self.events = 0  # lines written, header included
        self._descriptor: int | None = descriptor
        with suppress(OSError):  # best effort: the file system may lack locks, or the file may be locked already
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._latest = t
        self._append(header)

    def add(self, raw: bytes, t: float) -> None:
        """Write one sealed line, newline included, of time `t`."""
        self._append(raw)
        self._latest = max(self._latest, t)

    def copy(self, lines: Iterable[tuple[bytes, float]]) -> None:
        """Write sealed lines without newlines, each with its time. Raises OSError at the first failure."""
        block, size = [], 0
        for raw, t in lines:
            block.append(raw)
            size += len(raw)
            self._latest = max(self._latest, t)
            if size > _BLOCK:
                self._put_block(block)
                size = 0
        self._put_block(block)

    def _put_block(self, block: list[bytes]) -> None:
        if block:
            self._append(b"\n".join([*block, b""]), len(block))
            block.clear()
        if self.error is not None:
            raise self.error

    def close(self, reason: str = "closed", dropped: int = 0, t: float | None = None) -> None:
        """Write the end unless the recording failed, and close the file; a second call has no effect.

        `dropped` counts events lost before they arrived here; `t` is the end's time on the clock of the session, by default
        that of the last line.
        """
        if self._descriptor is None:
            return
        latest = self._latest if t is None else max(t - self.began, self._latest)
        self._append(encode(End(t=latest, reason=reason, events=self.events, dropped=dropped)))
        self._sync()
        self._release()

    def discard(self) -> None:
        """Delete the file."""
        self._release()
        with suppress(OSError):
            self.path.unlink()

    def _append(self, data: bytes, lines: int = 1) -> None:
        if self._descriptor is None:
            return
        try:
            with hold_signals():
                rest = memoryview(data)
                while rest:  # a full disk accepts a part silently and reports the error on the next write
                    written = os.write(self._descriptor, rest)
                    if not written:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    rest = rest[written:]
                self.bytes += len(data)
                self.events += lines
        except OSError as error:
            self._fail(error)

    def _sync(self) -> None:
        if self._descriptor is None:
            return
        try:
            if not os.fstat(self._descriptor).st_nlink:
                raise FileNotFoundError(errno.ENOENT, f"{sanitise(self.path.name)} was deleted")
            sync(self._descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a device has nothing to sync
                self._fail(error)

    def _release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                os.close(descriptor)
            except OSError as error:  # a network file system may report a full disk only now
                self._fail(error)

    def _fail(self, error: OSError) -> None:
        if self.failure is not None:
            return
        self.error = error
        deleted = isinstance(error, FileNotFoundError)
        saved_part = "" if deleted else f", {units.counted(self.events, 'event')} saved in {sanitise(self.path.name)}"
        self.failure = f"recording stopped: {os_error_reason(error)}{saved_part}"
        if self._descriptor is not None:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self.bytes)
            self._release()


def in_use(path: Path) -> bool:
    """Return whether a recorder of any process is writing the file."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


class Recorder(SessionWriter):
    """A session being recorded: each line is written at once; a finished run is also synced to disk.

    A header that is a Line is copied unchanged. Recorded times are relative to `began`, so a recording that begins mid-session
    starts at 0.
    """

    def __init__(
        self,
        path: Path,
        descriptor: int,
        header: Header | Line,
        preface: Iterable[Line] = (),
        began: float = 0.0,
    ) -> None:
        self.began = began
        self._codes: dict[str, CodeText] = {}  # last recorded text of each kernel function
        raw, t = (header.raw + b"\n", header.event.t) if isinstance(header, Line) else (encode(header), header.t)
        super().__init__(path, descriptor, raw, t)
        self._prefaced = False  # the whole preface is synced to disk at once
        for line in preface:
            self.write(line)
        self._prefaced = True
        if self.events > 1:
            self._sync()

    @classmethod
    def at(
        cls,
        path: str | os.PathLike[str] | None,
        header: Header | Line,
        preface: Iterable[Line] = (),
        folder: Path | None = None,
        slug: str = "session",
        began: float = 0.0,
    ) -> Self:
        """Create a session at exactly that path, or `YYYYmmdd-HHMMSS-slug.fwt.jsonl` (UTC) in the folder.

        The default folder is the user's own.
        `preface` contains the lines that a reader needs if the recording begins mid-session, such as the latest Device. Raises
        Refused if the file exists or cannot be created or written.
        """
        if path is None:
            path, descriptor = _new_name(folder or own_folder(), slug)
        else:
            path, descriptor = Path(path), new_file(path, "recorded to")
        try:
            recorder = cls(path, descriptor, header, preface, began)
        except BaseException:  # the preface is read from a file
            with suppress(OSError):
                os.close(descriptor)
            with suppress(OSError):
                path.unlink()
            raise
        if recorder.failure:
            with suppress(OSError):
                path.unlink()
            raise Refused(f"{recorder.failure}; free some space or choose another folder")
        sync_folder(path.parent)
        return recorder

    def write(self, line: Line) -> None:
        """Append one line unchanged; skip the header or end of another session."""
        if isinstance(line.event, (Header, End)):
            return
        if isinstance(code := line.event, CodeText):
            stored = self._codes.get(code.code)
            whole = code if stored is None else stored.merged(code)
            if whole is stored:
                return
            self._codes[code.code] = whole
            line = line if stored is None else as_line(code.without(stored))
        if self.began and isinstance(line.event, Event):
            line = as_line(earlier(line.event, self.began))
        self.add(line.raw + b"\n", line.event.t)
        if isinstance(line.event, RunDone) and self._prefaced:
            self._sync()


def safe_slug(text: str) -> str:
    """Convert text to a part of a file name: 1 to 60 characters of a-z, 0-9 and single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-") or "session"


def _new_name(folder: Path, slug: str) -> tuple[Path, int]:
    """Create a file named after the time and the slug; return its path and descriptor. Raises Refused."""
    stem = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{safe_slug(slug)}"
    make(folder)
    for number in range(1, _MAX_SAME_NAME + 1):
        path = folder / f"{stem}{f'-{number}' if number > 1 else ''}{SUFFIX}"
        cannot = f"the folder {sanitise(str(folder))} cannot be recorded to"
        with as_refused(cannot, "choose another one"), suppress(FileExistsError):
            return path, os.open(path, NEW, 0o644)
    raise Refused(f"{sanitise(str(folder))} holds {_MAX_SAME_NAME} sessions named {stem}; choose another folder")
