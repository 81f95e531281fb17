"""Reading a session from any source: bounded in size, never trusted, never half understood."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import msgspec

from fwtui.common import units
from fwtui.common.errors import Corrupt, Refused, why
from fwtui.common.text import clean
from fwtui.stream.codec import MAX_LINE, Line, decode, decode_lines
from fwtui.stream.events import FORMAT, VERSION, End, Header

MAX_BYTES = 256 * 2**20
MAX_LINES = 2_000_000  # held in memory at once
WATCHED = 2000  # lines between two words on how far it is
LONGEST_NAME = 60  # in a sentence
_CHUNK = 65536


class _Magic(msgspec.Struct):
    """What a first line must say in so many words; the event's own type has defaults."""

    format: str
    version: int


class TooNew(Refused):
    """A session of a newer format version; its header could still be read."""

    def __init__(self, name: str, header: Header) -> None:
        newer = f"{name} has format version {header.version}"
        super().__init__(f"{newer} and this fwtui reads up to {VERSION}; open it with a newer fwtui")
        self.header = header


@dataclass(slots=True)
class Condition:
    """How whole a session is, as far as its lines have been seen."""

    torn: bool = False  # the last line has no line break: its writer died in it
    whole: int = 0  # undamaged lines, header and end included
    damaged: int = 0
    duration: float = 0.0  # seconds, the greatest time seen
    end: End | None = None

    def whole_lines(self, chunks: Iterable[bytes]) -> Iterator[Line]:
        """The undamaged lines in a session's bytes, counted here. A second header and whatever comes after the end are damage."""
        for item in decode_lines(chunks):
            if isinstance(item, Corrupt) or self.end is not None or (self.whole and isinstance(item.event, Header)):
                self.damaged += 1
                continue
            self.whole += 1
            self.duration = max(self.duration, item.event.t)
            if isinstance(item.event, End):
                self.end = item.event
            yield item

    @property
    def closed(self) -> bool:
        """The recorder wrote an end, and every line it counted is here and undamaged."""
        return self.end is not None and self.end.events == self.whole - 1 and not self.damaged and not self.torn

    @property
    def dropped(self) -> int:
        """Events lost before they reached the recorder."""
        return self.end.dropped if self.end else 0

    @property
    def complete(self) -> bool:
        """Closed, and nothing was lost on the way to the file."""
        return self.closed and not self.dropped

    @property
    def missing(self) -> str:
        """What is not whole about a session that has been seen to its end, in words; empty where it is closed."""
        faults = []
        if self.damaged:
            faults.append(f"{units.counted(self.damaged, 'damaged line')} left out")
        if self.torn:
            faults.append("the last line is torn and left out")
        if self.end is None:
            faults.append("there is no end, so later events may be missing")
        elif self.end.events != self.whole - 1:
            faults.append(f"the end counts {units.counted(self.end.events, 'event')} before it and {self.whole - 1} are here")
        return "; ".join(faults)


@dataclass(slots=True, kw_only=True)
class Loaded(Condition):
    """All whole lines of a session, header first, and how whole it is."""

    header: Header
    lines: list[Line]


class Session:
    """An open session file: regular, bounded, and with a header of a version that is known."""

    def __init__(self, name: str, descriptor: int) -> None:
        """Raises Refused where it is no session."""
        self.name = name
        self._descriptor = descriptor
        self.offset = 0  # so far has been read
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{name} is not a regular file; give a session file")
        if status.st_size > MAX_BYTES:
            raise Refused(f"{name} has {status.st_size} bytes, more than the limit of {MAX_BYTES}; give a smaller session")
        self.size = status.st_size
        line, newline, _ = self._read(0, MAX_LINE + 1).partition(b"\n")
        self.header = first_line(name, line if newline else b"")
        self.torn = self._read(self.size - 1, 1) != b"\n"

    def chunks(self) -> Iterator[bytes]:
        """The bytes from the beginning, no further than the size at opening: the file may be growing under a recorder."""
        self.offset = 0
        while self.offset < self.size and (chunk := self._read(self.offset, min(_CHUNK, self.size - self.offset))):
            self.offset += len(chunk)
            yield chunk

    def _read(self, offset: int, length: int) -> bytes:
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise Refused(f"{self.name} cannot be read: {why(error)}; copy it to another disk") from None


def first_line(name: str, raw: bytes) -> Header:
    """The header of the session of that name from its first line, no newline. Raises Refused, and TooNew for a later version."""
    header = None
    with suppress(Corrupt, msgspec.ValidationError):
        event = decode(raw)
        msgspec.json.decode(raw, type=_Magic)
        header = event
    if not isinstance(header, Header) or header.format != FORMAT:
        raise Refused(f"{name} is not a fwtui session: its first line is no whole header; `fwtui list` shows the sessions here")
    if header.version > VERSION:
        raise TooNew(name, header)
    return header


@contextmanager
def open_session(path: str | os.PathLike[str]) -> Iterator[Session]:
    """The session at that path, open meanwhile. Raises Refused for what is no session, and TooNew for one of a later version."""
    name = clean(os.fspath(path))
    if len(name) > LONGEST_NAME:  # the sentence matters more than the folders
        name = f"…/{os.path.basename(name)}"
    try:
        # non-blocking, or a FIFO would hang the program before it can be refused
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise Refused(f"{name} cannot be opened: {why(error)}; `fwtui list` shows the sessions here") from None
    try:
        yield Session(name, descriptor)
    finally:
        os.close(descriptor)


def load(path: str | os.PathLike[str], watch: Callable[[float], None] = lambda share: None) -> Loaded:
    """All of the session at that path; raises what open_session() does, and Refused above two million lines.

    `watch` hears now and then which share (0..1) has been read; what it raises ends the reading.
    """
    with open_session(path) as session:
        loaded = Loaded(session.torn, header=session.header, lines=[])
        for line in loaded.whole_lines(session.chunks()):
            loaded.lines.append(line)
            if loaded.whole % WATCHED == 0:
                watch(session.offset / session.size)
            if loaded.whole > MAX_LINES:
                raise Refused(f"{session.name} has more than {MAX_LINES} lines, the limit; record less telemetry")
    return loaded
