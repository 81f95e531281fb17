"""Graph files as kernels take them: a dense matrix of one number type, whatever the file's format."""

from __future__ import annotations

import numpy as np

from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import EXACT_REAL
from fwtui.graphs.graph import GraphInput, blocks, survey
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
    edges, negative, low, high = survey(matrix)
    widest = max(abs(low or 0), abs(high or 0)) * (graph.n - 1)
    drift = (graph.n - 1) * -low if low is not None and low < 0 else 0
    arcs = edges if graph.arcs is None else len(graph.arcs.weights) - _own_zeros(graph)
    ignored = arcs - edges
    return GraphInput(
        matrix=matrix,
        integer=graph.integer,
        edges=edges,
        low=low,
        high=high,
        negative_share=negative / edges if edges else None,
        drift=int(drift) if graph.integer else drift,
        exact_sums=graph.integer or (graph.weights.grid and 3 * widest < EXACT_REAL),
        name=graph.name,
        note=f"{ignored:,} of {arcs:,} arcs are parallel or self-loops" if ignored else "",
        vertices=graph.vertices,
    )


def _own_zeros(graph: Adjacency) -> int:
    """Zeros on the diagonal of a matrix, which nobody means as self-loops."""
    assert graph.arcs is not None
    return int(np.count_nonzero((graph.arcs.sources == graph.arcs.targets) & (graph.arcs.weights == 0)))
