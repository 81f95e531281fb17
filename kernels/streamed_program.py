"""The host side of a matrix whose tiles are on the device only now and then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernels.cuda_program import CudaProgram, Op
from kernels.device import cuda
from kernels.out_of_core import BUFFERS, COLUMNS, HOME, PIVOT, ROWS, STREAM
from kernels.plan import NO_EDGE, Buffers, Shape, Step, Target


class StreamedProgram(CudaProgram):
    """Buffers as kernels.out_of_core names them: all of tiles one below the other, (tiles x tile, tile), the first on the host.

    The loaded matrix is not copied but looked at again by restore(), so it must stay as it is.
    """

    def __init__(self, shape: Shape, target: Target, ops: Mapping[str, Op]):
        super().__init__(shape, target, ops)
        self._side = shape.padded // shape.tile
        self._matrix: Any = None
        self._tiles: dict[tuple[int, int], Any] = {}

    def allocate(self) -> Buffers:
        tile, dtype = self.shape.tile, np.dtype(self.shape.dtype)
        counts = {PIVOT: 1, ROWS: self._side, COLUMNS: self._side, STREAM: BUFFERS}
        # pinned: the copy engines read and write it while other work goes on
        home = cuda.pinned_array((self._side**2 * tile, tile), dtype)
        buffers = [home, *(cuda.device_array((counts[b] * tile, tile), dtype) for b in sorted(counts))]
        self._tiles = {
            (b, slot): self._tile(buffers[b], slot) for b in range(len(buffers)) for slot in range(len(buffers[b]) // tile)
        }
        return buffers

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        self._matrix = matrix
        self.restore(buffers, stream)

    def restore(self, buffers: Buffers, stream: Any) -> None:
        stream.synchronize()
        n, tile = self.shape.n, self.shape.tile
        for row in range(self._side):
            for column in range(self._side):
                to = self._tiles[HOME, row * self._side + column]
                top, left = row * tile, column * tile
                given = self._matrix[top : min(top + tile, n), left : min(left + tile, n)]
                if given.shape != to.shape:
                    to.fill(NO_EDGE[self.shape.dtype])
                to[: given.shape[0], : given.shape[1]] = given
                if row == column:
                    extra = np.arange(given.shape[0], tile)
                    to[extra, extra] = 0

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        if step.op in ("in", "back"):
            buffer, slot, at = step.args
            there, here = self._tiles[buffer, slot], self._tiles[HOME, at]
            if step.op == "in":
                there.copy_to_device(here, stream=stream)
            else:
                there.copy_to_host(here, stream=stream)
        else:
            super().launch(step, buffers, stream)

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        stream.synchronize()
        n, tile = self.shape.n, self.shape.tile
        result = np.empty((n, n), self.shape.dtype)
        for row in range(self._side):
            for column in range(self._side):
                to = result[row * tile : (row + 1) * tile, column * tile : (column + 1) * tile]
                to[...] = self._tiles[HOME, row * self._side + column][: to.shape[0], : to.shape[1]]
        return result

    def _tile(self, buffer: Any, slot: int) -> Any:
        return buffer[slot * self.shape.tile : (slot + 1) * self.shape.tile]
