"""Host side of the sparse rung on a GPU: fronts, their tables, and distances in elimination order."""

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

# buffers: distances; transposed distances to separators, if the graph is directed, in the memory of the result; fronts; solved
# pivots and panels of a round; left factors of the sweep; weights of the arcs
DISTANCES, BACK, FRONTS, PIVOTS, PANELS, LEFT, WEIGHTS = range(7)
# tables, numbered after the buffers; NODES and ROWS to TO are those of fronts.py
NODES, TASKS, INDEX, ROWS, ARC_COLUMNS, KIDS, TO, PLACES = range(7, 15)
NODE, AT, FIRST = range(3)  # columns of `tasks`: a node, its first row of the task, the first row of the task's left factor
THREADS = 256  # threads of `gather`


@jit
def gather(source, to, rows):
    """Set to[i, j] = source[rows[i], rows[j]], one row per block."""
    i = int32(cuda.blockIdx.x)
    for j in range(int32(cuda.threadIdx.x), to.shape[1], int32(cuda.blockDim.x)):
        to[i, j] = source[rows[i, 0], rows[j, 0]]


class SparseProgram(CudaProgram):
    """Program whose last buffer is the result in the graph's order of rows and columns."""

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
        cells, panel_rows = tile * shape.word_bytes // shape.itemsize, tile * max(count * most for _, count, most in rounds)
        self._back = max(tile, self._levels[-1].first) if order.directed else 1  # at least as many rows as a block
        scratch = (
            (shape.padded, shape.padded),
            (it.height, it.pitch),
            (2 * tile * max(count for _, count, _ in rounds), cells),
            (panel_rows, cells),
            (max(1, self._left_rows * (1 + order.directed)), cells),
            (1, max(1, len(it.arcs.weights))),
        )
        super().__init__(shape, target, ops, matrices=0, scratch=scratch)
        self._size, self.reorders = (max(shape.n, -(-self._back * shape.padded // shape.n)), shape.n), True
        tables = it.nodes, self._tasks, it.taken, it.rows, it.columns, it.kids, it.to, it.places
        self._tables = [np.ascontiguousarray(table.reshape(len(table), -1), np.int32) for table in tables]
        self._device_tables: list[Any] = []

    def allocate(self) -> Buffers:
        self._device_tables = [cuda.device_array(table.shape, table.dtype) for table in self._tables]
        buffers = [*super().allocate()]
        cells = buffers[-1].reshape(-1)[: self._back * self.shape.padded]  # the sweeps end before the result is written
        return [*buffers[:BACK], cells.reshape(self._back, self.shape.padded), *buffers[BACK:]]

    def copy_in(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        arcs = self._fronts.arcs
        self._copy_weights(matrix[arcs.sources, arcs.targets], buffers, stream)

    def fill(self, write: Callable[[Any], None], buffers: Buffers, stream: Any) -> None:
        """Take the weights of the ordered graph instead of calling `write`."""
        self._copy_weights(self._fronts.arcs.weights, buffers, stream)

    def _copy_weights(self, weights: np.ndarray, buffers: Buffers, stream: Any) -> None:
        """Copy the weights of the arcs and the tables to the device."""
        if len(weights):
            buffers[WEIGHTS].copy_to_device(weights.astype(self.shape.dtype)[None], stream=stream)
        for device_table, table in zip(self._device_tables, self._tables, strict=True):
            device_table.copy_to_device(table, stream=stream)
        stream.sync()

    def restore(self, buffers: Buffers, stream: Any) -> None:
        """Do nothing: no step changes the weights."""

    def prepare(self, buffers: Buffers, stream: Any) -> None:
        self.fill(lambda matrix: None, buffers, stream)
        self.unpack(buffers, stream)

    def unpack(self, buffers: Buffers, stream: Any) -> None:
        gather[self.shape.n, THREADS, stream](buffers[DISTANCES], buffers[-1], self._device_tables[PLACES - NODES])

    def weights(self, buffers: Buffers) -> Any | None:
        return None

    def _row_major(self, buffers: Buffers) -> Any:
        return buffers[-1]

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        arrays = [*buffers[:NODES], *self._device_tables]
        for args in self._launches(step):
            super().launch(replace(step, args=args), arrays, stream)

    def _launches(self, step: Step) -> list[tuple[int, ...]]:
        """Return the arguments of each launch of a step; the first two are the first row of a table and the number of rows."""
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
        """Return a level's first node, the number of its nodes that solve tile `place`, and the maximum tiles per row of their
        fronts.
        """
        first, end = self._fronts.levels[level]
        nodes = self._fronts.nodes[first:end]
        nodes = nodes[nodes[:, SOLVED] > place * self.shape.tile]
        return first, len(nodes), int(nodes[:, COLUMNS].max(initial=0)) // self.shape.tile
