"""The host side of many small graphs on a CPU: their matrices one below the other, a few at a time for each core."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwtui_kernels.compiled.cpu_stacks import close_all, on_all_cores
from fwtui_kernels.plan import NO_EDGE, Buffers, Shape, Step
from fwtui_kernels.programs.cpu_program import CpuProgram


class CpuStack(CpuProgram):
    """Launches fwtui_kernels.compiled.cpu_stacks.close_all for a shape of several graphs."""

    def __init__(self, shape: Shape):
        super().__init__(shape, {"close_all": close_all})
        self._first = np.arange(shape.graphs, dtype=np.int64) * shape.n**2
        self._sizes = np.full(shape.graphs, shape.n, np.int64)

    def allocate(self) -> Buffers:
        size = (self.shape.graphs * self.shape.n, self.shape.n)
        return [np.empty(size, self.shape.dtype), np.empty(size, self.shape.dtype)]

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        np.copyto(buffers[1], matrix)
        self.restore(buffers, stream)

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        on_all_cores(self.ops[step.op], *self.arguments(step, buffers)[2:])

    def arguments(self, step: Step, buffers: Buffers) -> tuple[Any, ...]:
        cells = buffers[0].reshape(-1)
        return 0, self.shape.graphs, self._first, self._sizes, cells, cells.dtype.type(NO_EDGE[self.shape.dtype])

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        return buffers[0].copy()
