"""A session's runs, looked up by what was asked for: all that a judge sees, live or recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fwtui import events
from fwtui.experiment import Experiment
from fwtui.model import Model
from fwtui.run import Run, same
from fwtui.units import duration
from kernels import registry

LEFT_OUT = "left out: "  # begins the marker of everything that was not run
Make = Callable[[int], Experiment]  # size -> what to run at that size


class Missing(Exception):
    """The session does not hold what a claim needs; the reason in words."""


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
    """What to run; names that no experiment has are the kernel's own options."""
    fields = {k: v for k, v in more.items() if k in Experiment.__struct_fields__}
    options = {k: v for k, v in more.items() if k not in fields}
    return Experiment(kernel=kernel, n=n, dtype=dtype, options=options, **fields)


def label(wanted: Experiment) -> str:
    """The experiment in the fewest words that tell it from others of a preset."""
    words = [wanted.kernel, f"n {wanted.n}", wanted.dtype]
    words += [f"tile {wanted.tile}"] * bool(wanted.tile) + [wanted.memory] * (wanted.memory != "device")
    words += [f"density {wanted.density:g}"] * (wanted.density != 0.3) + ["exact"] * wanted.exact + ["file"] * bool(wanted.file)
    return " ".join([*words, *(f"{name} {value}" for name, value in sorted(wanted.options.items()))])


class Results:
    """The runs of one session; `others` are further sessions, for claims about two machines."""

    def __init__(self, model: Model, others: Sequence[Model] = ()):
        self.model = model
        self.others = tuple(others)

    @property
    def device(self) -> events.Device:
        """The GPU's facts. Raises Missing where there was none."""
        if self.model.gpu is None:
            raise Missing("needs a GPU")
        return self.model.gpu

    def find(self, wanted: Experiment) -> Run:
        """The latest verified run of exactly that. Raises Missing with the reason."""
        kernel = registry().get(wanted.kernel)
        if kernel is None:
            raise Missing(f"kernel missing: {wanted.kernel}")
        unknown = set(wanted.options) - {o.name for o in kernel.options}
        if unknown:
            raise Missing(f"{kernel.id} has no option {', '.join(sorted(unknown))}")
        asked = [r for r in self.model.runs.values() if r.n == wanted.n and same(r, wanted, kernel)]
        good = [r for r in asked if r.state == "done" and r.verified]
        if not good:
            raise Missing(self._why_not(wanted, asked))
        return good[-1]

    def seconds(self, wanted: Experiment) -> float:
        """Median seconds of the run's clean passes. Raises Missing."""
        run = self.find(wanted)
        if not run.seconds:
            raise Missing(f"{label(wanted)} was simulated, and nothing simulated is timed")
        return run.seconds

    def sizes(self, *makes: Make) -> tuple[int, ...]:
        """Sizes, ascending, at which all of them were run and timed. Raises Missing where there is none."""
        known = sorted({run.n for run in self.model.runs.values()})
        each = [[n for n in known if self._timed(make(n))] for make in makes]
        for make, sizes in zip(makes, each, strict=True):
            if not sizes:
                raise Missing(self._why_not(make(0), []))
        common = tuple(n for n in known if all(n in sizes for sizes in each))
        if not common:
            raise Missing(f"{' and '.join(make(0).kernel for make in makes)} were not run at the same size")
        return common

    def time(self, make: Make, n: int) -> Time:
        """The time at n, else extrapolated by n^3 from the largest smaller size. Raises Missing."""
        below = [size for size in self.sizes(make) if size <= n]
        if not below:
            raise Missing(f"{make(n).kernel} was run only above n = {n}")
        return Time(self.seconds(make(below[-1])) * (n / below[-1]) ** 3, below[-1], n)

    def end_to_end(self, wanted: Experiment) -> float:
        """Seconds with the copies in and out; on a CPU there are none to make."""
        run = self.find(wanted)
        copies = 0.0 if run.backend == "cpu" else self.stage(wanted, "load") + self.stage(wanted, "unload")
        return self.seconds(wanted) + copies

    def computing_share(self, wanted: Experiment) -> float:
        """Computing's share of the end-to-end time."""
        return self.seconds(wanted) / self.end_to_end(wanted)

    def stage(self, wanted: Experiment, *names: str) -> float:
        """Seconds of the first of these parts outside the clock that the run has. Raises Missing."""
        run = self.find(wanted)
        found = next((s for name in names if (s := run.stage_seconds(name)) is not None), None)
        if found is None:
            raise Missing(f"the session holds no time of {' or '.join(names)} for {label(wanted)}")
        return found

    def phase_seconds(self, wanted: Experiment, key: str) -> float:
        """Seconds of one phase in the phase pass; 0 where the plan has no such step. Raises Missing without a phase pass."""
        run = self.find(wanted)
        if not run.phases:
            raise Missing(f"the session holds no phases of {label(wanted)}")
        return next((p.seconds for p in run.phases if p.key == key), 0.0)

    def counter(self, make: Make, op: str, name: str) -> float:
        """A hardware counter of one op, of the largest run of that kind that has it. Raises Missing where none was measured."""
        wanted = make(0)
        kernel = registry().get(wanted.kernel)
        runs = [r for r in self.model.runs.values() if kernel and same(r, wanted, kernel) and name in r.counters.get(op, {})]
        if not runs:
            raise Missing("needs counters (fwtui counters)")
        return max(runs, key=lambda r: r.n).counters[op][name]

    def _timed(self, wanted: Experiment) -> bool:
        try:
            return self.seconds(wanted) > 0
        except Missing:
            return False

    def _why_not(self, wanted: Experiment, asked: Sequence[Run]) -> str:
        kernel = registry().get(wanted.kernel)
        if kernel is None:
            return f"kernel missing: {wanted.kernel}"
        asked = asked or [r for r in self.model.runs.values() if same(r, wanted, kernel)]
        for run in reversed(asked):
            if run.wrong and run.verdict is not None:
                return f"{kernel.id} at n = {run.n} is {run.verdict.verdict}: {run.verdict.how}"
            if run.state != "done" and run.done is not None and run.done.message:
                return f"{kernel.id} at n = {run.n}: {run.done.message}"
            if run.verified is None:
                return f"{kernel.id} at n = {run.n} was not verified"
        for marker in reversed(self.model.markers):
            about, _, reason = marker.text.removeprefix(LEFT_OUT).partition(": ")
            named = about in (kernel.id, label(wanted)) or (not wanted.n and about.split(" ")[0] == kernel.id)
            if marker.text.startswith(LEFT_OUT) and named:
                return f"{about}: {reason}"
        return f"{label(wanted) if wanted.n else kernel.id} was not run"
