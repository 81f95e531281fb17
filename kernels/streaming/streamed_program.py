"""The host side of a matrix whose tiles are on the device only now and then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from kernels.numba_door.device import copy_back, copy_in, cuda, pinned
from kernels.plan import Buffers, Shape, Step, Target
from kernels.programs.cuda_program import CudaProgram, Op
from kernels.streaming.buffers import HOME, buffer_shapes


class StreamedProgram(CudaProgram):
    """Buffers as kernels.streaming.out_of_core names them, the first on the host: the padded
    matrix, row by row, which is the result too.

    Its memory is pinned from allocate() to unload(), so that the copy engines read and write it while other
    work goes on. What was loaded is not copied but asked for again by restore(), so it must stay as it is.
    """

    home: Literal["host", "device"] = "host"

    def __init__(self, shape: Shape, target: Target, ops: Mapping[str, Op]):
        super().__init__(shape, target, ops)
        self._side = shape.padded // shape.tile
        self._write: Callable[[Any], None] | None = None
        self._unpin: Callable[[], object] = lambda: None

    def allocate(self) -> Buffers:
        home, self._unpin = pinned((self.shape.padded, self.shape.padded), np.dtype(self.shape.dtype))
        sizes = buffer_shapes(self.shape)
        return [home, *(cuda.device_array(sizes[buffer], home.dtype) for buffer in sorted(sizes))]

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        self.fill(lambda home: self._pad(matrix, home), buffers, stream)

    def fill(self, write: Callable[[Any], None], buffers: Buffers, stream: Any) -> None:
        self._write = write
        self.restore(buffers, stream)

    def restore(self, buffers: Buffers, stream: Any) -> None:
        stream.synchronize()
        assert self._write is not None
        self._write(buffers[HOME])

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        if step.op not in ("in", "back"):
            super().launch(step, buffers, stream)
            return
        buffer, slot, at = step.args
        tile = self.shape.tile
        top, left = at // self._side * tile, at % self._side * tile
        here = buffers[HOME][top : top + tile, left : left + tile]
        (copy_in if step.op == "in" else copy_back)(buffers[buffer], slot * tile, here, stream)

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        return self.result(buffers, stream)[: self.shape.n, : self.shape.n]

    def result(self, buffers: Buffers, stream: Any) -> Any:
        """The matrix itself; nothing can be copied to the device or back afterwards."""
        stream.synchronize()
        self._unpin()
        self._write = None
        return buffers[HOME]

    def weights(self, buffers: Buffers) -> Any | None:
        return None  # the result is in their place
