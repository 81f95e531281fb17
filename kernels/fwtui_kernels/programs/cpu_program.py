"""The program of CPU kernels: two NumPy buffers and a table of compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fwtui_kernels.plan import NO_EDGE, Buffers, Program, Shape, Step


def pad(matrix: Any, to: Any, ahead: int = 0) -> None:
    """Copy rows of a matrix to the upper left corner of a larger array, whose other vertices have no edges.

    The diagonal cell of padding row i is in column i + `ahead`.
    """
    rows, columns = matrix.shape
    to[:rows, :columns] = matrix
    to[rows:, :] = to[:, columns:] = NO_EDGE[to.dtype.name]
    extra = np.arange(rows, len(to))
    to[extra, extra + ahead] = 0


class CpuProgram(Program):
    """A program whose synchronous ops take the matrix and the step's args.

    The matrix is padded x padded in row-major order. With `tiled`, it is a sequence of (padded / tile)^2 row-major tiles.
    """

    def __init__(self, shape: Shape, ops: Mapping[str, Callable[..., None]], tiled: bool = False):
        self.shape = shape
        self.ops = ops
        self._tiled = tiled

    def allocate(self) -> Buffers:
        padded, tile = self.shape.padded, self.shape.tile
        size = (padded * (padded // tile), tile) if self._tiled else (padded, padded)
        return [np.empty(size, self.shape.dtype), np.empty(size, self.shape.dtype)]

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        padded = self.shape.padded
        rows = np.empty((padded, padded), self.shape.dtype) if self._tiled else buffers[1]
        pad(matrix, rows)
        if self._tiled:
            side, tile = padded // self.shape.tile, self.shape.tile
            buffers[1].reshape(side, side, tile, tile)[...] = rows.reshape(side, tile, side, tile).swapaxes(1, 2)
        self.restore(buffers, stream)

    def restore(self, buffers: Buffers, stream: Any) -> None:
        np.copyto(buffers[0], buffers[1])

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        self.ops[step.op](*self.arguments(step, buffers))

    def arguments(self, step: Step, buffers: Buffers) -> tuple[Any, ...]:
        """Return the arguments for the op of the step."""
        return (buffers[0], *step.args)

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        n, padded = self.shape.n, self.shape.padded
        if not self._tiled:
            return buffers[0][:n, :n].copy()
        side, tile = padded // self.shape.tile, self.shape.tile
        # a copy, because later repetitions overwrite the buffer
        rows = np.empty_like(buffers[0]).reshape(side, tile, side, tile)
        rows[...] = buffers[0].reshape(side, side, tile, tile).swapaxes(1, 2)
        return rows.reshape(padded, padded)[:n, :n]

    def fill(self, write: Callable[[Any], None], buffers: Buffers, stream: Any) -> None:
        if self._tiled:
            super().fill(write, buffers, stream)
        else:
            write(buffers[0])

    def result(self, buffers: Buffers, stream: Any) -> Any:
        return self.unload(buffers, stream) if self._tiled else buffers[0]
