"""What the device does to lists of arcs beside the kernels: look at weights, and lay them out as a matrix.

As many threads as there are take an arc each, then the next ones.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fwtui.solver import launching

cuda: Any
fraction_of: Any
note: Any


class Functions(NamedTuple):
    """Vertices of any whole type, weights of any real one; what is not finite is no arc. `to` is a kernel's padded matrix."""

    rows_of: Any  # (pointers, n, sources)
    survey: Any  # (sources, targets, weights, n, found)
    relax: Any  # (sources, targets, weights, distance): one round from vertex 0, negative weights as 0
    clear: Any  # (to, no_edge)
    lower: Any  # (sources, targets, weights, to): of 32 bits
    lower_pairs: Any  # (sources, targets, weights, to): of 16 bits, as an array of int32, no weight below 0
    escaped: Any  # (sources, targets, weights, sets, found); see matrix_kernels.Functions


@cache
def functions() -> Functions:
    """Each compiled when it is first launched with such types."""
    global cuda, fraction_of, note
    from kernels.numba_door.device import cuda, jit

    _, fraction_of, note = launching.shared_functions()
    threads, lanes = launching.THREADS, min(32, launching.THREADS)

    @jit
    def rows_of(pointers, n, sources):
        for row in range(cuda.blockIdx.x, n, cuda.gridDim.x):
            for place in range(pointers[row] + cuda.threadIdx.x, pointers[row + 1], cuda.blockDim.x):
                sources[place] = row

    @jit
    def survey(sources, targets, weights, n, found):
        shared = cuda.shared.array(threads, np.float64)
        low, high, loop = np.inf, -np.inf, 0.0
        edges = fraction = bad = 0.0
        for arc in range(cuda.grid(1), weights.shape[0], cuda.gridsize(1)):
            weight = np.float64(weights[arc])
            source, target = sources[arc], targets[arc]
            if weight == -np.inf or source < 0 or source >= n or target < 0 or target >= n:
                bad = 1.0
            elif weight < np.inf and (source != target or weight < 0):
                fraction = max(fraction, fraction_of(weight))
                if source == target:
                    loop = min(loop, weight)
                else:
                    edges += 1.0
                    low = min(low, weight)
                    high = max(high, weight)
        note(found, shared, low, high, loop, edges, fraction, 0.0, 0.0, bad)

    @jit
    def relax(sources, targets, weights, distance):
        for arc in range(cuda.grid(1), weights.shape[0], cuda.gridsize(1)):
            weight, before = np.float64(weights[arc]), distance[sources[arc]]
            if weight < np.inf and before < np.inf:
                through = before + max(weight, 0.0)
                if through < distance[targets[arc]]:
                    cuda.atomic.min(distance, targets[arc], through)

    @jit
    def clear(to, no_edge):
        row = cuda.blockIdx.x
        for column in range(cuda.threadIdx.x, to.shape[1], cuda.blockDim.x):
            to[row, column] = 0.0 if row == column else no_edge

    @jit
    def lower(sources, targets, weights, to):
        for arc in range(cuda.grid(1), weights.shape[0], cuda.gridsize(1)):
            weight, source, target = np.float64(weights[arc]), sources[arc], targets[arc]
            # loops that no path takes count in no bound: they may not fit the type
            if weight < np.inf and (source != target or weight < 0):
                cuda.atomic.min(to, (source, target), weight)

    @jit
    def lower_pairs(sources, targets, weights, to):
        for arc in range(cuda.grid(1), weights.shape[0], cuda.gridsize(1)):
            given, source, column = np.float64(weights[arc]), sources[arc], targets[arc]
            if given < np.inf and source != column:
                weight = np.int32(given)
                at = (source, column // 2)
                shift = np.int32(16 * (column % 2))
                seen = to[at]
                # 16 bits alone cannot be lowered in one step: so both halves, as long as no other thread has changed either
                while weight < ((seen >> shift) & 0xFFFF):
                    word = (seen & ~(np.int32(0x3FFF) << shift)) | (weight << shift)
                    old = cuda.atomic.cas(to, at, seen, np.int32(word))
                    if old == seen:
                        break
                    seen = old

    @jit
    def escaped(sources, targets, weights, sets, found):
        lane = cuda.threadIdx.x % lanes
        for arc in range(cuda.grid(1) // lanes, weights.shape[0], cuda.gridsize(1) // lanes):
            if np.float64(weights[arc]) < np.inf:
                for word in range(lane, sets.shape[1], lanes):
                    if sets[sources[arc], word] & ~sets[targets[arc], word]:
                        found[0] = 1

    return Functions(rows_of, survey, relax, clear, lower, lower_pairs, escaped)
