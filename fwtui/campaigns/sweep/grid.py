"""The grid of a sweep: the experiment of each cell, their order, and their progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice, product
from math import prod
from typing import NamedTuple

from fwtui.campaigns.sweep.axis import DEVICES, SweepAxis, amounts, on_devices
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment, Settled, changed, for_kernel, identity, kernel_named
from fwtui.experiment.fields import FIELDS
from fwtui.stream.model import Model
from fwtui.stream.run import Run

MAX_CELLS = 2000
ENDED = ("done", "refused", "failed")  # final states of a run
Settle = Callable[[Experiment], Settled]  # raises Refused if it cannot run here


class GridCell(NamedTuple):
    """A cell of the grid; without an experiment it cannot run, for the given reason."""

    at: tuple[str, ...]  # a value for each axis
    experiment: Settled | None
    reason: str = ""
    key: tuple[object, ...] = ()  # the experiment's identity
    refusal: type[Refused] = Refused


class Grid:
    """All cells by position, and the distinct experiments in run order: small sizes, and both ends of other axes, first."""

    def __init__(self, base: Experiment, axes: Sequence[SweepAxis], settle_here: Settle):
        """Raise Refused if there are too many cells, or none of them can run."""
        if (count := prod(len(axis.values) for axis in axes)) > MAX_CELLS:
            raise Refused(f"these axes have {count} cells, and a sweep takes at most {MAX_CELLS}; pass fewer values")
        self.base = base
        self.axes = tuple(axes)
        cells = [_cell(base, self.axes, at, settle_here) for at in product(*(axis.values for axis in axes))]
        self.cells = {cell.at: cell for cell in cells}
        if not any(cell.experiment for cell in cells):
            raise cells[0].refusal(cells[0].reason)
        # a kernel without tiles has the same experiment for all tiles; it runs and counts once
        once: dict[tuple[object, ...], GridCell] = {}
        for cell in cells:
            if cell.experiment is not None:
                once.setdefault(cell.key, cell)
        self.order = tuple(sorted(once.values(), key=self._turn))

    @property
    def title(self) -> str:
        """Format the axes: n 256,512,1024 x tile 16,32."""
        return " x ".join(f"{axis.name} {','.join(axis.values)}" for axis in self.axes)

    def at(self, place: Mapping[str, str]) -> GridCell:
        """Return the cell with these values, with the first value on every other axis."""
        return self.cells[tuple(place.get(axis.name, axis.values[0]) for axis in self.axes)]

    def _turn(self, cell: GridCell) -> tuple[float, ...]:
        at = {axis.name: (value, axis.values) for axis, value in zip(self.axes, cell.at, strict=True)}
        n, density = (float(at[name][0]) if name in at else 0.0 for name in ("n", "density"))
        finer = (levels(len(all_))[all_.index(value)] for name, (value, all_) in at.items() if amounts(name) and name != "n")
        # density last: cells of the same graph run in a row, so that it is made and checked once
        return (max(finer, default=0), n, density)


class KnownRuns:
    """The runs of the session by experiment; simulated runs, without times, do not count."""

    def __init__(self, model: Model):
        self._model = model
        self._indexed = 0  # number of the model's runs in _numbers
        self._numbers: dict[tuple[object, ...], list[int]] = {}

    def run(self, key: tuple[object, ...]) -> Run | None:
        """Return the latest finished run of the experiment with that identity, else the latest run."""
        if len(self._model.runs) < self._indexed:  # a session only grows, unless it is rewound
            self._indexed, self._numbers = 0, {}
        for run in islice(self._model.runs.values(), self._indexed, None):
            if not run.simulated:
                self._numbers.setdefault(identity(run.experiment), []).append(run.id)
        self._indexed = len(self._model.runs)
        runs = [self._model.runs[number] for number in self._numbers.get(key, ())]
        done = next((r for r in reversed(runs) if r.state == "done"), None)
        return done or (runs[-1] if runs else None)


def levels(count: int) -> list[int]:
    """Return the refinement level of each value: 0 for both ends, 1 for the middle, 2 for the quarters, ..."""
    depths = [0] * count

    def halve(low: int, high: int, level: int) -> None:
        if high - low > 1:
            middle = (low + high) // 2
            depths[middle] = level
            halve(low, middle, level + 1)
            halve(middle, high, level + 1)

    halve(0, count - 1, 1)
    return depths


def _cell(base: Experiment, axes: Sequence[SweepAxis], at: tuple[str, ...], settle_here: Settle) -> GridCell:
    try:
        experiment = settle_here(_experiment(base, dict(zip((a.name for a in axes), at, strict=True))))
    except Refused as refusal:
        return GridCell(at, None, str(refusal), refusal=type(refusal))
    if experiment.runs_on.simulated:
        return GridCell(at, None, f"{experiment.kernel} would be simulated here, and nothing simulated is timed")
    return GridCell(at, experiment, key=identity(experiment))


def _experiment(base: Experiment, at: dict[str, str]) -> Experiment:
    """Return the base with these values; a different kernel has its default tile, options, launch mode and types."""
    kernel = kernel_named(at.get("kernel", base.kernel))
    offered = {o.name for o in kernel.options}
    wished = {**base.options, **{name: int(text) for name, text in at.items() if name in offered}}
    options = {name: value for name, value in wished.items() if name in offered}
    if kernel.id != base.kernel:
        base = for_kernel(base, kernel)
    changes = {k: v for f in FIELDS if f.name in at and f.name != DEVICES for k, v in f.read(at[f.name]).items()}
    if not kernel.tiles:
        changes.pop("tile", None)
    if DEVICES in at:
        changes[DEVICES] = on_devices(int(at[DEVICES]), kernel)
    return changed(base, **{**changes, "options": options})
