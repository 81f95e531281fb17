"""A kernel's plan on a small graph, one k of one step after the other: what is read, written, and becomes shorter.

NumPy carries the plan out from its rectangles (fwtui_kernels.reference); fwtui.learn.stepping compares that with the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np

from fwtui.common.errors import Refused
from fwtui.experiment.experiment import SIMULATOR_MAX_N, Experiment, kernel_named
from fwtui_kernels.plan import EVERY, Kernel, Rect, Shape, Step
from fwtui_kernels.reference import relax, relaxations

MOST_N = SIMULATOR_MAX_N
NEVER = -1


class TracedMoment(NamedTuple):
    """One k of one step. Rectangles are in vertices, without the padding; rounds count from 1."""

    step: int
    k: int
    round: int
    phase: str
    sources: tuple[Rect, ...]  # of the step: read, and not written
    targets: tuple[Rect, ...]  # of the step: written

    def writes(self, i: int, j: int) -> bool:
        return _within(self.targets, i, j)

    def reads(self, i: int, j: int) -> bool:
        return _within(self.sources, i, j)


class TracedCell(NamedTuple):
    """One relaxation in numbers; infinity is no path (yet)."""

    old: float
    to_k: float
    from_k: float
    new: float


@dataclass(frozen=True, eq=False)
class Trace:
    """`distances[m]` are those before moment m and `distances[m + 1]` those after it; the same for `shortened`.

    `shortened[m][i, j]` is the last moment before m that made the cell shorter, NEVER where none did.
    """

    kernel: Kernel
    shape: Shape
    plan: tuple[Step, ...]
    moments: tuple[TracedMoment, ...]
    distances: tuple[np.ndarray, ...]  # (n, n) float64, inf where there is no path
    shortened: tuple[np.ndarray, ...]  # (n, n) int32
    ends: tuple[int, ...]  # position after each step of the plan

    @property
    def n(self) -> int:
        return self.shape.n

    def relaxed(self, moment: int, i: int, j: int) -> TracedCell | None:
        """What that moment does to cell (i, j); None if it leaves the cell alone."""
        at = self.moments[moment]
        if not at.writes(i, j):
            return None
        before = self.distances[moment]
        return TracedCell(before[i, j], before[i, at.k], before[at.k, j], self.distances[moment + 1][i, j])

    def path(self, position: int, i: int, j: int) -> tuple[int, ...]:
        """The vertices of the path from i to j that is known after `position` moments; empty if there is none.

        A path through k is what was known of its two halves when it was found. Around a negative cycle there is none.
        """
        if (np.diag(self.distances[position]) < 0).any():
            return ()
        found = int(self.shortened[position][i, j])
        if found != NEVER:
            k = self.moments[found].k
            return self.path(found, i, k)[:-1] + self.path(found, k, j)
        return (i,) if i == j else (i, j) if np.isfinite(self.distances[0][i, j]) else ()

    def next_of(self, part: str, position: int, direction: int) -> int:
        """The position where another "step" or "round" begins (or the end), on or back."""
        numbers = [None, *map(attrgetter(part), self.moments)]
        begins = [place for place, (before, number) in enumerate(pairwise(numbers)) if number != before]
        if direction > 0:
            return next((b for b in begins if b > position), len(self.moments))
        return next((b for b in reversed(begins) if b < position), 0)


def trace(experiment: Experiment, weights: np.ndarray) -> Trace:
    """The settled experiment's kernel on an (n, n) float matrix (inf: no edge, diagonal 0). Raises Refused."""
    kernel = kernel_named(experiment.kernel)
    n = len(weights)
    if not 1 <= n <= MOST_N:
        raise Refused(f"n = {n} cannot be followed step by step; choose n from 1 to {MOST_N}")
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
    ends = [0] * len(plan)
    round_of = [number for number, _ in kernel.rounds(plan)]
    for index, k in _with_broadcasts(kernel, plan, shape):
        if k >= n:  # padding, which has no edges
            ends[index] = len(moments)
            continue
        step = plan[index]
        own = kernel.places(step.writes)
        targets = _clipped(own, n)
        reads = (Rect(k, 0, k + shape.tile, side),) if step.rank == EVERY else kernel.places(step.reads)
        sources = tuple(r for r in _clipped(reads, n) if r not in targets)
        relax(state, own, k)
        shorter = state[:n, :n] < distances[-1]
        shortened.append(np.where(shorter, len(moments), shortened[-1]))
        moments.append(TracedMoment(index, k, round_of[index], step.phase, sources, targets))
        distances.append(state[:n, :n].copy())
        ends[index] = len(moments)
    return Trace(kernel, shape, plan, tuple(moments), tuple(distances), tuple(shortened), tuple(ends))


def _with_broadcasts(kernel: Kernel, plan: Sequence[Step], shape: Shape) -> Iterator[tuple[int, int]]:
    """Each k of each step, and a broadcast, which relaxes nothing, as the first k of the row that is sent."""
    through = relaxations(kernel, plan, shape.padded)
    by_step = {index: [k for _, k in told] for index, told in groupby(through, itemgetter(0))}
    for index, step in enumerate(plan):
        sent = [step.args[0] * shape.tile] if step.rank == EVERY else []
        yield from ((index, k) for k in by_step.get(index, sent))


def _within(rects: Sequence[Rect], i: int, j: int) -> bool:
    return any(r.top <= i < r.bottom and r.left <= j < r.right for r in rects)


def _clipped(rects: Sequence[Rect], n: int) -> tuple[Rect, ...]:
    """Without the padding."""
    inside = (Rect(r.top, r.left, min(r.bottom, n), min(r.right, n)) for r in rects)
    return tuple(dict.fromkeys(r for r in inside if r.top < r.bottom and r.left < r.right))
