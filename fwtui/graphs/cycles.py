"""Negative cycles in an input graph, or the proof that there are none."""

from __future__ import annotations

import math

import numpy as np

from fwtui.graphs.graph import blocks
from fwtui_kernels.plan import NO_EDGE


def negative_cycle(matrix: np.ndarray) -> tuple[int, ...]:
    """The vertices of one simple negative cycle of an (n, n) input matrix, in order; () when there is none."""
    return cycle_or_potentials(matrix)[0]


def cycle_or_potentials(matrix: np.ndarray) -> tuple[tuple[int, ...], np.ndarray]:
    """A negative cycle, or () and float64 potentials with w(i, j) + potentials[j] - potentials[i] >= 0.

    Bellman-Ford from a virtual vertex with an edge of weight 0 to every other. A cycle among the predecessors is always
    negative, so each round looks for one instead of waiting for round n.
    """
    n = len(matrix)
    loops = np.flatnonzero(matrix.diagonal() < 0)
    if loops.size:
        return (int(loops[0]),), np.zeros(n)
    distance = np.zeros(n)
    predecessor = np.full(n, -1, dtype=np.int64)
    for _ in range(n + 1):  # only rounding around a cycle of weight 0 can take longer
        changed = [_relax(matrix, rows, distance, predecessor) for rows in blocks(matrix)]
        if not any(changed):
            break
        cycle = cycle_among(predecessor)
        if cycle and cycle_weight(matrix, cycle) < 0:
            return cycle, np.zeros(n)
    return (), -distance


def cycle_weight(matrix: np.ndarray, cycle: tuple[int, ...]) -> float:
    """The sum of the weights along the cycle and back to its first vertex."""
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
    """A cycle of vertices each of which is the predecessor of the next one; () if there is none. -1 is no predecessor."""
    before: list[int] = predecessor.tolist()
    seen = [-1] * len(before)  # the start from which a vertex was visited
    for start in range(len(before)):
        v = start
        while v >= 0 and seen[v] < 0:
            seen[v] = start
            v = before[v]
        if v >= 0 and seen[v] == start:
            cycle = [v]
            w = before[v]
            while w != v:
                cycle.append(w)
                w = before[w]
            return tuple(reversed(cycle))
    return ()
