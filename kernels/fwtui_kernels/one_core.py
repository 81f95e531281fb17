"""A whole graph of everyday size on one core: what is known of it, its distances, its result, by code that is loaded quickly.

On one core, as its threads would take longer to meet than to compute, and a forked process must be able to go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fwtui_kernels.compiled.survey import BAD, EDGES, LOW, TILE
from fwtui_kernels.plan import Buffers, Cost, Kernel, Program, Rect, Shape, Step, Target
from fwtui_kernels.programs.cpu_program import CpuProgram

if TYPE_CHECKING:
    from fwtui_kernels.compiled.object_code import ObjectCode  # which brings llvmlite

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


class OneCore:
    """The functions of the object code that fwtui_kernels.compiled.one_core_aot makes, and the kernel among them."""

    def __init__(self, code: ObjectCode):
        self._code = code
        self.kernel = Kernel(
            id="one-core",
            title="Tiles on one core",
            backend="cpu",
            papers=(),
            plan=_plan,
            build=self._build,
            summary="The blocked algorithm on one core, by code that is loaded without its compiler.",
            lesson="",
            tiles=(TILE,),
            default_tile=TILE,
            compiles=False,
            simulates=False,
        )

    def _build(self, shape: Shape, target: Target) -> Program:
        return _OneCoreProgram(shape, self._code)

    def survey(self, given: np.ndarray) -> list[float]:
        """What is known of n x n weights in float64."""
        told, loops = np.empty((2, EDGES + 1))
        self._code.call("survey", given, told, loops)
        told[BAD] = told[LOW] == -np.inf
        return told.tolist()

    def search(self, given: np.ndarray, outward: np.ndarray, inward: np.ndarray) -> None:
        """A round of a search from vertex 0 and of one to it, in place; negative weights count as 0."""
        self._code.call("search", given, outward, inward)

    def enter(self, given: np.ndarray, no_edge: float, cells: np.ndarray) -> None:
        """Write weights into a kernel's matrix, which has that value for no edge."""
        self._code.call(f"enter_{cells.dtype.char}", given, no_edge, cells)

    def largest(self, cells: np.ndarray, far: float) -> float:
        """The greatest absolute distance."""
        told = np.zeros(1)
        self._code.call(f"largest_{cells.dtype.char}", cells, far, told)
        return float(told[0])

    def leave(self, cells: np.ndarray, far: float, result: np.ndarray) -> None:
        """Write distances into a result."""
        self._code.call(f"leave_{cells.dtype.char}_{result.dtype.char}", cells, far, result)
