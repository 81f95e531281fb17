"""Weights of paths and cycles, and the search for a negative cycle."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.graph import blocks
from fwtui_kernels.plan import NO_EDGE

_ROUNDED = 2.0**-52  # relative rounding error of a cycle of weight 0, such as 0.1 + 0.7 - 0.8
_ROUNDS = 16  # the search for a cycle follows every 16th round, and rounds 1, 2, 4 and 8


def cycle_or_potentials(matrix: np.ndarray) -> tuple[tuple[int, ...], np.ndarray]:
    """Return the vertices of one simple negative cycle of an (n, n) input matrix, in order, else () and potentials.

    The potentials are float64 with w(i, j) + potentials[j] - potentials[i] >= 0.
    """

    def relax(distance: np.ndarray, predecessor: np.ndarray) -> bool:
        return sum(_relax(matrix, rows, distance, predecessor) for rows in blocks(matrix)) > 0

    cycle, distance = _searched(len(matrix), relax, lambda cycle: cycle_weight(matrix, cycle))
    return cycle, -distance


def cycle_or_heights(graph: Adjacency) -> tuple[tuple[int, ...], np.ndarray]:
    """Return a negative cycle, else () and heights: negated potentials, w(i, j) + heights[i] - heights[j] >= 0."""

    def relax(distance: np.ndarray, predecessor: np.ndarray) -> bool:
        before = distance.copy()
        for sources, targets, weights in graph.pieces():
            reached = distance[sources] + weights
            np.minimum.at(distance, targets, reached)
            best = (distance < before)[targets] & (reached == distance[targets])
            predecessor[targets[best]] = sources[best]
        return bool((distance < before - _ROUNDED * np.abs(before)).any())

    def weigh(cycle: tuple[int, ...]) -> float:
        weights = weights_along(graph, [*cycle, cycle[0]])
        return math.fsum(weights) + _ROUNDED * math.fsum(np.abs(weights))

    return _searched(graph.n, relax, weigh)


def _searched(
    n: int, relax: Callable[[np.ndarray, np.ndarray], bool], weigh: Callable[[tuple[int, ...]], float]
) -> tuple[tuple[int, ...], np.ndarray]:
    """Return a negative cycle, else () and the Bellman-Ford distances from a virtual vertex with edges of weight 0 to all.

    A cycle among the predecessors is negative except for rounding, so the search for one does not wait until round n.
    """
    distance, predecessor = np.zeros(n), np.full(n, -1, dtype=np.int64)
    for rounds in range(1, n + 2):  # only rounding errors in a cycle of weight 0 can take longer
        if not relax(distance, predecessor):
            break
        if rounds & (rounds - 1) == 0 or rounds % _ROUNDS == 0 or rounds > n:
            cycle = cycle_among(predecessor)
            if cycle and weigh(cycle) < 0:
                return cycle, np.zeros(n)
    return (), distance


def weights_along(adjacency: Adjacency, path: list[int]) -> np.ndarray:
    """Return the weight of each edge of a path: the least among parallel edges."""
    if adjacency.dense is not None:
        return adjacency.dense[path[:-1], path[1:]].astype(np.float64)
    arcs = adjacency.all_arcs()
    starts = np.isin(arcs.sources, path[:-1])
    least: dict[tuple[int, int], float] = {}
    for u, v, w in zip(arcs.sources[starts].tolist(), arcs.targets[starts].tolist(), arcs.weights[starts].tolist(), strict=True):
        least[u, v] = min(w, least.get((u, v), np.inf))
    return np.array([least[edge] for edge in pairwise(path)], dtype=np.float64)


def cycle_weight(matrix: np.ndarray, cycle: tuple[int, ...]) -> float:
    """Return the sum of the weights along the cycle and back to its first vertex."""
    return math.fsum(float(matrix[i, j]) for i, j in zip(cycle, (*cycle[1:], cycle[0]), strict=True))


def _relax(matrix: np.ndarray, rows: slice, distance: np.ndarray, predecessor: np.ndarray) -> bool:
    """Relax one block of edges; return whether any distance fell."""
    block = matrix[rows]
    through = block.astype(np.float64)
    through[block == NO_EDGE[matrix.dtype.name]] = np.inf
    through += distance[rows, None]
    nearest = through.min(axis=0)
    better = np.flatnonzero(nearest < distance)
    predecessor[better] = rows.start + through[:, better].argmin(axis=0)
    distance[better] = nearest[better]
    return better.size > 0


def cycle_among(predecessor: np.ndarray) -> tuple[int, ...]:
    """Return a cycle of vertices, each the predecessor of the next one; () if there is none. -1 means no predecessor."""
    before: list[int] = predecessor.tolist()
    start_of = [-1] * len(before)  # the start from which a vertex was visited
    for start in range(len(before)):
        v = start
        while v >= 0 and start_of[v] < 0:
            start_of[v] = start
            v = before[v]
        if v >= 0 and start_of[v] == start:
            cycle = [v]
            w = before[v]
            while w != v:
                cycle.append(w)
                w = before[w]
            return tuple(reversed(cycle))
    return ()
