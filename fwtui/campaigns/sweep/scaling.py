"""Runs of one graph on more and more devices: speedup and efficiency."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fwtui.campaigns.sweep.axis import DEVICES, named, value, varied
from fwtui.common import units
from fwtui.experiment.experiment import HOW_MEASURED, identity
from fwtui.experiment.user_kernel_registry import known_kernels
from fwtui.stream.run import Run


class Point(NamedTuple):
    """A run, and its speedup and efficiency relative to the run on fewest devices."""

    run: Run
    ranks: int
    speedup: float
    efficiency: float


class Scaling(NamedTuple):
    """Runs that differ in the number of devices only."""

    name: str
    points: tuple[Point, ...]  # ordered by number of devices

    @property
    def sentence(self) -> str:
        last = self.points[-1]
        result = f"{self.name}: {last.ranks} devices reach {units.gain(last.speedup)} the relaxations/s of {self.points[0].ranks}"
        return f"{result}, efficiency {units.percent(last.efficiency)}."

    def data(self) -> dict[str, object]:
        """Return the fields under stable names, for JSON."""
        points = [
            {"run": p.run.id, "devices": p.ranks, "n": p.run.n, "seconds": p.run.seconds}
            | {"speedup": p.speedup, "efficiency": p.efficiency}
            for p in self.points
        ]
        return {"name": self.name, "points": points}


def scalings(runs: Iterable[Run]) -> tuple[Scaling, ...]:
    """Return each graph that ran verified on several numbers of devices."""
    groups: dict[tuple[object, ...], dict[int, Run]] = {}
    for run in sorted(filter(_scales, runs), key=lambda run: (run.n, run.id)):
        ranks = max(1, len(run.experiment.places))
        groups.setdefault(identity(run.experiment, (*HOW_MEASURED, "devices")), {})[ranks] = run
    ran = [run.experiment for group in groups.values() for run in group.values()]
    axes = [axis for axis in varied(ran) if axis.name not in ("n", DEVICES)]
    found = []
    for group in (group for group in groups.values() if len(group) > 1):
        (fewest, first), *_ = ranked = sorted(group.items())
        fixed = [named(axis.name, text) for axis in axes if (text := value(first.experiment, axis.name))]
        gains = [(run, ranks, (run.rate or 0.0) / (first.rate or 1.0)) for ranks, run in ranked]
        points = tuple(Point(run, ranks, gain, gain * fewest / ranks) for run, ranks, gain in gains)
        found.append(Scaling(" · ".join([*fixed, f"n {first.n}"]), points))
    return tuple(found)


def _scales(run: Run) -> bool:
    """Return whether the run's kernel is distributed and has the run's settings, which a forged session may lack."""
    kernel, e = known_kernels().get(run.experiment.kernel), run.experiment
    offered = kernel is not None and kernel.ranked and e.tile in kernel.tiles and e.dtype in kernel.dtypes
    return offered and run.n > 0 and bool(run.rate)
