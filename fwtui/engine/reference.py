"""All distances by SciPy: somebody else's program, which the own kernels have to agree with."""

from __future__ import annotations

import numpy as np

from fwtui.graphs.canonical import NO_PATH
from fwtui.graphs.graph import GraphInput, blocks

_SPARSE = 20  # below one edge in so many cells SciPy's Dijkstra beats its Floyd-Warshall


def reference(graph: GraphInput, shifts: np.ndarray | None, by_dijkstra: bool = False) -> np.ndarray:
    """Canonical distances (int32 with 2^31 - 1, or float32 with +inf) of a graph without negative cycles.

    `shifts` are potentials, needed for Dijkstra where weights are negative.

    Raises scipy's NegativeCycleError where it meets one all the same.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra, floyd_warshall

    present = graph.matrix != graph.no_edge
    np.fill_diagonal(present, False)
    rows, columns = np.nonzero(present)
    weights = graph.matrix[rows, columns].astype(np.float64)
    nonnegative = graph.low is None or graph.low >= 0
    # sparse, because SciPy takes a zero of a dense matrix for no edge, and keeps explicit zeros of a sparse one
    if (by_dijkstra or graph.edges * _SPARSE < graph.n**2) and (nonnegative or shifts is not None):
        if shifts is not None:
            weights += shifts[columns] - shifts[rows]
        distances = dijkstra(csr_array((weights, (rows, columns)), shape=present.shape))
        if shifts is not None:
            distances += shifts[:, None] - shifts[None, :]
    else:
        distances = floyd_warshall(csr_array((weights, (rows, columns)), shape=present.shape))
    return to_canonical(distances, graph.integer)


def to_canonical(distances: np.ndarray, integer: bool) -> np.ndarray:
    """Float64 distances with +inf for no path, as int32 or float32 of the same shape; beyond int32 is no path too."""
    if not integer:
        return distances.astype(np.float32)
    result = np.empty(distances.shape, dtype=np.int32)
    for part in blocks(distances):
        result[part] = np.minimum(distances[part], NO_PATH)
    return result
