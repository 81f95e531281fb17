"""The search for predecessors, compiled for the CPU; imports numba."""

from __future__ import annotations

import numpy as np

from fwtui_kernels.compiled.all_cores import entry, on_all_cores
from fwtui_kernels.compiled.locked_njit import inner

LANES = 64  # sources at once: a few vectors whose part of the matrix stays in the cache
_LOOK = 16  # arcs between checks whether all sources are done
_PASSES = 4  # over missing cells, before the search that always ends


@entry
def nearest_before(distances, sources, first, before, weights, slack, share, far, predecessors):
    """Find for each source i (a row) and vertex j the arc (v, j) with the least d(i, v) + w.

    That sum must be at most d(i, j) + slack[j] + share * d(i, j).

    Arcs are sorted by target: those into j are `first[j] : first[j + 1]` of `before` and `weights`, in whose type the search
    computes; `far` means no path. Cells with a predecessor are unchanged; i = j and cells without a path get none. Without slack
    the first arc that fits is taken.
    """
    arguments = distances, sources, first, before, weights, slack, share, far, predecessors
    on_all_cores(_nearest_of_group, (len(distances) + LANES - 1) // LANES, arguments)  # pyright: ignore[reportCallIssue]


@inner(cache=True)
def _nearest_of_group(group, distances, sources, first, before, weights, slack, share, far, predecessors):
    rows, n = distances.shape
    number = weights.dtype.type
    low, high = group * LANES, min((group + 1) * LANES, rows)
    # transposed, so that one arc serves all sources with whole vectors
    from_sources = np.full((n, LANES), far, weights.dtype)
    for lane in range(high - low):
        row = distances[low + lane]
        for v in range(n):
            from_sources[v, lane] = number(row[v]) if row[v] < np.inf else far
    goal = np.empty(LANES, weights.dtype)
    least = np.empty(LANES, weights.dtype)
    nearest = np.empty(LANES, before.dtype)
    for j in range(n):
        open_lanes = 0
        for lane in range(LANES):
            goal[lane] = far
            if lane < high - low and sources[low + lane] != j and predecessors[low + lane, j] < 0 and from_sources[j, lane] < far:
                goal[lane] = from_sources[j, lane]
                open_lanes += 1
            least[lane] = far
        arc, end = first[j], first[j + 1]
        while open_lanes and arc < end:
            stop = min(arc + _LOOK, end)
            at = arc
            # four at once: one load and one store per lane of the results
            while at + 4 <= stop:
                v0, v1, v2, v3 = before[at], before[at + 1], before[at + 2], before[at + 3]
                w0, w1, w2, w3 = weights[at], weights[at + 1], weights[at + 2], weights[at + 3]
                r0, r1, r2, r3 = from_sources[v0], from_sources[v1], from_sources[v2], from_sources[v3]
                for lane in range(LANES):
                    best = least[lane]
                    vertex = nearest[lane]
                    via = number(r0[lane] + w0)
                    vertex = v0 if via < best else vertex
                    best = via if via < best else best
                    via = number(r1[lane] + w1)
                    vertex = v1 if via < best else vertex
                    best = via if via < best else best
                    via = number(r2[lane] + w2)
                    vertex = v2 if via < best else vertex
                    best = via if via < best else best
                    via = number(r3[lane] + w3)
                    nearest[lane] = v3 if via < best else vertex
                    least[lane] = via if via < best else best
                at += 4
            while at < stop:
                reached = from_sources[before[at]]
                for lane in range(LANES):
                    via = number(reached[lane] + weights[at])
                    nearest[lane] = before[at] if via < least[lane] else nearest[lane]
                    least[lane] = via if via < least[lane] else least[lane]
                at += 1
            arc = stop
            if slack[j] == 0 and share == 0:
                open_lanes = 0
                for lane in range(LANES):
                    open_lanes += least[lane] > goal[lane]
        for lane in range(high - low):
            if goal[lane] < far and least[lane] <= goal[lane] + (slack[j] + share * goal[lane]):
                predecessors[low + lane, j] = nearest[lane]


@entry
def spread(distances, sources, first, after, weights, first_in, before, weights_in, slack, share, predecessors):
    """Follow arcs of the right length (slack and share, as above) from all cells with a predecessor to all others.

    Arcs are sorted by source, and again by target. Every new cell is reached from an earlier one, so no vertex ever comes
    before itself.
    """
    arguments = distances, sources, first, after, weights, first_in, before, weights_in, slack, share, predecessors
    on_all_cores(_spread_row, len(distances), arguments)  # pyright: ignore[reportCallIssue]


@inner(cache=True)
def _spread_row(place, distances, sources, first, after, weights, first_in, before, weights_in, slack, share, predecessors):
    n = distances.shape[1]
    source = sources[place]
    row = distances[place]
    found = predecessors[place]
    missing = np.empty(n, np.int64)
    left = 0
    for j in range(n):
        if found[j] < 0 and j != source and row[j] < np.inf:
            missing[left] = j
            left += 1
    # if there are many arcs, searching back from missing cells succeeds soon
    for _ in range(_PASSES):
        still = 0
        for which in range(left):
            j = missing[which]
            for arc in range(first_in[j], first_in[j + 1]):
                v = before[arc]
                if (found[v] >= 0 or v == source) and abs(row[v] + weights_in[arc] - row[j]) <= slack[j] + share * row[j]:
                    found[j] = v
                    break
            else:
                missing[still] = j
                still += 1
        hopeless = still == left
        left = still
        if hopeless:
            break
    if left == 0:
        return
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
            if found[j] < 0 and j != source and abs(row[v] + weights[arc] - row[j]) <= slack[j] + share * row[j]:
                found[j] = v
                waiting[size] = j
                size += 1
