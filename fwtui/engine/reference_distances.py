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
    """Count ordered pairs i != j without a path: strongly connected components, then reachability among them."""
    n = len(matrix)
    component, count = _components(matrix, float(no_edge))
    if count == 1:
        return 0
    members = np.argsort(component, kind="stable")  # NumPy's, as numba takes a second to compile its own
    return n * n - int(_reachable(matrix, float(no_edge), component, members, count))


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
def _components(matrix, no_edge):
    """Find strongly connected components (Tarjan's algorithm without recursion); successor components have smaller numbers."""
    n = matrix.shape[0]
    order = np.full(n, -1, dtype=np.int64)
    lowest = np.zeros(n, dtype=np.int64)
    component = np.full(n, -1, dtype=np.int64)
    cursor = np.zeros(n, dtype=np.int64)
    path = np.empty(n, dtype=np.int64)  # the current path of the depth-first search
    waiting = np.empty(n, dtype=np.int64)  # visited, not yet in a component
    visited = waiting_size = count = 0
    for root in range(n):
        if order[root] >= 0:
            continue
        depth = 0
        path[0] = root
        while depth >= 0:
            v = path[depth]
            if cursor[v] == 0 and order[v] < 0:
                order[v] = lowest[v] = visited
                visited += 1
                waiting[waiting_size] = v
                waiting_size += 1
            while cursor[v] < n:
                w = cursor[v]
                cursor[v] += 1
                if matrix[v, w] == no_edge or w == v:
                    continue
                if order[w] < 0:
                    depth += 1
                    path[depth] = w
                    break
                if component[w] < 0:
                    lowest[v] = min(lowest[v], order[w])
            else:
                if lowest[v] == order[v]:
                    while True:
                        waiting_size -= 1
                        w = waiting[waiting_size]
                        component[w] = count
                        if w == v:
                            break
                    count += 1
                depth -= 1
                if depth >= 0:
                    lowest[path[depth]] = min(lowest[path[depth]], lowest[v])
    return component, count


@njit(cache=True)
def _reachable(matrix, no_edge, component, members, count):
    """Count ordered pairs with a path, i = j included, with bit sets, in an order in which successors come first."""
    n = matrix.shape[0]
    width = (count + 63) // 64
    reach = np.zeros((count, width), dtype=np.uint64)
    size = np.zeros(count, dtype=np.int64)
    for v in range(n):
        size[component[v]] += 1
    pairs = 0
    first = 0
    for c in range(count):
        successor = np.zeros(c + 1, dtype=np.bool_)
        for v in members[first : first + size[c]]:
            for w in range(n):
                if matrix[v, w] != no_edge:
                    successor[component[w]] = True
        first += size[c]
        reach[c, c // 64] |= np.uint64(1) << np.uint64(c % 64)
        for s in range(c - 1, -1, -1):  # nearest first: components reached through it need not be visited again
            if successor[s] and not (reach[c, s // 64] >> np.uint64(s % 64)) & np.uint64(1):
                for word in range(s // 64 + 1):
                    reach[c, word] |= reach[s, word]
        reached = 0
        for s in range(c + 1):
            if (reach[c, s // 64] >> np.uint64(s % 64)) & np.uint64(1):
                reached += size[s]
        pairs += size[c] * reached
    return pairs
