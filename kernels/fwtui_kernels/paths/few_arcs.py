"""Predecessors by tests of single arcs, for graphs in which few arcs are shortest paths.

An arc (v, j) is the last arc of a shortest path from i if d(i, v) + w(v, j) = d(i, j). All three are lengths in the transposed
layout of short_arcs.turn, so that 32 threads compare 128 sources at once: loads of v are coalesced, and values of j stay in
registers.

Time: n^2 comparisons per incoming arc of a vertex. Each comparison reads a word, mostly from the L2 cache, while a relaxation in
registers takes half an instruction. So this search is faster only if arcs are few.
"""

from __future__ import annotations

import numpy as np

from fwtui_kernels.compiled.device import cuda, int32, jit, load4, uint32
from fwtui_kernels.paths.short_arcs import THREADS

LANES = min(32, THREADS)
COLUMNS = max(1, THREADS // 32)  # vertices per block, one per warp
SOURCES = LANES * 4  # sources per block, four per thread


@jit
def count(keys, counts, n, none):
    """Count the arcs into each vertex j; one block per row of keys."""
    v = int32(cuda.blockIdx.x)
    for j in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        if keys[v, j] != none:
            cuda.atomic.add(counts, j, 1)


@jit
def gather(keys, first, counts, others, lengths, n, shift, none, twice):
    """List the sources and lengths of the arcs into each vertex j at first[j] : first[j + 1]."""
    v = int32(cuda.blockIdx.x)
    for j in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        key = int32(keys[v, j])
        if key != none:
            at = first[j] + cuda.atomic.add(counts, j, 1)
            others[at] = v
            lengths[at] = int32(int32(key >> shift << shift) * twice)


@jit
def follow(turned, first, others, lengths, before, source, n, empty):
    """Write the predecessors of all pairs, in blocks of COLUMNS vertices x SOURCES sources."""
    lane = int32(cuda.threadIdx.x % LANES)
    j = int32(cuda.blockIdx.x * COLUMNS + cuda.threadIdx.x // LANES)
    row = int32((cuda.blockIdx.y * LANES + lane) * 4)
    pitch = int32(turned.shape[1])
    if j < n and row < pitch:
        a, b, c, d = load4(turned, uint32(j * pitch + row))
        from_a = from_b = from_c = from_d = int32(-1)
        # unsigned indices do not need a test for negative values
        at, end = uint32(first[j]), uint32(first[j + 1])
        while at < end:
            v = others[at]
            length = lengths[at]
            at = uint32(at + 1)
            e, f, g, h = load4(turned, uint32(v * pitch + row))
            # the largest v of several, so that the result does not depend on the order of the list
            if int32(e + length) == a:
                from_a = max(from_a, v)
            if int32(f + length) == b:
                from_b = max(from_b, v)
            if int32(g + length) == c:
                from_c = max(from_c, v)
            if int32(h + length) == d:
                from_d = max(from_d, v)
        rows = before.shape[0]
        if row < rows and from_a >= 0 and a != empty and source + row != j:
            before[row, j] = from_a
        if row + 1 < rows and from_b >= 0 and b != empty and source + row + 1 != j:
            before[row + 1, j] = from_b
        if row + 2 < rows and from_c >= 0 and c != empty and source + row + 2 != j:
            before[row + 2, j] = from_c
        if row + 3 < rows and from_d >= 0 and d != empty and source + row + 3 != j:
            before[row + 3, j] = from_d


def ends_of(counts: np.ndarray) -> np.ndarray:
    """Return the start of each vertex's arcs in the list of all arcs, and the end of the list."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
