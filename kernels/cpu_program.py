"""The host side that the CPU kernels share: two NumPy buffers and a table of compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kernels.plan import NO_EDGE, Buffers, Resources, Shape, Step


class CpuProgram:
    """Each op takes the matrix (padded x padded, row-major) and the step's args, and returns when it is done."""

    def __init__(self, shape: Shape, ops: Mapping[str, Callable[..., None]]):
        self.shape = shape
        self.ops = ops

    def allocate(self) -> Buffers:
        size = (self.shape.padded, self.shape.padded)
        return [np.empty(size, self.shape.dtype), np.empty(size, self.shape.dtype)]

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        n, kept = self.shape.n, buffers[1]
        kept[:n, :n] = matrix
        kept[n:, :] = kept[:, n:] = NO_EDGE[self.shape.dtype]
        extra = np.arange(n, self.shape.padded)
        kept[extra, extra] = 0
        self.restore(buffers, stream)

    def restore(self, buffers: Buffers, stream: Any) -> None:
        np.copyto(buffers[0], buffers[1])

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        self.ops[step.op](buffers[0], *step.args)

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        return buffers[0][: self.shape.n, : self.shape.n].copy()

    def resources(self) -> Mapping[str, Resources]:
        return {}
