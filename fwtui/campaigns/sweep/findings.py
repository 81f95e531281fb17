"""What many runs say together: how time grows with n, from where on another kernel pays, what is fastest."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from fwtui.analysis.compare import FASTER, Entrant, compare
from fwtui.campaigns.sweep.axis import Axis, named, value, varied
from fwtui.common import units
from fwtui.experiment.experiment import Experiment, identity
from fwtui.stream.model import Model
from fwtui.stream.run import Run


class Fit(NamedTuple):
    """Time grows with n^exponent between two sizes; `error` is the exponent's standard error, None for two points."""

    exponent: float
    error: float | None
    low: float
    high: float
    sizes: int

    @property
    def words(self) -> str:
        around = f" ± {self.error:.2f}" if self.error is not None else ""
        return f"time ~ n^{self.exponent:.2f}{around} over n = {self.low:g} to {self.high:g} ({self.sizes} sizes)"


class BreakEven(NamedTuple):
    """`late` loses to `early` at `low` and wins from `high` on; `at` is where their lines cross, in n, `seconds` how high."""

    early: str
    late: str
    low: int
    high: int
    at: float
    seconds: float
    copies: bool  # whether the copies to and from the GPU count

    @property
    def words(self) -> str:
        between = f"(between {self.low} and {self.high}{', copies included' * self.copies})"
        return f"{self.late} is faster than {self.early} from about n = {self.at:.0f} on {between}"


class Series(NamedTuple):
    """Runs that differ on one axis only, by their value on it, ascending. The name says what tells it from the others."""

    name: str
    points: tuple[tuple[float, Run], ...]

    def seconds(self, copies: bool = False) -> dict[int, float]:
        """Size -> seconds of the runs that count, with or without the copies."""
        told = ((int(x), run.end_to_end if copies else run.seconds) for x, run in self.points if counts(run))
        return {n: seconds for n, seconds in told if seconds}


class Findings(NamedTuple):
    """What runs of one session say together. `fits` by the series' names, `best_rates` by n in relaxations per second."""

    best: str
    fits: dict[str, Fit]
    break_evens: tuple[BreakEven, ...]
    best_rates: dict[int, float]

    @property
    def sentences(self) -> list[str]:
        told = [self.best] if self.best else []
        told += [f"{name}: {found.words}" if len(self.fits) > 1 else found.words for name, found in self.fits.items()]
        return [*told, *(crossing.words for crossing in self.break_evens)]

    def data(self) -> dict[str, object]:
        """The same under stable names."""
        return {
            "best": self.best,
            "fits": {name: found._asdict() for name, found in self.fits.items()},
            "break_evens": [crossing._asdict() for crossing in self.break_evens],
        }


def counts(run: Run) -> bool:
    """Whether its time may be used: done, timed and verified."""
    return run.state == "done" and run.verified is True and bool(run.seconds)


def finished(model: Model) -> list[Run]:
    """Of each experiment the latest run with a time, verified or not."""
    latest = {identity(r.experiment): r for r in model.runs.values() if r.state == "done" and r.seconds and r.n}
    return list(latest.values())


def fit(points: Mapping[int, float]) -> Fit | None:
    """Least squares of log time against log n; None for fewer than two sizes."""
    pairs = [(math.log(n), math.log(s)) for n, s in points.items() if n > 0 and s > 0]
    if len({x for x, _ in pairs}) < 2:
        return None
    count = len(pairs)
    mx, my = (sum(column) / count for column in zip(*pairs, strict=True))
    across = sum((x - mx) ** 2 for x, _ in pairs)
    slope = sum((x - mx) * (y - my) for x, y in pairs) / across
    rest = sum((y - my - slope * (x - mx)) ** 2 for x, y in pairs)
    error = math.sqrt(rest / (count - 2) / across) if count > 2 else None
    return Fit(slope, error, min(points), max(points), count)


def bracket(wins: Mapping[int, bool]) -> tuple[int | None, int | None]:
    """Between which two sizes winning begins: the largest lost one, and the smallest won one above it; None: there is none."""
    low = max((n for n in wins if not wins[n]), default=None)
    high = min((n for n in wins if wins[n] and (low is None or n > low)), default=None)
    return low, high


def break_even(one: Series, other: Series) -> BreakEven | None:
    """From which size on which of the two is faster; None where they have no size in common, or never change places.

    Between two sizes both are taken for straight lines in log time over log n. Where only one of them computes on a GPU,
    its copies count.
    """
    copies = len({run.backend for s in (one, other) for _, run in s.points}) > 1
    first, second = one.seconds(copies), other.seconds(copies)
    sizes = sorted(first.keys() & second.keys())
    if not sizes:
        return None
    (early, before), (late, after) = sorted(((one, first), (other, second)), key=lambda pair: -pair[1][sizes[-1]])
    low, high = bracket({n: after[n] < before[n] for n in sizes})
    if high is None or low is None:
        return None
    lead = math.log(after[low]) - math.log(before[low])  # a quotient of made-up times may be no float
    behind = math.log(before[high]) - math.log(after[high])
    share = lead / (lead + behind)
    at, seconds = (math.exp((1 - share) * math.log(a) + share * math.log(b)) for a, b in ((low, high), (after[low], after[high])))
    return BreakEven(early.name, late.name, low, high, at, seconds, copies)


def series(runs: Sequence[Run], across: str, axes: Sequence[Axis] | None = None) -> list[Series]:
    """The runs as one series per combination of everything but the axis that they are drawn across."""
    axes = varied(r.experiment for r in runs) if axes is None else axes
    groups: dict[str, list[tuple[float, Run]]] = {}
    for run in runs:
        with suppress(ValueError):  # it has no place on that axis
            place = float(run.n if across == "n" else value(run.experiment, across))
            told = [(a.name, value(run.experiment, a.name)) for a in axes if a.name != across]
            name = " · ".join(named(axis, text) for axis, text in told if text)
            groups.setdefault(name, []).append((place, run))
    return [Series(name or "all", tuple(sorted(points, key=lambda p: p[0]))) for name, points in groups.items()]


def findings(model: Model, runs: Sequence[Run]) -> Findings:
    """Everything that runs of one session say together; of each experiment one run is expected."""
    lines = series(runs, "n")
    fits = {line.name: found for line in lines if (found := fit(line.seconds())) is not None}
    # against the one that wins at the largest size: what loses to it everywhere needs no sentence
    largest = max((n for line in lines for n in line.seconds()), default=0)
    winner = min((s for s in lines if largest in s.seconds()), key=lambda s: s.seconds()[largest], default=None)
    crossings = [c for line in lines if winner is not None and line is not winner and (c := break_even(line, winner)) is not None]
    rates: dict[int, float] = {}
    for run in filter(counts, runs):
        rates[run.n] = max(rates.get(run.n, 0.0), run.rate or 0.0)
    return Findings(best(model, runs), fits, tuple(crossings), rates)


def best(model: Model, runs: Iterable[Run]) -> str:
    """The fastest configuration at the greatest size that several ran at, in one sentence; empty where there is none."""
    counted = [r for r in runs if counts(r)]
    if not counted:
        return ""
    sizes = Counter(r.n for r in counted)
    n = max((n for n, several in sizes.items() if several > 1), default=max(sizes))
    ranked = sorted((r for r in counted if r.n == n), key=lambda r: r.seconds or 0.0)
    axes = varied(r.experiment for r in ranked)
    told = [words(r.experiment, axes) for r in ranked]
    first = ranked[0]
    sentence = f"Fastest at n = {n}: {told[0]}, {units.duration(first.seconds)}, {units.rate(first.rate)}"
    if len(ranked) > 1:
        found = compare(Entrant(model, first), Entrant(model, ranked[1]))
        by = f"{found.gained}, " if found.verdict == FASTER else ""
        sentence += f"; against the next, {told[1]}: {by}{found.verdict}"
    if len(ranked) > 2 and first.seconds and ranked[-1].seconds:
        sentence += f"; {units.times(ranked[-1].seconds / first.seconds)} as fast as the slowest, {told[-1]}"
    return f"{sentence}."


def words(experiment: Experiment, axes: Sequence[Axis]) -> str:
    """The experiment by what tells it from others: katz-kider, tile 32."""
    told = [named(a.name, text) for a in axes if a.name not in ("kernel", "n") and (text := value(experiment, a.name))]
    return ", ".join([experiment.kernel, *told])
