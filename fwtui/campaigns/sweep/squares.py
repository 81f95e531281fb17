"""Runs arranged by the x axis and by all other values, for a heat map and its curves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from fwtui.analysis.sparsity import reduction
from fwtui.campaigns.sweep.axis import DEVICES, SweepAxis, named, value, varied
from fwtui.campaigns.sweep.findings import finished
from fwtui.campaigns.sweep.grid import GridCell
from fwtui.campaigns.sweep.running import Sweep
from fwtui.experiment.experiment import Experiment
from fwtui.stream.model import Model
from fwtui.stream.run import Run

WAITING, RUNNING, LEFT_OUT, ENDED, NOTHING = "waiting", "running", "left out", "ended", ""


class Square(NamedTuple):
    """The state of a cell, and its run or the reason for not running it."""

    state: str = NOTHING
    run: Run | None = None
    why: str = ""


class SweepRow(NamedTuple):
    """A combination of all values except those of the x axis, with a square for each x value."""

    name: str
    squares: tuple[Square, ...]
    kernel: str = ""  # kernel of the row, if rows differ by kernel


class Squares(NamedTuple):
    """All rows over one axis; names omit axes with a single value."""

    across: SweepAxis
    rows: tuple[SweepRow, ...]
    choices: tuple[str, ...]  # names of the possible horizontal axes

    @property
    def runs(self) -> list[Run]:
        """Return each run once."""
        return list({s.run.id: s.run for row in self.rows for s in row.squares if s.run is not None}.values())

    @property
    def skips_work(self) -> bool:
        """Return whether a kernel skips relaxations, so that times are compared instead of rates."""
        return any(reduction(run) > 1 for run in self.runs)

    @property
    def best_speed(self) -> float | None:
        """Return the highest speed of a valid run."""
        return max((speed(run) for run in self.runs if run.counts), default=None)

    @property
    def speed_range(self) -> float:
        """Return the highest / the lowest speed of the valid runs; 1 without any."""
        speeds = [speed(run) for run in self.runs if run.counts]
        return max(speeds) / min(speeds) if speeds else 1.0

    @property
    def best_place(self) -> tuple[int, int]:
        """Return row and column of the fastest run; the first square if some have not run yet or no run is valid."""
        squares = {(row, column): s for row, row_of in enumerate(self.rows) for column, s in enumerate(row_of.squares)}
        if any(square.state in (WAITING, RUNNING) for square in squares.values()):
            return 0, 0
        speeds = {place: speed(square.run) for place, square in squares.items() if square.run and square.run.counts}
        return max(speeds, key=lambda place: (speeds[place], place), default=(0, 0))


def speed(run: Run) -> float:
    """Return n^3 / time, which also compares kernels that skip relaxations; 0 without a time."""
    return run.n**3 / run.seconds if run.seconds else 0.0


def of_sweep(sweep: Sweep, axis_name: str = "") -> Squares:
    """Return a sweep's cells, run or not; rows without a cell that can run are omitted."""
    axes = [axis for axis in sweep.grid.axes if len(axis.values) > 1] or list(sweep.grid.axes[:1])
    across, others = _across(axes, axis_name)
    rows: dict[tuple[object, ...], SweepRow] = {}
    for rest in product(*(axis.values for axis in others)):
        there = dict(zip((axis.name for axis in others), rest, strict=True))
        cells = [sweep.grid.at({**there, across.name: x}) for x in across.values]
        first = next((cell.experiment for cell in cells if cell.experiment is not None), None)
        if first is not None:
            # a kernel without tiles has one row, not one per tile
            key = tuple(cell.key or cell.at for cell in cells)
            rows.setdefault(key, _row(others, first, across, [_square(sweep, cell) for cell in cells]))
    return Squares(across, tuple(rows.values()), tuple(axis.name for axis in axes))


def of_runs(model: Model, axis_name: str = "") -> Squares | None:
    """Return the finished runs of a session, including those outside sweeps; None if nothing varies among them."""
    runs = finished(model)
    axes = varied(r.experiment for r in runs)
    if not axes:
        return None
    across, others = _across(axes, axis_name)
    rows: dict[tuple[int, ...], dict[str, Run]] = {}  # key: positions of the other values on their axes
    for run in runs:
        values = [(axis.values, value(run.experiment, axis.name)) for axis in others]
        place = tuple(texts.index(text) if text in texts else -1 for texts, text in values)
        rows.setdefault(place, {})[value(run.experiment, across.name)] = run
    squares = [
        _row(
            others,
            next(iter(there.values())).experiment,
            across,
            [Square(ENDED, there[x]) if x in there else Square() for x in across.values],
        )
        for _, there in sorted(rows.items(), key=lambda pair: pair[0])
    ]
    return Squares(across, tuple(squares), tuple(axis.name for axis in axes))


def _across(axes: Sequence[SweepAxis], name: str) -> tuple[SweepAxis, list[SweepAxis]]:
    """Return the axis of that name, else the devices, else n, else the one with the most values; and the others."""
    by_name = {axis.name: axis for axis in axes}
    chosen = by_name.get(name) or by_name.get(DEVICES) or by_name.get("n") or max(axes, key=lambda axis: len(axis.values))
    return chosen, [axis for axis in axes if axis.name != chosen.name]


def _row(axes: Sequence[SweepAxis], experiment: Experiment, across: SweepAxis, squares: Sequence[Square]) -> SweepRow:
    """Return a row of squares, titled by the values that all its experiments share."""
    fixed = [named(axis.name, text) for axis in axes if (text := value(experiment, axis.name))]
    name = " · ".join(fixed) or (f"n {experiment.n}" if across.name == "kernel" else experiment.kernel)
    return SweepRow(name, tuple(squares), experiment.kernel if any(axis.name == "kernel" for axis in axes) else "")


def _square(sweep: Sweep, cell: GridCell) -> Square:
    if cell.experiment is None:
        return Square(LEFT_OUT, None, cell.reason)
    run = sweep.run(cell)
    if sweep.ended(cell):
        return Square(ENDED, run)
    if sweep.current is not None and sweep.current.experiment == cell.experiment:
        return Square(RUNNING, run)
    if cell.key in sweep.left_out:
        return Square(LEFT_OUT, None, sweep.left_out[cell.key])
    return Square(WAITING)
