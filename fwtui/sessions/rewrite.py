"""New sessions from old ones: part of one, or several in a row. Lines are copied, unknown kinds too."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from fwtui.common.errors import Corrupt, Refused
from fwtui.common.text import clean
from fwtui.sessions.reader import Loaded, load
from fwtui.sessions.recorder import Recorder
from fwtui.stream import codec, events
from fwtui.stream.codec import Line, Unknown

INCOMPLETE = "incomplete source"  # end reason for a source without an end
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
# kinds that affect no result, only what is shown during a run
PASSING: Mapping[str, type[events.Event]] = {"rounds": events.Round, "progress": events.Progress, "telemetry": events.Telemetry}
_TIMES = ("t", "since")  # fields that are seconds since the session began


class Cut(NamedTuple):
    """The part of a session to keep: seconds since it began, runs by number (None: all), telemetry readings per second, and
    kinds from PASSING to drop.
    """

    start: float = 0.0
    stop: float = math.inf
    runs: frozenset[int] | None = None
    hz: float | None = None
    without: frozenset[str] = frozenset()


class Mark(NamedTuple):
    """The place of a marker: after that many seconds, or at the start or end of a run."""

    seconds: float | None = None
    run: int = 0
    end: bool = False
    told: str = ""  # where the user said so, for the sentence that refuses it

    def find(self, loaded: Loaded) -> int:
        """The line before the marker. Raises Refused if the session has no such place.

        The counters and answers of a run come after its end, and before a marker that stands there.
        """
        if self.seconds is not None:
            if not 0 <= self.seconds <= loaded.duration:
                outside = f"{self.seconds:g} s is outside this session of {loaded.duration:g} s"
                raise Refused(f"{self.told}{outside}; choose a time in it")
            return max((i for i, line in enumerate(loaded.lines) if line.event.t <= self.seconds), default=0)
        kind = events.RunDone if self.end else events.RunStarted
        for index, line in enumerate(loaded.lines):
            if isinstance(line.event, kind) and line.event.run == self.run:
                return self._all_known(loaded, index) if self.end else index
        nowhere = f"run {self.run} does not {'end' if self.end else 'begin'} in this session"
        raise Refused(f"{self.told}{nowhere}; its runs are {_listed(loaded)}")

    def _all_known(self, loaded: Loaded, index: int) -> int:
        """The last line before another run that tells counters or answers of this one, which ended at that line."""
        for later, line in enumerate(loaded.lines[index + 1 :], index + 1):
            if isinstance(line.event, events.RunStarted):
                break
            if isinstance(line.event, (events.Counters, events.Answers)) and line.event.run == self.run:
                index = later
        return index


class Written(NamedTuple):
    """The outcome: events in the new file and events in the sources."""

    kept: int
    of: int
    complete: bool  # no source had lost events


def trim(source: str | os.PathLike[str], cut: Cut, out: str | os.PathLike[str]) -> Written:
    """Write part of a session as a new one, with unchanged times and run numbers.

    A run that began before the start is kept with its beginning. Raises Refused if it is not a session, the cut leaves
    nothing, or the file exists.
    """
    loaded = load(source)
    if cut.runs is not None and (absent := cut.runs - {*_runs(loaded)}):
        raise Refused(f"there is no run {min(absent)} in this session; its runs are {_listed(loaded)}")
    lines = list(_wanted(loaded, cut))
    if all(isinstance(line.event, (events.Header, events.Device, events.End)) for line in lines):
        stop = f"{cut.stop:g} s" if math.isfinite(cut.stop) else "the end"
        raise Refused(f"nothing is left between {cut.start:g} s and {stop} of {loaded.duration:g} s; choose more")
    return _write([loaded], lines, out, hz=cut.hz)


def mark(
    source: str | os.PathLike[str],
    markers: Sequence[tuple[Mark, events.Marker]],
    out: str | os.PathLike[str],
    title: str = "",
    instead: bool = False,
) -> Written:
    """Write a session with added markers, or with these `instead` of its own; a marker's time is that of its place.

    Raises Refused for places that it does not have, and like trim().
    """
    loaded = load(source)
    if instead:
        loaded = unmarked(loaded)
    after: dict[int, list[events.Marker]] = {}
    for place, marker in markers:
        index = place.find(loaded)
        t = loaded.lines[index].event.t if place.seconds is None else place.seconds
        after.setdefault(index, []).append(msgspec.structs.replace(marker, t=t))
    lines: list[Line] = []
    for index, line in enumerate(loaded.lines):
        lines.append(line)
        lines += map(codec.as_line, after.get(index, ()))
    return _write([loaded], lines, out, title)


def unmarked(loaded: Loaded) -> Loaded:
    """The session without its markers."""
    return replace(loaded, lines=[line for line in loaded.lines if not isinstance(line.event, events.Marker)])


def merge(sources: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str], title: str = "") -> Written:
    """Join several sessions of one machine into one: later ones get later times and run numbers.

    A marker shows the start of each. Raises Refused for files that are not sessions, for sessions of different machines or
    GPUs (one session has the peak of one GPU), and if the file exists.
    """
    parts = [load(source) for source in sources]
    names, machines = [clean(os.path.basename(os.fspath(source))) for source in sources], [_machine(part) for part in parts]
    for name, machine in zip(names, machines, strict=True):
        if machine != machines[0]:
            both = f"{names[0]} was recorded on {machines[0]} and {name} on {machine}"
            raise Refused(f"{both}; only sessions of one machine are merged")
    lines: list[Line] = []
    offset, first_run = 0.0, 0
    for part in parts:
        lines.append(codec.as_line(events.Marker(t=offset, text=_origin(part))))
        lines += [_shifted(line, offset, first_run) for line in part.lines if not isinstance(line.event, events.Header)]
        offset = round(offset + part.duration, 6)
        first_run += max(_runs(part), default=0)
    written = _write(parts, lines, out, title)
    # one header and one end stand for those of all, and each start is a marker that no source has
    ends = sum(part.end is not None for part in parts)
    joined = len(parts) - 1 + max(0, ends - 1)
    return written._replace(kept=written.kept - len(parts), of=written.of - joined)


def retitled(raw: bytes, title: str) -> bytes:
    """A header's line, without newline, with another title; unknown fields are kept."""
    return _rewritten(raw, {"title": clean(title)})


def _write(
    sources: Sequence[Loaded], lines: Iterable[Line], out: str | os.PathLike[str], title: str = "", hz: float | None = None
) -> Written:
    header = sources[0].lines[0]
    if title:
        raw = retitled(header.raw, title)
        header = Line(raw, codec.decode(raw))
    recorder = Recorder.at(out, header, telemetry_hz=hz)
    for line in lines:
        recorder.write(line)
    whole = all(source.closed for source in sources)
    lost = sum(source.dropped + source.damaged + source.torn for source in sources)
    recorder.close("closed" if whole else INCOMPLETE, dropped=lost if whole else max(lost, 1))
    if recorder.failure is not None:
        os.unlink(recorder.path)
        raise Refused(f"{recorder.failure}; free some space or choose another place")
    added = all(source.end is None for source in sources)  # the end, which no source has
    return Written(
        recorder.events - added, sum(len(source.lines) for source in sources), all(source.complete for source in sources)
    )


def _wanted(loaded: Loaded, cut: Cut) -> Iterator[Line]:
    windows = _windows(loaded)
    runs = {run for run, (begin, end) in windows.items() if begin <= cut.stop and end >= cut.start}
    if cut.runs is not None:
        runs &= cut.runs
    chosen = [windows[run] for run in runs]
    unwanted = tuple(PASSING[name] for name in cut.without)
    for line in loaded.lines:
        t, run = line.t, run_of(line)
        if t > cut.stop or line.kind in unwanted:
            continue
        if line.kind is events.Device:
            yield line
        elif run is not None and run in windows:
            if run in runs:
                yield line
        elif t >= cut.start and (cut.runs is None or any(begin <= t <= end for begin, end in chosen)):
            yield line


def _windows(loaded: Loaded) -> dict[int, tuple[float, float]]:
    """The start and end of each run; an unfinished one lasts until the session's end."""
    found: dict[int, tuple[float, float]] = {}
    for line in loaded.lines:
        match line.event:
            case events.RunStarted(run=run, t=t):
                found[run] = (found.get(run, (t, t))[0], loaded.duration)
            case events.RunDone(run=run, t=t) | events.Fault(run=int(run), t=t) if run in found:
                found[run] = (found[run][0], t)
    return found


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


def _runs(loaded: Loaded) -> list[int]:
    return [line.event.run for line in loaded.lines if isinstance(line.event, events.RunStarted)]


def _listed(loaded: Loaded) -> str:
    return ", ".join(map(str, _runs(loaded))) or "none"


def _shifted(line: Line, offset: float, first_run: int) -> Line:
    """The line with shifted times and run number. Raises Refused if those are out of bounds."""
    members = _members(line)
    if not members or not (offset or first_run):
        return line
    changes = {name: round(members[name] + offset, 9) for name in _TIMES if isinstance(members.get(name), (int, float))}
    run = run_of(line)
    if run is not None:
        changes["run"] = run + first_run
    raw = _rewritten(line.raw, changes)
    try:
        return Line(raw, codec.decode(raw))
    except Corrupt as damage:
        raise Refused(f"these sessions do not fit one after the other: {damage}; trim them first") from None


def _rewritten(raw: bytes, changes: dict[str, Any]) -> bytes:
    members = msgspec.json.decode(raw)
    members.pop("crc", None)
    sealed = codec.seal(msgspec.json.encode({**members, **changes}))
    if len(sealed) > codec.MAX_LINE:
        raise Refused(f"a line of {len(sealed)} bytes would be longer than {codec.MAX_LINE}; choose a shorter title")
    return sealed[:-1]


def _machine(part: Loaded) -> str:
    gpus = [e.name for line in part.lines if isinstance(e := line.event, events.Device) and e.present and e.name]
    return " with ".join([part.header.machine.cpu or "an unknown processor", *gpus[-1:]])


def _origin(part: Loaded) -> str:
    title = part.header.title or "a session"
    return f"{title}, recorded {part.header.created} by {part.header.program}"
