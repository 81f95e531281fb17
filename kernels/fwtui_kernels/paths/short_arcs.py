"""Before and after the search for predecessors: the arcs that may come last on a shortest path, and cells no product finds.

An arc can only come last if it is a shortest path itself. It is *strong* if it makes every path longer (lengths are taken with
potentials, under which none is below 0), so that following strong arcs backwards never leads in a circle. The others, of
length 0, are followed from what has a predecessor to what has none. Lengths are whole numbers here: distances times `scale`.

Where sums of weights were rounded, so are lengths. Then `slack` is how far a distance may be from the sum that it is, as a share
of that distance, for a short one may be nothing beside the roundings of the longest; `bar` is the length up to which an arc is
weak, and what the search found is settled by the distances themselves.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fwtui_kernels.compiled import SIMULATED
from fwtui_kernels.compiled.device import cuda, int32, jit
from fwtui_kernels.plan import NO_PREDECESSOR

THREADS = 4 if SIMULATED else 256
EDGE = 4 if SIMULATED else 32  # side of a block that is transposed by a quarter as many threads as cells
TAIL = 4  # words behind the rows of a slab in a list: the first is the epoch if blocks look at what they found, or -1
ROUNDINGS = 16  # half units in the last place: the slack of the first of two tries
LOOK = 512  # k to the first such look; to each later one twice as many as to the one before
LONGEST = 4096  # arcs of a path that is followed to its end


class Functions(NamedTuple):
    """Functions compiled for any type of distances, with one block of threads per row unless noted."""

    lowest: Any  # (distance, low, n, scale, far): low[j] = the least distance to j, or 0
    sift: Any  # (distance, weights, low, keys, marks, weak, n, scale, shift, none, no_edge, slack, bar)
    enlist: Any  # (marks, lists, lengths, shift): a block for each row of marks
    weak_arcs: Any  # (distance, weights, low, first, taken, others, n, scale, no_edge, slack, bar): row v's, by their ends
    turn: Any  # (distance, source, turned, n, scale, shift, none, twice, far): blocks of EDGE x EDGE cells, a thread for four
    begin: Any  # (distance, weights, before, source, n, no_edge): what one arc reaches
    spread: Any  # (distance, before, source, first, others, n, scale, far, slack)
    settle: Any  # (distance, weights, keys, before, source, n, none, far, slack): after a search in rounded lengths
    unfound: Any  # (distance, before, source, n, far, rows): 1 for each row in which a path does not end


@jit(device=True, inline="always")
def whole(cell, scale, half):
    """The length that a cell stands for."""
    return int32(cell * scale + half)


def half_of(rounded: bool) -> Any:
    """The offset that rounds to the nearest whole number."""
    return np.float32(0.5) if rounded else np.int32(0)


@cache
def functions(wide: int, slab: int, rounded: bool) -> Functions:
    """`wide` columns have one list of arcs, filled up to whole slabs."""
    lines = EDGE // 4
    pitch = EDGE + 1
    room = EDGE * pitch
    record = slab + TAIL
    often = max(1, LOOK // slab)
    half = half_of(rounded)

    @jit
    def lowest(distance, low, n, scale, far):
        row = cuda.blockIdx.x
        for column in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            cell = distance[row, column]
            if cell < far and whole(cell, scale, half) < low[column]:
                cuda.atomic.min(low, column, whole(cell, scale, half))

    @jit
    def sift(distance, weights, low, keys, marks, weak, n, scale, shift, none, no_edge, slack, bar):
        v = int32(cuda.blockIdx.x)
        for j in range(cuda.threadIdx.x, keys.shape[1], cuda.blockDim.x):
            key = none
            if v < n and j < n and v != j:
                weight = weights[v, j]
                cell = distance[v, j]
                most = cell + cell * slack if rounded else cell
                if weight < no_edge and weight <= most:
                    length = whole(weight, scale, half)
                    if length + low[v] - low[j] > bar:
                        key = int32((length << shift) | (v & ((1 << shift) - 1)))
                        marks[j // wide, v] = 1
                    else:
                        cuda.atomic.add(weak, j, 1)
            keys[v, j] = key

    @jit
    def enlist(marks, lists, lengths, shift):
        counts = cuda.shared.array(THREADS, int32)
        block = cuda.blockIdx.x
        t = cuda.threadIdx.x
        side = marks.shape[1]
        base = 0
        start = 0
        while start < side:
            stop = min(start + (1 << shift), side)
            share = (stop - start + THREADS - 1) // THREADS
            mine = min(start + t * share, stop)
            end = min(mine + share, stop)
            own = 0
            for v in range(mine, end):
                own += int32(marks[block, v])
            counts[t] = own
            cuda.syncthreads()
            at = base
            total = 0
            for other in range(THREADS):
                if other < t:
                    at += counts[other]
                total += counts[other]
            for v in range(mine, end):
                if marks[block, v]:
                    lists[block, at // slab * record + at % slab] = v
                    at += 1
            filled = (total + slab - 1) // slab * slab
            # the row behind the last one has no arcs
            for rest in range(base + total + t, base + filled, THREADS):
                lists[block, rest // slab * record + rest % slab] = side
            for slot in range(base // slab + t, (base + filled) // slab, THREADS):
                looks = (slot + 1) // often
                doubled = (slot + 1) % often == 0 and looks & (looks - 1) == 0
                look = doubled or (slot + 1) * slab == base + filled
                lists[block, slot * record + slab] = start >> shift if look else -1
            base += filled
            start = stop
            cuda.syncthreads()
        if t == 0:
            lengths[block] = base

    @jit
    def weak_arcs(distance, weights, low, first, counts, others, n, scale, no_edge, slack, bar):
        v = int32(cuda.blockIdx.x)
        for j in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            weight = weights[v, j]
            cell = distance[v, j]
            most = cell + cell * slack if rounded else cell
            short = v != j and weight < no_edge and weight <= most
            if short and whole(weight, scale, half) + low[v] - low[j] <= bar:
                others[first[j] + cuda.atomic.add(counts, j, 1)] = v

    @jit
    def turn(distance, source, turned, n, scale, shift, none, twice, far):
        staged = cuda.shared.array(room, int32)
        x = int32(cuda.threadIdx.x % EDGE)
        y = int32(cuda.threadIdx.x // EDGE)
        top = int32(cuda.blockIdx.x * EDGE)  # of the sources
        left = int32(cuda.blockIdx.y * EDGE)  # of the vertices
        for line in range(y, EDGE, lines):
            key = none
            if source + top + line < n and left + x < n:
                cell = distance[source + top + line, left + x]
                if cell < far:
                    key = int32(whole(cell, scale, half) << shift)
            staged[line * pitch + x] = int32(key * twice)
        cuda.syncthreads()
        for line in range(y, EDGE, lines):
            if left + line < turned.shape[0] and top + x < turned.shape[1]:
                turned[left + line, top + x] = staged[x * pitch + line]

    @jit
    def begin(distance, weights, before, source, n, no_edge):
        row = int32(cuda.blockIdx.x)
        i = int32(source + row)
        for j in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            weight = weights[i, j]
            one_arc = i != j and weight < no_edge and weight == distance[i, j]
            before[row, j] = i if one_arc else int32(NO_PREDECESSOR)

    @jit
    def spread(distance, before, source, first, others, n, scale, far, slack):
        row = int32(cuda.blockIdx.x)
        i = int32(source + row)
        again = 1
        # new cells come from earlier ones, and each cell is found by one thread
        while again:
            found = 0
            for j in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                cell = distance[i, j]
                if before[row, j] < 0 and i != j and cell < far:
                    for arc in range(first[j], first[j + 1]):
                        v = others[arc]
                        reachable = v == i or before[row, v] >= 0
                        if rounded:
                            via = distance[i, v] + distance[v, j]
                            tight = via <= cell + cell * slack
                        else:
                            via = whole(distance[i, v], scale, half) + whole(distance[v, j], scale, half)
                            tight = via == whole(cell, scale, half)
                        if reachable and tight:
                            before[row, j] = v
                            found = 1
                            break
            again = cuda.syncthreads_or(found)

    @jit
    def settle(distance, weights, keys, before, source, n, none, far, slack):
        row = int32(cuda.blockIdx.x)
        i = int32(source + row)
        for j in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            cell = distance[i, j]
            if i != j and cell < far:
                v = before[row, j]
                # the search distinguishes lengths to 21 bits, and small distances need more
                most = cell + cell * slack
                if v < 0 or distance[i, v] + weights[v, j] > most:
                    nearest = int32(NO_PREDECESSOR)
                    least = most
                    for v in range(n):
                        if keys[v, j] != none and distance[i, v] + weights[v, j] <= least:
                            nearest = int32(v)
                            least = distance[i, v] + weights[v, j]
                    before[row, j] = nearest

    @jit
    def unfound(distance, before, source, n, far, rows):
        row = int32(cuda.blockIdx.x)
        i = int32(source + row)
        for j in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            if i != j and distance[i, j] < far:
                v = before[row, j]
                steps = 0
                while v >= 0 and v != i and steps < LONGEST:
                    v = before[row, v]
                    steps += 1
                if v != i:
                    rows[i] = 1

    return Functions(lowest, sift, enlist, weak_arcs, turn, begin, spread, settle, unfound)
