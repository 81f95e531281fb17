"""Executes a plan in NumPy, slowly and simply, one k after the other, using only the data in its steps.

A step relaxes the cells that it writes over `relaxations / cells` vertices k. The rectangles show which: to
relax rows x columns over k it must read rows x k and k x columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fwtui_kernels.plan import Kernel, Rect, Step


def middles(kernel: Kernel, step: Step, side: int, done: int) -> range:
    """The vertices k that a step goes through, in a padded matrix of that side, after `done` relaxations of its plan.

    Raises ValueError if its rectangles and its cost do not show them.
    """
    writes, reads = kernel.places(step.writes), kernel.places(step.reads)
    cells = sum(w.area for w in writes)
    if not cells and not step.cost.relaxations:
        return range(0)  # it only copies
    depth, left_over = divmod(step.cost.relaxations, cells)
    if left_over == 0 and cells == side * side:  # the whole matrix: such plans go through k in order
        return range(done // cells, done // cells + depth)
    if depth == left_over == 0:
        return range(0)
    if len(reads) < len(step.reads):  # copies without a position in the matrix: use its round
        return range(step.args[0] * depth, (step.args[0] + 1) * depth)
    depths = {range(r.left, r.left + depth) for r in reads if r.right - r.left == depth}
    depths |= {range(r.top, r.top + depth) for r in reads if r.bottom - r.top == depth}
    fitting = [through for through in depths if _fits(reads, writes, through)]
    if left_over == 0 and len(fitting) == 1:
        return fitting[0]
    raise ValueError(f"{step.op}{step.args} does not say which k it goes through")


def relax(
    distances: np.ndarray, writes: Sequence[Rect], k: int, to: np.ndarray | None = None, middle: np.ndarray | None = None
) -> None:
    """d[i, j] = min(d[i, j], d[i, k] + d[k, j]) in every rectangle, d[i, k] from `to` and d[k, j] from `middle` if given."""
    row = (distances if middle is None else middle)[k].copy()
    column = (distances if to is None else to)[:, k].copy()
    for w in writes:
        own = distances[w.top : w.bottom, w.left : w.right]
        np.minimum(own, column[w.top : w.bottom, None] + row[None, w.left : w.right], out=own)


def relaxations(kernel: Kernel, plan: Sequence[Step], side: int) -> Iterator[tuple[int, int]]:
    """The index of a step and one k of it, in the order of the plan."""
    done = 0
    for index, step in enumerate(plan):
        for k in middles(kernel, step, side, done):
            yield index, k
        done += step.cost.relaxations


def _fits(reads: Sequence[Rect], writes: Sequence[Rect], through: range) -> bool:
    """Return True if those are exactly the rows and columns that the cells need for those k."""
    low, high = through.start, through.stop
    needs = [Rect(w.top, low, w.bottom, high) for w in writes] + [Rect(low, w.left, high, w.right) for w in writes]
    return all(_covered(reads, need) for need in needs) and all(_covered((*needs, *writes), r) for r in reads)


def _covered(by: Sequence[Rect], area: Rect) -> bool:
    """Return True if every cell is in one of the rectangles."""
    missing = np.ones((area.bottom - area.top, area.right - area.left), dtype=bool)
    for r in by:
        rows = slice(max(r.top - area.top, 0), max(r.bottom - area.top, 0))
        missing[rows, max(r.left - area.left, 0) : max(r.right - area.left, 0)] = False
    return not missing.any()
