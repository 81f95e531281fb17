"""The host side of the rung for sparse graphs: a matrix in the order of elimination, and tables of what each launch works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fwtui_kernels.compiled.device import cuda, int32, jit
from fwtui_kernels.forms import WORD_BYTES
from fwtui_kernels.parts.supernodal_tables import tables
from fwtui_kernels.parts.tuning import PANEL
from fwtui_kernels.plan import Buffers, Shape, Step, Target
from fwtui_kernels.programs.cuda_program import CellOrder, CudaProgram, Op

PIVOTS, PANELS, TASKS, VIA = range(PANEL + 1, PANEL + 5)  # tables, which an op numbers after the matrix, copies and panels
THREADS = 256  # that reorder a row


@jit
def gather(source, to, rows):
    """to[i, j] = source[rows[i], rows[j]], a row in a block."""
    i = int32(cuda.blockIdx.x)
    for j in range(int32(cuda.threadIdx.x), to.shape[1], int32(cuda.blockDim.x)):
        to[i, j] = source[rows[i, 0], rows[j, 0]]


@jit
def scatter(source, to, rows):
    """to[rows[i], rows[j]] = source[i, j]."""
    i = int32(cuda.blockIdx.x)
    for j in range(int32(cuda.threadIdx.x), to.shape[1], int32(cuda.blockDim.x)):
        to[rows[i, 0], rows[j, 0]] = source[i, j]


class SparseProgram(CudaProgram):
    """The matrix has the graph's rows and columns in the order of elimination, and the padding where the order has it."""

    def __init__(self, shape: Shape, target: Target, ops: Mapping[str, Op]):
        self._tables = tables(shape)
        cells = shape.tile * WORD_BYTES // shape.itemsize
        scratch = ((2 * shape.tile * self._tables.copies, cells), (shape.tile * max(1, self._tables.slots), cells))
        order = CellOrder(gather, scatter, (THREADS, 1), (shape.padded, 1)) if shape.order is not None else None
        super().__init__(shape, target, ops, order=order, scratch=scratch)
        self._there: list[Any] = []  # the tables, and the rows of the order

    def allocate(self) -> Buffers:
        it = self._tables
        self._there = [cuda.to_device(array) for array in (it.pivots, it.panels, it.tasks, it.via, self._rows())]
        return super().allocate()

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        p, count = step.args
        there = [*buffers[:PIVOTS], *self._there]
        super().launch(replace(step, args=self._tables.parts[step.op, (p, count)]), there, stream)

    def _rows(self) -> np.ndarray:
        """The row of the user's matrix that each row has; those of the padding follow the vertices."""
        n, padded, order = self.shape.n, self.shape.padded, self.shape.order
        places = np.arange(n) if order is None else np.array(order.places(self.shape.tile))
        rows = np.full(padded, -1, dtype=np.int32)
        rows[places] = np.arange(n)
        rows[rows < 0] = np.arange(n, padded)
        return rows[:, None]

    def _reorder(self, function: Any, source: Any, to: Any, stream: Any) -> None:
        assert self._order is not None
        function[self._order.grid, self._order.block, stream](source, to, self._there[-1])
