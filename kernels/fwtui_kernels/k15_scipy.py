"""SciPy's routine: the reference for correctness, and the rate that Python users get without fwtui."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import NegativeCycleError, floyd_warshall

from fwtui_kernels.plan import FLOATS, NO_EDGE, Buffers, Cost, Kernel, Program, Rect, Shape, Step, Target

ITEMSIZE = 8


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    n = shape.n
    everything = Rect(0, 0, n, n)
    # SciPy has the loop of `serial`: every row is read and written, row k is read once
    cost = Cost(n**3, n * (2 * n**2 + n) * ITEMSIZE)
    yield Step("floyd_warshall", "all", (), cost, (everything,), (everything,))


class SciPyProgram(Program):
    """Program whose buffers are SciPy's result and the sparse form of the graph, which is built outside the timed section."""

    def __init__(self, shape: Shape):
        self.shape = shape

    def allocate(self) -> Buffers:
        return [None, None]

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        edge = matrix != NO_EDGE[self.shape.dtype]
        # SciPy ignores the diagonal, including a negative self-loop
        self._negative_loops = np.flatnonzero(np.diagonal(matrix) < 0)
        np.fill_diagonal(edge, False)
        # a sparse float64 copy, because SciPy's dense form cannot represent an edge of weight 0
        buffers[1] = csr_array((matrix[edge].astype(np.float64), np.nonzero(edge)), shape=matrix.shape)  # type: ignore[index]

    def restore(self, buffers: Buffers, stream: Any) -> None:
        """Do nothing: SciPy does not change its input."""

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        try:
            buffers[0] = floyd_warshall(buffers[1])  # type: ignore[index]
        except NegativeCycleError:
            # a negative diagonal marks a negative cycle, as in the other kernels
            buffers[0] = np.where(np.eye(self.shape.n, dtype=bool), -1.0, np.inf)  # type: ignore[index]

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        result = np.array(buffers[0])
        result[self._negative_loops, self._negative_loops] = -1
        if self.shape.dtype not in FLOATS:
            np.minimum(result, NO_EDGE[self.shape.dtype], out=result)
        return result.astype(self.shape.dtype)


def build(shape: Shape, target: Target) -> Program:
    return SciPyProgram(shape)


KERNEL = Kernel(
    id="scipy",
    title="SciPy",
    backend="cpu",
    papers=("SciPy, scipy.sparse.csgraph.floyd_warshall",),
    plan=plan,
    build=build,
    summary="The library routine, compiled, one thread, float64.",
    lesson=(
        "This is `scipy.sparse.csgraph.floyd_warshall` on the same graph: compiled code on one thread, in double precision and "
        "without tiles. Every other kernel's result is compared with its distances, cell by cell."
    ),
    compiles=False,
    cores=1,
    itemsize=ITEMSIZE,
    host_bytes=56,  # indices and float64 weights while the sparse form is made, then the result and a copy
)
