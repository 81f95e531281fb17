"""Lines: a child's pipe and a session file carry the same bytes.

One JSON object per line, `kind` names its type, and its last member is the CRC-32 of everything before. A line is
at most 64 KiB, so no reader of an untrusted file holds more than that at once.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from fwtui.common.errors import Corrupt
from fwtui.common.text import MAX_LENGTH, sanitise
from fwtui.stream import events
from fwtui.stream.events import Event

MAX_LINE = 65536
LONG = 1000  # bytes; a line at least this long takes much less memory than its event
_SEAL = len(',"crc":"00000000"}')


class Unknown(msgspec.Struct, frozen=True, gc=False):
    """An event of an unknown kind; every tool that rewrites sessions copies its raw line."""

    kind: str
    raw: bytes
    t: float = 0.0


class Undecoded(msgspec.Struct, frozen=True, gc=False):
    """The kind and time of an event whose other fields are not decoded."""

    kind: type[Event | Unknown]
    t: float


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line, raw and decoded. Tools that rewrite files copy `raw`. The garbage collector does not track it."""

    raw: bytes  # excludes the newline; empty if the line is packed and short
    payload: Event | Unknown | Undecoded

    @property
    def event(self) -> Event | Unknown:
        payload = self.payload
        return decode(self.raw) if isinstance(payload, Undecoded) else payload

    @property
    def kind(self) -> type[Event | Unknown]:
        """The type of the event."""
        return self.payload.kind if isinstance(self.payload, Undecoded) else type(self.payload)

    @property
    def t(self) -> float:
        return self.payload.t

    def packed(self) -> Line:
        """Return a form of the line that takes less memory: its event, or a long line that is decoded at each access."""
        return Line(b"", self.payload) if len(self.raw) < LONG else Line(self.raw, Undecoded(self.kind, self.t))


class _Tag(msgspec.Struct):
    kind: str
    t: events.Seconds = 0.0


_encoder = msgspec.json.Encoder()
_tag = msgspec.json.Decoder(_Tag)
_decoders: dict[str, msgspec.json.Decoder[Any]] = {
    str(kind.__struct_config__.tag): msgspec.json.Decoder(kind) for kind in events.ALL
}
_BEGINNING = '{"kind":"'
_by_beginning = {f"{_BEGINNING}{kind}".encode(): decoder for kind, decoder in _decoders.items()}
_KIND_FROM, _KIND_TO = len(_BEGINNING), len(_BEGINNING) + 40
_NUMBERS = frozenset((int, float, type(None)))
MIN = 1e-30  # no measured number except 0 is nearer to 0
_ZEROS = b"." + b"0" * 20
_LONG_TEXT = re.compile(rb'"(?<=[:,{\[\s]")[^"]{%d}' % MAX_LENGTH)  # excludes the closing quote of a name before many numbers
_TINY = re.compile(rb"[eE]-0*[1-9]\d|\.0{20}")


def encode(event: Event) -> bytes:
    """Encode an event as one sealed line, newline included. Raises ValueError if it does not fit a line."""
    sealed = seal(_encoder.encode(event))
    if len(sealed) > MAX_LINE:
        # shortening its strings as a reader would may make it fit
        sealed = seal(_encoder.encode(_cleaned(event)))
    if len(sealed) > MAX_LINE:
        raise ValueError(f"a {event.__struct_config__.tag} of {len(sealed)} bytes does not fit a line of {MAX_LINE}")
    return sealed


def as_line(event: Event) -> Line:
    """Return an event of this process in the form that every reader gets: encoded, decoded, cleaned and checked."""
    raw = encode(event)[:-1]
    return Line(raw, decode(raw))


def seal(body: bytes) -> bytes:
    """Return the bytes of a JSON object with their CRC as the last member, newline included."""
    head = body[:-1]
    return b'%s,"crc":"%08x"}\n' % (head, zlib.crc32(head))


def decode(raw: bytes, harmless: bool = False) -> Event | Unknown:
    """Decode the event of a line without its newline. Raises Corrupt unless the line is complete, intact and within its limits.

    `harmless` means that nothing in a line needs cleaning unless the line is long.
    """
    if raw[-_SEAL:] != b',"crc":"%08x"}' % zlib.crc32(raw[:-_SEAL]):
        raise Corrupt("checksum does not match")
    # no event has a member `crc`, so decoders ignore it
    try:
        # a line that begins with its kind, as this program writes it, is read in half the time
        decoder = _by_beginning.get(raw[: raw.find(b'"', _KIND_FROM, _KIND_TO)])
        if decoder is None:
            tag = _tag.decode(raw)
            decoder = _decoders.get(tag.kind)
            if decoder is None:
                short = harmless and len(raw) <= MAX_LENGTH
                return Unknown(sys.intern(tag.kind if short else sanitise(tag.kind)), raw, tag.t)
        event = decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Corrupt(sanitise(str(error))) from None
    if not (harmless or _harmless(raw)) or (len(raw) > MAX_LENGTH and _LONG_TEXT.search(raw)):
        event = _cleaned(event)
    return event


def decode_lines(chunks: Iterable[bytes]) -> Iterator[Line | Corrupt]:
    """Yield the complete lines of a byte stream in order; a damaged line as a Corrupt; a truncated last line is dropped."""
    for lines, harmless in _pieces(chunks):
        for raw in lines:
            if raw is None:
                yield Corrupt(f"a line of more than {MAX_LINE} bytes")
                continue
            try:
                yield Line(raw, decode(raw, harmless))
            except Corrupt as damage:
                yield damage


def split(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    """Yield lines without their newline; None for a line above 64 KiB, which is dropped."""
    for lines, _ in _pieces(chunks):
        yield from lines


def _pieces(chunks: Iterable[bytes]) -> Iterator[tuple[list[bytes | None], bool]]:
    """Yield the lines that end in each chunk, split as by split(), and whether all are harmless."""
    rest = b""
    skipping = False
    for chunk in chunks:
        read = rest + chunk
        lines: list[bytes | None] = [*read.split(b"\n")]
        rest = lines.pop() or b""
        if skipping and lines:
            skipping, lines[0] = False, None
        if len(read) > MAX_LINE:
            lines = [None if line is None or len(line) > MAX_LINE else line for line in lines]
        if skipping or len(rest) > MAX_LINE:
            rest, skipping = b"", True
        if lines:
            yield lines, _harmless(read)
    if skipping:
        yield [None], True


def _harmless(read: bytes) -> bool:
    """Return True if no short string needs cleaning and no number is too close to 0."""
    tiny = (b"e-" in read or b"E-" in read or _ZEROS in read) and _TINY.search(read)
    return read.isascii() and b"\\" not in read and b"\x7f" not in read and not tiny


def _cleaned(value: Any) -> Any:
    """Sanitise decoded values: printable strings and bounded numbers."""
    if isinstance(value, str):
        return sanitise(value)
    if isinstance(value, float) and abs(value) < MIN:
        return 0.0
    if isinstance(value, dict):
        return {_cleaned(k): _cleaned(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        if _NUMBERS.issuperset(map(type, value)):
            return type(value)([0.0 if type(v) is float and abs(v) < MIN else v for v in value])
        return type(value)([_cleaned(v) for v in value])
    if isinstance(value, msgspec.Struct):
        return type(value)(**{f: _cleaned(getattr(value, f)) for f in value.__struct_fields__})
    return value
