"""The step-by-step view: a kernel's plan on a small graph, one k of one step at a time, and a position in it.

NumPy executes the plan from its rectangles (fwtui_kernels.reference).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np

from fwtui.common.errors import Refused
from fwtui.experiment.experiment import SIMULATOR_MAX_N, Experiment, changed, kernel_named, settle
from fwtui.experiment.generate import fill_numpy, recipe_for
from fwtui_kernels.plan import EVERY, Kernel, Rect, Shape, Step
from fwtui_kernels.reference import relax, relaxations

MAX_N = SIMULATOR_MAX_N
NEVER = -1
FIRST = Experiment(kernel="katz-kider", n=8, density=0.3, seed=7, tile=4)
MAX_WEIGHT = 999
PLAYED_SECONDS = 0.6  # playback time of one k
MODEL_DTYPE = "float32"  # of the displayed numbers; the plan of a kernel does not depend on the data type


class TracedMoment(NamedTuple):
    """One k of one step. Rectangles are in vertices, without the padding; rounds count from 1."""

    step: int
    k: int
    round: int
    phase: str
    sources: tuple[Rect, ...]  # read but not written by the step
    targets: tuple[Rect, ...]  # written by the step

    def writes(self, i: int, j: int) -> bool:
        return _within(self.targets, i, j)

    def reads(self, i: int, j: int) -> bool:
        return _within(self.sources, i, j)


class TracedCell(NamedTuple):
    """A relaxation with its values; infinity means no path yet."""

    old: float
    to_k: float
    from_k: float
    new: float


@dataclass(frozen=True, eq=False)
class Trace:
    """An executed plan. `distances[m]` and `shortened[m]` are the states before moment m, `[m + 1]` those after it.

    `shortened[m][i, j]` is the last moment before m that shortened the distance, or NEVER.
    """

    kernel: Kernel
    shape: Shape
    plan: tuple[Step, ...]
    moments: tuple[TracedMoment, ...]
    distances: tuple[np.ndarray, ...]  # (n, n) float64; inf: no path
    shortened: tuple[np.ndarray, ...]  # (n, n) int32

    @property
    def n(self) -> int:
        return self.shape.n

    def relaxed(self, moment: int, i: int, j: int) -> TracedCell | None:
        """Return the relaxation of cell (i, j) at that moment; None if the cell does not change."""
        at = self.moments[moment]
        if not at.writes(i, j):
            return None
        before = self.distances[moment]
        return TracedCell(before[i, j], before[i, at.k], before[at.k, j], self.distances[moment + 1][i, j])

    def path(self, position: int, i: int, j: int) -> tuple[int, ...]:
        """Return the vertices of the shortest path from i to j found in `position` moments; empty if there is none.

        A path through k consists of the paths i to k and k to j at the moment when it was found. There are no paths if the
        graph has a negative cycle.
        """
        if (np.diag(self.distances[position]) < 0).any():
            return ()
        found = int(self.shortened[position][i, j])
        if found != NEVER:
            k = self.moments[found].k
            return self.path(found, i, k)[:-1] + self.path(found, k, j)
        return (i,) if i == j else (i, j) if np.isfinite(self.distances[0][i, j]) else ()

    def next_of(self, part: str, position: int, direction: int) -> int:
        """Return the next position (`direction` > 0) or the previous one where a "step" or "round" begins, or the end."""
        numbers = [None, *map(attrgetter(part), self.moments)]
        begins = [place for place, (before, number) in enumerate(pairwise(numbers)) if number != before]
        if direction > 0:
            return next((b for b in begins if b > position), len(self.moments))
        return next((b for b in reversed(begins) if b < position), 0)


def trace(experiment: Experiment, weights: np.ndarray) -> Trace:
    """Execute the plan of a settled experiment on an (n, n) float matrix (inf: no edge, diagonal 0).

    Raises Refused if n is not 1 to MAX_N, or the kernel rejects the shape.
    """
    kernel = kernel_named(experiment.kernel)
    n = len(weights)
    if not 1 <= n <= MAX_N:
        raise Refused(f"n = {n} is outside 1 to {MAX_N} for the step-by-step view; choose a smaller graph")
    shape = experiment.shape(n, nonnegative=bool((weights >= 0).all()))
    refusal = kernel.refuses(shape)
    if refusal:
        raise Refused(refusal)
    plan = tuple(kernel.plan(shape, True))
    side = shape.padded
    state = np.full((side, side), np.inf)
    np.fill_diagonal(state, 0.0)
    state[:n, :n] = weights
    moments: list[TracedMoment] = []
    distances, shortened = [state[:n, :n].copy()], [np.full((n, n), NEVER, dtype=np.int32)]
    round_of = [number for number, _ in kernel.rounds(plan)]
    for index, k in _with_broadcasts(kernel, plan, shape):
        if k >= n:  # the padding has no edges
            continue
        step = plan[index]
        rects = kernel.places(step.writes)
        targets = _clipped(rects, n)
        reads = (Rect(k, 0, k + shape.tile, side),) if step.rank == EVERY else kernel.places(step.reads)
        sources = tuple(r for r in _clipped(reads, n) if r not in targets)
        relax(state, rects, k)
        shorter = state[:n, :n] < distances[-1]
        shortened.append(np.where(shorter, len(moments), shortened[-1]))
        moments.append(TracedMoment(index, k, round_of[index], step.phase, sources, targets))
        distances.append(state[:n, :n].copy())
    return Trace(kernel, shape, plan, tuple(moments), tuple(distances), tuple(shortened))


def _with_broadcasts(kernel: Kernel, plan: Sequence[Step], shape: Shape) -> Iterator[tuple[int, int]]:
    """Yield every k of every step; a broadcast has one k, the first of the row of tiles that it sends."""
    through = relaxations(kernel, plan, shape.padded)
    by_step = {index: [k for _, k in rounds] for index, rounds in groupby(through, itemgetter(0))}
    for index, step in enumerate(plan):
        panel = [step.args[0] * shape.tile] if step.rank == EVERY else []
        yield from ((index, k) for k in by_step.get(index, panel))


def _within(rects: Sequence[Rect], i: int, j: int) -> bool:
    return any(r.top <= i < r.bottom and r.left <= j < r.right for r in rects)


def _clipped(rects: Sequence[Rect], n: int) -> tuple[Rect, ...]:
    """Return the rectangles without the padding."""
    inside = (Rect(r.top, r.left, min(r.bottom, n), min(r.right, n)) for r in rects)
    return tuple(dict.fromkeys(r for r in inside if r.top < r.bottom and r.left < r.right))


@dataclass
class Stepping:
    """The displayed trace and the position in it. `edition` changes with the graph and with the kernel."""

    experiment: Experiment
    weights: np.ndarray  # (n, n) float64, inf: no edge, diagonal 0
    trace: Trace
    position: int = 0  # moments that have happened
    row: int = 0  # the marked cell
    column: int = 0
    edition: int = 0
    edited: bool = False  # True after set_weight()

    @property
    def moment(self) -> TracedMoment | None:
        """Return the last moment; None at the beginning."""
        return self.trace.moments[self.position - 1] if self.position else None

    @property
    def distances(self) -> np.ndarray:
        return self.trace.distances[self.position]

    @property
    def changed(self) -> np.ndarray:
        """The cells that the last moment shortened, (n, n) bool."""
        return self.distances < self.trace.distances[max(self.position - 1, 0)]

    @property
    def cell(self) -> TracedCell | None:
        return self.trace.relaxed(self.position - 1, self.row, self.column) if self.position else None

    @property
    def path(self) -> tuple[int, ...]:
        return self.trace.path(self.position, self.row, self.column)

    @property
    def negative_cycle(self) -> bool:
        return bool((np.diag(self.distances) < 0).any())

    def go(self, position: int) -> None:
        self.position = max(0, min(position, len(self.trace.moments)))

    def mark(self, row: int, column: int) -> None:
        last = self.trace.n - 1
        self.row, self.column = max(0, min(row, last)), max(0, min(column, last))

    def set_weight(self, weight: float) -> None:
        """Set the weight of the marked edge (inf: none) at the current position. Raises Refused on the diagonal."""
        if self.row == self.column:
            raise Refused("the distance from a vertex to itself is 0; mark a cell off the diagonal")
        weights = self.weights.copy()
        weights[self.row, self.column] = weight
        self._take(self.experiment, weights)
        self.edited = True

    def choose(self, **changes: object) -> None:
        """Change kernel, size, tile or seed. The weights stay unless the graph changes. Raises Refused."""
        experiment = _settled(changed(self.experiment, **changes))
        same = experiment.graph == self.experiment.graph
        self._take(experiment, self.weights if same else generated(experiment))
        self.edited = self.edited and same

    def _take(self, experiment: Experiment, weights: np.ndarray) -> None:
        self.trace = trace(experiment, weights)
        self.experiment, self.weights = experiment, weights
        self.edition += 1
        self.go(self.position)
        self.mark(self.row, self.column)


def stepping(experiment: Experiment = FIRST) -> Stepping:
    """Return a Stepping at the beginning of the experiment's plan. Raises Refused if the experiment cannot be followed."""
    experiment = _settled(experiment)
    weights = generated(experiment)
    return Stepping(experiment, weights, trace(experiment, weights))


def generated(experiment: Experiment) -> np.ndarray:
    """Generate the experiment's graph as an (n, n) float64 matrix."""
    recipe = recipe_for(changed(experiment, dtype=MODEL_DTYPE))
    matrix = np.empty((recipe.n, recipe.n), dtype=MODEL_DTYPE)
    fill_numpy(matrix, recipe)
    return matrix.astype(np.float64)


def parse_weight(text: str) -> float:
    """Parse a typed weight; an empty text, `-` and `inf` are no edge. Raises Refused for other texts and large weights."""
    text = text.strip().lower()
    if text in ("", "-", "inf", "∞"):
        return np.inf
    try:
        weight = int(text)
    except ValueError:
        raise Refused(f"{text[:20]!r} is not an integer; type one, or - for no edge") from None
    if abs(weight) > MAX_WEIGHT:
        raise Refused(f"the weight {weight} is outside -{MAX_WEIGHT} to {MAX_WEIGHT}; type one in this range")
    return float(weight)


def _settled(experiment: Experiment) -> Experiment:
    """Return the experiment with a tile and a data type that the kernel has for small graphs; two ranks if distributed."""
    kernel = kernel_named(experiment.kernel)
    cuda = kernel.backend == "cuda"
    tiles = kernel.tiles_for(cuda or kernel.ranked)
    tile = experiment.tile if experiment.tile in tiles else tiles[0] if kernel.tiles else 0
    dtype = experiment.dtype if experiment.dtype in kernel.dtypes else kernel.dtypes[0]
    values = ((option, experiment.options.get(option.name, option.default)) for option in kernel.options)
    options = {option.name: value for option, value in values if value in option.values}
    plain = changed(experiment, code="", tile=tile, dtype=dtype, options=options, memory="device", launch="eager", file="")
    if not kernel.ranked:
        return settle(changed(plain, devices=""), cuda)
    settled = settle(changed(plain, tile=0, devices=""), cuda)  # one device executes the steps of both ranks
    return changed(settled, tile=tile, devices="0,1" if cuda else "cpu,cpu")
