"""Sessions with added or replaced markers: new files of copied lines, including those of unknown kinds.

A session is read twice and never held in memory, since its lines take several times the file size in memory.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import msgspec

from fwtui.common.atomic_file import atomic_write
from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.sessions.library import some
from fwtui.sessions.reader import SessionFile, open_session
from fwtui.sessions.recorder import SessionWriter
from fwtui.stream import codec, events

INCOMPLETE = "incomplete source"  # end reason for a source without an end
Copied = tuple[bytes, float]  # a line without its newline, and its time


class LinePosition(NamedTuple):
    """A line of a session: the number of lines before it, and its time."""

    before: int
    t: float


class Places(NamedTuple):
    """The first and last lines of the runs of a session, by number, and its last lines up to certain times."""

    begins: dict[int, LinePosition]
    ends: dict[int, LinePosition]
    upto: dict[float, int]
    duration: float


class Mark(NamedTuple):
    """The place of a marker: after that many seconds, or at the start or end of a run."""

    seconds: float | None = None
    run: int = 0
    end: bool = False
    source: str = ""  # file and line of the marker, for error messages

    def find(self, places: Places) -> LinePosition:
        """Return the line before the marker, and the marker's time. Raises Refused if the session has no such place.

        The counters of a run come after its end, and before a marker at that end.
        """
        if self.seconds is not None:
            if not 0 <= self.seconds <= places.duration:
                outside = f"{self.seconds:g} s is outside this session of {places.duration:g} s"
                raise Refused(f"{self.source}{outside}; pass a time in this session")
            return LinePosition(places.upto[self.seconds], self.seconds)
        position = (places.ends if self.end else places.begins).get(self.run)
        if position is None:
            nowhere = f"run {self.run} does not {'end' if self.end else 'begin'} in this session"
            runs = some([*map(str, places.begins)]) or "none"
            raise Refused(f"{self.source}{nowhere}; its runs are {runs}")
        return position


def mark(
    source: str | os.PathLike[str],
    markers: Sequence[tuple[Mark, events.Marker]],
    out: str | os.PathLike[str],
    title: str = "",
    instead: bool = False,
    replaces: bool = False,
) -> bool:
    """Write a session with added markers, or with `instead` in place of its markers; return whether the source was complete.

    Each marker gets the time of its place. With `replaces`, `out` may exist, and may be the source. Raises Refused if `source`
    is not a session, if it lacks a place, and if `out` exists or cannot be written.
    """
    with open_session(source) as session:
        there = places(session, [place.seconds for place, _ in markers if place.seconds is not None], unmarked=instead)
        after: dict[int, list[Copied]] = {}
        for place, marker in markers:
            index, t = place.find(there)
            raw = codec.encode(msgspec.structs.replace(marker, t=t))[:-1]
            after.setdefault(index, []).append((raw, t))
        lines = (line for line in session.lines() if not (instead and line.kind is events.Marker))
        header = next(lines)

        def marked() -> Iterator[Copied]:
            yield from after.get(0, ())
            for index, line in enumerate(lines, 1):
                if line.kind is not events.End:
                    yield line.raw, line.t
                yield from after.get(index, ())

        return _write(session, retitled(header.raw, title) if title else header.raw, marked(), out, replaces)


def places(session: SessionFile, seconds: Iterable[float] = (), unmarked: bool = False) -> Places:
    """Return the possible places of markers in a session, for these times; `unmarked`: as if it had no markers yet."""
    times = sorted({*seconds})
    positions = Places({}, {}, {}, 0.0)
    last = [0] * len(times)  # the last line after the time before and up to this one
    ended = set[int]()  # runs that ended since the last one began
    lines = (line for line in session.lines() if not (unmarked and line.kind is events.Marker))
    for index, line in enumerate(lines):
        if (place := bisect_left(times, line.t)) < len(times):
            last[place] = index
        match line.payload:
            case events.RunStarted(run=run, t=t):
                positions.begins.setdefault(run, LinePosition(index, t))
                ended.clear()
            case events.RunDone(run=run, t=t) if run not in positions.ends:
                positions.ends[run] = LinePosition(index, t)
                ended.add(run)
            case events.Counters(run=run, t=t) if run in ended:
                positions.ends[run] = LinePosition(index, t)
    positions.upto.update(zip(times, accumulate(last, max), strict=True))
    return positions._replace(duration=session.condition.duration)


def retitled(raw: bytes, title: str) -> bytes:
    """Return a header line, without newline, with another title and the same unknown fields."""
    members = msgspec.json.decode(raw)
    members.pop("crc", None)
    sealed = codec.seal(msgspec.json.encode({**members, "title": sanitise(title)}))
    if len(sealed) > codec.MAX_LINE:
        raise Refused(f"a line of {len(sealed)} bytes would be longer than {codec.MAX_LINE}; choose a shorter title")
    return sealed[:-1]


def _write(
    source: SessionFile, header: bytes, lines: Iterable[Copied], out: str | os.PathLike[str], replaces: bool = False
) -> bool:
    """Write a session of these lines, which are read from `source` one at a time; return whether `source` was complete."""
    if Path(out).suffix == ".gz":
        name = sanitise(Path(out).name)
        raise Refused(
            f"{name} would be compressed, but sessions are written uncompressed; write {sanitise(Path(out).stem)}, then gzip it"
        )
    with atomic_write(Path(out), "recorded to", "free some space or choose another place", force=replaces) as file:
        writer = SessionWriter(Path(file.name), os.dup(file.fileno()), header + b"\n")
        try:
            writer.copy(lines)
        except BaseException:  # including errors of the source
            writer.discard()
            raise
        condition = source.condition  # complete now that all lines are taken
        missing = condition.dropped + condition.damaged + condition.torn
        writer.close(*(("closed", missing) if condition.closed else (INCOMPLETE, max(missing, 1))))
        if writer.error is not None:
            raise writer.error
    return condition.complete
