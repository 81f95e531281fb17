"""The functions of the claims' formulas: times, phases, counters and results of a session's runs, by kernel and size."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import Any, NamedTuple

import msgspec

from fwtui.analysis.columns import outcome
from fwtui.analysis.disturbances import disturbances
from fwtui.common import units
from fwtui.experiment.experiment import Experiment
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run, same
from fwtui_kernels import registry
from fwtui_kernels.plan import Shape

TOLERANCE, ALIKE, NOISE = 1.5, 1.1, 1.05
MAX_NOISE = 0.1  # sum of the spreads of two medians above which their ratio is not evaluated
SKIPPED = "left out: "  # prefix of the marker of a skipped experiment, also in recorded sessions
MAIN = "rest"  # the kernel function that dominates a blocked kernel's time


class Missing(Exception):
    """The session lacks data for a claim; the message is the reason."""


class Time(float):
    """Seconds; `measured_at` is the smaller n that they are extrapolated from, if any."""

    measured_at = 0

    def __str__(self) -> str:
        return units.duration(self) + (f" *extrapolated* from n = {self.measured_at}" if self.measured_at else "")


class Ratio(NamedTuple):
    """The ratio of two times, and the sum of their relative spreads."""

    value: float
    noise: float


class Ratios(dict[int, Ratio]):
    """Ratios by size."""

    def __str__(self) -> str:
        return ", ".join(f"{units.gain(ratio.value)} (n {n})" for n, ratio in self.items())


def needed(value: Any, reason: str) -> Any:
    """Return the value. Raises Missing with that reason if it is empty."""
    if not value:
        raise Missing(reason)
    return value


def slower(ratio: Ratio | Ratios) -> bool:
    """Return True if the ratio, or each of them, exceeds 1 by more than noise."""
    return all(r.value > max(NOISE, 1 + r.noise) for r in (ratio.values() if isinstance(ratio, Ratios) else (ratio,)))


def faster(ratio: Ratio) -> bool:
    return slower(Ratio(1 / ratio.value, ratio.noise))


def alike(ratio: Ratio | Ratios) -> bool:
    return all(1 / ALIKE <= r.value <= ALIKE for r in (ratio.values() if isinstance(ratio, Ratios) else (ratio,)))


def near(value: float | Ratios, low: float, high: float | None = None) -> bool:
    """Return True if the value, or each ratio, is in the range widened by the tolerance."""
    values = [r.value for r in value.values()] if isinstance(value, Ratios) else [value]
    return all(low / TOLERANCE <= one <= (low if high is None else high) * TOLERANCE for one in values)


def experiment(spec: str, n: int, dtype: str) -> Experiment:
    """Return the experiment of a kernel with choices; names that are not an experiment's fields are the kernel's options."""
    kernel, *choices_text = spec.split()
    choices = dict(text.split("=") for text in choices_text)
    fields = {name: choices.pop(name) for name in [*choices] if name in Experiment.__struct_fields__}
    whole = {"kernel": kernel, "n": n, "dtype": dtype, "options": choices, **fields}
    return msgspec.convert(whole, Experiment, strict=False)


def label(e: Experiment) -> str:
    choices = {"n": e.n, "tile": e.tile} | e.options
    return " ".join([e.kernel, *(f"{name} {value}" for name, value in choices.items() if value or name in e.options)])


class Evidence:
    """The runs of one paper in a session, started between `since` and `until`; `others` are sessions of other machines."""

    def __init__(self, model: Model, dtype: str, others: Sequence[Model] = (), since: float = -inf, until: float = inf):
        self.model, self._dtype, self._since, self._until = model, dtype, since, until
        self.others = [Evidence(other, dtype) for other in others]
        self._used: dict[int, Run] = {}  # runs whose times were read since the last call of disturbed()

    def runs(self) -> list[Run]:
        return [run for run in self.model.runs.values() if self._since <= run.started <= self._until]

    def skipped(self) -> list[str]:
        """Return the skipped experiments: a label or a kernel, and the reason."""
        markers = [m.text for m in self.model.markers if self._since <= m.t <= self._until and m.text.startswith(SKIPPED)]
        return [text.removeprefix(SKIPPED) for text in markers]

    def disturbed(self) -> str:
        """Return the disturbances of the runs used since the last call."""
        used, self._used = list(self._used.values()), {}
        found = ((run, one) for run in used for one in disturbances(run, self.model.evidence(run)))
        return "; ".join(dict.fromkeys(f"{r.experiment.kernel} at n = {r.n} was {one.word} ({one.why})" for r, one in found))

    def gpu(self) -> events.Device:
        return needed(self.model.gpu, "needs a GPU")

    def repeats(self, spec: str, n: int) -> list[Run]:
        """Return all runs of exactly that experiment at that size."""
        requested = experiment(spec, n, self._dtype)
        kernel = needed(registry().get(requested.kernel), f"kernel missing: {requested.kernel}")
        if unknown := set(requested.options) - {option.name for option in kernel.options}:
            raise Missing(f"{kernel.id} has no option {', '.join(sorted(unknown))}")
        return [run for run in self.runs() if run.n == n and same(run, requested, kernel)]

    def run(self, spec: str, n: int) -> Run:
        """Return the latest verified run of the experiment. If any of its runs was incorrect, none counts."""
        repeats = self.repeats(spec, n)
        good = [run for run in repeats if run.state == "done" and run.verified]
        if not good or any(run.wrong for run in repeats):
            raise Missing(self._why_missing(spec))
        return good[-1]

    def find(self, spec: str, n: int) -> list[Run]:
        """Return that run, or an empty list."""
        with suppress(Missing):
            return [self.run(spec, n)]
        return []

    def checked(self, kernel: str = "") -> list[Run]:
        """Return all runs of a kernel, whatever its choices, that have a verdict."""
        found = [run for run in self.runs() if run.verified is not None and kernel in ("", run.experiment.kernel)]
        return needed(found, self._why_missing(kernel)) if kernel else found

    def sizes(self, *specs: str) -> tuple[int, ...]:
        """Return the sizes, ascending, at which all these kernels were run and timed."""
        ran = sorted({run.n for run in self.runs()})
        timed = {spec: [n for n in ran if any(run.seconds for run in self.find(spec, n))] for spec in specs}
        for spec, found in timed.items():
            needed(found, self._why_missing(spec))
        common = tuple(n for n in ran if all(n in found for found in timed.values()))
        return needed(common, f"{' and '.join(specs)} were not run at the same size")

    def time(self, spec: str, n: int) -> Time:
        """Return the median seconds at n, else extrapolated by n^3 from the largest smaller size."""
        at = max(needed([m for m in self.sizes(spec) if m <= n], f"{spec} was run only above n = {n}"))
        run = self.run(spec, at)
        self._used[run.id] = run
        seconds = Time((run.seconds or 0.0) * (n / at) ** 3)
        seconds.measured_at = at if at != n else 0
        return seconds

    def spread(self, spec: str, n: int) -> float:
        done = self.run(spec, n).done
        return (done and done.spread) or 0.0

    def ratio(self, slow: str, fast: str, n: int) -> Ratio:
        """Return the time of `slow` over that of `fast`. Raises Missing if their spreads are too large to compare them."""
        noise = self.spread(slow, n) + self.spread(fast, n)
        text = f"{slow} against {fast}, n {n}: spreads of {units.percent(noise)} together, too noisy to compare"
        needed(noise <= MAX_NOISE, text)
        return Ratio(self.time(slow, n) / self.time(fast, n), noise)

    def ratios(self, slow: str, fast: str, count: int = 2, ends: bool = False) -> Ratios:
        """Return the ratios at the largest common sizes, or at both ends."""
        common = self.sizes(slow, fast)
        chosen = dict.fromkeys((common[0], common[-1])) if ends else common[-count:]
        return Ratios({n: self.ratio(slow, fast, n) for n in chosen})

    def end_to_end(self, spec: str, n: int) -> float:
        """Return seconds with copies to and from the device, and with reordering; a CPU copies nothing."""
        run = self.run(spec, n)
        copies = 0.0 if run.backend == "cpu" else self.stage(spec, n, "load") + self.stage(spec, n, "unload")
        return self.time(spec, n) + copies + sum(run.stage_seconds(name) or 0.0 for name in ("reorder", "reorder back"))

    def stage(self, spec: str, n: int, *names: str) -> float:
        """Return the seconds of the first of these untimed stages that the run has."""
        run = self.run(spec, n)
        found = [seconds for name in names if (seconds := run.stage_seconds(name)) is not None]
        return needed(found, f"the session holds no time of {' or '.join(names)} for {spec} at n = {n}")[0]

    def phase(self, spec: str, n: int, key: str = "") -> float:
        """Return the seconds of one phase of the instrumented repetition, 0 if the plan lacks it; without a key, of all."""
        parts = needed(self.run(spec, n).phases, f"the session holds no phases of {spec} at n = {n}")
        return sum(part.seconds for part in parts if key in ("", part.key))

    def counter(self, spec: str, n: int, name: str, op: str = MAIN) -> float:
        """Return a hardware counter (fwtui.live.counters.METRICS) of one kernel function."""
        values = [run.counters[op][name] for run in self.repeats(spec, n) if name in run.counters.get(op, {})]
        return needed(values, "needs counters (fwtui reproduce --counters)")[-1]

    def counted_at(self, spec: str, *names: str, op: str = MAIN) -> int:
        """Return the largest size that has these counters."""
        for n in sorted({run.n for run in self.runs()}, reverse=True):
            with suppress(Missing):
                for name in names:
                    self.counter(spec, n, name, op)
                return n
        raise Missing("needs counters (fwtui reproduce --counters)")

    def dependency(self, name: str) -> list[str]:
        """Return the blocks through which data flows from A11's closure to A22's; empty if none arrives."""
        kernel = needed(registry().get(name), f"kernel missing: {name}")
        middle, inside, chain = 2 * kernel.default_tile, [], list[str]()
        shape = Shape(2 * middle, kernel.default_tile, kernel.dtypes[0], options=kernel.defaults)
        for step in kernel.plan(shape, False):
            quadrants = {f"A{1 + (rect.top >= middle)}{1 + (rect.left >= middle)}" for rect in step.writes}
            touched = any(rect.overlaps(region) for rect in (*step.reads, *step.writes) for region in inside)
            if quadrants == {"A22"} and step.phase == "base":
                return [*dict.fromkeys(chain), "A22*"] if touched else []
            if (first := quadrants == {"A11"} and (not chain or chain[-1] == "A11*")) or touched:
                inside += step.writes
                chain += ["A11*"] if first else sorted(quadrants)
        return []

    def _why_missing(self, spec: str) -> str:
        requested = experiment(spec, 0, self._dtype)
        kernel = registry().get(requested.kernel)
        if kernel is None:
            return f"kernel missing: {requested.kernel}"
        bad = [run for run in self.runs() if same(run, requested, kernel) and (run.state != "done" or not run.verified)]
        if bad:
            run = max(bad, key=lambda run: (run.wrong, run.id))
            return f"{kernel.id} at n = {run.n or run.experiment.n}: {outcome(self.model, run)}"
        skipped = (text for text in reversed(self.skipped()) if text.partition(":")[0].split(" ")[0] == kernel.id)
        return next(skipped, f"{spec} was not run")
