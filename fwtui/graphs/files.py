"""Graph files as kernels take them: a dense matrix of one number type, whatever the file's format."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fwtui.graphs.adjacency import Adjacency, Arcs
from fwtui.graphs.bounds import EXACT_REAL
from fwtui.graphs.graph import GraphInput, blocks, graph_of
from fwtui.graphs.limits import Demand, refused_for_room
from fwtui.graphs.loading import load


def read(path: str, dtype: str, max_vertices: int = 65536, free_bytes: int | None = None) -> GraphInput:
    """The graph in a file as a dense matrix of dtype. Only Refused leaves: it names file, line and way out.

    Parallel arcs and duplicate entries keep the least weight; positive self-loops are ignored, negative ones kept.
    Sizes are checked against max_vertices and free_bytes (by default what the machine has free), where a header declares
    them before anything is read.
    """
    if free_bytes is None:
        import psutil

        free_bytes = psutil.virtual_memory().available
    graph = load(path, Demand(dtype, max_vertices, free_bytes))
    try:
        return _filled(graph, np.empty((graph.n, graph.n), dtype=dtype))
    except MemoryError:
        raise refused_for_room(graph.name, dtype) from None


def _filled(graph: Adjacency, matrix: np.ndarray) -> GraphInput:
    graph.fill(matrix)
    if matrix.dtype.kind == "f":
        for rows in blocks(matrix):
            matrix[rows] += 0  # -0 becomes 0
    found = graph_of(matrix, graph.facts.integer, graph.name)
    widest = max(abs(found.low or 0), abs(found.high or 0)) * (graph.n - 1)
    arcs = found.edges if graph.arcs is None else _counted(graph.arcs)
    ignored = arcs - found.edges
    return replace(
        found,
        exact_sums=found.integer or (graph.facts.exact_sums and 3 * widest < EXACT_REAL),
        note=f"{ignored:,} of {arcs:,} arcs are parallel or self-loops" if ignored else "",
        vertices=graph.vertices,
    )


def _counted(arcs: Arcs) -> int:
    """All but the zeros on the diagonal of a matrix, which are not meant as self-loops."""
    return len(arcs.weights) - int(np.count_nonzero((arcs.sources == arcs.targets) & (arcs.weights == 0)))
