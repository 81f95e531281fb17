"""Everything that a screen or a table shows, folded from events. The only state of live sessions and replays."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from itertools import chain, islice, pairwise
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
MOST_APART = 50_000  # versions of runs that saved states hold
WHOLE_RUNS = 50  # that a live session holds with every pass, round and distance map
MOST_READINGS = 3000  # of one device, in a live session: five minutes at 10 Hz, older ones less densely
MOST_RUNS = 10_000  # of a session
MOST_DEVICES = 64
STALE = 1.5  # seconds after which a GPU whose readings have ended no longer counts as followed
HOST = tuple(name for name, quantity in events.QUANTITIES.items() if quantity.host)
_of_host = attrgetter(*HOST)
NOTHING = (None,) * len(HOST)
# kinds that change one run and nothing else
ONLY_OF_A_RUN = frozenset(e for e in events.ALL if "run" in e.__struct_fields__) - {events.RunStarted, events.Fault}
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

    def after(self, told: Iterable[events.Event | Unknown]) -> State:
        """This state after the events. Never raises: one that does not fit (such as one of a run that never began) changes
        only index and time.

        What they say of runs is put together first: a version of a run costs much less than one of the state.
        """
        state, index, t = self, self.index, self.t
        changed: dict[int, Run] = {}
        for event in told:
            index += 1
            t = event.t if event.t > t else t
            if isinstance(event, events.RunStarted):
                state, changed = state._with(changed), {}
            if type(event) not in ONLY_OF_A_RUN:
                state = replace(state, **state._news(event))
                if not isinstance(event, events.Fault):
                    continue
            number: int | None = getattr(event, "run", None)
            run = None if number is None else changed.get(number) or state._run(number)
            if run is not None:
                changed[run.id] = run.after(event)
        return replace(state._with(changed), index=index, t=t)

    def _run(self, number: int) -> Run | None:
        """The run of that number."""
        return self.run if self.run is not None and self.run.id == number else self.begun.get(number)

    def _with(self, changed: dict[int, Run]) -> State:
        """This state with these versions of its runs."""
        if self.run is None or not changed:
            return self
        run = changed.pop(self.run.id, self.run)
        return replace(self, run=run, begun=self.begun.followed_by(*changed.values()) if changed else self.begun)

    def _news(self, event: events.Event | Unknown) -> dict[str, Any]:
        """What the event changes, apart from runs that have begun."""
        match event:
            case Unknown():
                return {"unknown": self.unknown + 1}
            case events.Telemetry(device_id=gpu):
                readings = (self.readings.get(gpu) or History()).followed_by(event)
                of_host = self.of_host.followed_by(event) if _of_host(event) != NOTHING else self.of_host
                return {"readings": _with(self.readings, gpu, readings, MOST_DEVICES), "of_host": of_host}
            case events.RunStarted() if len(self.begun) < MOST_RUNS or event.run in self.begun:
                run = started(event, self.run)
                gpu = run.device if run.backend == "cuda" else self.last_gpu
                return {"run": run, "begun": self.runs.followed_by(run), "last_gpu": gpu, "fault": None}
            case events.Notice():
                return {"log": self.log.followed_by(event)}
            case events.Marker():
                return {"markers": self.markers.followed_by(event)}
            case events.Fault():
                told = events.Notice(t=event.t, text=event.message, level="error")
                return {"fault": event, "log": self.log.followed_by(told)}
            case events.Header():
                return {"header": event}
            case events.Device(device_id=gpu):
                return {"devices": _with(self.devices, gpu, merged(self.devices.get(gpu), event), MOST_DEVICES)}
            case events.Limits():
                return {"measured": _with(self.measured, event.device_id, event, MOST_DEVICES)}
            case events.End():
                return {"end": event}
            case _:
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

    __slots__ = ("_apart", "_checkpoints", "_every", "_found", "_live", "state")

    def __init__(self, state: State | None = None, live: bool = False) -> None:
        self.state = state or State()
        self._checkpoints: list[State] = []
        self._every = CHECKPOINT_EVERY
        self._apart = 0  # about how many versions of runs the saved states hold
        self._live = live
        self._found: tuple[State, dict[tuple[object, ...], Any]] = self.state, {}  # what once() returned in that state

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
        self.apply_all((event,))

    def apply_all(self, told: Iterable[events.Event | Unknown]) -> None:
        """Apply the events in order, which costs less than one by one."""
        told = iter(told)
        if self._live:
            for event in told:
                before, self.state = self.state.run, self.state.after((event,))
                if isinstance(event, events.Telemetry) or (isinstance(event, events.RunStarted) and self.run is not before):
                    self._forget(event)
            return
        for event in told:
            if self.index % self._every == 0:
                self._check()
            self.state = self.state.after(chain((event,), islice(told, self._every - self.index % self._every - 1)))

    def _check(self) -> None:
        """Save this state to come back to; of many, or if they hold much, every second one is kept."""
        saved = self._checkpoints
        if saved and saved[-1].index >= self.index:
            return
        self._apart += self.state.begun.apart(saved[-1].begun) if saved else 0
        saved.append(self.state)
        if len(saved) > MOST_CHECKPOINTS or self._apart > MOST_APART:
            del saved[1::2]
            self._every *= 2
            self._apart = sum(after.begun.apart(before.begun) for before, after in pairwise(saved))

    def _forget(self, event: events.RunStarted | events.Telemetry) -> None:
        """Hold once what two runs have in common; thin out old runs once there are many, and old readings, of which the runs
        then keep what they need.
        """
        state, device = self.state, event.device_id
        if isinstance(event, events.Telemetry):
            readings = state.readings.get(device, History())
            if max(len(readings), len(state.of_host)) > MOST_READINGS:
                unsaid = [run for run in state.runs.values() if run.finished and run.clean_window and run.evidence is None]
                knowing = {run.id: replace(run, evidence=self.evidence(run)) for run in unsaid}
                fewer = {**state.readings, device: _thinned(readings)}
                self.state = replace(state._with(knowing), readings=fewer, of_host=_thinned(state.of_host))
            return
        runs, old, before = state.begun.values(), list[Run](), None
        kept: dict[int, Run] = {}
        last = [*islice(reversed(runs), 3)]
        if len(last) > 2:  # runs on one graph have the same distances
            kept[last[1].id] = sharing(last[1], last[2])
        for run in islice(reversed(runs), WHOLE_RUNS, None):
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
        if run.evidence is not None or run.clean_window is None:
            return run.evidence
        return self.once(Model._read, run)

    def once(self, find: Callable[..., T], *runs: Run) -> T:
        """The result of find(self, *runs), remembered while the state is the same."""
        if self._found[0] is not self.state:
            self._found = self.state, {}
        known, key = self._found[1], (find, *map(id, runs))
        if key not in known:
            known[key] = find(self, *runs), runs  # which stay, so that no other run gets their ids
        return known[key][0]

    def _read(self, run: Run) -> Evidence:
        """The evidence of a run whose clean passes have begun."""
        window = run.clean_window
        assert window is not None
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
