"""The host side of many small graphs on one GPU: their matrices one below the other, and one block for each."""

from __future__ import annotations

import numpy as np

from fwtui_kernels.compiled.device import cuda
from fwtui_kernels.parts import stacks
from fwtui_kernels.plan import Buffers, Shape, Target
from fwtui_kernels.programs.cuda_program import CudaProgram, Op

# buffers between the working matrices and the kept input: the same cells in one line, then where each graph begins, its
# vertices, and which graph each block does
CELLS, FIRST, SIZES, CHOSEN = 1, 2, 3, 4


class CudaStack(CudaProgram):
    """Launches fwtui_kernels.parts.stacks.closing for a shape of several graphs."""

    def __init__(self, shape: Shape, target: Target):
        tile = next(tile for tile in stacks.TILES if shape.n <= tile)
        close = Op(
            stacks.closing(shape.dtype, tile),
            ((tile // 4) ** 2, 1),
            lambda args: (shape.graphs, 1),
            lambda args: (CELLS, FIRST, SIZES, CHOSEN),
            tuple(f"array({dtype}, 1d, C)" for dtype in (shape.dtype, "int64", "int32", "int32")),
        )
        super().__init__(shape, target, {"close": close})
        self._rows_of_n = shape.graphs * shape.n
        self._size = (self._rows_of_n, shape.n)

    def allocate(self) -> Buffers:
        matrices, kept = super().allocate()
        graphs, n = self.shape.graphs, self.shape.n
        first = np.arange(graphs, dtype=np.int64) * n**2
        known = (first, np.full(graphs, n, np.int32), np.arange(graphs, dtype=np.int32))
        return [matrices, matrices.reshape(matrices.size), *map(cuda.to_device, known), kept]
