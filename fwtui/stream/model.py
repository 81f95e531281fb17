"""Everything that a screen or a table shows, folded from events. Live and replay use this and nothing else."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from fwtui.stream import events
from fwtui.stream.codec import Unknown
from fwtui.stream.run import Run, started
from fwtui.stream.throttle import throttled

CHECKPOINT_EVERY = 512
MOST_RUNS = 10_000  # of a session: checkpoints hold them all
GPM_WINDOW = 0.2  # a GPM reading is an average over up to so many seconds before it
POWER_WINDOW = 1.0  # and so is NVML's power


class Evidence(NamedTuple):
    """What telemetry said while a run's clean passes were timed; None where nothing was read of that time alone."""

    readings: int
    power_watts: float | None
    gpu_clock_mhz: float | None
    sm_occupancy: float | None
    dram_utilisation: float | None
    throttle: int
    integer_utilisation: float | None = None

    @property
    def throttled(self) -> tuple[str, ...]:
        """Reasons for lowered clocks, in words; empty when there were none."""
        return throttled(self.throttle)


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    index: int
    t: float
    header: events.Header | None
    device: events.Device | None
    runs: dict[int, Run]
    current: int | None
    fault: events.Fault | None
    end: events.End | None
    telemetry: int
    log: int
    markers: int
    unknown: int
    limits: dict[str, events.Limits]


@dataclass
class Model:
    """State after `index` events. Lists only grow (until seek); runs are immutable and replaced."""

    index: int = 0
    t: float = 0.0
    header: events.Header | None = None
    device: events.Device | None = None
    runs: dict[int, Run] = field(default_factory=dict)
    current: int | None = None  # id of the latest run
    fault: events.Fault | None = None  # the latest, until the next run begins
    end: events.End | None = None
    telemetry: list[events.Telemetry] = field(default_factory=list)
    log: list[events.Notice] = field(default_factory=list)
    markers: list[events.Marker] = field(default_factory=list)
    unknown: int = 0  # events of kinds that this version does not know
    limits: dict[str, events.Limits] = field(default_factory=dict)  # what the devices can do at most, by backend
    _checkpoints: list[_Checkpoint] = field(default_factory=list, compare=False, repr=False)
    _longest: tuple[list[Any], ...] = field(default_factory=lambda: ([], [], []), compare=False, repr=False)  # before a seek

    @property
    def run(self) -> Run | None:
        """The latest run."""
        return None if self.current is None else self.runs[self.current]

    @property
    def running(self) -> bool:
        return self.run is not None and self.run.state == "running"

    @property
    def reading(self) -> events.Telemetry | None:
        """The latest telemetry."""
        return self.telemetry[-1] if self.telemetry else None

    @property
    def gpu(self) -> events.Device | None:
        """The GPU's facts, or None where there is none (or none is known)."""
        return self.device if self.device is not None and self.device.present else None

    def apply(self, event: events.Event | Unknown) -> None:
        """Take one event. Never raises: what does not fit (an event for a run that never began) changes nothing."""
        if self.index % CHECKPOINT_EVERY == 0 and (not self._checkpoints or self._checkpoints[-1].index < self.index):
            self._checkpoints.append(self._checkpoint())
        self.index += 1
        self.t = max(self.t, event.t)
        match event:
            case Unknown():
                self.unknown += 1
            case events.Telemetry():
                self.telemetry.append(event)
            case events.Header():
                self.header = event
            case events.Device():
                self.device = merged(self.device, event)
            case events.RunStarted() if len(self.runs) < MOST_RUNS or event.run in self.runs:
                self.runs[event.run] = started(event)
                self.current = event.run
                self.fault = None
            case events.Notice():
                self.log.append(event)
            case events.Marker():
                self.markers.append(event)
            case events.Limits():
                self.limits = {**self.limits, event.backend: event}
            case events.End():
                self.end = event
            case events.Fault():
                self._take_fault(event)
            case _:
                self._take_run_event(event)

    def seek(self, index: int) -> int:
        """Go to the last known state at or before `index`, backwards or forwards; returns from where events are applied again."""
        place = bisect_right(self._checkpoints, index, key=lambda c: c.index)
        if not place:
            return self.index  # nothing was applied yet
        c = self._checkpoints[place - 1]
        if c.index <= self.index <= index:
            return self.index
        told = (self.telemetry, self.log, self.markers)
        self._longest = tuple(max(known, now, key=len) for known, now in zip(self._longest, map(list, told), strict=True))
        for kept, known, count in zip(told, self._longest, (c.telemetry, c.log, c.markers), strict=True):
            kept[:] = known[:count]
        self.index, self.t, self.header, self.device = c.index, c.t, c.header, c.device
        self.runs, self.current, self.fault, self.end = dict(c.runs), c.current, c.fault, c.end
        self.unknown, self.limits = c.unknown, c.limits
        return c.index

    def frozen(self) -> Model:
        """The same state in a model of its own, which stays as it is: runs are immutable, lists are copied."""
        return Model(
            index=self.index,
            t=self.t,
            header=self.header,
            device=self.device,
            runs=dict(self.runs),
            current=self.current,
            fault=self.fault,
            end=self.end,
            telemetry=list(self.telemetry),
            log=list(self.log),
            markers=list(self.markers),
            unknown=self.unknown,
        )

    def evidence(self, run: Run) -> Evidence | None:
        """Telemetry during the run's clean passes; None before there was one. A pass shorter than a reading has none."""
        window = run.clean_window
        if window is None:
            return None
        low = bisect_left(self.telemetry, window[0], key=lambda r: r.t)
        high = bisect_right(self.telemetry, window[1], key=lambda r: r.t)
        during = self.telemetry[low:high]
        counted = [r for r in during if r.t - GPM_WINDOW >= window[0]]
        averaged = [r for r in during if r.t - POWER_WINDOW >= window[0]]
        mask = 0
        for reading in during:
            mask |= reading.throttle or 0
        return Evidence(
            readings=len(during),
            power_watts=_mean([r.gpu_power_watts for r in averaged]),
            gpu_clock_mhz=_mean([r.gpu_clock_mhz for r in during]),
            sm_occupancy=_mean([r.sm_occupancy for r in counted]),
            dram_utilisation=_mean([r.dram_utilisation for r in counted]),
            throttle=mask,
            integer_utilisation=_mean([r.integer_utilisation for r in counted]),
        )

    def _take_run_event(self, event: events.Event) -> None:
        run = self.runs.get(getattr(event, "run", -1))
        if run is not None:
            self.runs[run.id] = run.after(event)

    def _take_fault(self, event: events.Fault) -> None:
        self.fault = event
        self.log.append(events.Notice(t=event.t, text=event.message, level="error"))
        self._take_run_event(event)

    def _checkpoint(self) -> _Checkpoint:
        return _Checkpoint(
            self.index,
            self.t,
            self.header,
            self.device,
            dict(self.runs),
            self.current,
            self.fault,
            self.end,
            len(self.telemetry),
            len(self.log),
            len(self.markers),
            self.unknown,
            self.limits,
        )


def merged(known: events.Device | None, news: events.Device) -> events.Device:
    """What two tellers know of one device: the later one's word wins where it says anything."""
    if known is None or not known.present or not news.present:
        return news if known is None or news.present or not known.present else known
    if known.name and news.name and known.name != news.name:
        return news  # another GPU
    said = {f: getattr(news, f) for f in news.__struct_fields__ if getattr(news, f) not in (None, "")}
    return msgspec.structs.replace(known, **said)


def _mean(values: list[float | None]) -> float | None:
    there = [v for v in values if v is not None]
    return fmean(there) if there else None
