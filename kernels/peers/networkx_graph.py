"""NetworkX's floyd_warshall_numpy: a graph of Python objects, made an array, and the k-loop in float64."""

from __future__ import annotations

from typing import Any

from kernels.k15_scipy import plan
from kernels.plan import NO_EDGE, Buffers, Kernel, Program, Shape, Step, Target


def build(shape: Shape, target: Target) -> Program:
    return NetworkxProgram(shape)


class NetworkxProgram(Program):
    """The graph is made outside the clock; making an array of it is a part of what the library does, and is timed."""

    def __init__(self, shape: Shape):
        self.shape = shape

    def allocate(self) -> Buffers:
        return [None, None]  # result, graph

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        import networkx  # pyright: ignore[reportMissingModuleSource, reportMissingImports]
        import numpy as np

        edge = matrix != NO_EDGE[self.shape.dtype]
        # the library sets the diagonal to 0, a negative loop included
        self._negative_loops = np.flatnonzero(np.diagonal(matrix) < 0)
        np.fill_diagonal(edge, False)
        rows, columns = (side.tolist() for side in np.nonzero(edge))
        graph = networkx.DiGraph()
        graph.add_nodes_from(range(self.shape.n))
        graph.add_weighted_edges_from(zip(rows, columns, matrix[edge].tolist(), strict=True))
        buffers[1] = graph  # type: ignore[index]

    def restore(self, buffers: Buffers, stream: Any) -> None:
        pass  # the graph is never written

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        import networkx  # pyright: ignore[reportMissingModuleSource, reportMissingImports]

        buffers[0] = networkx.floyd_warshall_numpy(buffers[1], nodelist=range(self.shape.n))  # type: ignore[index]

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        import numpy as np

        result = np.array(buffers[0])
        result[self._negative_loops, self._negative_loops] = -1
        if self.shape.dtype != "float32":
            np.minimum(result, NO_EDGE[self.shape.dtype], out=result)
        return result.astype(self.shape.dtype)


def _refuses(shape: Shape) -> str | None:
    from kernels.peers import installed, missing

    return None if installed("networkx") else missing("networkx")


KERNEL = Kernel(
    id="networkx",
    title="NetworkX, floyd_warshall_numpy",
    backend="cpu",
    papers=("NetworkX, floyd_warshall_numpy",),
    phases={"all": "all rounds"},
    plan=plan,
    build=build,
    summary="The graph library's routine: a k-loop with NumPy in double precision.",
    lesson="",
    compiles=False,
    host_bytes=500,  # an edge is a dictionary in a dictionary
    simulates=False,
    refuses=_refuses,
)
