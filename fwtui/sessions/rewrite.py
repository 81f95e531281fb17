"""New sessions from old ones: part of one, or several in a row. Lines are copied, unknown kinds too.

A session is read twice rather than held in memory, where its lines are several times its file.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fwtui.common.atomic_file import new_whole_file, sync_folder, whole_file
from fwtui.common.errors import Corrupt, Refused
from fwtui.common.text import clean
from fwtui.sessions.library import some
from fwtui.sessions.reader import SessionFile, open_session
from fwtui.sessions.recorder import SessionWriter, Thinned
from fwtui.stream import codec, events
from fwtui.stream.codec import Line, Unknown

INCOMPLETE = "incomplete source"  # end reason for a source without an end
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
# kinds that affect no result, only what is shown during a run
PASSING: Mapping[str, type[events.Event]] = {"rounds": events.Round, "progress": events.Progress, "telemetry": events.Telemetry}
_TIMES = ("t", "since")  # fields that are seconds since the session began
Copied = tuple[bytes, float]  # a line without its newline, and its time


class SessionCut(NamedTuple):
    """The part of a session to keep: seconds since it began, runs by number (None: all), telemetry readings per second, and
    kinds from PASSING to drop.
    """

    start: float = 0.0
    stop: float = math.inf
    runs: frozenset[int] | None = None
    hz: float | None = None
    without: frozenset[str] = frozenset()


class LinePosition(NamedTuple):
    """A line of a session: how many are before it, and its time."""

    before: int
    t: float


class Places(NamedTuple):
    """Where the runs of a session begin and end, by number, and its last lines up to certain times."""

    begins: dict[int, LinePosition]
    ends: dict[int, LinePosition]
    upto: dict[float, int]
    duration: float


class Mark(NamedTuple):
    """The place of a marker: after that many seconds, or at the start or end of a run."""

    seconds: float | None = None
    run: int = 0
    end: bool = False
    source: str = ""  # where the user said so, for the sentence that refuses it

    def find(self, places: Places) -> LinePosition:
        """The line before the marker, and the marker's time. Raises Refused if the session has no such place.

        The counters and answers of a run come after its end, and before a marker that stands there.
        """
        if self.seconds is not None:
            if not 0 <= self.seconds <= places.duration:
                outside = f"{self.seconds:g} s is outside this session of {places.duration:g} s"
                raise Refused(f"{self.source}{outside}; choose a time in it")
            return LinePosition(places.upto[self.seconds], self.seconds)
        position = (places.ends if self.end else places.begins).get(self.run)
        if position is None:
            nowhere = f"run {self.run} does not {'end' if self.end else 'begin'} in this session"
            raise Refused(f"{self.source}{nowhere}; its runs are {_listed(places.begins)}")
        return position


class RewriteCounts(NamedTuple):
    """The outcome: events in the new file and events in the sources."""

    events: int
    of: int
    complete: bool  # no source had lost events


def trim(source: str | os.PathLike[str], cut: SessionCut, out: str | os.PathLike[str]) -> RewriteCounts:
    """Write part of a session as a new one, with unchanged times and run numbers.

    A run that began before the start is kept with its beginning. Raises Refused if it is not a session, the cut leaves
    nothing, or the file exists.
    """
    with open_session(source) as session:
        windows, duration, codes = _windows(session)
        if cut.runs is not None and (absent := cut.runs - windows.keys()):
            raise Refused(f"there is no run {min(absent)} in this session; its runs are {_listed(windows)}")
        lines = session.lines()
        header = next(lines)

        def selected_lines() -> Iterator[Copied]:
            left = False
            for line in _selection(lines, cut, windows, codes):
                left = left or line.kind is not events.Device
                yield line.raw, line.t
            if not left:
                stop = f"{cut.stop:g} s" if math.isfinite(cut.stop) else "the end"
                raise Refused(f"nothing is left between {cut.start:g} s and {stop} of {duration:g} s; choose more")

        return _write([session], header.raw, selected_lines(), out)


def mark(
    source: str | os.PathLike[str],
    markers: Sequence[tuple[Mark, events.Marker]],
    out: str | os.PathLike[str],
    title: str = "",
    instead: bool = False,
    replaces: bool = False,
) -> RewriteCounts:
    """Write a session with added markers, or with these `instead` of its own; a marker's time is that of its place.

    With `replaces`, `out` may exist, and may be the source. Raises Refused for places that it does not have, and like trim().
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

        return _write([session], header.raw, marked(), out, title, replaces)


def places(session: SessionFile, seconds: Iterable[float] = (), unmarked: bool = False) -> Places:
    """The places in a session where markers may stand, for these times; `unmarked`: as if it had no markers yet."""
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
            case events.Counters(run=run, t=t) | events.Answers(run=run, t=t) if run in ended:
                positions.ends[run] = LinePosition(index, t)
    positions.upto.update(zip(times, accumulate(last, max), strict=True))
    return positions._replace(duration=session.condition.duration)


def merge(sources: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str], title: str = "") -> RewriteCounts:
    """Join several sessions of one machine into one: later ones get later times and run numbers.

    A marker shows the start of each. Raises Refused for files that are not sessions, for sessions of different machines or
    GPUs (one session has the peak of one GPU), and if the file exists.
    """
    with open_session(sources[0]) as first:
        header = next(first.lines())
    read: list[SessionFile] = []
    written = _write(read, header.raw, _in_a_row(sources, read), out, title)
    # one header and one end stand for those of all, and each start is a marker that no source has
    ends = sum(part.condition.end is not None for part in read)
    joined = len(read) - 1 + max(0, ends - 1)
    return written._replace(events=written.events - len(read), of=written.of - joined)


def _in_a_row(sources: Sequence[str | os.PathLike[str]], read: list[SessionFile]) -> Iterator[Copied]:
    """The events of these sessions, one after the other; each session is added to those that are read."""
    offset, first_run, machine = 0.0, 0, ""
    for source in sources:
        gpu, last_run = list[str](), 0
        with open_session(source) as session:
            read.append(session)
            text = f"{session.header.title or 'a session'}, recorded {session.header.created} by {session.header.program}"
            yield codec.encode(events.Marker(t=offset, text=text))[:-1], offset
            for line in session.lines():
                match line.payload:
                    case events.Header() | events.End():
                        continue
                    case events.Device(name=name, present=True) if name:
                        gpu = [name]
                    case events.RunStarted(run=run):
                        last_run = max(last_run, run)
                yield _shifted(line, offset, first_run) if offset or first_run else (line.raw, line.t)
        here = " with ".join([session.header.machine.cpu or "an unknown processor", *gpu])
        machine = machine or here
        if here != machine:
            names = [clean(os.path.basename(os.fspath(name))) for name in (sources[0], source)]
            both = f"{names[0]} was recorded on {machine} and {names[1]} on {here}"
            raise Refused(f"{both}; only sessions of one machine are merged")
        offset = round(offset + session.condition.duration, 6)
        first_run += last_run


def retitled(raw: bytes, title: str) -> bytes:
    """A header's line, without newline, with another title; unknown fields are kept."""
    return _sealed(msgspec.json.decode(raw), {"title": clean(title)})


def _write(
    read: Sequence[SessionFile],
    header: bytes,
    lines: Iterable[Copied],
    out: str | os.PathLike[str],
    title: str = "",
    replaces: bool = False,
) -> RewriteCounts:
    """Write a session of these lines, one at a time, which are read from these sources."""
    if Path(out).suffix == ".gz":
        name = clean(Path(out).name)
        raise Refused(f"{name} would be packed, and a session is written unpacked; write {clean(Path(out).stem)}, then gzip it")
    raw = retitled(header, title) if title else header
    opened = whole_file if replaces else new_whole_file
    with opened(out, "recorded to", "free some space or choose another place") as file:
        writer = SessionWriter(Path(file.name if replaces else out), os.dup(file.fileno()), raw + b"\n")
        try:
            writer.copy(lines)
        except BaseException:  # also that of a source
            writer.discard()
            raise
        count = writer.events
        conditions = [source.condition for source in read]  # complete now that all lines are taken
        missing = sum(one.dropped + one.damaged + one.torn for one in conditions)
        whole = all(one.closed for one in conditions)
        writer.close(*(("closed", missing) if whole else (INCOMPLETE, max(missing, 1))))
        if writer.error is not None:
            raise writer.error
        sync_folder(Path(out).parent)  # the sources may be deleted next
    ended = any(one.end is not None for one in conditions)
    return RewriteCounts(count + ended, sum(one.whole for one in conditions), all(one.complete for one in conditions))


def _selection(
    lines: Iterable[Line], cut: SessionCut, windows: Mapping[int, tuple[float, float]], codes: Mapping[int, set[str]]
) -> Iterator[Line]:
    runs = {run for run, (begin, end) in windows.items() if begin <= cut.stop and end >= cut.start}
    if cut.runs is not None:
        runs &= cut.runs
    spans = [windows[run] for run in runs]
    needed = {code for run in runs for code in codes.get(run, ())}
    unwanted = (events.End, *(PASSING[name] for name in cut.without))
    thinned = Thinned(cut.hz)
    for line in lines:
        payload, t, kind = line.payload, line.t, line.kind
        if t > cut.stop or kind in unwanted:
            continue
        run = run_of(line)
        if run is not None and run in windows:
            if run not in runs:
                continue
        elif isinstance(payload, events.CodeText):  # an earlier run may have told it
            if payload.code not in needed:
                continue
        elif kind is not events.Device and (
            t < cut.start or not (cut.runs is None or any(begin <= t <= end for begin, end in spans))
        ):
            continue
        if not (isinstance(payload, events.Telemetry) and thinned.is_surplus(payload)):
            yield line


def _windows(session: SessionFile) -> tuple[dict[int, tuple[float, float]], float, dict[int, set[str]]]:
    """The start and end of each run, the session's duration, and the codes that each run has samples of; an unfinished run
    lasts until the session's end.
    """
    windows: dict[int, tuple[float, float]] = {}
    codes: dict[int, set[str]] = {}
    for line in session.lines():
        match line.payload:
            case events.RunStarted(run=run, t=t):
                windows[run] = (windows.get(run, (t, t))[0], math.inf)
            case events.RunDone(run=run, t=t) | events.Fault(run=int(run), t=t) if run in windows:
                windows[run] = (windows[run][0], t)
            case events.CodeSamples(run=run, code=code):
                codes.setdefault(run, set()).add(code)
    last = session.condition.duration
    return {run: (begin, min(end, last)) for run, (begin, end) in windows.items()}, last, codes


def run_of(line: Line) -> int | None:
    """The run that an event belongs to, or None."""
    run = _members(line).get("run") if isinstance(line.event, Unknown) else getattr(line.event, "run", None)
    return run if isinstance(run, int) and not isinstance(run, bool) else None


def _members(line: Line) -> dict[str, Any]:
    """All fields of a line; empty for a newer kind that cannot be decoded."""
    try:
        return msgspec.json.decode(line.raw)
    except _UNREADABLE:
        return {}


def _listed(runs: Iterable[int]) -> str:
    return some([*map(str, runs)]) or "none"


def _shifted(line: Line, offset: float, first_run: int) -> Copied:
    """The line with shifted times and run number, and its time. Raises Refused if those are out of bounds."""
    members = _members(line)
    if not members:
        return line.raw, line.t
    changes = {name: round(members[name] + offset, 9) for name in _TIMES if isinstance(members.get(name), (int, float))}
    run = run_of(line)
    if run is not None:
        changes["run"] = run + first_run
    raw = _sealed(members, changes)
    try:
        return raw, codec.decode(raw).t
    except Corrupt as error:
        raise Refused(f"these sessions do not fit one after the other: {error}; trim them first") from None


def _sealed(members: dict[str, Any], changes: dict[str, Any]) -> bytes:
    members.pop("crc", None)
    sealed = codec.seal(msgspec.json.encode({**members, **changes}))
    if len(sealed) > codec.MAX_LINE:
        raise Refused(f"a line of {len(sealed)} bytes would be longer than {codec.MAX_LINE}; choose a shorter title")
    return sealed[:-1]
