"""The reader of session files: size-limited and untrusted."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from fwtui.common import gc_pause, units
from fwtui.common.errors import Corrupt, Refused, as_refused
from fwtui.common.text import sanitise, truncate
from fwtui.stream.codec import MAX_LINE, Line, decode, decode_lines
from fwtui.stream.events import FORMAT, VERSION, End, Header

MAX_BYTES = 256 * 2**20
MAX_UNPACKED = 16 * 2**20  # held in memory
MAX_LINES = 2_000_000  # held in memory at once
FEW_LINES = 400_000  # lines that a session of any size may have
MIN_MEAN = 100  # minimum mean bytes per line in a longer session; real sessions have 120 or more
WATCHED = 2000  # lines between progress reports
LONGEST_NAME = 60  # characters of a path in an error message
_CHUNK = 65536
_GZIP = b"\x1f\x8b"


class _Magic(msgspec.Struct):
    """The fields that a first line must contain; the event type itself has defaults."""

    format: str
    version: int


class TooNew(Refused):
    """A session of a newer format version with a readable header."""

    def __init__(self, name: str, header: Header) -> None:
        newer = f"{name} has format version {header.version}"
        super().__init__(f"{newer} but this fwtui reads at most {VERSION}; open it with a newer fwtui")
        self.header = header


@dataclass(slots=True)
class Condition:
    """The completeness of a session, as far as it has been read."""

    torn: bool = False  # the last line has no line break: its writer died
    whole: int = 0  # undamaged lines, including header and end
    damaged: int = 0
    duration: float = 0.0  # seconds, the greatest time seen
    end: End | None = None
    cut: bool = False  # the file exceeds the limit of lines
    _most: int = field(default=0, init=False, compare=False, repr=False)  # the current limit of lines

    def whole_lines(self, chunks: Iterable[bytes]) -> Iterator[Line]:
        """Yield and count the undamaged lines in a session's bytes. A second header and lines after the end count as damaged.

        Reading stops at the limit of lines for the number of bytes, which no session of this program reaches.
        """
        for item in decode_lines(self._weighed(chunks)):
            if self.whole + self.damaged >= self._most:
                self.cut = True
                return
            if type(item) is not Line or self.end is not None:
                self.damaged += 1
                continue
            event = item.payload
            kind = type(event)
            if kind is Header and self.whole:
                self.damaged += 1
                continue
            self.whole += 1
            if event.t > self.duration:
                self.duration = event.t
            if kind is End:
                self.end = event  # pyright: ignore[reportAttributeAccessIssue]
            yield item

    def _weighed(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        size = 0
        for chunk in chunks:
            size += len(chunk)
            self._most = min(max(FEW_LINES, size // MIN_MEAN), MAX_LINES)
            yield chunk

    @property
    def closed(self) -> bool:
        """Return whether the recorder wrote an end, and every line it counted is present and undamaged."""
        intact = not (self.damaged or self.torn or self.cut)
        return intact and self.end is not None and self.end.events == self.whole - 1

    @property
    def dropped(self) -> int:
        """Return the number of events lost before they reached the recorder."""
        return self.end.dropped if self.end else 0

    @property
    def complete(self) -> bool:
        """Return whether the session is closed and no event was lost before it was written."""
        return self.closed and not self.dropped

    @property
    def faults(self) -> tuple[str, ...]:
        """The faults in a few words each; empty for a complete session."""
        found = [f"{units.counted(self.damaged, 'damaged line')} skipped"] if self.damaged else []
        if self.cut:
            found.append("cut off at the limit")
        elif not self.closed and not self.damaged:
            found.append("incomplete")
        return (*found, f"{units.counted(self.dropped, 'event')} dropped") if self.dropped else tuple(found)

    @property
    def missing(self) -> str:
        """List the faults of a session that was read to its end; empty if it is complete."""
        faults = []
        if self.damaged:
            faults.append(f"{units.counted(self.damaged, 'damaged line')} skipped")
        if self.cut:
            faults.append(f"it has more than {self.whole + self.damaged:,} lines, the limit for its size; the rest is skipped")
            return "; ".join(faults)
        if self.torn:
            faults.append("the last line is incomplete and skipped")
        if self.end is None:
            faults.append("there is no end line, so later events may be missing")
        elif self.end.events != self.whole - 1:
            faults.append(f"the end counts {units.counted(self.end.events, 'event')} before it, but {self.whole - 1} are present")
        if self.dropped:
            faults.append(f"{units.counted(self.dropped, 'event')} were lost before they were recorded")
        return "; ".join(faults)


@dataclass(slots=True, kw_only=True)
class LoadedSession(Condition):
    """All undamaged lines of a session, header first, and how complete it is."""

    header: Header
    lines: list[Line]


class SessionFile:
    """An open session file, which may be packed by gzip: regular, size-limited, with a header of a known version."""

    def __init__(self, name: str, descriptor: int, most_unpacked: int = MAX_UNPACKED) -> None:
        """Raise Refused if it is not a session, or is compressed and larger than `most_unpacked` bytes."""
        self.name = name
        self._descriptor = descriptor
        self._unpacked: bytes | None = None
        self.offset = 0  # number of bytes read
        self.condition = Condition()  # faults in the lines read so far
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{name} is not a regular file; pass a session file")
        if status.st_size > MAX_BYTES:
            raise Refused(f"{name} has {status.st_size} bytes, more than the limit of {MAX_BYTES}; pass a smaller session")
        self._unpacked = _unpacked(name, descriptor, most_unpacked) if self._read(0, len(_GZIP)) == _GZIP else None
        self.size = status.st_size if self._unpacked is None else len(self._unpacked)
        line, newline, _ = self._read(0, MAX_LINE + 1).partition(b"\n")
        self.header = first_line(name, line if newline else b"")
        self.torn = self._read(self.size - 1, 1) != b"\n"

    def lines(self, condition: Condition | None = None) -> Iterator[Line]:
        """Return the undamaged lines from the beginning, up to the limit, counted in a new `condition`."""
        self.condition = Condition(self.torn) if condition is None else condition
        return self.condition.whole_lines(self._chunks())

    def _chunks(self) -> Iterator[bytes]:
        """Yield the bytes up to the initial size of the file: a recorder may still be writing."""
        self.offset = 0
        while self.offset < self.size and (chunk := self._read(self.offset, min(_CHUNK, self.size - self.offset))):
            self.offset += len(chunk)
            yield chunk

    def _read(self, offset: int, length: int) -> bytes:
        if self._unpacked is not None:
            return self._unpacked[max(offset, 0) : offset + length]
        with as_refused(f"{self.name} cannot be read", "copy it to another disk"):
            return os.pread(self._descriptor, length, offset)


def _unpacked(name: str, descriptor: int, most: int) -> bytes:
    """Decompress a session; a truncated one as far as possible.

    Raises Refused if it is damaged or too large.
    """
    try:
        with open(descriptor, "rb", closefd=False) as file, gzip.GzipFile(fileobj=file) as packed:
            try:
                whole = packed.read(most + 1)
            except EOFError:
                whole = zlib.decompressobj(wbits=31).decompress(os.pread(descriptor, MAX_BYTES, 0), most + 1)
    except (OSError, zlib.error) as error:
        raise Refused(f"{name} cannot be unpacked: {sanitise(str(error))}; copy it from its source again") from None
    if len(whole) > most:
        raise Refused(f"{name} holds more than {most} bytes, the limit for a packed session; unpack it with gunzip")
    return whole


def first_line(name: str, raw: bytes) -> Header:
    """Return the session's header, from its first line without newline. Raises Refused, and TooNew for a later version."""
    header = None
    with suppress(Corrupt, msgspec.ValidationError):
        event = decode(raw)
        msgspec.json.decode(raw, type=_Magic)
        header = event
    if not isinstance(header, Header) or header.format != FORMAT:
        raise Refused(
            f"{name} is not a fwtui session: its first line is not a complete header; `fwtui list` shows the sessions here"
        )
    if header.version > VERSION:
        raise TooNew(name, header)
    return header


@contextmanager
def open_session(path: str | os.PathLike[str]) -> Iterator[SessionFile]:
    """Open a session for the block. Raises Refused if it is not a session, TooNew for a later version."""
    name = sanitise(os.fspath(path)) or "''"
    if len(name) > LONGEST_NAME:  # keep the message short: no folders
        name = f"…/{truncate(os.path.basename(name), LONGEST_NAME)}"
    with as_refused(f"{name} cannot be opened", "`fwtui list` shows the sessions here", ValueError):
        # non-blocking: otherwise a FIFO would hang before it can be refused
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield SessionFile(name, descriptor)
    finally:
        os.close(descriptor)


def load(
    path: str | os.PathLike[str], watch: Callable[[float], None] = lambda share: None, for_screen: bool = False
) -> LoadedSession:
    """Load a session, up to the limit of lines; raise the errors of open_session().

    `watch` is called regularly with the share read (0 to 1); its exceptions end the reading. With `for_screen` the lines
    are packed.
    """
    with open_session(path) as session, gc_pause.paused():
        result = LoadedSession(session.torn, header=session.header, lines=[])
        lines = session.lines(result)
        if for_screen:
            lines = map(Line.packed, lines)  # immediately: two thousand unpacked events of the largest kind take 150 MB
        while some := [*islice(lines, WATCHED)]:
            result.lines += some
            watch(session.offset / session.size)
    return result
