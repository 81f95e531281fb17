"""Runs of one graph on more and more devices: speed-up, efficiency, and the model of both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from fwtui.analysis.scaling import LEAST, MOST_RANKS, Rates, efficiency, fit, grown, limits, measured, predict, shape_on
from fwtui.campaigns.sweep.axis import named, value, varied
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.common.text import quoted
from fwtui.experiment.experiment import HOW_MEASURED, identity
from fwtui.experiment.own_kernels import known_kernels
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui_kernels.plan import Shape

TRUSTED = 0.2  # a model that is further off is not asked where devices stop paying


class Point(NamedTuple):
    """A run, and how it compares with the one on fewest devices: relaxations/s, and the same for each device."""

    run: Run
    ranks: int
    speedup: float
    efficiency: float


class Scaling(NamedTuple):
    """Runs that differ in the number of devices only, and (weak) in n such that each device holds as much."""

    name: str
    weak: bool
    points: tuple[Point, ...]  # by devices, the fewest first
    alone: Shape  # the first one's, on one device
    rates: Rates | None  # None: no phase pass was measured

    @property
    def words(self) -> str:
        last = self.points[-1]
        words = f"{self.name}: {last.ranks} devices do {units.gain(last.speedup)} the relaxations/s of {self.points[0].ranks}"
        words += f", efficiency {units.percent(last.efficiency)}"
        if (off := self.off) is not None:
            words += f"; the model is up to {units.percent(off)} off" + ", too much to tell its limits" * (off > TRUSTED)
        return f"{words}."

    @property
    def off(self) -> float | None:
        """How far the model's time is off at most, as a share; None if it does not know the link."""
        if self.rates is None or self.rates.link is None:
            return None
        rates, timed = self.rates, [(p.run.experiment.shape(p.run.n), p.run.seconds or 0.0) for p in self.points]
        return max(abs(predict(rates, shape).seconds / seconds - 1) for shape, seconds in timed)

    def predicted(self, ranks: int) -> float | None:
        """The model's efficiency on that many devices, if it knows the link."""
        if self.rates is None or (self.rates.link is None and ranks > 1):
            return None
        return efficiency(self.rates, self.alone, ranks, self.weak)

    def data(self) -> dict[str, object]:
        """The same under stable names."""
        points = [
            {"run": p.run.id, "devices": p.ranks, "n": p.run.n, "seconds": p.run.seconds, "speedup": p.speedup}
            | {"efficiency": p.efficiency, "model": self.predicted(p.ranks)}
            for p in self.points
        ]
        return {"name": self.name, "weak": self.weak, "points": points, "model_off": self.off}


def sentences(scalings: Sequence[Scaling]) -> list[str]:
    """What was measured, and for the largest graph where the distribution stops paying."""
    sentences = [one.words for one in scalings]
    largest = max(scalings, key=lambda one: one.alone.n, default=None)
    if largest is None or largest.rates is None or (largest.off or 0.0) > TRUSTED:
        return sentences
    return sentences + limits(largest.rates, largest.alone, largest.weak)


def scalings(model: Model, runs: Iterable[Run]) -> tuple[Scaling, ...]:
    """Strong and weak scaling among verified runs with a time: whichever of the two has more of them."""
    groups: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        if _scales(run):
            groups.setdefault(identity(run.experiment, (*HOW_MEASURED, "n", "devices")), []).append(run)
    axes = [axis for axis in varied(one[0].experiment for one in groups.values()) if axis.name not in ("n", "devices")]
    strong: list[Scaling] = []
    weak: list[Scaling] = []
    for group in groups.values():
        rates = fit(measured(model, run) for run in group)
        fixed = [named(axis.name, text) for axis in axes if (text := value(group[0].experiment, axis.name))]
        by_ranks = sorted(group, key=lambda run: (_ranks(run), run.id))
        for n in sorted({run.n for run in group}):
            name = " · ".join([*fixed, f"n {n}"])
            alike = {_ranks(run): run for run in by_ranks if run.n == n}
            strong += _scaling(name, False, alike, rates)
            if 1 in alike:
                tile = alike[1].experiment.tile
                growing = {ranks: run for run in by_ranks if run.n == grown(n, ranks := _ranks(run), tile)}
                weak += _scaling(f"{name}, growing", True, growing, rates)
    return tuple(weak if _count(weak) > _count(strong) else strong)


def _scales(run: Run) -> bool:
    """Whether its kernel runs on several devices, and a made-up session asked nothing of it that it does not have."""
    kernel, e = known_kernels().get(run.experiment.kernel), run.experiment
    offered = kernel is not None and kernel.ranked and e.tile in kernel.tiles and e.dtype in kernel.dtypes
    return offered and run.n > 0 and (run.seconds or 0.0) > LEAST


def _ranks(run: Run) -> int:
    return max(1, len(run.experiment.places))


def _count(scalings: Sequence[Scaling]) -> int:
    return sum(len(one.points) for one in scalings)


def _scaling(name: str, weak: bool, runs: dict[int, Run], rates: Rates | None) -> list[Scaling]:
    """One, if there are runs on several numbers of devices."""
    if len(runs) < 2:
        return []
    fewest = min(runs)
    base = runs[fewest].rate or 0.0
    points = [(run, ranks, (run.rate or 0.0) / base if base else 0.0) for ranks, run in sorted(runs.items())]
    alone = replace(runs[fewest].experiment.shape(runs[fewest].n), ranks=1)
    return [Scaling(name, weak, tuple(Point(run, p, gain, gain * fewest / p) for run, p, gain in points), alone, rates)]


class Forecast(NamedTuple):
    """The model's pass on devices that are not here: by rows of tiles, and with tiles dealt out in two dimensions."""

    ranks: int
    n: int
    seconds: float
    efficiency: float
    flat_seconds: float
    flat_efficiency: float
    limited: str  # the part of a round that takes longest


def forecast(one: Scaling, ranks: int, bytes_per_second: float | None = None) -> Forecast:
    """`bytes_per_second`: of another link than the measured one. Raises Refused if no link was measured."""
    rates = one.rates
    if rates is None:
        raise Refused(f"{one.name}: no run has all phases, so nothing can be predicted; take a larger n")
    if rates.link is None:
        raise Refused(f"{one.name}: no broadcast was measured, so nothing can be predicted; run it on 2 devices too")
    if bytes_per_second is not None:
        rates = rates._replace(link=rates.link._replace(each=1 / bytes_per_second))
    shape = shape_on(one.alone, ranks, one.weak)
    prediction, flat = predict(rates, shape), predict(rates, shape, True)
    shares = [efficiency(rates, one.alone, ranks, one.weak, two) for two in (False, True)]
    limited = (
        "rest"
        if prediction.rest >= prediction.path
        else "broadcast"
        if prediction.broadcast > prediction.path / 2
        else "next panel"
    )
    return Forecast(ranks, shape.n, prediction.seconds, shares[0], flat.seconds, shares[1], limited)


def read_predict(text: str) -> list[int]:
    """Numbers of devices from a user's text. Raises Refused."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isascii() and word.isdecimal() and 1 <= int(word[:9]) <= MOST_RANKS for word in words):
        raise Refused(f"predict {quoted(text)}: give numbers of devices, 1 to {MOST_RANKS}, like 8,64")
    return sorted({int(word) for word in words})
