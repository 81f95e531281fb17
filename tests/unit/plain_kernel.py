"""A kernel with the minimal program, by the README's recipe, in one file."""

from dataclasses import replace
from typing import Any

import numpy as np

from fwtui_kernels import registry
from fwtui_kernels.plan import NO_EDGE, Buffers, Kernel, Program, Shape, Step


class Plain(Program):
    """One step for each k, in double precision."""

    def __init__(self, shape: Shape):
        self.shape = shape

    def allocate(self) -> Buffers:
        return [None, None]

    def load(self, matrix: Any, buffers: Any, stream: Any) -> None:
        buffers[1] = np.array(matrix, float)

    def restore(self, buffers: Any, stream: Any) -> None:
        buffers[0] = buffers[1].copy()

    def launch(self, step: Step, buffers: Any, stream: Any) -> None:
        (k,) = step.args
        np.minimum(buffers[0], buffers[0][:, k, None] + buffers[0][k], out=buffers[0])

    def unload(self, buffers: Any, stream: Any) -> Any:
        return np.minimum(buffers[0], NO_EDGE[self.shape.dtype]).astype(self.shape.dtype)


def plain(backend: str, preference: int) -> Kernel:
    serial = registry()["serial"]
    return replace(serial, id="plain", backend=backend, build=lambda shape, target: Plain(shape), preference=preference)
