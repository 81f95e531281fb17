"""The host side of the rung for sparse graphs: fronts, their tables, and distances in the order of elimination."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fwtui_kernels.compiled.device import cuda, int32, jit
from fwtui_kernels.parts.elimination import ABOVE
from fwtui_kernels.parts.fronts import COLUMNS, DEPTH, END, SOLVED, START, fronts
from fwtui_kernels.plan import Buffers, Shape, Step, Target
from fwtui_kernels.programs.cuda_program import CudaProgram, Op

# buffers: distances; where the graph is directed those to separators, transposed; fronts; a round's solved pivots and panels;
# left factors of the sweep; weights of the arcs
DISTANCES, BACK, FRONTS, PIVOTS, PANELS, LEFT, WEIGHTS = range(7)
# tables, which an op numbers after the buffers; those up to `to` as in fronts.py
NODES, TASKS, INDEX, ROWS, ARC_COLUMNS, KIDS, TO, PLACES = range(7, 15)
NODE, AT, FIRST = range(3)  # columns of `tasks`: a node, the first of its rows, the first row of its left factor
THREADS = 256  # that reorder a row


@jit
def gather(source, to, rows):
    """to[i, j] = source[rows[i], rows[j]], a row in a block."""
    i = int32(cuda.blockIdx.x)
    for j in range(int32(cuda.threadIdx.x), to.shape[1], int32(cuda.blockDim.x)):
        to[i, j] = source[rows[i, 0], rows[j, 0]]


class SparseProgram(CudaProgram):
    """The last buffer is the result, in the graph's own order of rows and columns."""

    def __init__(self, shape: Shape, target: Target, ops: Mapping[str, Op]):
        self.shape, order, tile = shape, shape.order, shape.tile
        assert order is not None
        self._fronts = it = fronts(shape)
        self._levels = order.levels(tile, shape.itemsize)
        nodes, blocks = it.nodes, []
        for node in range(len(nodes)):
            blocks += [(node, row) for row in range(0, int(nodes[node, END] - nodes[node, START]), tile)]
        tasks = np.array(blocks)
        depths = nodes[tasks[:, NODE], DEPTH]
        self._tasks = np.column_stack([tasks, np.cumsum(depths) - depths]).astype(np.int32)
        self._left_rows = int(depths.sum())
        rounds = [self._round(level, 0) for level in range(len(self._levels))]
        cells, words = tile * shape.word_bytes // shape.itemsize, tile * max(count * most for _, count, most in rounds)
        back = max(tile, self._levels[-1].first) if order.directed else 1  # never fewer rows than a block has
        scratch = (
            (shape.padded, shape.padded),
            (back, shape.padded),
            (it.height, it.pitch),
            (2 * tile * max(count for _, count, _ in rounds), cells),
            (words, cells),
            (max(1, self._left_rows * (1 + order.directed)), cells),
            (1, max(1, len(it.arcs.weights))),
        )
        super().__init__(shape, target, ops, matrices=0, scratch=scratch)
        self._size, self.reorders = (shape.n, shape.n), True
        tables = it.nodes, self._tasks, it.taken, it.rows, it.columns, it.kids, it.to, it.places
        self._tables = [np.ascontiguousarray(table.reshape(len(table), -1), np.int32) for table in tables]
        self._there: list[Any] = []

    def allocate(self) -> Buffers:
        self._there = [cuda.device_array(table.shape, table.dtype) for table in self._tables]
        return super().allocate()

    def copy_in(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        arcs = self._fronts.arcs
        self._enter(matrix[arcs.sources, arcs.targets], buffers, stream)

    def fill(self, write: Callable[[Any], None], buffers: Buffers, stream: Any) -> None:
        """Take the arcs that the order is of: nothing needs to be written."""
        self._enter(self._fronts.arcs.weights, buffers, stream)

    def _enter(self, weights: np.ndarray, buffers: Buffers, stream: Any) -> None:
        """Copy the tables and the arcs' weights to the device."""
        if len(weights):
            buffers[WEIGHTS].copy_to_device(weights.astype(self.shape.dtype)[None], stream=stream)
        for there, table in zip(self._there, self._tables, strict=True):
            there.copy_to_device(table, stream=stream)
        stream.sync()

    def restore(self, buffers: Buffers, stream: Any) -> None:
        """The weights are still there."""

    def prepare(self, buffers: Buffers, stream: Any) -> None:
        self.fill(lambda matrix: None, buffers, stream)
        self.unpack(buffers, stream)

    def unpack(self, buffers: Buffers, stream: Any) -> None:
        gather[self.shape.n, THREADS, stream](buffers[DISTANCES], buffers[-1], self._there[PLACES - NODES])

    def weights(self, buffers: Buffers) -> Any | None:
        return None

    def _row_major(self, buffers: Buffers) -> Any:
        return buffers[-1]

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        there = [*buffers[:NODES], *self._there]
        for args in self._launches(step):
            super().launch(replace(step, args=args), there, stream)

    def _launches(self, step: Step) -> list[tuple[int, ...]]:
        """Return the args of the op for each launch; the first two are where its rows of a table begin, and their number."""
        (stage, part), levels, order = step.args, len(self._levels), self.shape.order
        assert order is not None
        if step.op == "turn":
            return [(0, len(self._tasks))]
        if step.phase == "eliminate":
            level = levels - 1 - stage
            return [self._fronts.span(level) if step.op == "assemble" else (*self._round(level, part), part)]
        level, (first, end) = self._levels[stage - levels], self._fronts.levels[stage - levels]
        first, end = np.searchsorted(self._tasks[:, NODE], (first, end)).tolist()
        if part != ABOVE:
            return [(first, end - first, level.first, level.end, 0, int(not order.directed))]
        return [(first, end - first, 0, level.first, left, 0) for left in (0, self._left_rows)[: 1 + order.directed]]

    def _round(self, level: int, place: int) -> tuple[int, int, int]:
        """Return the first of a level's nodes, how many have that tile to solve, and the most tiles of a row of their fronts."""
        first, end = self._fronts.levels[level]
        nodes = self._fronts.nodes[first:end]
        nodes = nodes[nodes[:, SOLVED] > place * self.shape.tile]
        return first, len(nodes), int(nodes[:, COLUMNS].max(initial=0)) // self.shape.tile
