"""Lines: a child's pipe and a session file carry the same bytes.

One JSON object per line, `kind` names its type, and its last member is the CRC-32 of everything before. A line is
at most 64 KiB, so no reader of an untrusted file holds more than that at once.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from fwtui.common.errors import Corrupt
from fwtui.common.text import MAX_LENGTH, clean
from fwtui.stream import events
from fwtui.stream.events import Event

MAX_LINE = 65536
_SEAL = len(',"crc":"00000000"}')


class Unknown(msgspec.Struct, frozen=True):
    """An event of an unknown kind; every tool that rewrites sessions keeps its raw line."""

    kind: str
    raw: bytes
    t: float = 0.0


class Line(NamedTuple):
    """One line, raw and decoded. Tools that rewrite files copy `raw`."""

    raw: bytes  # without the newline
    event: Event | Unknown


class _Tag(msgspec.Struct):
    kind: str
    t: events.Seconds = 0.0


_encoder = msgspec.json.Encoder()
_tag = msgspec.json.Decoder(_Tag)
_decoders: dict[bytes, msgspec.json.Decoder[Any]] = {
    str(kind.__struct_config__.tag).encode(): msgspec.json.Decoder(kind) for kind in events.ALL
}
_KIND_FIRST = b'{"kind":"'
_LONGEST_KIND = 40
LEAST = 1e-30  # nothing measured is nearer to 0, except 0
_ZEROS = b"." + b"0" * 20
_TINY = re.compile(rb"[eE]-0*[1-9]\d|\.0{20}")


def encode(event: Event) -> bytes:
    """The event as one sealed line, newline included. Raises ValueError if it does not fit a line."""
    sealed = seal(_encoder.encode(event))
    if len(sealed) > MAX_LINE:
        # shortening its strings as a reader would may make it fit
        sealed = seal(_encoder.encode(_cleaned(event)))
    if len(sealed) > MAX_LINE:
        raise ValueError(f"a {event.__struct_config__.tag} of {len(sealed)} bytes does not fit a line of {MAX_LINE}")
    return sealed


def as_line(event: Event) -> Line:
    """An event of this process as every reader will see it: encoded, decoded, cleaned and checked."""
    raw = encode(event)[:-1]
    return Line(raw, decode(raw))


def seal(body: bytes) -> bytes:
    """A JSON object's bytes with their CRC as the last member, newline included."""
    head = body[:-1]
    return b'%s,"crc":"%08x"}\n' % (head, zlib.crc32(head))


def decode(raw: bytes) -> Event | Unknown:
    """The event on one line (no newline). Raises Corrupt unless it is a whole, undamaged, bounded line."""
    body = _unseal(raw)
    try:
        decoder = _named_first(body)
        if decoder is None:
            tag = _tag.decode(body)
            decoder = _decoders.get(tag.kind.encode())
            if decoder is None:
                return Unknown(kind=clean(tag.kind), raw=raw, t=tag.t)
        event = decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Corrupt(clean(str(error))) from None
    if len(body) > MAX_LENGTH or b"\\" in body or b"\x7f" in body or not body.isascii() or _has_tiny(body):
        try:
            event = _cleaned(event)
        except RecursionError:
            raise Corrupt("nested too deeply") from None
    return event


def decode_lines(chunks: Iterable[bytes]) -> Iterator[Line | Corrupt]:
    """The whole lines of a byte stream in order; a damaged line is yielded as its Corrupt, a torn last line is dropped."""
    for raw in split(chunks):
        if raw is None:
            yield Corrupt(f"a line of more than {MAX_LINE} bytes")
            continue
        try:
            yield Line(raw, decode(raw))
        except Corrupt as damage:
            yield damage


def split(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    """Lines without their newline; None for each line over 64 KiB, which is dropped."""
    held = b""
    skipping = False
    for chunk in chunks:
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            line = held + piece
            held = b""
            if skipping or len(line) > MAX_LINE:
                skipping = False
                yield None
            else:
                yield line
        if skipping:
            continue
        held += rest
        if len(held) > MAX_LINE:
            held, skipping = b"", True
    if skipping:
        yield None


def _named_first(body: bytes) -> msgspec.json.Decoder[Any] | None:
    """The decoder of a body that begins with its kind, as this program writes it: halves the time to read a long session."""
    if not body.startswith(_KIND_FIRST):
        return None
    begin = len(_KIND_FIRST)
    return _decoders.get(body[begin : body.find(b'"', begin, begin + _LONGEST_KIND)])


def _unseal(raw: bytes) -> bytes:
    head, tail = raw[:-_SEAL], raw[-_SEAL:]
    if tail != b',"crc":"%08x"}' % zlib.crc32(head):
        raise Corrupt("checksum does not match")
    return head + b"}"


def _has_tiny(body: bytes) -> bool:
    """Whether it may hold a number so near to 0 that a quotient by it is not finite."""
    return (b"e-" in body or b"E-" in body or _ZEROS in body) and _TINY.search(body) is not None


def _cleaned(value: Any) -> Any:
    """Strings that are safe to show, and numbers that are safe to divide by."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and abs(value) < LEAST:
        return 0.0
    if isinstance(value, dict):
        return {_cleaned(k): _cleaned(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cleaned(v) for v in value)
    if isinstance(value, msgspec.Struct):
        return type(value)(**{f: _cleaned(getattr(value, f)) for f in value.__struct_fields__})
    return value
