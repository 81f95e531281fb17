"""One rank of a distributed kernel on a GPU."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from fwtui_kernels.compiled.device import cuda
from fwtui_kernels.parts.distributed import ROW, SQUARE
from fwtui_kernels.parts.rank_products import buffer_sizes, ops_of
from fwtui_kernels.plan import Buffers, Shape, Step, Target
from fwtui_kernels.programs.cuda_program import CudaProgram
from fwtui_kernels.programs.rank_programs import RankRows


class CudaRank(CudaProgram):
    """Buffers as parts.distributed names them; the arrays that are broadcast, of which those are parts; the input."""

    def __init__(self, shape: Shape, target: Target):
        super().__init__(shape, target, ops_of(shape, target))
        self._rows = RankRows(shape, target.rank)
        self._size = self._rows.size
        self._rows_of_n = self._rows.count

    def allocate(self) -> Buffers:
        buffers: list[Any] = [None] * 7
        sizes = buffer_sizes(self.shape, self._size[0])
        dtype = np.dtype(self.shape.dtype)
        sent = []
        for parity in range(2):
            whole = cuda.device_array(sum(prod(sizes[which + parity]) for which in (ROW, SQUARE)), dtype)
            cells = prod(sizes[ROW])
            buffers[ROW + parity] = whole[:cells].reshape(*sizes[ROW])
            buffers[SQUARE + parity] = whole[cells:].reshape(*sizes[SQUARE])
            sent.append(whole)
        for which, size in enumerate(sizes):
            if buffers[which] is None:
                buffers[which] = cuda.device_array(size, dtype)
        if self.shape.memory == "pinned":
            self._pinned = cuda.pinned_array(self._size, dtype)
        return [*buffers, *sent, cuda.device_array(self._size, dtype)]

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        if step.op == "broadcast":
            p, owner = step.args
            assert self._target.link is not None
            self._target.link.broadcast(self.broadcast_array(buffers, p), owner, stream)
        else:
            super().launch(step, buffers, stream)

    def broadcast_array(self, buffers: Buffers, p: int) -> Any:
        return buffers[7 + p % 2]

    def pad(self, rows: Any, to: Any) -> None:
        self._rows.pad(rows, to)
