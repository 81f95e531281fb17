"""A session as a trace that Perfetto and chrome://tracing open: Google's Trace Event Format, as JSON.

Slices (`X`) of one track nest, and times are in microseconds. The format:
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

from fwtui.common.as_json import as_json
from fwtui.stream import events
from fwtui.stream.quantity import CELSIUS, DURATION, MEGAHERTZ, MEMORY, PERCENT, TRAFFIC, WATTS

ENDING = ".perfetto.json"
RUNS, RANKS, HOST, FIRST_GPU = 1, 2, 3, 100  # processes of the trace
RUN, STAGES, PASSES, PHASES, ROUNDS = range(1, 6)  # tracks of RUNS
TRACKS = {
    RUN: "runs",
    STAGES: "stages",
    PASSES: "timed repetitions",
    PHASES: "phases of one pass, one after the other",
    ROUNDS: "sampled rounds of that pass",
}
UNITS = {WATTS: "W", MEGAHERTZ: "MHz", CELSIUS: "°C", PERCENT: "%", MEMORY: "bytes", DURATION: "s", TRAFFIC: "bytes/s"}
MICROSECONDS = 1e6
TraceEvent = dict[str, Any]


def write(header: events.Header, lines: Iterable[events.Event], out: TextIO) -> int:
    """Write the trace, one event per line; return the number of events."""
    metadata = {"title": header.title, "program": header.program, "created": header.created, "system": header.machine.system}
    out.write(f'{{"displayTimeUnit": "ms", "otherData": {as_json(metadata, ensure_ascii=False)}, "traceEvents": [')
    count = 0
    for event in trace(lines):
        out.write(f"{',' if count else ''}\n{as_json(event, ensure_ascii=False)}")
        count += 1
    out.write("\n]}\n")
    return count


def trace(lines: Iterable[events.Event]) -> Iterator[TraceEvent]:
    """The events of the trace."""
    return _Tracer().events(lines)


@dataclass
class _OpenRun:
    started: events.RunStarted
    stages: dict[str, float] = field(default_factory=dict)  # when each began that has not ended
    relaxations: int = 0
    rounds: list[events.Round] = field(default_factory=list)
    phases: events.Phases | None = None

    @property
    def name(self) -> str:
        e = self.started.experiment
        return f"run {self.started.run}: {e.kernel} n {e.n} {e.dtype}"


class _Tracer:
    def __init__(self) -> None:
        self._runs: dict[int, _OpenRun] = {}
        self._ends: dict[tuple[int, int], float] = {}  # end of the last slice on each track
        self._named: set[tuple[int, int | None]] = set()
        self._devices: dict[int, str] = {}

    def events(self, lines: Iterable[events.Event]) -> Iterator[TraceEvent]:
        for track, name in {None: "runs", **TRACKS}.items():
            yield from self._name(RUNS, track, name)
        last = 0.0
        for event in lines:
            last = max(last, event.t)
            yield from self._of(event)
        for run in [*self._runs.values()]:
            yield from self._finished(run, last, {"outcome": "unknown: the session ends before"})

    def _of(self, event: events.Event) -> Iterator[TraceEvent]:
        match event:
            case events.RunStarted():
                self._runs[event.run] = _OpenRun(event)
                for rank in event.ranks:
                    yield from self._name(RANKS, None, "ranks, phases of one pass")
                    yield from self._name(RANKS, rank.rank + 1, str(rank))
            case events.Device():
                self._devices[event.gpu] = event.name
            case events.Telemetry():
                yield from self._counters(event)
            case events.Marker() | events.Notice() | events.Fault():
                text = event.message if isinstance(event, events.Fault) else event.text
                kind = type(event).__name__.lower()
                yield {"ph": "i", "s": "g", "cat": kind, "name": text, "ts": _micro(event.t), "pid": RUNS, "tid": RUN}
            case _:
                run = self._runs.get(getattr(event, "run", None) or 0)
                if run is not None:
                    yield from self._of_run(run, event)

    def _of_run(self, run: _OpenRun, event: events.Event) -> Iterator[TraceEvent]:
        match event:
            case events.Planned():
                run.relaxations = event.relaxations
            case events.Stage(seconds=None):
                run.stages[event.name] = event.t
            case events.Stage():
                begun = run.stages.pop(event.name, event.t - (event.seconds or 0.0))
                args = {"seconds": event.seconds, "bytes": event.bytes}
                yield self._slice(RUNS, STAGES, event.name, begun, event.t, args)
            case events.Sample():
                yield self._slice(RUNS, PASSES, run.name, event.since, event.since + event.seconds, {"seconds": event.seconds})
            case events.Round():
                run.rounds.append(event)
            case events.Phases():
                run.phases = event
                yield from self._parts(RUNS, PHASES, event.t - event.seconds, event.parts)
            case events.RankPhases():
                yield from self._parts(RANKS, event.rank + 1, event.t - event.seconds, event.parts)
            case events.RunDone():
                args = {"outcome": event.outcome, "median": event.median, "count": event.count, "message": event.message}
                yield from self._finished(run, event.t, args)

    def _finished(self, run: _OpenRun, end: float, args: dict[str, Any]) -> Iterator[TraceEvent]:
        del self._runs[run.started.run]
        yield from self._rounds(run)
        yield self._slice(RUNS, RUN, run.name, run.started.t, end, args | {"title": run.started.title})

    def _rounds(self, run: _OpenRun) -> Iterator[TraceEvent]:
        """Yield an event per round, placed in the instrumented repetition by the share of relaxations before the round."""
        if run.phases is None or not run.relaxations:
            return
        begun = run.phases.t - run.phases.seconds
        names = [phase.key for phase in run.started.phases]
        for one in sorted(run.rounds, key=lambda one: one.first):
            at = begun + run.phases.seconds * min(one.first / run.relaxations, 1.0)
            for name, seconds in zip(names, one.seconds, strict=False):
                if seconds:
                    yield self._slice(RUNS, ROUNDS, name, at, at + seconds, {"round": one.index, "seconds": seconds})
                    at += seconds

    def _parts(self, process: int, track: int, at: float, parts: Iterable[events.Part]) -> Iterator[TraceEvent]:
        for part in parts:
            args = {name: getattr(part, name) for name in ("seconds", "launches", "relaxations", "device_bytes", "link_bytes")}
            yield self._slice(process, track, part.phase, at, at + part.seconds, args)
            at += part.seconds

    def _counters(self, event: events.Telemetry) -> Iterator[TraceEvent]:
        for name, quantity in events.QUANTITIES.items():
            value = getattr(event, name)
            if value is None:
                continue
            process = HOST if quantity.host else FIRST_GPU + event.gpu
            device = f"GPU {event.gpu}: {self._devices.get(event.gpu, '')}".rstrip(": ")
            yield from self._name(process, None, "host" if quantity.host else device)
            unit = UNITS[quantity.unit]
            args = {unit: 100 * value if quantity.unit is PERCENT else value}
            yield {"ph": "C", "name": quantity.title, "ts": _micro(event.t), "pid": process, "tid": 0, "args": args}

    def _slice(self, process: int, track: int, name: str, begun: float, end: float, args: dict[str, Any]) -> TraceEvent:
        """Return a slice; if it would overlap with the previous one, it begins at the end of that."""
        begun = max(begun, self._ends.get((process, track), begun))
        end = max(begun, end)
        self._ends[process, track] = end
        ts = _micro(begun)
        filled = {key: value for key, value in args.items() if value not in (None, "")}
        where = {"pid": process, "tid": track}
        return {"ph": "X", "cat": "fwtui", "name": name, "ts": ts, "dur": max(0.0, _micro(end) - ts), **where, "args": filled}

    def _name(self, process: int, track: int | None, name: str) -> Iterator[TraceEvent]:
        """Name a track, or the process itself, once."""
        if (process, track) not in self._named:
            self._named.add((process, track))
            kind, place = ("process", process) if track is None else ("thread", track)
            for key, value in ((f"{kind}_name", {"name": name}), (f"{kind}_sort_index", {"sort_index": place})):
                yield {"ph": "M", "name": key, "pid": process, "tid": track or 0, "args": value}


def _micro(seconds: float) -> float:
    """Microseconds, to the nanosecond."""
    return round(MICROSECONDS * seconds, 3)
