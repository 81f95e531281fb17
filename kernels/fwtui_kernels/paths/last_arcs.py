"""The kernel functions of the search for predecessors (predecessors.py), for each data type of distances.

An arc can be the last arc of a shortest path only if it is a shortest path itself. It is *strong* if its length is positive
under potentials that make all lengths non-negative, so that strong arcs followed backwards never form a cycle. The others are
*weak*: they lead from cells with a predecessor to cells without one.

If sums of weights were rounded, `slack` is the maximum relative difference between a distance and its sum, else 0. The
difference is relative, because a short distance may be below the absolute rounding error of the longest one. `bar` is the
maximum length of a weak arc.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from fwtui_kernels.compiled import SIMULATED
from fwtui_kernels.compiled.device import NUMBER, cuda, int32, jit, load4, uint32
from fwtui_kernels.plan import NO_PREDECESSOR

THREADS = 4 if SIMULATED else 256
EDGE = 4 if SIMULATED else 32  # rows and columns of a transposed block, which has a quarter as many threads as cells
CHUNK = 64  # vertices v whose arcs to j one thread lists
LANES = min(32, THREADS)
COLUMNS = max(1, THREADS // 32)  # vertices j of a block of `follow`, one per warp
SOURCES = LANES * 4  # sources of a block of `follow`, four per thread
LONGEST = 4096  # maximum arcs of a path that is followed


class Functions(NamedTuple):
    """Kernel functions. Arrays `first`, `others` and `lengths` list the arcs into each vertex j at first[j] : first[j + 1]."""

    lowest: Any  # (distance, low, n, far): low[j] = the minimum distance to j, or 0; one block per row
    count: Any  # (distance, weights, low, counts, n, no_edge, slack, bar, weak): arcs into j from each chunk; a thread per count
    start: Any  # (counts, totals, n): turns counts into places among the arcs into j; a thread per j
    gather: Any  # (distance, weights, low, counts, first, others, lengths, n, no_edge, slack, bar, weak): like count
    turn: Any  # (distance, source, turned, n, far, no_edge): transposes blocks of EDGE x EDGE cells
    begin: Any  # (distance, weights, before, source, n): initial predecessors, by single arcs; one block per row
    follow: Any  # (turned, first, others, lengths, before, source, n, no_edge, slack): COLUMNS vertices x SOURCES sources
    spread: Any  # (distance, first, others, lengths, before, source, n, far, slack): by weak arcs; one block per row
    unfound: Any  # (distance, before, source, n, far, rows): sets rows[i] to 1 if a path from i does not end; one block per row


@cache
def functions(dtype: str) -> Functions:
    """Return the kernel functions for distances of a data type."""
    number = NUMBER[dtype]
    lines = EDGE // 4
    pitch = EDGE + 1
    room = EDGE * pitch

    @jit(device=True, inline="always")
    def is_listed(distance, weights, low, v, j, no_edge, slack, bar, weak):
        """Return True if arc (v, j) is a shortest path, and weak or strong as wanted."""
        weight = weights[v, j]
        cell = distance[v, j]
        if v != j and weight < no_edge and weight <= cell + cell * slack:
            return (weight + low[v] - low[j] <= bar) == (weak != 0)
        return False

    @jit(device=True, inline="always")
    def wanted(before, row, j, source, cell, n, no_edge, slack):
        """Return the greatest sum for a cell without a predecessor, and -1; for others a sum below all, and n."""
        if row < before.shape[0] and source + row != j and cell < no_edge and before[row, j] < 0:
            return number(cell + cell * slack), int32(-1)
        return number(-no_edge), int32(n)

    @jit(device=True, inline="always")
    def nearer(via, v, least, vertex):
        """Return the lesser sum and its vertex, the first of equal ones."""
        if via < least or (vertex < 0 and via == least):
            return via, v
        return least, vertex

    @jit
    def lowest(distance, low, n, far):
        row = cuda.blockIdx.x
        for column in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            cell = distance[row, column]
            if cell < far and cell < low[column]:
                cuda.atomic.min(low, column, low.dtype.type(cell))

    @jit
    def count(distance, weights, low, counts, n, no_edge, slack, bar, weak):
        j = int32(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)
        if j < n:
            found = 0
            for v in range(cuda.blockIdx.y * CHUNK, min(n, (cuda.blockIdx.y + 1) * CHUNK)):
                found += is_listed(distance, weights, low, v, j, no_edge, slack, bar, weak)
            counts[cuda.blockIdx.y, j] = found

    @jit
    def start(counts, totals, n):
        j = int32(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)
        if j < n:
            total = 0
            for chunk in range(counts.shape[0]):
                found = counts[chunk, j]
                counts[chunk, j] = total
                total += found
            totals[j] = total

    @jit
    def gather(distance, weights, low, counts, first, others, lengths, n, no_edge, slack, bar, weak):
        j = int32(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)
        if j < n:
            at = first[j] + counts[cuda.blockIdx.y, j]
            for v in range(cuda.blockIdx.y * CHUNK, min(n, (cuda.blockIdx.y + 1) * CHUNK)):
                if is_listed(distance, weights, low, v, j, no_edge, slack, bar, weak):
                    others[at] = v
                    lengths[at] = weights[v, j]
                    at += 1

    @jit
    def turn(distance, source, turned, n, far, no_edge):
        staged = cuda.shared.array(room, number)
        x = int32(cuda.threadIdx.x % EDGE)
        y = int32(cuda.threadIdx.x // EDGE)
        top = int32(cuda.blockIdx.x * EDGE)  # first source
        left = int32(cuda.blockIdx.y * EDGE)  # first vertex
        for line in range(y, EDGE, lines):
            cell = no_edge
            if source + top + line < n and left + x < n and distance[source + top + line, left + x] < far:
                cell = distance[source + top + line, left + x]
            staged[line * pitch + x] = cell
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
    def follow(turned, first, others, lengths, before, source, n, no_edge, slack):
        lane = int32(cuda.threadIdx.x % LANES)
        j = int32(cuda.blockIdx.x * COLUMNS + cuda.threadIdx.x // LANES)
        row = int32((cuda.blockIdx.y * LANES + lane) * 4)
        columns = int32(turned.shape[1])
        if j < n and row < columns:
            # unsigned indices do not need a test for negative values
            a, b, c, d = load4(turned, uint32(j * columns + row))
            a, from_a = wanted(before, row, j, source, a, n, no_edge, slack)
            b, from_b = wanted(before, row + 1, j, source, b, n, no_edge, slack)
            c, from_c = wanted(before, row + 2, j, source, c, n, no_edge, slack)
            d, from_d = wanted(before, row + 3, j, source, d, n, no_edge, slack)
            at, end = uint32(first[j]), uint32(first[j + 1])
            # without slack the first arc that fits is the result; else all are tested, for the least sum
            every = slack > 0 and min(min(from_a, from_b), min(from_c, from_d)) < 0
            while at < end and (every or min(min(from_a, from_b), min(from_c, from_d)) < 0):
                v = others[at]
                length = lengths[at]
                at = uint32(at + 1)
                e, f, g, h = load4(turned, uint32(v * columns + row))
                a, from_a = nearer(number(e + length), v, a, from_a)
                b, from_b = nearer(number(f + length), v, b, from_b)
                c, from_c = nearer(number(g + length), v, c, from_c)
                d, from_d = nearer(number(h + length), v, d, from_d)
            if 0 <= from_a < n:
                before[row, j] = from_a
            if 0 <= from_b < n:
                before[row + 1, j] = from_b
            if 0 <= from_c < n:
                before[row + 2, j] = from_c
            if 0 <= from_d < n:
                before[row + 3, j] = from_d

    @jit
    def spread(distance, first, others, lengths, before, source, n, far, slack):
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
                        if reachable and distance[i, v] + lengths[arc] <= cell + cell * slack:
                            before[row, j] = v
                            found = 1
                            break
            again = cuda.syncthreads_or(found)

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

    return Functions(lowest, count, start, gather, turn, begin, follow, spread, unfound)
