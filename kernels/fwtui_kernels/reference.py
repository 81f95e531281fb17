"""Reference execution of a plan in NumPy, one k after the other, from nothing but the data in its steps.

A step relaxes the cells that it writes over `relaxations / cells` vertices k. Its rectangles determine these vertices: to relax
rows x columns through k it must read rows x k and k x columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fwtui_kernels.plan import Kernel, Rect, Step


def middles(kernel: Kernel, step: Step, side: int, done: int) -> range:
    """Return the intermediate vertices k of a step in a padded matrix of that side, after `done` relaxations of its plan.

    Raises ValueError if the rectangles and the cost of the step do not determine them.
    """
    writes, reads = kernel.places(step.writes), kernel.places(step.reads)
    cells = sum(w.area for w in writes)
    if not cells and not step.cost.relaxations:
        return range(0)  # a copy
    depth, left_over = divmod(step.cost.relaxations, cells)
    if left_over == 0 and cells == side * side:  # plans that relax the whole matrix take k in order
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
    raise ValueError(f"the rectangles of {step.op}{step.args} do not determine its vertices k")


def relax(
    distances: np.ndarray, writes: Sequence[Rect], k: int, to: np.ndarray | None = None, middle: np.ndarray | None = None
) -> None:
    """Set d[i, j] = min(d[i, j], d[i, k] + d[k, j]) in every rectangle; `to` and `middle` may replace d[i, k] and d[k, j]."""
    row = (distances if middle is None else middle)[k].copy()
    column = (distances if to is None else to)[:, k].copy()
    for w in writes:
        own = distances[w.top : w.bottom, w.left : w.right]
        np.minimum(own, column[w.top : w.bottom, None] + row[None, w.left : w.right], out=own)


def relaxations(kernel: Kernel, plan: Sequence[Step], side: int) -> Iterator[tuple[int, int]]:
    """Yield the index of each step with each of its k, in the order of the plan."""
    done = 0
    for index, step in enumerate(plan):
        for k in middles(kernel, step, side, done):
            yield index, k
        done += step.cost.relaxations


def _fits(reads: Sequence[Rect], writes: Sequence[Rect], through: range) -> bool:
    """Return True if the step reads exactly the rows and columns that its cells need for these k."""
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
