"""SciPy's own routine: the reference, and the rate that a Python user has today."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kernels.plan import NO_EDGE, Buffers, Cost, Kernel, Program, Rect, Shape, Step, Target


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    n = shape.n
    everything = Rect(0, 0, n, n)
    # one call; what it reads and writes in memory is its own business, so no bytes are claimed
    yield Step("floyd_warshall", "all", (), Cost(n**3, 0), (everything,), (everything,))


def build(shape: Shape, target: Target) -> Program:
    return LibraryProgram(shape, _graph, _distances)


def _graph(n: int, rows: Any, columns: Any, weights: Any) -> Any:
    """A sparse float64 copy: SciPy's dense form cannot tell an edge of weight 0 from no edge."""
    import numpy as np
    from scipy.sparse import csr_array

    return csr_array((weights.astype(np.float64), (rows, columns)), shape=(n, n))


def _distances(graph: Any) -> Any:
    import numpy as np
    from scipy.sparse.csgraph import NegativeCycleError, floyd_warshall

    try:
        return floyd_warshall(graph)
    except NegativeCycleError:
        # the other kernels tell of a negative cycle by a negative diagonal
        return np.where(np.eye(graph.shape[0], dtype=bool), -1.0, np.inf)


class LibraryProgram(Program):
    """A library's routine on a graph of its own, which is made outside the clock: `graph` of (n, rows, columns, weights)."""

    def __init__(self, shape: Shape, graph: Callable[[int, Any, Any, Any], Any], distances: Callable[[Any], Any]):
        self.shape = shape
        self._graph = graph
        self._distances = distances

    def allocate(self) -> Buffers:
        return [None, None]  # result, input: the library allocates both itself

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        import numpy as np

        edge = matrix != NO_EDGE[self.shape.dtype]
        # libraries ignore the diagonal or set it to 0, a negative loop included
        self._negative_loops = np.flatnonzero(np.diagonal(matrix) < 0)
        np.fill_diagonal(edge, False)
        buffers[1] = self._graph(self.shape.n, *np.nonzero(edge), matrix[edge])  # type: ignore[index]

    def restore(self, buffers: Buffers, stream: Any) -> None:
        pass  # the input is never written

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        buffers[0] = self._distances(buffers[1])  # type: ignore[index]

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        import numpy as np

        result = np.array(buffers[0])
        result[self._negative_loops, self._negative_loops] = -1
        if self.shape.dtype != "float32":
            np.minimum(result, NO_EDGE[self.shape.dtype], out=result)
        return result.astype(self.shape.dtype)


KERNEL = Kernel(
    id="scipy",
    title="SciPy",
    backend="cpu",
    papers=("SciPy, scipy.sparse.csgraph.floyd_warshall",),
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
