"""NetworkX's floyd_warshall_numpy: a graph of Python objects converted to an array, and the k-loop in float64."""

from __future__ import annotations

from typing import Any

from fwtui_kernels.parts.library import LibraryProgram, plan
from fwtui_kernels.plan import Kernel, Program, Shape, Target


def build(shape: Shape, target: Target) -> Program:
    return LibraryProgram(shape, _graph, _distances)


def _graph(n: int, rows: Any, columns: Any, weights: Any) -> Any:
    import networkx  # pyright: ignore[reportMissingModuleSource, reportMissingImports]

    graph = networkx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from(zip(rows.tolist(), columns.tolist(), weights.tolist(), strict=True))
    return graph


def _distances(graph: Any) -> Any:
    """Converting the graph to an array is part of the routine, so it is timed."""
    import networkx  # pyright: ignore[reportMissingModuleSource, reportMissingImports]

    return networkx.floyd_warshall_numpy(graph, nodelist=range(len(graph.nodes)))


KERNEL = Kernel(
    id="networkx",
    title="NetworkX, floyd_warshall_numpy",
    backend="cpu",
    papers=("NetworkX, floyd_warshall_numpy",),
    plan=plan,
    build=build,
    summary="The graph library's routine: a k-loop with NumPy in double precision.",
    lesson="",
    compiles=False,
    itemsize=8,
    host_bytes=500,  # an edge is a dictionary in a dictionary
    simulates=False,
)
