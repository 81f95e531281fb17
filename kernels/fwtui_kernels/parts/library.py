"""The plan and the program of kernels that call a library routine. Plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fwtui_kernels.plan import FLOATS, NO_EDGE, Buffers, Cost, Program, Rect, Shape, Step


def plan(shape: Shape, stepwise: bool, device_bytes: int = 0) -> Iterator[Step]:
    """Yield one step for one call; without bytes its memory traffic is unknown."""
    n = shape.n
    everything = Rect(0, 0, n, n)
    yield Step("floyd_warshall", "all", (), Cost(n**3, device_bytes), (everything,), (everything,))


class LibraryProgram(Program):
    """A library's routine on its own form of the graph, made outside the clock: `graph` of (n, rows, columns, weights)."""

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
        if self.shape.dtype not in FLOATS:
            np.minimum(result, NO_EDGE[self.shape.dtype], out=result)
        return result.astype(self.shape.dtype)
