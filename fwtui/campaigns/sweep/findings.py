"""Findings from many runs: the growth of time with n, crossovers between kernels, and the fastest configuration."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from statistics import linear_regression, pvariance
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from fwtui.analysis.compare import FASTER, SLOWER, ComparedRun, classify, compare
from fwtui.analysis.sparsity import rate_text, reduction
from fwtui.campaigns.sweep.axis import SweepAxis, named, value, varied
from fwtui.campaigns.sweep.scaling import Scaling, scalings
from fwtui.common import units
from fwtui.experiment.experiment import Experiment, identity
from fwtui.stream.model import Model
from fwtui.stream.run import Run

MIN_SIZES = 4  # fewer points do not determine an exponent
CUBIC = 2.9  # an exponent below this needs a reason
MAX_ERROR = 0.2  # standard error above which an exponent says nothing about the order of growth
At = TypeVar("At", int, float)  # a value on an axis


class Fit(NamedTuple):
    """A power law: time ~ n^exponent between two sizes, with the standard error of the exponent."""

    exponent: float
    error: float
    low: float
    high: float
    sizes: int
    cubic: bool = False  # all runs do n^3 relaxations

    @property
    def sentence(self) -> str:
        law = f"time ~ n^{self.exponent:.2f} ± {self.error:.2f} over n = {self.low:g} to {self.high:g} ({self.sizes} sizes)"
        less = self.cubic and self.exponent + 2 * self.error < CUBIC
        return f"{law}; less than n^3 because small graphs do not keep the device busy" if less else law


class Crossover(NamedTuple):
    """A crossover: `late` is SLOWER than `early` at `low` and FASTER from `high`; `at` is the estimated crossover."""

    early: str
    late: str
    low: float
    high: float
    at: float
    seconds: float  # time at the crossover
    copies: bool  # True: copies to and from the GPU are included
    caveat: str = ""  # a value above `high` with an unclear verdict
    axis: str = "n"

    @property
    def sentence(self) -> str:
        ends = (
            f"(between {axis_text(self.axis, self.low)} and {axis_text(self.axis, self.high)}{', copies included' * self.copies})"
        )
        return f"{self.late} is faster than {self.early} from about {self.place} on {ends}{self.caveat}"

    @property
    def place(self) -> str:
        """Format the crossover: n = 512."""
        return f"{self.axis} = {axis_text(self.axis, self.at)}"


class SweepSeries(NamedTuple):
    """Runs that differ on one axis only, ascending by their value on it. The name distinguishes the series."""

    name: str
    points: tuple[tuple[float, Run], ...]

    @property
    def runs(self) -> dict[float, Run]:
        """Return the run for each value on the axis."""
        return {x: run for x, run in self.points if run.counts}

    @property
    def seconds(self) -> dict[float, float]:
        """Return the seconds for each value on the axis."""
        return {x: run.seconds for x, run in self.runs.items() if run.seconds}


class Findings(NamedTuple):
    """The findings of one session. `fits` by the series' names, `shortest` by n in seconds."""

    best: str
    fits: dict[str, Fit]
    crossovers: tuple[Crossover, ...]
    unclear: tuple[str, ...]  # possible crossovers, each with the reason for the uncertainty
    shortest: dict[int, float]
    scalings: tuple[Scaling, ...] = ()
    series: tuple[str, ...] = ()  # names of all series over n

    def sentences(self, row: str = "") -> list[str]:
        """Return the findings; if a series has the name `row`, without the exponents of the others."""
        sentences = [self.best] if self.best else []
        sentences += [one.sentence for one in self.scalings]
        fits = {name: found.sentence for name, found in self.fits.items() if name == row or row not in self.series}
        sentences += [f"{name}: {law}" if len(self.series) > 1 else law for name, law in fits.items()]
        return [*sentences, *(crossing.sentence for crossing in self.crossovers), *self.unclear]

    def data(self) -> dict[str, object]:
        """Return the fields under stable names, for JSON."""
        return {
            "best": self.best,
            "fits": {name: line_fit._asdict() for name, line_fit in self.fits.items()},
            "break_evens": [crossing._asdict() for crossing in self.crossovers],
            "unclear": list(self.unclear),
            "scaling": [one.data() for one in self.scalings],
        }


def finished(model: Model) -> list[Run]:
    """Return the latest timed run of each experiment, verified or not."""
    latest = {identity(r.experiment): r for r in model.runs.values() if r.state == "done" and r.seconds and r.n}
    return list(latest.values())


def fit(points: Mapping[At, float], cubic: bool = False) -> Fit | None:
    """Fit log time against log n by least squares; None for fewer than MIN_SIZES sizes, or an error above MAX_ERROR.

    `cubic` means that all runs do n^3 relaxations.
    """
    pairs = [(math.log(n), math.log(s)) for n, s in points.items() if n > 0 and s > 0]
    if len(pairs) < MIN_SIZES:
        return None
    count, (xs, ys) = len(pairs), zip(*pairs, strict=True)
    slope, start = linear_regression(xs, ys)
    rest = sum((y - slope * x - start) ** 2 for x, y in pairs)
    error = math.sqrt(rest / (count - 2) / (count * pvariance(xs)))
    return Fit(slope, error, min(points), max(points), count, cubic) if error <= MAX_ERROR else None


def bracket(wins: Mapping[At, bool]) -> tuple[At | None, At | None]:
    """Return the largest value without a win and the smallest win above it, each None if there is none."""
    low = max((n for n in wins if not wins[n]), default=None)
    high = min((n for n in wins if wins[n] and (low is None or n > low)), default=None)
    return low, high


def find_crossover(model: Model, one: SweepSeries, other: SweepSeries, axis: str = "n") -> Crossover | str | None:
    """Return the crossover of two series on the axis; None without common values or without a change of the winner.

    If the comparison on one side is not clear, return a sentence about the uncertainty. Between two values the times are
    interpolated linearly, both in logarithms. If only one series is from a GPU, its copies are included.
    """
    copies = len({run.backend for s in (one, other) for _, run in s.points}) > 1
    first, second = (_timed(s, copies) for s in (one, other))
    sizes = sorted(at for at in first.keys() & second.keys() if at > 0)
    if not sizes:
        return None
    (early, before), (late, after) = sorted(((one, first), (other, second)), key=lambda pair: -pair[1][sizes[-1]][1])
    seconds = {n: (before[n][1], after[n][1]) for n in sizes}
    wins = {n: ours < theirs for n, (theirs, ours) in seconds.items()}
    low, high = bracket(wins)
    if high is None or low is None:
        return None
    verdicts = {n: classify(ComparedRun(model, after[n][0]), ComparedRun(model, before[n][0])) for n in sizes}
    unclear = [n for n in sizes if verdicts[n][0] != (FASTER if wins[n] else SLOWER)]
    clear_low, clear_high = bracket({n: wins[n] for n in sizes if n not in unclear})
    if clear_high is None or clear_low is None:
        n = high if clear_high is None else low
        verdict, why, _ = verdicts[n]
        verdict_text = f"at {axis} = {axis_text(axis, n)} the comparison is {verdict}: {why}"
        between = f"between {axis} = {axis_text(axis, low)} and {axis_text(axis, high)}, but {verdict_text}"
        return f"{late.name} may overtake {early.name} {between}"
    ends = clear_low, clear_high
    (theirs, ours), (theirs_after, ours_after) = (seconds[n] for n in ends)
    lead = math.log(ours) - math.log(theirs)  # times from a forged session may overflow as a quotient
    behind = math.log(theirs_after) - math.log(ours_after)
    share = lead / (lead + behind)
    at, height = (math.exp((1 - share) * math.log(a) + share * math.log(b)) for a, b in (ends, (ours, ours_after)))
    caveat = next(
        (f"; at {axis} = {axis_text(axis, n)} the comparison is {verdicts[n][0]}" for n in unclear if n > clear_high), ""
    )
    return Crossover(early.name, late.name, *ends, at, height, copies, caveat, axis)


def axis_text(axis: str, at: float) -> str:
    """Format a value on that axis."""
    return f"{100 * at:.2g} %" if axis == "density" else f"{at:.0f}"


def _timed(series: SweepSeries, copies: bool) -> dict[float, tuple[Run, float]]:
    """Return run and seconds for each value on the axis, optionally including copies."""
    by_amount: dict[float, tuple[Run, float]] = {}
    for n, run in series.runs.items():
        seconds = run.end_to_end if copies else run.seconds
        if seconds and run.seconds:
            more = seconds - run.seconds
            passes = tuple(one + more for one in run.passes)
            done = replace(run.done, passes=passes, median=seconds) if run.done is not None else None
            by_amount[n] = replace(run, done=done), seconds
    return by_amount


def series(runs: Sequence[Run], across: str) -> list[SweepSeries]:
    """Return the runs as one series for each combination of everything except the axis."""
    axes = varied(r.experiment for r in runs)
    groups: dict[str, list[tuple[float, Run]]] = {}
    for run in runs:
        with suppress(ValueError):  # the run has no value on that axis
            place = run.n if across == "n" else float(value(run.experiment, across))
            places = [(a.name, value(run.experiment, a.name)) for a in axes if a.name != across]
            name = " · ".join(named(axis, text) for axis, text in places if text)
            groups.setdefault(name, []).append((place, run))
    return [SweepSeries(name or "all", tuple(sorted(points, key=lambda p: p[0]))) for name, points in groups.items()]


def findings(model: Model, runs: Sequence[Run]) -> Findings:
    """Return all findings from one session's runs, one run per experiment."""
    lines = series(runs, "n")
    cubic = {line.name: all(reduction(run) == 1 for run in line.runs.values()) for line in lines}
    fits = {line.name: line_fit for line in lines if (line_fit := fit(line.seconds, cubic[line.name])) is not None}
    crossings = [*_crossings(model, lines, "n"), *_crossings(model, series(runs, "density"), "density")]
    counted = [run for run in runs if run.counts]
    shortest: dict[int, float] = {}
    for run in counted:
        shortest[run.n] = min(shortest.get(run.n, math.inf), run.seconds or math.inf)
    clear = tuple(crossing for crossing in crossings if isinstance(crossing, Crossover))
    unclear = tuple(crossing for crossing in crossings if isinstance(crossing, str))
    return Findings(best(model, runs), fits, clear, unclear, shortest, scalings(counted), tuple(line.name for line in lines))


def _crossings(model: Model, lines: Sequence[SweepSeries], axis: str) -> Iterator[Crossover | str]:
    """Yield the crossovers of the winner at the largest value with each other series."""
    largest = max((at for line in lines for at in line.seconds), default=0.0)
    winner = min((line for line in lines if largest in line.seconds), key=lambda line: line.seconds[largest], default=None)
    for line in lines:
        if winner is not None and line is not winner:
            crossing = find_crossover(model, line, winner, axis)
            if crossing is not None:
                yield crossing


def best(model: Model, runs: Iterable[Run]) -> str:
    """Describe the fastest configuration at the largest size with several runs; empty if there is none."""
    counted = [r for r in runs if r.counts]
    if not counted:
        return ""
    sizes = Counter(r.n for r in counted)
    size = max((size for size, several in sizes.items() if several > 1), default=max(sizes))
    there = sorted((r for r in counted if r.n == size), key=lambda r: r.seconds or 0.0)
    axes, first = varied(r.experiment for r in there), there[0]
    ranked = [r for r in there if r.experiment.graph == first.experiment.graph]
    names = [describe_choices(r.experiment, axes) for r in ranked]
    sentence = f"Fastest at n = {size}: {names[0]}, {units.duration(first.seconds)}, {rate_text(first)}"
    if len(ranked) > 1:
        comparison = compare(ComparedRun(model, first), ComparedRun(model, ranked[1]))
        by = f"{comparison.speedup_text}, " if comparison.verdict == FASTER else ""
        sentence += f"; against the next, {names[1]}: {by}{comparison.verdict}"
    if len(ranked) > 2 and first.seconds and ranked[-1].seconds:
        sentence += f"; {units.gain(ranked[-1].seconds / first.seconds)} speedup over the slowest, {names[-1]}"
    return f"{sentence}."


def describe_choices(experiment: Experiment, axes: Sequence[SweepAxis]) -> str:
    """Describe an experiment by its choices on the axes: katz-kider, tile 32."""
    names = [named(a.name, text) for a in axes if a.name not in ("kernel", "n") and (text := value(experiment, a.name))]
    return ", ".join([experiment.kernel, *names])
