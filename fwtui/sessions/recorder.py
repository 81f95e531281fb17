"""A sink of lines that writes a session file and never disturbs the run it records."""

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

from fwtui.common.atomic_file import NEW, new_file
from fwtui.common.errors import Refused, why
from fwtui.common.signals import held
from fwtui.common.text import clean
from fwtui.sessions.folders import SUFFIX, own_folder
from fwtui.stream.codec import Line, as_line, encode
from fwtui.stream.events import End, Event, Header, RunDone, Telemetry, earlier

_MAX_SAME_NAME = 1000


class Recorder:
    """One session being written: a header, then each line as it comes, then an end.

    Every line is one unbuffered write, so what was accepted survives the death of this process; a finished run and
    the end also reach the disk. The first failure ends the recording for good and `failure` says why; write() and
    close() raise nothing but Stopped, and then the rest of a line that was begun comes before the next one.
    `telemetry_hz` thins telemetry to at most that rate; a header that is a Line is copied as it is. Its times are those of
    the lines less `began`: what is recorded of a session from then on begins at 0.
    """

    def __init__(
        self,
        path: Path,
        descriptor: int,
        header: Header | Line,
        preface: Iterable[Line] = (),
        telemetry_hz: float | None = None,
        began: float = 0.0,
    ) -> None:
        self.path = path
        self.began = began
        self.failure: str | None = None
        self.bytes = 0
        self.events = 0  # lines written, header included
        self._descriptor: int | None = descriptor
        with suppress(OSError):  # where there are no locks, or somebody has it, it is no worse
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._telemetry_hz = telemetry_hz
        self._telemetry_slots: dict[int, int] = {}  # by number of the GPU
        self._latest = header.event.t if isinstance(header, Line) else header.t
        self.error: OSError | None = None  # behind the failure
        self._rest = memoryview(b"")  # of the line that is being written
        self._size = 0  # of that line
        self._append(header.raw + b"\n" if isinstance(header, Line) else encode(header))
        self._prefaced = False  # what is in the preface reaches the disk together
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
        telemetry_hz: float | None = None,
        folder: Path | None = None,
        slug: str = "session",
        began: float = 0.0,
    ) -> Self:
        """A new session at exactly that path; without one `YYYYmmdd-HHMMSS-slug.fwt.jsonl` (UTC) in the folder, by default
        the user's own.

        `preface` are lines that a reader needs when the recording begins in the middle of something, such as the latest
        Device. Raises Refused where something is there already, or nothing can be made or written.
        """
        if path is None:
            path, descriptor = _new_name(folder or own_folder(), slug)
        else:
            path, descriptor = Path(path), new_file(path, "recorded to")
        recorder = cls(path, descriptor, header, preface, telemetry_hz, began)
        if recorder.failure:
            with suppress(OSError):
                path.unlink()
            raise Refused(f"{recorder.failure}; free some space or choose another folder")
        _sync_folder(path.parent)
        return recorder

    def write(self, line: Line) -> None:
        """Append one line as it is. Another session's header or end is left out: this one has its own."""
        if isinstance(line.event, (Header, End)):
            return
        if isinstance(line.event, Telemetry) and self._is_surplus(line.event):
            return
        if self.began and isinstance(line.event, Event):
            line = as_line(earlier(line.event, self.began))
        self._append(line.raw + b"\n")
        self._latest = max(self._latest, line.event.t)
        if isinstance(line.event, RunDone) and self._prefaced:
            self._sync()

    def close(self, reason: str = "closed", dropped: int = 0, t: float | None = None) -> None:
        """Write the end, unless the recording failed, and let go of the file; a second call does nothing.

        `dropped` counts events that were lost before they came here; `t` is the end's time, else that of the last line.
        """
        if self._descriptor is None:
            return
        latest = self._latest if t is None else max(t - self.began, self._latest)
        self._finish_line()
        self._append(encode(End(t=latest, reason=reason, events=self.events, dropped=dropped)))
        self._sync()
        self._release()

    def discard(self) -> None:
        """Leave nothing of it."""
        self._release()
        with suppress(OSError):
            self.path.unlink()

    def _is_surplus(self, reading: Telemetry) -> bool:
        if self._telemetry_hz is None:
            return False
        slot = int(reading.t * self._telemetry_hz)
        last, self._telemetry_slots[reading.gpu] = self._telemetry_slots.get(reading.gpu), slot
        return slot == last

    def _append(self, data: bytes) -> None:
        self._finish_line()
        if self._descriptor is None:
            return
        self._size = len(data)
        self._rest = memoryview(data)
        self._finish_line()

    def _finish_line(self) -> None:
        """Write what is left of the line that was begun, and count it; a signal may come between its parts."""
        try:
            while self._rest and self._descriptor is not None:
                self._wait(self._descriptor)
                with held():
                    # a full disk takes a part without complaint and complains about the next
                    written = self._put(self._descriptor, self._rest)
                    if not written:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    self._rest = self._rest[written:]
                    if not self._rest:
                        self.bytes += self._size
                        self.events += 1
        except OSError as error:
            self._fail(error)

    def _wait(self, descriptor: int) -> None:
        """Until some bytes can be written at once. Raises OSError."""

    def _put(self, descriptor: int, data: memoryview) -> int:
        """Write some of the bytes; how many. Raises OSError."""
        return os.write(descriptor, data)

    def _take_back(self, descriptor: int) -> None:
        """Leave whole lines where a part of one was written. Raises OSError."""
        os.ftruncate(descriptor, self.bytes)

    def _sync(self) -> None:
        if self._descriptor is None:
            return
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a pipe or a device has nothing to sync
                self._fail(error)

    def _release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                os.close(descriptor)
            except OSError as error:  # a network file system may say only now that the disk is full
                self._fail(error)

    def _fail(self, error: OSError) -> None:
        if self.failure is not None:
            return
        self.error = error
        self.failure = f"recording stopped: {why(error)}, {self.events} events kept in {clean(self.path.name)}"
        if self._descriptor is not None:
            with suppress(OSError):
                self._take_back(self._descriptor)
            self._release()


def in_use(path: Path) -> bool:
    """Whether a recorder writes it now, in any program."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def safe_slug(text: str) -> str:
    """The text as a part of a file name: 1 to 60 of a-z, 0-9 and single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-") or "session"


def _new_name(folder: Path, slug: str) -> tuple[Path, int]:
    """A new file that is called by the time and the slug, and its descriptor. Raises Refused."""
    stem = f"{_stamp()}-{safe_slug(slug)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise Refused(f"the folder {clean(str(folder))} cannot be made: {why(error)}; choose another one") from None
    for number in range(1, _MAX_SAME_NAME + 1):
        path = folder / f"{stem}{f'-{number}' if number > 1 else ''}{SUFFIX}"
        try:
            return path, os.open(path, NEW, 0o644)
        except FileExistsError:
            continue
        except OSError as error:
            raise Refused(f"the folder {clean(str(folder))} cannot be recorded to: {why(error)}; choose another one") from None
    raise Refused(f"{clean(str(folder))} holds {_MAX_SAME_NAME} sessions named {stem}; choose another folder")


def _stamp() -> str:
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime())


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut, where the file system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
