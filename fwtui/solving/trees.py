"""The search for predecessors, compiled for the CPU: it brings numba."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

LANES = 64  # sources at once: four vectors, and their part of the matrix stays in the cache


@njit(parallel=True, cache=True)
def nearest_before(distances, sources, first, before, weights, slack, predecessors):
    """Per source i and vertex j: the v of an arc (v, j) with the least d(i, v) + w, where that is at most d(i, j) + slack[j].

    Arcs lie by their ends: those into j are `first[j] : first[j + 1]` of `before` and `weights`. Cells that have a
    predecessor keep it; i = j and cells without a path get none.
    """
    n = distances.shape[0]
    groups = (sources.size + LANES - 1) // LANES
    for group in prange(groups):
        low = group * LANES
        high = min(low + LANES, sources.size)
        # turned over, so that one arc serves all sources with whole vectors
        from_sources = np.full((n, LANES), np.inf, distances.dtype)
        for lane in range(high - low):
            row = distances[sources[low + lane]]
            for v in range(n):
                from_sources[v, lane] = row[v]
        least = np.empty(LANES, distances.dtype)
        nearest = np.empty(LANES, np.int32)
        for j in range(n):
            least[:] = np.inf
            nearest[:] = -1
            for arc in range(first[j], first[j + 1]):
                v = np.int32(before[arc])
                weight = weights[arc]
                reached = from_sources[v]
                for lane in range(LANES):
                    via = reached[lane] + weight
                    nearest[lane] = v if via < least[lane] else nearest[lane]
                    least[lane] = via if via < least[lane] else least[lane]
            for lane in range(high - low):
                goal = from_sources[j, lane]
                if (
                    predecessors[low + lane, j] < 0
                    and sources[low + lane] != j
                    and goal < np.inf
                    and least[lane] <= goal + slack[j]
                ):
                    predecessors[low + lane, j] = nearest[lane]


@njit(parallel=True, cache=True)
def spread(distances, sources, first, after, weights, slack, predecessors):
    """Follow arcs that are no longer than they should be (slack) from all that have a predecessor to all that have none.

    Arcs lie by their starts. Breadth first, so that no vertex ever comes before itself.
    """
    n = distances.shape[0]
    for s in prange(sources.size):
        source = sources[s]
        row = distances[source]
        found = predecessors[s]
        waiting = np.empty(n, np.int64)
        size = 0
        for v in range(n):
            if found[v] >= 0 or v == source:
                waiting[size] = v
                size += 1
        at = 0
        while at < size:
            v = waiting[at]
            at += 1
            for arc in range(first[v], first[v + 1]):
                j = after[arc]
                if found[j] < 0 and j != source and abs(row[v] + weights[arc] - row[j]) <= slack[j]:
                    found[j] = v
                    waiting[size] = j
                    size += 1
