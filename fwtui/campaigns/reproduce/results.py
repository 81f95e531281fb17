"""Looks up a session's runs by experiment: everything a judge sees, live or recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from math import inf
from typing import Any, NamedTuple, TypeVar

from fwtui.analysis.disturbances import disturbances
from fwtui.common.units import duration
from fwtui.experiment.experiment import Experiment
from fwtui.live.counters import METRICS
from fwtui.live.watching import compile_kernel
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run, same
from fwtui.stream.trials import CompileRequest
from fwtui_kernels import registry
from fwtui_kernels.plan import Kernel

ARCHITECTURE = (8, 0)  # compiled for; shared memory does not depend on it
LEFT_OUT = "left out: "  # begins the marker of a skipped experiment
COUNTED = frozenset(metric.key for metric in METRICS)
NEEDS_COUNTERS = "needs counters (fwtui reproduce --counters)"
Make = Callable[[int], Experiment]  # size -> the experiment at that size
Choice = TypeVar("Choice")
Value = TypeVar("Value")


class Missing(Exception):
    """The session lacks data for a claim; the reason in words."""


class Time(NamedTuple):
    """Seconds, measured or scaled by n^3 from a smaller size."""

    seconds: float
    measured_at: int
    n: int

    @property
    def words(self) -> str:
        seconds = duration(self.seconds)
        return seconds if self.measured_at == self.n else f"{seconds} *extrapolated* from n = {self.measured_at}"


def ask(kernel: str, n: int, dtype: str = "float32", **more: Any) -> Experiment:
    """An experiment; names that are not its fields are the kernel's options."""
    fields = {k: v for k, v in more.items() if k in Experiment.__struct_fields__}
    options = {k: v for k, v in more.items() if k not in fields}
    return Experiment(kernel=kernel, n=n, dtype=dtype, options=options, **fields)


def asking(dtype: str) -> Callable[..., Make]:
    """For one number type: a kernel and other choices -> experiments by size."""
    return partial(partial, ask, dtype=dtype)


def needed(value: Value | None, why: str) -> Value:
    """The value. Raises Missing with that reason if there is none."""
    if not value:
        raise Missing(why)
    return value


def needed_kernel(kernel_id: str) -> Kernel:
    """The kernel of that id. Raises Missing if this version has none."""
    return needed(registry().get(kernel_id), f"kernel missing: {kernel_id}")


def later(rung: str, dtype: str) -> list[str]:
    """The CUDA kernels of that type after that rung of the ladder."""
    names = list(registry())
    after = [registry()[name] for name in names[names.index(rung) + 1 :]] if rung in names else []
    return [kernel.id for kernel in after if kernel.backend == "cuda" and dtype in kernel.dtypes]


def label(experiment: Experiment) -> str:
    """A short name of the experiment, unique within a preset."""
    words = [experiment.kernel, f"n {experiment.n}", experiment.dtype]
    words += [f"tile {experiment.tile}"] * bool(experiment.tile) + [experiment.memory] * (experiment.memory != "device")
    words += (
        [f"density {experiment.density:g}"] * (experiment.density != 0.3)
        + ["exact"] * experiment.exact
        + ["file"] * bool(experiment.file)
    )
    return " ".join([*words, *(f"{name} {value}" for name, value in sorted(experiment.options.items()))])


def first_of(choices: Iterable[Choice], measure: Callable[[Choice], Value]) -> tuple[Choice, Value]:
    """The first choice without missing data, and its measurement. If there is none, raises the first one's reason."""
    reasons: list[Missing] = []
    for choice in choices:
        try:
            return choice, measure(choice)
        except Missing as missing:
            reasons.append(missing)
    raise reasons[0]


@cache
def shared_by_op(kernel_id: str) -> Mapping[str, int] | str:
    """Bytes of shared memory by op, from compiling the kernel without a GPU; or why it could not be compiled."""
    compiled = compile_kernel(CompileRequest(kernel=kernel_id, capability=ARCHITECTURE))
    if compiled is None:
        return "the compiler did not answer"
    if not compiled.used:
        return "needs a GPU, or the CUDA compiler of numba-cuda"
    return {used.op: used.shared_bytes for used in compiled.used}


class Results:
    """The runs of one session; `others` are more sessions, for claims about two machines.

    Only runs that began between `since` and `until`, in session seconds, count: a session may hold several documents.
    """

    def __init__(self, model: Model, others: Sequence[Model] = (), since: float = -inf, until: float = inf):
        self.model = model
        self.others = tuple(others)
        self.used: set[int] = set()  # runs whose times were used
        self.compiled: Callable[[str], Mapping[str, int] | str] = shared_by_op
        self._since, self._until = since, until

    @property
    def runs(self) -> list[Run]:
        """In the order in which they began."""
        return [r for r in self.model.runs.values() if self._since <= r.started <= self._until]

    @property
    def left_out(self) -> list[str]:
        """Skipped experiments: a label, or a kernel without any run, and the reason."""
        markers = [m for m in self.model.markers if self._since <= m.t <= self._until]
        return [m.text.removeprefix(LEFT_OUT) for m in markers if m.text.startswith(LEFT_OUT)]

    @property
    def disturbed(self) -> str:
        """The disturbed ones among the used runs, and their disturbances; empty if none is known."""
        words = []
        for run in (r for r in self.runs if r.id in self.used):
            for word, why, _ in disturbances(run, self.model.evidence(run)):
                words.append(f"{run.experiment.kernel} at n = {run.n} was {word} ({why})")
        return "; ".join(dict.fromkeys(words))

    @property
    def device(self) -> events.Device:
        """The GPU's facts. Raises Missing if there was none."""
        return needed(self.model.gpu, "needs a GPU")

    @property
    def peak_bandwidth(self) -> float:
        """The GPU's peak memory bandwidth in bytes per second. Raises Missing."""
        return needed(self.device.peak_bytes_per_second, "the peak bandwidth of this device is not known")

    def find(self, experiment: Experiment) -> Run:
        """The latest verified run of exactly that, if none was wrong. Raises Missing with the reason."""
        kernel = needed_kernel(experiment.kernel)
        unknown = set(experiment.options) - {o.name for o in kernel.options}
        if unknown:
            raise Missing(f"{kernel.id} has no option {', '.join(sorted(unknown))}")
        repeats = self._repeats(experiment)
        good = [r for r in repeats if r.state == "done" and r.verified]
        # a kernel that was wrong once is not trusted again
        if not good or any(r.wrong for r in repeats):
            raise Missing(self._why_not(experiment, repeats))
        return good[-1]

    def find_or_none(self, experiment: Experiment) -> Run | None:
        """The same, or None."""
        with suppress(Missing):
            return self.find(experiment)
        return None

    def seconds(self, experiment: Experiment) -> float:
        """Median seconds of the run's clean passes. Raises Missing."""
        run = self.find(experiment)
        self.used.add(run.id)
        return needed(run.seconds, f"{label(experiment)} was simulated, and nothing simulated is timed")

    def spread(self, experiment: Experiment) -> float:
        """Half-width of the median's 95 % interval, relative to it; 0 for a single pass. Raises Missing."""
        done = self.find(experiment).done
        return (done and done.spread) or 0.0

    def sizes(self, *makes: Make) -> tuple[int, ...]:
        """Sizes, ascending, at which all of them were run and timed. Raises Missing if there is none."""
        ran = sorted({run.n for run in self.runs})
        each = [[n for n in ran if (run := self.find_or_none(make(n))) is not None and run.seconds] for make in makes]
        for make, sizes in zip(makes, each, strict=True):
            if not sizes:
                raise Missing(self._why_not(make(0), []))
        common = tuple(n for n in ran if all(n in sizes for sizes in each))
        return needed(common, f"{' and '.join(make(0).kernel for make in makes)} were not run at the same size")

    def time(self, make: Make, n: int) -> Time:
        """The time at n, else extrapolated by n^3 from the largest smaller size. Raises Missing."""
        below = needed([size for size in self.sizes(make) if size <= n], f"{make(n).kernel} was run only above n = {n}")
        return Time(self.seconds(make(below[-1])) * (n / below[-1]) ** 3, below[-1], n)

    def end_to_end(self, experiment: Experiment) -> float:
        """Seconds including copies and reordering; a CPU needs none."""
        run = self.find(experiment)
        copies = 0.0 if run.backend == "cpu" else self.stage(experiment, "load") + self.stage(experiment, "unload")
        return self.seconds(experiment) + copies + sum(run.stage_seconds(name) or 0.0 for name in ("reorder", "reorder back"))

    def computing_share(self, experiment: Experiment) -> float:
        """Computing's share of the end-to-end time."""
        return self.seconds(experiment) / self.end_to_end(experiment)

    def stage(self, experiment: Experiment, *names: str) -> float:
        """Seconds of the first of these untimed parts that the run has. Raises Missing."""
        run = self.find(experiment)
        seconds = next((s for name in names if (s := run.stage_seconds(name)) is not None), None)
        if seconds is None:
            raise Missing(f"the session holds no time of {' or '.join(names)} for {label(experiment)}")
        return seconds

    def phase_seconds(self, experiment: Experiment, key: str) -> float:
        """Seconds of one phase in the phase pass; 0 if the plan has no such step. Raises Missing without a phase pass."""
        phases = needed(self.find(experiment).phases, f"the session holds no phases of {label(experiment)}")
        return next((p.seconds for p in phases if p.key == key), 0.0)

    def counter(self, experiment: Experiment, op: str, name: str) -> float:
        """A hardware counter (fwtui.live.counters.METRICS) of one op of that run. Raises Missing if it was not measured."""
        if name not in COUNTED:
            raise KeyError(f"there is no counter {name}")
        values = [r.counters[op][name] for r in self._repeats(experiment) if name in r.counters.get(op, {})]
        return needed(values, NEEDS_COUNTERS)[-1]

    def gpm(self, experiment: Experiment) -> tuple[float, float]:
        """GPM's busy shares of the integer units and the memory during that run's clean passes. Raises Missing."""
        for run in reversed(self._repeats(experiment)):
            readings = self.model.evidence(run) if run.verified else None
            if readings is not None and readings.integer_utilisation is not None and readings.dram_utilisation is not None:
                return readings.integer_utilisation, readings.dram_utilisation
        raise Missing(f"the session holds no GPM readings of {label(experiment)}")

    def counted_at(self, op: str, name: str, *makes: Make) -> int:
        """The largest size at which all of them have that counter. Raises Missing if there is none."""
        for n in sorted({run.n for run in self.runs}, reverse=True):
            with suppress(Missing):
                for make in makes:
                    self.counter(make(n), op, name)
                return n
        raise Missing(NEEDS_COUNTERS)

    def _repeats(self, experiment: Experiment) -> list[Run]:
        """The runs of exactly that, at that size."""
        kernel = registry().get(experiment.kernel)
        return [r for r in self.runs if kernel is not None and r.n == experiment.n and same(r, experiment, kernel)]

    def _why_not(self, experiment: Experiment, repeats: Sequence[Run]) -> str:
        kernel = registry().get(experiment.kernel)
        if kernel is None:
            return f"kernel missing: {experiment.kernel}"
        repeats = repeats or [r for r in self.runs if same(r, experiment, kernel)]
        for run in sorted(repeats, key=lambda r: (r.wrong, r.id), reverse=True):
            if why := unusable(run):
                return why
        for text in reversed(self.left_out):
            about, _, reason = text.partition(": ")
            if about in (kernel.id, label(experiment)) or (not experiment.n and about.split(" ")[0] == kernel.id):
                return f"{about}: {reason}"
        return f"{label(experiment) if experiment.n else kernel.id} was not run"


def unusable(run: Run) -> str:
    """Why that run's time does not count; empty if it does."""
    what = f"{run.experiment.kernel} at n = {run.n or run.experiment.n}"
    if run.wrong and run.verdict is not None:
        return f"{what} is {run.verdict.verdict}: {run.verdict.how}"
    if run.fault is not None and run.state == "failed":
        return f"{what} crashed: {run.fault.message}"
    if run.state != "done" and run.done is not None and run.done.message:
        return f"{what}: {run.done.message}"
    if run.state == "running":
        return f"{what} is still running"
    return f"{what} was not verified" if run.verified is None else ""
