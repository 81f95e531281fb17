"""A whole graph of everyday size on one core, by code that is loaded quickly; brings llvmlite.

On one core, as its threads would take longer to meet than to compute, and a forked process must be able to go on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fwtui_kernels.compiled.object_code import ObjectCode
from fwtui_kernels.compiled.survey import TILE
from fwtui_kernels.plan import Buffers, Cost, Kernel, Rect, Shape, Step
from fwtui_kernels.programs.cpu_program import CpuProgram

_APART = 64  # bytes between rows of a power of two bytes, which would share few places of the cache


class _OneCoreProgram(CpuProgram):
    """Rows of the matrix may be longer than the padding needs."""

    def __init__(self, shape: Shape, code: ObjectCode):
        pivot, middle = np.empty((2, shape.tile, shape.tile), shape.dtype)
        line, close = np.empty(shape.tile, shape.dtype), f"close_{np.dtype(shape.dtype).char}"
        super().__init__(shape, {"all": lambda cells: code.call(close, cells, pivot, middle, line)})

    def allocate(self) -> Buffers:
        rows, cells = self.shape.padded, _APART // self.shape.itemsize
        return [np.empty((rows, rows + cells), self.shape.dtype)]


def _plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    everything = Rect(0, 0, shape.padded, shape.padded)
    yield Step("all", "all", (), Cost(shape.padded**3, 0), (everything,), (everything,))


class OneCore(ObjectCode):
    """The functions that fwtui_kernels.compiled.one_core_aot compiles, and the kernel among them. Raises RuntimeError like it."""

    def __init__(self, code: bytes):
        super().__init__(code)
        self.kernel = Kernel(
            id="one-core",
            title="Tiles on one core",
            backend="cpu",
            papers=(),
            plan=_plan,
            build=lambda shape, target: _OneCoreProgram(shape, self),
            summary="The blocked algorithm on one core, by code that is loaded without its compiler.",
            lesson="",
            tiles=(TILE,),
            default_tile=TILE,
            compiles=False,
            simulates=False,
        )
