"""The first step after which a wrong kernel's matrix differs from its plan's, and the mistake that explains it.

NumPy executes the plan in parallel with the kernel; the two matrices are compared after each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fwtui.analysis.plan_checks import describe_rect
from fwtui.engine.engine import Engine
from fwtui.engine.kernel_instance import LoadedKernel, load_kernel
from fwtui.engine.verify import to_canonical
from fwtui.graphs.canonical import NO_PATH, canonical
from fwtui.graphs.graph import GraphInput
from fwtui_kernels.plan import Kernel, Rect, Shape, Step
from fwtui_kernels.reference import middles, relax

MAX_CELLS = 2e8  # compared cells, over all steps
MAX_NAMED = 2  # maximum number of rectangles that a message names
MAX_LEFT_OUT = 64  # candidate vertices of a step, each omitted once


class Difference(NamedTuple):
    """A step, and the matrices of the kernel and of the plan after it."""

    step: int
    got: np.ndarray  # canonical, with the padding if that was compared
    expected: np.ndarray
    cause: str
    earliest: int  # the first step whose matrix could not be compared, up to this one; mostly this step


def first_difference(kernel: Kernel, shape: Shape, graph: GraphInput, engine: Engine) -> Difference | None:
    """Run the plan step by step and compare after each; None if the matrices never differ or there are too many cells.

    The graph is first padded with vertices without edges, so that the whole matrix is comparable, and then used as it is. For a
    kernel with several matrices, the cells that a step wrote are compared in its own buffers, row by row, where these are
    available; otherwise the result matrix is compared after steps where it holds all cells.
    """
    shapes = [shape] if shape.padded == shape.n else [replace(shape, n=shape.padded), shape]
    differences = (_first_difference(kernel, one, graph, engine) for one in shapes if not kernel.refuses(one))
    return next((difference for difference in differences if difference is not None), None)


def _first_difference(kernel: Kernel, shape: Shape, graph: GraphInput, engine: Engine) -> Difference | None:
    plan, n = list(kernel.plan(shape, True)), shape.n
    if len(plan) * n * n > MAX_CELLS:
        return None
    matrix = np.full((n, n), graph.no_edge, graph.dtype)
    np.fill_diagonal(matrix, 0)
    matrix[: graph.n, : graph.n] = graph.matrix
    state = np.full((shape.padded, shape.padded), np.inf)
    np.fill_diagonal(state, 0.0)
    state[:n, :n] = np.where(matrix == graph.no_edge, np.inf, matrix)
    with load_kernel(kernel, shape, engine, matrix, plan) as it:
        it.restore()
        return _compared(it, state, graph)


def _compared(it: LoadedKernel, state: np.ndarray, graph: GraphInput) -> Difference | None:
    """Execute each step in NumPy on `state` and with the kernel until the two differ."""
    kernel, engine, shape = it.kernel, it.engine, it.program.shape
    n = shape.n
    done, original, round_start, opened, seen_until = 0, state.copy(), state.copy(), 0, 0
    visibility = _all_there(kernel, it.plan, shape.padded)
    for index, ((number, step), whole) in enumerate(zip(kernel.rounds(it.plan), visibility, strict=True)):
        if number != opened:
            round_start, opened = state.copy(), number
        before = state.copy()
        try:
            through = middles(kernel, step, shape.padded, done)
        except (ValueError, ZeroDivisionError):
            return None
        done += step.cost.relaxations
        writes = kernel.places(step.writes)
        for k in through:
            relax(state, writes, k)
        it.launch(step)
        engine.synchronize()
        expected = to_canonical(state[:n, :n], graph)
        got = it.distances(graph) if whole else _written(it, step, expected, graph)
        if got is None:
            continue
        if not np.array_equal(got, expected):
            floats = np.where(got == NO_PATH, np.inf, got) if got.dtype.kind == "i" else got.astype(np.float64)
            cause = _cause(floats, (before, round_start, original), writes, through, shape.tile)
            return Difference(index, got, expected, cause, seen_until)
        seen_until = index + 1
    return None


def _written(it: LoadedKernel, step: Step, expected: np.ndarray, graph: GraphInput) -> np.ndarray | None:
    """Return the expected matrix with the cells that the kernel wrote; None if its own buffers do not show them."""
    if it.program.reorders:
        return None
    got, n = expected.copy(), len(expected)
    for w in step.writes:
        matrix: Any = it.buffers[w.buffer] if w.buffer < it.kernel.matrices else None
        matrix = matrix.copy_to_host() if hasattr(matrix, "copy_to_host") else matrix
        if (
            not isinstance(matrix, np.ndarray)
            or matrix.ndim != 2
            or min(matrix.shape) < n
            or matrix.dtype != it.program.shape.dtype
        ):
            return None
        rows, columns = slice(w.top, min(w.bottom, n)), slice(w.left, min(w.right, n))
        got[rows, columns] = canonical(matrix[:n, :n].copy(), graph, it.program.shape.dtype)[rows, columns]
    return got


def _all_there(kernel: Kernel, plan: Sequence[Step], side: int) -> Iterator[bool]:
    """Yield True for each step after which the result matrix holds the last write of every cell."""
    last = np.zeros((side, side), dtype=np.int8)
    result = next((w.buffer for w in reversed(plan[-1].writes) if w.buffer < kernel.matrices), 0)
    for step in plan:
        for w in step.writes:
            if w.buffer < kernel.matrices:
                last[w.top : w.bottom, w.left : w.right] = w.buffer
        yield bool((last == result).all())


def _cause(
    got: np.ndarray, states: tuple[np.ndarray, np.ndarray, np.ndarray], writes: Sequence[Rect], through: range, tile: int
) -> str:
    """Return the only candidate mistake that gives exactly the kernel's matrix; empty if none or several do."""
    n = len(got)
    fitting = [what for what, cells in _mistakes(*states, writes, through, tile) if np.array_equal(cells[:n, :n], got)]
    if forgotten := _forgotten(got, states[0], writes, through):
        fitting = [forgotten]
    return f"as if {fitting[0]}" if len(fitting) == 1 else ""


def _forgotten(got: np.ndarray, before: np.ndarray, writes: Sequence[Rect], through: range) -> str:
    """Name the rectangles that the step left unchanged while all others are right; empty if that does not explain `got`."""
    n = len(got)

    def differ(one: np.ndarray, other: np.ndarray, w: Rect) -> bool:
        place = slice(w.top, min(w.bottom, n)), slice(w.left, min(w.right, n))
        return not np.array_equal(one[:n, :n][place], other[:n, :n][place])

    full = _carried_out(before, writes, through)
    left = [w for w in writes if differ(full, got, w) and not differ(before, got, w)]
    others = [w for w in writes if differ(full, before, w) and w not in left]
    cells = _carried_out(before, [w for w in writes if w not in left], through)
    if not left or not others or not np.array_equal(cells[:n, :n], got):
        return ""
    named = " and ".join(map(describe_rect, left[:MAX_NAMED]))
    return f"{named}{' and others' * (len(left) > MAX_NAMED)} were forgotten"


def _mistakes(
    before: np.ndarray, round_start: np.ndarray, original: np.ndarray, writes: Sequence[Rect], through: range, tile: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield common mistakes with the matrix that each gives, from the matrices before the step, its round, and the run."""
    yield "the step had not run", before
    for left_out in [*reversed(through)][:MAX_LEFT_OUT]:
        yield f"k = {left_out} were left out", _carried_out(before, writes, (k for k in through if k != left_out))
    side = len(before)
    turned, what = before.T, "the matrix"
    if 1 < tile < side:
        tiles = before.reshape(side // tile, tile, side // tile, tile)
        turned, what = tiles.transpose(0, 3, 2, 1).reshape(side, side), "its tile"
    others = [(turned, f"read with {what} transposed"), (round_start, "read as it was before this round")]
    others += [(original, "read from the input graph")] * (not np.array_equal(original, round_start))
    for other, how in others:
        if not np.array_equal(other, before):
            for to, middle, of in ((other, before, "d[i, k]"), (before, other, "d[k, j]"), (other, other, "both operands")):
                yield f"{of} were {how}", _carried_out(before, writes, through, to, middle)


def _carried_out(before: np.ndarray, writes: Sequence[Rect], through: Iterable[int], *operands: np.ndarray) -> np.ndarray:
    """Return the matrix after a step; d[i, k] and d[k, j] may come from other matrices."""
    cells = before.copy()
    for k in through:
        relax(cells, writes, k, *operands)
    return cells
