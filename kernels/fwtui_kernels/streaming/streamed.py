"""The program of out_of_core.py: its matrix on the host, and the kernel functions for its tiles on the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from fwtui_kernels.compiled.device import NUMBER, copy_back, copy_in, cuda, int32, jit, pinned
from fwtui_kernels.forms import lanes_of
from fwtui_kernels.parts.products import relax_block_of
from fwtui_kernels.parts.tuning import Product
from fwtui_kernels.plan import Buffers, Shape, Step, Target
from fwtui_kernels.programs.cpu_program import pad
from fwtui_kernels.programs.cuda_program import CudaProgram, Op


class StreamedProgram(CudaProgram):
    """Program whose buffers are those of out_of_core; the first is on the host: the padded row-major matrix and result.

    Its memory is pinned from allocate() to unload(), so that copies overlap with products. restore() reads the loaded matrix
    again, so that matrix must not change.
    """

    home: Literal["host", "device"] = "host"

    def __init__(self, shape: Shape, target: Target, ops: Mapping[str, Op], sizes: Mapping[int, tuple[int, int]]):
        super().__init__(shape, target, ops)
        self._sizes = sizes  # rows and columns of each buffer on the device
        self._side = shape.padded // shape.tile
        self._write: Callable[[Any], None] | None = None
        self._unpin: Callable[[], object] = lambda: None

    def allocate(self) -> Buffers:
        home, self._unpin = pinned((self.shape.padded, self.shape.padded), np.dtype(self.shape.dtype))
        return [home, *(cuda.device_array(size, home.dtype) for _, size in sorted(self._sizes.items()))]

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        self.fill(lambda home: pad(matrix, home), buffers, stream)

    def fill(self, write: Callable[[Any], None], buffers: Buffers, stream: Any) -> None:
        self._write = write
        self.restore(buffers, stream)

    def restore(self, buffers: Buffers, stream: Any) -> None:
        stream.sync()
        assert self._write is not None
        self._write(buffers[0])

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        if step.op not in ("in", "back"):
            super().launch(step, buffers, stream)
            return
        buffer, slot, at = step.args
        tile = self.shape.tile
        top, left = at // self._side * tile, at % self._side * tile
        here = buffers[0][top : top + tile, left : left + tile]
        (copy_in if step.op == "in" else copy_back)(buffers[buffer], slot * tile, here, stream)

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        return self.result(buffers, stream)[: self.shape.n, : self.shape.n]

    def result(self, buffers: Buffers, stream: Any) -> Any:
        """Unpin the matrix and return it; no copy is possible afterwards."""
        stream.sync()
        self._unpin()
        self._write = None
        return buffers[0]

    def weights(self, buffers: Buffers) -> Any | None:
        return None  # replaced by the result


def product_op(shape: Shape, cut: Product, target: Target) -> Op:
    """Return the op own = min(own, left x top), with `left` transposed. A step has the buffers and slots of own, left and top."""
    relax_block, tile, high, wide = relax_block_of(shape, target, cut), shape.tile, cut.high, cut.wide
    pitch = tile // lanes_of(shape.dtype)
    per_slot = tile // high

    @jit(launch_bounds=cut.bounds)
    def product(own, left, top, own_buffer, own_slot, left_buffer, left_slot, top_buffer, top_slot):
        row, column = own_slot * per_slot + cuda.blockIdx.y, cuda.blockIdx.x
        left_start = left_slot * tile * tile + cuda.blockIdx.y * high
        # blocks of a row panel may read old or new values of other blocks, because both give the same minimum
        relax_block(own, row, column, left, left_start, tile, top, top_slot * tile * pitch + column * wide, pitch)

    grid = (pitch // wide, per_slot)
    return Op(product, (cut.threads, 1), lambda args: grid, lambda args: (args[0], args[2], args[4]))


def turn_op(shape: Shape) -> Op:
    """Return the op that transposes a tile from one buffer and slot to another, one word per cell."""
    number, tile, lanes = NUMBER[shape.dtype], shape.tile, lanes_of(shape.dtype)
    edge = min(32, tile)
    lines = max(1, edge // 4)
    pitch = edge + 1
    room = edge * pitch

    @jit
    def turn(source, to, source_buffer, source_slot, to_buffer, to_slot):
        staged = cuda.shared.array(room, number)
        x = int32(cuda.threadIdx.x)
        top = cuda.blockIdx.y * edge
        left = cuda.blockIdx.x * edge
        for y in range(cuda.threadIdx.y, edge, lines):
            staged[y * pitch + x] = source[source_slot * tile + top + y, left + x]
        cuda.syncthreads()
        for y in range(cuda.threadIdx.y, edge, lines):
            for lane in range(lanes):
                to[to_slot * tile + left + y, (top + x) * lanes + lane] = staged[x * pitch + y]

    return Op(turn, (edge, lines), lambda args: (tile // edge, tile // edge), lambda args: (args[0], args[2]))
