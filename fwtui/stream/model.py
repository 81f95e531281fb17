"""Everything that a screen or a table shows, folded from events. The only state of live sessions and replays."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import islice, pairwise
from operator import attrgetter, is_not, or_
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from fwtui.experiment.device import FIRST_GPU, DeviceId
from fwtui.stream import events
from fwtui.stream.codec import Unknown
from fwtui.stream.quantity import GPM
from fwtui.stream.run import Evidence, Run, first_runs, started

WHOLE_RUNS = 1000  # runs that a live session holds with every repetition and round
MAX_RUNS = 10_000  # runs of a session
MAX_DEVICES = 64
MAX_CODES = 1024  # functions with their lines and instructions
STALE = 1.5  # seconds after its last reading at which a GPU no longer counts as watched
HOST = tuple(name for name, quantity in events.QUANTITIES.items() if quantity.host)
_of_host = attrgetter(*HOST)
NOTHING = (None,) * len(HOST)
# kinds that change one run and nothing else
ONLY_OF_A_RUN = frozenset(events.OfRun.__subclasses__()) - {events.RunStarted, events.CodeSamples}
GPM_WINDOW = 0.2  # at 10 Hz, a GPM reading is an average over up to this many seconds before it
WINDOWS = {"gpu_power_watts": 1.0, "gpu_utilisation": 0.2}  # NVML averages these over up to as many seconds
# attributes of a model whose values are replaced and never changed
_REPLACED = (
    *("index", "t", "header", "devices", "measured", "measuring"),
    *("last_gpu", "current", "fault", "end", "unknown", "codes"),
)
_GROWING = ("of_host", "log", "markers")  # lists that only grow, like the readings
K = TypeVar("K")
T = TypeVar("T")


class ModelLimits(NamedTuple):
    """The limits of a model for old data, and the interval of the checkpoints for seeking."""

    whole_runs: int = WHOLE_RUNS
    readings: int = 3000  # readings per device in a live session: five minutes at 10 Hz; older ones are thinned out
    checkpoint_every: int = 512  # events between checkpoints; more in a long session
    checkpoints: int = 256
    versions: int = 50_000  # versions of runs that all checkpoints hold together


LIMITS = ModelLimits()


class Checkpoint(NamedTuple):
    """A saved state of a model. Lists only grow, and identically in each replay, so their lengths are sufficient."""

    replaced: dict[str, Any]
    runs: list[Run]
    lengths: dict[str | DeviceId, int]  # lengths of the model's lists

    @property
    def place(self) -> int:
        """Return the number of events before it."""
        return self.replaced["index"]


class Model:
    """The present state of a session: events move it forwards, seek() moves it anywhere.

    "The GPU" is `watched`. A live model retains less old data; only a model for seeking makes checkpoints.
    """

    def __init__(self, live: bool = False, seeking: bool = False, limits: ModelLimits = LIMITS) -> None:
        self.index = 0  # events so far
        self.t = 0.0
        self.header: events.Header | None = None
        self.devices: Mapping[DeviceId, events.Device] = {}  # GPUs
        self.readings: dict[DeviceId, list[events.Telemetry]] = {}  # readings of each GPU
        self.of_host: list[events.Telemetry] = []  # readings with values of the host
        self.measured: Mapping[DeviceId, events.Limits] = {}  # the devices' limits: the last complete ones, if any
        self.measuring: Mapping[DeviceId, events.Limits] = {}  # the last reported ones, also during a measurement
        self.codes: Mapping[str, events.CodeText] = {}  # functions by the name of their code
        self.last_gpu: DeviceId | None = None  # the GPU of the last GPU run
        self.current: int | None = None  # id of the run that began last
        self.runs: dict[int, Run] = {}  # every run by its id, in the order in which they began
        self.fault: events.Fault | None = None  # the latest, until the next run begins
        self.end: events.End | None = None
        self.log: list[events.Notice] = []
        self.markers: list[events.Marker] = []
        self.unknown = 0  # events of kinds that this version does not support
        self._live, self._seeking, self._limits = live, seeking, limits
        self.checkpoints: list[Checkpoint] = []  # ordered by position
        self._every = limits.checkpoint_every
        self._versions = 0  # versions of runs that the checkpoints hold
        self._longest: dict[str | DeviceId, list[Any]] = {}  # each list at its greatest length, for later checkpoints
        self._memo: dict[tuple[object, ...], Any] = {}  # results of once() in this state
        self._earlier_firsts: Mapping[tuple[object, ...], Run] | None = None

    @property
    def run(self) -> Run | None:
        """The run that began last."""
        return None if self.current is None else self.runs[self.current]

    @property
    def earlier_firsts(self) -> Mapping[tuple[object, ...], Run]:
        """Return the result of first_runs() for all but the last run."""
        if self._earlier_firsts is None:
            self._earlier_firsts = first_runs(run for run in self.runs.values() if run.id != self.current)
        return self._earlier_firsts

    def first_run_of(self, run: Run) -> Run | None:
        """Return the baseline: the first verified run of the graph; for several devices, on the fewest, of its data type."""
        graph, latest = run.experiment.graph, self.run
        key = graph if run.device_count == 1 else (*graph, run.experiment.dtype)
        first = self.earlier_firsts.get(key)
        if latest is not None and latest.counts and (first is None or latest.device_count < first.device_count):
            return first_runs([latest]).get(key, first)
        return first

    @property
    def watched(self) -> DeviceId:
        """The GPU that is shown: the last one used by a run, else the first one reported."""
        return self.last_gpu or next(iter(self.devices or self.readings), FIRST_GPU)

    @property
    def telemetry(self) -> Sequence[events.Telemetry]:
        return self.readings.get(self.watched, ())

    @property
    def followed(self) -> tuple[DeviceId, ...]:
        """The GPUs that were read last, in CUDA's order."""
        last = {gpu: readings[-1].t for gpu, readings in self.readings.items()}
        since = max(last.values(), default=0.0) - STALE
        return tuple(sorted(gpu for gpu, t in last.items() if t >= since))

    @property
    def device(self) -> events.Device | None:
        return self.devices.get(self.watched)

    @property
    def reading(self) -> events.Telemetry | None:
        return self.telemetry[-1] if self.telemetry else None

    @property
    def gpu(self) -> events.Device | None:
        """The GPU's facts; None if there is no GPU or its facts are unavailable."""
        return self.device if self.device is not None and self.device.present else None

    def gpu_of(self, run: Run) -> events.Device | None:
        """Return the GPU of a run, else the watched one; None if it is unknown."""
        device = self.devices.get(run.device) if run.backend == "cuda" else self.device
        return device if device is not None and device.present else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self._all() == other._all()

    def _all(self) -> list[Any]:
        return [*(getattr(self, name) for name in _REPLACED), [*self.runs.values()], self._lists()]

    def apply(self, event: events.Event | Unknown) -> None:
        """Apply one event. Never raises: an invalid event, such as one of a run that never began, changes only index
        and time.
        """
        if self._seeking and self.index % self._every == 0:
            self._save()
        if self._memo:
            self._memo = {}
        self.index += 1
        self.t = max(self.t, event.t)
        kind = type(event)
        if kind not in ONLY_OF_A_RUN:
            self._apply(event)
            if kind is not events.Fault:
                return
        number: Any = getattr(event, "run", None)
        run = self.runs.get(number)
        if run is not None:
            self.runs[number] = run.after(event)
            if number != self.current:
                self._earlier_firsts = None

    def _apply(self, event: events.Event | Unknown) -> None:
        """Apply an event that does not belong to a started run."""
        match event:
            case Unknown():
                self.unknown += 1
            case events.Telemetry(device_id=gpu):
                if gpu in self.readings or len(self.readings) < MAX_DEVICES:
                    self.readings.setdefault(gpu, []).append(event)
                if _of_host(event) != NOTHING:
                    self.of_host.append(event)
                if self._live:
                    self._forget_readings(gpu)
            case events.RunStarted(run=number) if len(self.runs) < MAX_RUNS or number in self.runs:
                run = self.runs[number] = started(event, self.run)
                self.current, self.fault, self._earlier_firsts = number, None, None
                self.last_gpu = run.device if run.backend == "cuda" else self.last_gpu
                if self._live:
                    self._forget_details()
            case events.Notice():
                self.log.append(event)
            case events.Marker():
                self.markers.append(event)
            case events.Fault():
                self.fault = event
                self.log.append(events.Notice(t=event.t, text=event.message, level="error"))
            case events.Header():
                self.header = event
            case events.Device(device_id=gpu):
                self.devices = _with(self.devices, gpu, merged(self.devices.get(gpu), event), MAX_DEVICES)
            case events.Limits():
                self.measuring = _with(self.measuring, event.device_id, event, MAX_DEVICES)
                earlier = self.measured.get(event.device_id)
                if event.complete or earlier is None or not earlier.complete:
                    self.measured = _with(self.measured, event.device_id, event, MAX_DEVICES)
            case events.CodeText(code=name):
                earlier_text = self.codes.get(name)
                self.codes = _with(self.codes, name, earlier_text.merged(event) if earlier_text is not None else event, MAX_CODES)
            case events.CodeSamples(run=number, code=name) if number in self.runs and name in self.codes:
                self.runs[number] = self.runs[number].listed(event, self.codes[name])
            case events.End():
                self.end = event

    def _forget_readings(self, gpu: DeviceId) -> None:
        """Thin out old readings; the runs then store their evidence."""
        readings = self.readings.get(gpu, [])
        if max(len(readings), len(self.of_host)) > self._limits.readings:
            for run in self.runs.values():
                if run.finished and run.clean_window and run.evidence is None:
                    self.runs[run.id] = replace(run, evidence=self.evidence(run))
            self._earlier_firsts = None
            for readings_list in (readings, self.of_host):
                if len(readings_list) > self._limits.readings:
                    del readings_list[1 : self._limits.readings // 2 : 2]  # every second one of the older half

    def _forget_details(self) -> None:
        """Drop the details of all but the last runs; the session file still has them."""
        old: list[Run] = []
        before: Run | None = None
        for run in islice(reversed(self.runs.values()), self._limits.whole_runs, None):
            if run.old:
                before = run
                break
            old.append(run)
        for run in reversed(old):
            before = self.runs[run.id] = run.brief(self.evidence(run), before)

    def seek(self, index: int) -> int:
        """Restore the last checkpoint at or before `index`. Return the index from which events must be applied again."""
        place = bisect_right(self.checkpoints, index, key=lambda c: c.place)
        if place and not self.checkpoints[place - 1].place <= self.index <= index:
            self._restore(self.checkpoints[place - 1])
        return self.index

    def _lists(self) -> dict[str | DeviceId, list[Any]]:
        return {**{name: getattr(self, name) for name in _GROWING}, **self.readings}

    def _save(self) -> None:
        """Add a checkpoint. If there are many or large ones, drop every second."""
        saved = self.checkpoints
        if saved and saved[-1].place >= self.index:
            return
        replaced = {name: getattr(self, name) for name in _REPLACED}
        saved.append(Checkpoint(replaced, [*self.runs.values()], {key: len(values) for key, values in self._lists().items()}))
        self._versions += _differing(*saved[-2:]) if len(saved) > 1 else 0
        if len(saved) > self._limits.checkpoints or self._versions > self._limits.versions:
            del saved[1::2]
            self._every *= 2
            self._versions = sum(_differing(*both) for both in pairwise(saved))

    def _restore(self, saved: Checkpoint) -> None:
        for key, values in self._lists().items():
            longest = self._longest.setdefault(key, [])
            longest += values[len(longest) :]
        lists = {key: self._longest[key][:length] for key, length in saved.lengths.items()}
        self._set(saved.replaced, {run.id: run for run in saved.runs}, lists)

    def _set(self, replaced: dict[str, Any], runs: dict[int, Run], lists: dict[Any, list[Any]]) -> None:
        for name, value in {**replaced, **{name: lists.pop(name) for name in _GROWING}}.items():
            setattr(self, name, value)
        self.runs, self.readings = runs, lists
        self._memo, self._earlier_firsts = {}, None

    def frozen(self) -> Model:
        """A separate model in the same state; this one does not change."""
        other, lists = Model(), {key: [*values] for key, values in self._lists().items()}
        other._set({name: getattr(self, name) for name in _REPLACED}, dict(self.runs), lists)
        return other

    def evidence(self, run: Run) -> Evidence | None:
        """Return the telemetry during the timed repetitions; None before the first, or if they took less time than a reading."""
        if run.evidence is not None or run.clean_window is None:
            return run.evidence
        return self.once(Model._read, run)

    def once(self, find: Callable[..., T], *runs: Run) -> T:
        """Return find(self, *runs), cached until the state changes."""
        key = (find, *map(id, runs))
        if key not in self._memo:
            self._memo[key] = find(self, *runs), runs  # holds the runs, so that no other object gets their ids
        return self._memo[key][0]

    def _read(self, run: Run) -> Evidence:
        """Return the evidence of a run whose timed repetitions have begun."""
        window = run.clean_window
        assert window is not None
        readings = self.readings.get(run.device, ()) if run.backend == "cuda" else self.telemetry
        during = within(readings, *window)

        def mean(field: str) -> float | None:
            there = averaged_within(self.of_host if field in HOST else readings, field, *window)
            return fmean(there) if there else None

        return Evidence(
            readings=len(during),
            power_watts=mean("gpu_power_watts"),
            gpu_clock_mhz=mean("gpu_clock_mhz"),
            sm_occupancy=mean("sm_occupancy"),
            dram_utilisation=mean("dram_utilisation"),
            throttle=reduce(or_, (reading.throttle or 0 for reading in during), 0),
            integer_utilisation=mean("integer_utilisation"),
            other_cpu=mean("other_cpu_utilisation"),
            cores=self.header.machine.cores if self.header is not None else None,
            cpu=mean("cpu_utilisation"),
            cpu_clock_mhz=mean("cpu_clock_mhz"),
        )


def _differing(before: Checkpoint, after: Checkpoint) -> int:
    """Count the versions of runs that the later one does not share with the earlier one."""
    return len(after.runs) - len(before.runs) + sum(map(is_not, after.runs, before.runs))


def within(readings: Sequence[events.Telemetry], start: float, end: float) -> Sequence[events.Telemetry]:
    """Return the items between two times, both included."""
    return readings[slice(*_places(readings, start, end))]


def averaged_within(readings: Sequence[events.Telemetry], name: str, start: float, end: float) -> list[float]:
    """Return a quantity's values between two times, without averages over an interval that began earlier."""
    of_gpm = events.QUANTITIES[name].source == GPM
    over = GPM_WINDOW if of_gpm else WINDOWS.get(name, 0.0)
    low, high = _places(readings, start, end)
    found: list[float] = []
    for place in range(low, high):
        began = readings[place].t - over
        if of_gpm and place:  # at a low rate, GPM averages over the time since the previous reading
            began = min(began, readings[place - 1].t)
        value = getattr(readings[place], name)
        if began >= start and value is not None:
            found.append(value)
    return found


def _places(readings: Sequence[events.Telemetry], start: float, end: float) -> tuple[int, int]:
    """Return the index of the first item between two times, and the index after the last one."""
    return bisect_left(readings, start, key=lambda r: r.t), bisect_right(readings, end, key=lambda r: r.t)


def merged(before: events.Device | None, news: events.Device) -> events.Device:
    """Merge two reports on one device; the values of the later one take precedence."""
    news = replace(news, name=news.name.strip())  # some drivers fill the name up
    if before is None or not before.present or not news.present:
        return news if before is None or news.present or not before.present else before
    if before.name and news.name and before.name != news.name:
        return news  # another GPU
    fields = {f: getattr(news, f) for f in news.__struct_fields__ if getattr(news, f) not in (None, "")}
    return replace(before, **fields)


def _with(mapping: Mapping[K, T], key: K, value: T, most: int) -> Mapping[K, T]:
    """Return the mapping with another value at the key, unless a forged file has more entries than possible."""
    return {**mapping, key: value} if len(mapping) < most or key in mapping else mapping
