"""Steps before and after the search for predecessors: the arcs that can come last, and the cells that no product finds.

Only an arc that is a shortest path can be the last arc of one. It is *strong* if its length is positive under potentials that
make all lengths non-negative, so that strong arcs followed backwards never form a cycle. The other arcs, of length 0, lead
from cells with a predecessor to cells without one. Lengths are integers here: distances times `scale`.

If sums of weights were rounded, lengths are rounded too. Then `slack` is the maximum relative difference between a distance and
its sum: a relative bound, because a short distance may be below the absolute rounding error of the longest one. `bar` is the
maximum length of a weak arc, and the distances themselves decide the result of the search.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fwtui_kernels.compiled import SIMULATED
from fwtui_kernels.compiled.device import cuda, int32, jit
from fwtui_kernels.plan import NO_PREDECESSOR

THREADS = 4 if SIMULATED else 256
EDGE = 4 if SIMULATED else 32  # rows and columns of a transposed block, which has a quarter as many threads as cells
TAIL = 4  # words after the rows of a slab in a list: the first is the epoch if blocks check their results there, else -1
ROUNDINGS = 16  # slack of the first try, in half units in the last place
FIRST_CHECK = 512  # k before the first check of the results; the distance between checks doubles
LONGEST = 4096  # maximum arcs of a path that is followed


class Functions(NamedTuple):
    """Kernel functions for any data type of distances, with one thread block per row unless noted."""

    lowest: Any  # (distance, low, n, scale, far): low[j] = the minimum distance to j, or 0
    sift: Any  # (distance, weights, low, keys, marks, weak, n, scale, shift, none, no_edge, slack, bar)
    enlist: Any  # (marks, lists, lengths, shift): one block per row of marks
    weak_arcs: Any  # (distance, weights, low, first, taken, others, n, scale, no_edge, slack, bar): lists the weak arcs
    turn: Any  # (distance, source, turned, n, scale, shift, none, twice, far): transposes blocks of EDGE x EDGE cells
    begin: Any  # (distance, weights, before, source, n, no_edge): initial predecessors, by single arcs
    spread: Any  # (distance, before, source, first, others, n, scale, far, slack)
    settle: Any  # (distance, weights, keys, before, source, n, none, far, slack): corrects a search in rounded lengths
    unfound: Any  # (distance, before, source, n, far, rows): sets rows[i] to 1 if a path from i does not end


@jit(device=True, inline="always")
def whole(cell, scale, half):
    """Return the length of a distance."""
    return int32(cell * scale + half)


def half_of(rounded: bool) -> Any:
    """Return the offset that rounds lengths to the nearest integer."""
    return np.float32(0.5) if rounded else np.int32(0)


@cache
def functions(wide: int, slab: int, rounded: bool) -> Functions:
    """Return the kernel functions for one list of arcs per `wide` columns, in whole slabs."""
    lines = EDGE // 4
    pitch = EDGE + 1
    room = EDGE * pitch
    record = slab + TAIL
    often = max(1, FIRST_CHECK // slab)
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
            # padding refers to the row after the last one, which has no arcs
            for rest in range(base + total + t, base + filled, THREADS):
                lists[block, rest // slab * record + rest % slab] = side
            for slot in range(base // slab + t, (base + filled) // slab, THREADS):
                checks = (slot + 1) // often
                doubled = (slot + 1) % often == 0 and checks & (checks - 1) == 0
                check = doubled or (slot + 1) * slab == base + filled
                lists[block, slot * record + slab] = start >> shift if check else -1
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
        top = int32(cuda.blockIdx.x * EDGE)  # first source
        left = int32(cuda.blockIdx.y * EDGE)  # first vertex
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
        # new cells depend only on earlier ones, and one thread owns each cell
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
                # the search compares lengths of 21 bits, which is too coarse for short distances
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
