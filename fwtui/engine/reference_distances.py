"""Searches on dense matrices, compiled for the CPU. Only the worker imports this module, because it imports numba."""

from __future__ import annotations

import numpy as np

from fwtui_kernels.compiled.all_cores import entry, on_all_cores
from fwtui_kernels.compiled.locked_njit import inner, njit


def distances_from(matrix: np.ndarray, sources: np.ndarray, potentials: np.ndarray | None, no_edge: float) -> np.ndarray:
    """Return Dijkstra's distances from each source: float64 (len(sources), n), +inf for no path, 0 for the source.

    Weights reweighted by the potentials (w + potentials[j] - potentials[i]) must not be negative; rounding errors below zero
    count as zero. Quadratic per source, the right algorithm for dense graphs. A transposed matrix gives
    distances *to* the vertices.
    """
    shifts = np.zeros(len(matrix)) if potentials is None else potentials.astype(np.float64)
    result = np.empty((len(sources), len(matrix)))
    _search(matrix, np.asarray(sources, dtype=np.int64), shifts, float(no_edge), result)
    return result


def unreachable_pairs(matrix: np.ndarray, no_edge: float) -> int:
    """Count ordered pairs i != j without a path, by Warshall's algorithm on the strongly connected components."""
    if _reaches_all(matrix, no_edge) and _reaches_all(matrix.T, no_edge):
        return 0
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    rows, columns = np.nonzero(matrix != no_edge)
    arcs = csr_array((np.ones(len(rows), np.bool_), (rows, columns)), shape=matrix.shape)
    count, component = connected_components(arcs, connection="strong")
    joined = np.zeros((count, -(-count // 64) * 64), np.bool_)
    joined[component[rows], component[columns]] = True
    reach = np.packbits(joined, axis=1, bitorder="little").view(np.uint64)
    _close(reach)
    sizes = np.bincount(component)
    reached = np.unpackbits(reach.view(np.uint8), axis=1, count=count, bitorder="little")
    return len(matrix) ** 2 - int(sizes @ (reached @ sizes))


def _reaches_all(matrix: np.ndarray, no_edge: float) -> bool:
    seen = np.zeros(len(matrix), np.bool_)
    seen[0] = True
    waiting = [0]
    while waiting and not seen.all():
        found = (matrix[waiting.pop()] != no_edge) & ~seen
        seen |= found
        waiting += np.flatnonzero(found).tolist()
    return bool(seen.all())


@entry
def _search(matrix, sources, potentials, no_edge, result):
    on_all_cores(_search_from, len(sources), (matrix, sources, potentials, no_edge, result))  # pyright: ignore[reportCallIssue]


@inner(cache=True)
def _search_from(s, matrix, sources, potentials, no_edge, result):
    n = matrix.shape[0]
    distance = result[s]
    distance[:] = np.inf
    settled = np.zeros(n, dtype=np.bool_)
    vertex = sources[s]
    distance[vertex] = 0.0
    while vertex >= 0:
        settled[vertex] = True
        here = distance[vertex] - potentials[vertex]
        nearest, following = np.inf, -1
        for j in range(n):
            if settled[j]:
                continue
            weight = np.float64(matrix[vertex, j])
            if weight != no_edge:
                # a rounded reweighted edge below zero would reopen settled vertices
                through = max(here + weight + potentials[j], distance[vertex])
                if through < distance[j]:
                    distance[j] = through
            if distance[j] < nearest:
                nearest = distance[j]
                following = j
        vertex = following
    for j in range(n):
        distance[j] += potentials[sources[s]] - potentials[j]


@njit(cache=True)
def _close(reach):
    """Add the paths through each component k, the bits of row k, to each row with bit k."""
    for k in range(len(reach)):
        through = reach[k]
        for i in range(len(reach)):
            row = reach[i]
            if i != k and (row[k // 64] >> np.uint64(k % 64)) & np.uint64(1):
                for word in range(len(row)):
                    row[word] |= through[word]
