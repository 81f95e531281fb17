"""Everything that a screen or a table shows, folded from events. The only state of live sessions and replays."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from itertools import islice
from operator import attrgetter, or_
from statistics import fmean
from typing import Any, Generic, TypeVar, overload

from msgspec import Struct, field
from msgspec.structs import replace

from fwtui.experiment.device import FIRST_GPU, DeviceId
from fwtui.stream import events
from fwtui.stream.codec import Unknown
from fwtui.stream.run import Evidence, Run, first_runs, sharing, started
from fwtui.stream.runs import Runs

CHECKPOINT_EVERY = 512  # events, and more in a long session
MOST_CHECKPOINTS = 256
WHOLE_RUNS = 50  # that a live session holds with every pass, round and distance map
MOST_READINGS = 3000  # of one device, in a live session: five minutes at 10 Hz, older ones less densely
MOST_RUNS = 10_000  # of a session
MOST_DEVICES = 64
STALE = 1.5  # seconds after which a GPU whose readings have ended no longer counts as followed
HOST = tuple(name for name, quantity in events.QUANTITIES.items() if quantity.host)
_of_host = attrgetter(*HOST)
NOTHING = (None,) * len(HOST)
FREQUENT = (events.Progress, events.Sample, events.Round, events.Occupancy)  # that are about a run alone
GPM_WINDOW = 0.2  # a GPM reading is an average over up to this many seconds before it
POWER_WINDOW = 1.0  # and so is NVML's power
K = TypeVar("K")
T = TypeVar("T")


class History(Sequence[T]):
    """A sequence that grows by one at a time and never changes.

    Successive versions share one list, so that growing costs nothing.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[T] | None = None, length: int = 0) -> None:
        self._items = [] if items is None else items
        self._length = length

    def followed_by(self, item: T) -> History[T]:
        """This and one more."""
        items = self._items
        if self._length < len(items) and items[self._length] is not item:
            items = items[: self._length]  # another version has already grown from it
        if self._length == len(items):
            items.append(item)
        return History(items, self._length + 1)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        places = range(self._length)[place]
        return self._items[places] if isinstance(places, int) else [self._items[i] for i in places]

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._length)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and list(self) == list(other)


class State(Struct, frozen=True, kw_only=True, dict=True):
    """A session after `index` events: immutable, replaced by each event."""

    index: int = 0
    t: float = 0.0
    header: events.Header | None = None
    devices: Mapping[DeviceId, events.Device] = {}  # GPUs
    readings: Mapping[DeviceId, History[events.Telemetry]] = {}  # by GPU
    of_host: History[events.Telemetry] = field(default_factory=History[events.Telemetry])  # those that tell of the machine
    measured: Mapping[DeviceId, events.Limits] = {}  # the devices' limits
    last_gpu: DeviceId | None = None  # that a run used
    run: Run | None = None  # the latest
    begun: Runs = field(default_factory=Runs)  # every run by its id: the latest one as it began, all others in their final state
    fault: events.Fault | None = None  # the latest, until the next run begins
    end: events.End | None = None
    log: History[events.Notice] = field(default_factory=History[events.Notice])
    markers: History[events.Marker] = field(default_factory=History[events.Marker])
    unknown: int = 0  # events of kinds that this version does not know

    @cached_property
    def runs(self) -> Runs:
        """Every run by its id, in the order in which they began."""
        return self.begun.followed_by(self.run) if self.run is not None else Runs()

    @cached_property
    def first_runs(self) -> Mapping[tuple[object, ...], Run]:
        """The first verified run of each graph, by graph."""
        return {**first_runs([self.run] if self.run is not None else []), **self.begun.firsts}

    @property
    def watched(self) -> DeviceId:
        """The GPU that is shown: the last one used by a run, else the first one reported."""
        return self.last_gpu or next(iter(self.devices or self.readings), FIRST_GPU)

    @property
    def telemetry(self) -> History[events.Telemetry]:
        return self.readings.get(self.watched) or History()

    @property
    def followed(self) -> tuple[DeviceId, ...]:
        """The GPUs that were read last, in CUDA's order."""
        last = {gpu: readings[-1].t for gpu, readings in self.readings.items()}
        since = max(last.values(), default=0.0) - STALE
        return tuple(sorted(gpu for gpu, t in last.items() if t >= since))

    def after(self, event: events.Event | Unknown) -> State:
        """This state after the event. Never raises: an event that does not fit (such as one of a run that never began)
        changes only index and time.
        """
        return replace(self, index=self.index + 1, t=max(self.t, event.t), **self._news(event))

    def _news(self, event: events.Event | Unknown) -> dict[str, Any]:
        if isinstance(event, FREQUENT):  # first, as most of a long session is of these
            return self._news_of_run(event)
        match event:
            case Unknown():
                return {"unknown": self.unknown + 1}
            case events.Telemetry(device_id=gpu):
                readings = (self.readings.get(gpu) or History()).followed_by(event)
                of_host = self.of_host.followed_by(event) if _of_host(event) != NOTHING else self.of_host
                return {"readings": _with(self.readings, gpu, readings, MOST_DEVICES), "of_host": of_host}
            case events.RunStarted() if len(self.begun) < MOST_RUNS or event.run in self.begun:
                run = started(event)
                gpu = run.device if run.backend == "cuda" else self.last_gpu
                return {"run": run, "begun": self.runs.followed_by(run), "last_gpu": gpu, "fault": None}
            case events.Notice():
                return {"log": self.log.followed_by(event)}
            case events.Marker():
                return {"markers": self.markers.followed_by(event)}
            case events.Fault():
                told = events.Notice(t=event.t, text=event.message, level="error")
                return {"fault": event, "log": self.log.followed_by(told), **self._news_of_run(event)}
            case events.Header():
                return {"header": event}
            case events.Device(device_id=gpu):
                return {"devices": _with(self.devices, gpu, merged(self.devices.get(gpu), event), MOST_DEVICES)}
            case events.Limits():
                return {"measured": _with(self.measured, event.device_id, event, MOST_DEVICES)}
            case events.End():
                return {"end": event}
            case _:
                return self._news_of_run(event)

    def _news_of_run(self, event: events.Event) -> dict[str, Any]:
        number: int = getattr(event, "run", -1)
        if self.run is not None and self.run.id == number:
            return {"run": self.run.after(event)}
        if number in self.begun:
            return {"begun": self.begun.followed_by(self.begun[number].after(event))}
        return {}


class _Told(Generic[T]):
    """An attribute of a model that reads its present state."""

    def __init__(self, read: Callable[[State], T]) -> None:
        self._read = read

    def __get__(self, model: Model, owner: type[Model]) -> T:
        return self._read(model.state)


class Model:
    """The present state of a session: events move it forwards, seek() moves it anywhere.

    "The GPU" is State.watched. A live one only goes forwards, and keeps less of what is old.
    """

    __slots__ = ("_checkpoints", "_every", "_live", "state")

    def __init__(self, state: State | None = None, live: bool = False) -> None:
        self.state = state or State()
        self._checkpoints: list[State] = []
        self._every = CHECKPOINT_EVERY
        self._live = live

    index = _Told(lambda s: s.index)
    t = _Told(lambda s: s.t)
    header = _Told(lambda s: s.header)
    run = _Told(lambda s: s.run)
    runs = _Told(lambda s: s.runs)
    fault = _Told(lambda s: s.fault)
    end = _Told(lambda s: s.end)
    log = _Told(lambda s: s.log)
    markers = _Told(lambda s: s.markers)
    unknown = _Told(lambda s: s.unknown)
    telemetry = _Told(lambda s: s.telemetry)
    of_host = _Told(lambda s: s.of_host)
    followed = _Told(lambda s: s.followed)
    device = _Told(lambda s: s.devices.get(s.watched))
    measured = _Told(lambda s: s.measured)

    @property
    def current(self) -> int | None:
        return None if self.run is None else self.run.id

    @property
    def reading(self) -> events.Telemetry | None:
        return self.telemetry[-1] if self.telemetry else None

    @property
    def gpu(self) -> events.Device | None:
        """The GPU's facts; None if there is none or none is known."""
        return self.device if self.device is not None and self.device.present else None

    def gpu_of(self, run: Run) -> events.Device | None:
        """Facts of the GPU that the run was on, else of the watched one. None if nothing is known."""
        device = self.state.devices.get(run.device) if run.backend == "cuda" else self.device
        return device if device is not None and device.present else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.state == other.state

    def apply(self, event: events.Event | Unknown) -> None:
        if not self._live and self.state.index % self._every == 0:
            self._check()
        self.state = self.state.after(event)
        if self._live and isinstance(event, events.RunStarted | events.Telemetry):
            self._forget(event)

    def _check(self) -> None:
        """Save this state to come back to; of many every second one is kept."""
        if self._checkpoints and self._checkpoints[-1].index >= self.index:
            return
        self._checkpoints.append(self.state)
        if len(self._checkpoints) > MOST_CHECKPOINTS:
            del self._checkpoints[1::2]
            self._every *= 2

    def _forget(self, event: events.RunStarted | events.Telemetry) -> None:
        """Hold once what two runs have in common; thin out old runs once there are many, and old readings, of which the runs
        then keep what they need.
        """
        state, device = self.state, event.device_id
        if isinstance(event, events.Telemetry):
            readings = state.readings.get(device, History())
            if max(len(readings), len(state.of_host)) > MOST_READINGS:
                unsaid = [run for run in state.begun.values() if run.finished and run.evidence is None]
                knowing = [replace(run, evidence=self.evidence(run)) for run in unsaid]
                fewer = {**state.readings, device: _thinned(readings)}
                of_host = _thinned(state.of_host)
                self.state = replace(state, begun=state.begun.followed_by(*knowing), readings=fewer, of_host=of_host)
            return
        runs, old, before = list(state.begun.values()), list[Run](), None
        kept: dict[int, Run] = {}
        if len(runs) > 2:  # runs on one graph have the same distances
            kept[runs[-2].id] = sharing(runs[-2], runs[-3])
        for run in reversed(runs[:-WHOLE_RUNS]):
            if run.rest is not None:
                before = run
                break
            old.append(run)
        for run in reversed(old):
            before = kept[run.id] = run.slim(self.evidence(run), before)
        if kept:
            self.state = replace(state, begun=state.begun.followed_by(*kept.values()))

    def seek(self, index: int) -> int:
        """Go to the last saved state at or before `index`; return the index from which events must be applied again."""
        place = bisect_right(self._checkpoints, index, key=lambda c: c.index)
        if place and not self._checkpoints[place - 1].index <= self.index <= index:
            self.state = self._checkpoints[place - 1]
        return self.index

    def frozen(self) -> Model:
        """A separate model in the same state; this one does not change."""
        return Model(self.state)

    def evidence(self, run: Run) -> Evidence | None:
        """Telemetry during the run's clean passes; None before the first. A pass shorter than a reading has none."""
        window = run.clean_window
        if window is None or run.evidence is not None:
            return run.evidence
        readings = self.state.readings.get(run.device, History()) if run.backend == "cuda" else self.telemetry
        during, of_host = within(readings, *window), within(self.of_host, *window)

        def mean(field: str, averaged_over: float = 0.0) -> float | None:
            told = of_host if field in HOST else during
            surely = (getattr(r, field) for r in told if r.t - averaged_over >= window[0])
            there = [value for value in surely if value is not None]
            return fmean(there) if there else None

        return Evidence(
            readings=len(during),
            power_watts=mean("gpu_power_watts", POWER_WINDOW),
            gpu_clock_mhz=mean("gpu_clock_mhz"),
            sm_occupancy=mean("sm_occupancy", GPM_WINDOW),
            dram_utilisation=mean("dram_utilisation", GPM_WINDOW),
            throttle=reduce(or_, (reading.throttle or 0 for reading in during), 0),
            integer_utilisation=mean("integer_utilisation", GPM_WINDOW),
            other_cpu=mean("other_cpu_utilisation"),
            cores=self.header.machine.cores if self.header is not None else None,
            cpu=mean("cpu_utilisation"),
            cpu_clock_mhz=mean("cpu_clock_mhz"),
        )


def _thinned(readings: History[events.Telemetry]) -> History[events.Telemetry]:
    """Every second one of the older half, if they are too many."""
    if len(readings) <= MOST_READINGS:
        return readings
    half = MOST_READINGS // 2
    kept = [*readings[:half:2], *readings[half:]]
    return History(kept, len(kept))


def within(readings: Sequence[events.Telemetry], start: float, end: float) -> Sequence[events.Telemetry]:
    """Those between two times, both included."""
    low, high = bisect_left(readings, start, key=lambda r: r.t), bisect_right(readings, end, key=lambda r: r.t)
    return readings[low:high]


def merged(known: events.Device | None, news: events.Device) -> events.Device:
    """Two reports on one device merged: the later one wins wherever it has a value."""
    if known is None or not known.present or not news.present:
        return news if known is None or news.present or not known.present else known
    if known.name and news.name and known.name != news.name:
        return news  # another GPU
    said = {f: getattr(news, f) for f in news.__struct_fields__ if getattr(news, f) not in (None, "")}
    return replace(known, **said)


def _with(known: Mapping[K, T], key: K, value: T, most: int) -> Mapping[K, T]:
    """With another value at the key, unless a made-up file has more entries than possible."""
    return {**known, key: value} if len(known) < most or key in known else known
