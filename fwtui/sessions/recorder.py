"""A sink that writes a session file and never disturbs the run it records."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

from fwtui.common.atomic_file import NEW, new_file, sync_folder
from fwtui.common.errors import Corrupt, Refused, why
from fwtui.common.text import clean
from fwtui.sessions.folders import SUFFIX, own_folder
from fwtui.sessions.writer import SessionWriter
from fwtui.stream.codec import Line, as_line, decode_lines, encode
from fwtui.stream.event import earlier
from fwtui.stream.events import Answers, CodeText, Counters, End, Event, Fault, Header, RunDone, RunStarted, Telemetry

_MAX_SAME_NAME = 1000


class Thinned:
    """Keeps a limited number of readings per second of each GPU; all of them if the limit is None, or while `paused`."""

    def __init__(self, hz: float | None) -> None:
        self.paused = False
        self._hz = hz
        self._slots: dict[int, int] = {}  # by number of the GPU

    def is_surplus(self, reading: Telemetry) -> bool:
        if self._hz is None or self.paused:
            return False
        slot = int(reading.t * self._hz)
        last, self._slots[reading.gpu] = self._slots.get(reading.gpu), slot
        return slot == last


class Recorder(SessionWriter):
    """One session being recorded: each line as it comes; a finished run is also synced to disk.

    `telemetry_hz` thins telemetry to at most that rate; a header that is a Line is copied unchanged. Recorded times are
    those of the lines minus `began`, so a recording that begins mid-session starts at 0.
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
        self.began = began
        self.thinned = Thinned(telemetry_hz)
        self._codes: dict[str, CodeText] = {}  # what the file has of each
        self._parts: dict[int, list[tuple[int, int]]] = {}  # the bytes of each run's lines, and of later ones, by its number
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
        telemetry_hz: float | None = None,
        folder: Path | None = None,
        slug: str = "session",
        began: float = 0.0,
    ) -> Self:
        """A new session at exactly that path, else as `YYYYmmdd-HHMMSS-slug.fwt.jsonl` (UTC) in the folder, by default the
        user's own.

        `preface` has the lines that a reader needs if the recording begins mid-session, such as the latest Device. Raises
        Refused if the file exists or cannot be created or written.
        """
        if path is None:
            path, descriptor = _new_name(folder or own_folder(), slug)
        else:
            path, descriptor = Path(path), new_file(path, "recorded to")
        try:
            recorder = cls(path, descriptor, header, preface, telemetry_hz, began)
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
        """Append one line unchanged. The header or end of another session is left out."""
        if isinstance(line.event, (Header, End)):
            return
        if isinstance(line.event, Telemetry) and self.thinned.is_surplus(line.event):
            return
        if isinstance(code := line.event, CodeText):
            known = self._codes.get(code.code)
            whole = code if known is None else known.and_also(code)
            if whole is known:
                return
            self._codes[code.code] = whole
            line = line if known is None else as_line(code.but(known))
        if self.began and isinstance(line.event, Event):
            line = as_line(earlier(line.event, self.began))
        begin = self.bytes
        self.add(line.raw + b"\n", line.event.t)
        match line.event:
            case RunStarted(run=run):
                self._parts[run] = [(begin, self.bytes)]
            case RunDone(run=int(run)) | Fault(run=int(run)) if len(parts := self._parts.get(run, ())) == 1:
                self._parts[run] = [(parts[0][0], self.bytes)]
            case Counters(run=run) | Answers(run=run) if run in self._parts:
                self._parts[run].append((begin, self.bytes))
        if isinstance(line.event, RunDone) and self._prefaced:
            self._sync()

    def told(self, run: int) -> list[Event]:
        """The events of a run that has ended, on the clock of the session; none if they are not there."""
        lines: list[Line] = []
        try:
            with self.path.open("rb") as file:
                for begin, end in self._parts.get(run, ()):
                    file.seek(begin)
                    lines += [line for line in decode_lines([file.read(end - begin)]) if not isinstance(line, Corrupt)]
        except OSError:
            return []
        return [earlier(line.event, -self.began) for line in lines if getattr(line.event, "run", None) == run]  # type: ignore[type-var]


def safe_slug(text: str) -> str:
    """The text as a part of a file name: 1 to 60 of a-z, 0-9 and single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-") or "session"


def _new_name(folder: Path, slug: str) -> tuple[Path, int]:
    """A new file named after the time and the slug, and its descriptor. Raises Refused."""
    stem = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{safe_slug(slug)}"
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
