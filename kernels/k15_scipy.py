"""SciPy's own routine: the reference, and the rate that a Python user has today."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kernels.plan import NO_EDGE, Buffers, Cost, Kernel, Program, Rect, Shape, Step, Target


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    n = shape.n
    everything = Rect(0, 0, n, n)
    # one call; what it reads and writes in memory is its own business, so no bytes are claimed
    yield Step("floyd_warshall", "all", (), Cost(n**3, 0), (everything,), (everything,))


def build(shape: Shape, target: Target) -> Program:
    return ScipyProgram(shape)


class ScipyProgram(Program):
    """Works on a sparse float64 copy: SciPy's dense form cannot tell an edge of weight 0 from no edge."""

    def __init__(self, shape: Shape):
        self.shape = shape

    def allocate(self) -> Buffers:
        return [None, None]  # result, input: SciPy allocates both itself

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        import numpy as np
        from scipy.sparse import csr_array

        edge = matrix != NO_EDGE[self.shape.dtype]
        # SciPy ignores the diagonal, a negative loop included
        self._negative_loops = np.flatnonzero(np.diagonal(matrix) < 0)
        np.fill_diagonal(edge, False)
        rows, columns = np.nonzero(edge)
        buffers[1] = csr_array((matrix[edge].astype(np.float64), (rows, columns)), shape=matrix.shape)  # type: ignore[index]

    def restore(self, buffers: Buffers, stream: Any) -> None:
        pass  # the input is never written

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        import numpy as np
        from scipy.sparse.csgraph import NegativeCycleError, floyd_warshall

        try:
            buffers[0] = floyd_warshall(buffers[1])  # type: ignore[index]
        except NegativeCycleError:
            # the other kernels tell of a negative cycle by a negative diagonal
            n = self.shape.n
            buffers[0] = np.where(np.eye(n, dtype=bool), -1.0, np.inf)  # type: ignore[index]

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        import numpy as np

        result = buffers[0].copy()
        result[self._negative_loops, self._negative_loops] = -1
        if self.shape.dtype != "float32":
            most = NO_EDGE[self.shape.dtype]
            np.minimum(result, most, out=result)
        return result.astype(self.shape.dtype)


KERNEL = Kernel(
    id="scipy",
    title="SciPy",
    backend="cpu",
    papers=("SciPy, scipy.sparse.csgraph.floyd_warshall",),
    phases={"all": "all rounds"},
    plan=plan,
    build=build,
    summary="The library routine, compiled, one thread, float64.",
    lesson=(
        "This is what `scipy.sparse.csgraph.floyd_warshall` does on the same graph. It is compiled code, but one thread, in "
        "double precision and without tiles. Every other kernel's result is compared with it, cell by cell."
    ),
    compiles=False,
    host_bytes=56,  # indices and float64 weights while the sparse form is made, then the result and a copy
)
