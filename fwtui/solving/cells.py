"""What the device does to a graph beside the kernels: look at weights, convert them, lay them out, and the same with distances.

Rows are looked at by one block of threads each, neighbours side by side; lists of arcs by as many threads as there are. Values
that all threads agree on are reduced within a block first: atomic operations on one address take turns.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any, NamedTuple

import numpy as np

THREADS = 256  # of a block; a power of two
BLOCKS = 1024  # at most, where a block takes several rows
LOW, HIGH, LEAST_LOOP, EDGES, FRACTIONS, OFF_GRID, MISSING, ZEROS, BAD = range(9)  # what a survey finds
LARGEST, DIAGONAL = range(2)  # what a look at distances finds
_WHOLE = 2.0**53  # every float64 from here on is a whole number

_compiling = 0.0

cuda: Any
least_of: Any
note: Any
sum_of: Any


class Functions(NamedTuple):
    """A matrix is (n, n), row-major or by columns; `to` the padded one of a kernel; `found` float64."""

    survey: Any  # (matrix, n, found)
    survey_arcs: Any  # (sources, targets, weights, n, found)
    outward: Any  # (matrix, n, distance): one round of relaxations from vertex 0, negative weights as 0
    inward: Any  # (matrix, n, distance): to vertex 0
    relax_arcs: Any  # (sources, targets, weights, distance)
    enter: Any  # (matrix, to, n, no_edge)
    clear: Any  # (to, no_edge)
    lower: Any  # (sources, targets, weights, to): of 32 bits
    lower_pairs: Any  # (sources, targets, weights, to): of 16 bits, as an array of int32, no weight below 0
    rows_of: Any  # (pointers, n, sources)
    leave: Any  # (distances, out, first, n, far): rows from `first` on
    look: Any  # (distances, n, far, found)
    diagonal: Any  # (distances, n, out)
    reached: Any  # (distances, n, far, sets): sets[v, s // 32] has a bit for each source s that reaches v
    escaped: Any  # (matrix, n, sets, found): found[0] is 1 where an arc leads from what somebody reaches to what he does not
    escaped_arcs: Any  # (sources, targets, weights, sets, found)


def launch(function: Any, grid: int | tuple[int, int], stream: Any, *given: Any) -> None:
    """One of the functions below on so many blocks, compiled or loaded before where it has not been for such types."""
    global _compiling
    known, begin = len(getattr(function, "overloads", ())), time.perf_counter()
    function[grid, THREADS, stream](*given)
    if len(getattr(function, "overloads", ())) > known:
        _compiling += time.perf_counter() - begin


def compiling() -> float:
    """The seconds that launches took to compile or load something since this was last asked."""
    global _compiling
    seconds, _compiling = _compiling, 0.0
    return seconds


@cache
def functions() -> Functions:
    """Each compiled when it is first launched with such types."""
    global cuda, least_of, note, sum_of
    from kernels.device import cuda, jit

    threads, lanes = THREADS, min(32, THREADS)

    @jit(device=True, inline="always")
    def least_of(value, shared):
        """The least of all threads' values, known to all of them."""
        t = cuda.threadIdx.x
        cuda.syncthreads()  # what was there before has been read
        shared[t] = value
        cuda.syncthreads()
        half = threads // 2
        while half > 0:
            if t < half:
                shared[t] = min(shared[t], shared[t + half])
            cuda.syncthreads()
            half //= 2
        return shared[0]

    @jit(device=True, inline="always")
    def sum_of(value, shared):
        """The sum of all threads' values, known to all of them."""
        t = cuda.threadIdx.x
        cuda.syncthreads()
        shared[t] = value
        cuda.syncthreads()
        half = threads // 2
        while half > 0:
            if t < half:
                shared[t] += shared[t + half]
            cuda.syncthreads()
            half //= 2
        return shared[0]

    @jit(device=True, inline="always")
    def note(found, shared, low, high, loop, edges, fractions, off_grid, missing, zeros, bad):
        """What one block found, added to what all did."""
        low = least_of(low, shared)
        high = -least_of(-high, shared)
        loop = least_of(loop, shared)
        fractions = -least_of(-fractions, shared)
        off_grid = -least_of(-off_grid, shared)
        missing = -least_of(-missing, shared)
        zeros = -least_of(-zeros, shared)
        bad = -least_of(-bad, shared)
        edges = sum_of(edges, shared)
        if cuda.threadIdx.x == 0:
            if edges > 0:
                cuda.atomic.add(found, EDGES, edges)
            if low < found[LOW]:
                cuda.atomic.min(found, LOW, low)
            if high > found[HIGH]:
                cuda.atomic.max(found, HIGH, high)
            if loop < found[LEAST_LOOP]:
                cuda.atomic.min(found, LEAST_LOOP, loop)
            # rarely anything to say, and always the same
            if fractions > 0:
                found[FRACTIONS] = 1
            if off_grid > 0:
                found[OFF_GRID] = 1
            if missing > 0:
                found[MISSING] = 1
            if zeros > 0:
                found[ZEROS] = 1
            if bad > 0:
                found[BAD] = 1

    @jit
    def survey(matrix, n, found):
        shared = cuda.shared.array(threads, np.float64)
        low, high, loop = np.inf, -np.inf, 0.0
        edges = fractions = off_grid = missing = zeros = bad = 0.0
        for row in range(cuda.blockIdx.x, n, cuda.gridDim.x):
            for column in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                weight = np.float64(matrix[row, column])
                if weight == -np.inf:
                    bad = 1.0
                elif row == column and not weight < 0:
                    continue
                elif weight < np.inf:
                    if abs(weight) < _WHOLE and np.float64(np.int64(weight)) != weight:
                        fractions = 1.0
                        if np.float64(np.int64(weight * 256.0)) != weight * 256.0:
                            off_grid = 1.0
                    if row == column:
                        loop = min(loop, weight)
                    else:
                        edges += 1.0
                        low = min(low, weight)
                        high = max(high, weight)
                        if weight == 0:
                            zeros = 1.0
                else:
                    missing = 1.0
        note(found, shared, low, high, loop, edges, fractions, off_grid, missing, zeros, bad)

    @jit
    def survey_arcs(sources, targets, weights, n, found):
        shared = cuda.shared.array(threads, np.float64)
        low, high, loop = np.inf, -np.inf, 0.0
        edges = fractions = off_grid = bad = 0.0
        for arc in range(cuda.grid(1), weights.shape[0], cuda.gridsize(1)):
            weight = np.float64(weights[arc])
            source, target = sources[arc], targets[arc]
            if weight == -np.inf or source < 0 or source >= n or target < 0 or target >= n:
                bad = 1.0
            elif weight < np.inf and (source != target or weight < 0):
                if abs(weight) < _WHOLE and np.float64(np.int64(weight)) != weight:
                    fractions = 1.0
                    if np.float64(np.int64(weight * 256.0)) != weight * 256.0:
                        off_grid = 1.0
                if source == target:
                    loop = min(loop, weight)
                else:
                    edges += 1.0
                    low = min(low, weight)
                    high = max(high, weight)
        note(found, shared, low, high, loop, edges, fractions, off_grid, 0.0, 0.0, bad)

    @jit
    def outward(matrix, n, distance):
        column = cuda.grid(1)
        if column < n:
            least = np.inf
            for row in range(cuda.blockIdx.y, n, cuda.gridDim.y):
                # what another block lowers meanwhile is the length of a path as well
                before, weight = distance[row], np.float64(matrix[row, column])
                if before < np.inf and weight < np.inf:
                    least = min(least, before + max(weight, 0.0))
            if least < distance[column]:
                cuda.atomic.min(distance, column, least)

    @jit
    def inward(matrix, n, distance):
        shared = cuda.shared.array(threads, np.float64)
        row = cuda.blockIdx.x
        least = np.inf
        for column in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            behind, weight = distance[column], np.float64(matrix[row, column])
            if behind < np.inf and weight < np.inf:
                least = min(least, behind + max(weight, 0.0))
        least = least_of(least, shared)
        if cuda.threadIdx.x == 0 and least < distance[row]:
            distance[row] = least

    @jit
    def relax_arcs(sources, targets, weights, distance):
        for arc in range(cuda.grid(1), weights.shape[0], cuda.gridsize(1)):
            weight, before = np.float64(weights[arc]), distance[sources[arc]]
            if weight < np.inf and before < np.inf:
                through = before + max(weight, 0.0)
                if through < distance[targets[arc]]:
                    cuda.atomic.min(distance, targets[arc], through)

    @jit
    def enter(matrix, to, n, no_edge):
        row = cuda.blockIdx.x
        for column in range(cuda.threadIdx.x, to.shape[1], cuda.blockDim.x):
            weight = no_edge
            if row < n and column < n:
                given = np.float64(matrix[row, column])
                if given < np.inf:
                    weight = given
            if row == column:
                weight = min(weight, 0.0)
            to[row, column] = weight

    @jit
    def clear(to, no_edge):
        row = cuda.blockIdx.x
        for column in range(cuda.threadIdx.x, to.shape[1], cuda.blockDim.x):
            to[row, column] = 0.0 if row == column else no_edge

    @jit
    def lower(sources, targets, weights, to):
        for arc in range(cuda.grid(1), weights.shape[0], cuda.gridsize(1)):
            weight = np.float64(weights[arc])
            if weight < np.inf:
                cuda.atomic.min(to, (sources[arc], targets[arc]), weight)

    @jit
    def lower_pairs(sources, targets, weights, to):
        for arc in range(cuda.grid(1), weights.shape[0], cuda.gridsize(1)):
            given = np.float64(weights[arc])
            if given < np.inf:
                weight, column = np.int32(given), targets[arc]
                at = (sources[arc], column // 2)
                shift = np.int32(16 * (column % 2))
                seen = to[at]
                # 16 bits alone cannot be lowered in one step: so both halves, as long as nobody else has changed either
                while weight < ((seen >> shift) & 0xFFFF):
                    word = (seen & ~(np.int32(0x3FFF) << shift)) | (weight << shift)
                    old = cuda.atomic.cas(to, at, seen, np.int32(word))
                    if old == seen:
                        break
                    seen = old

    @jit
    def rows_of(pointers, n, sources):
        for row in range(cuda.blockIdx.x, n, cuda.gridDim.x):
            for place in range(pointers[row] + cuda.threadIdx.x, pointers[row + 1], cuda.blockDim.x):
                sources[place] = row

    @jit
    def leave(distances, out, first, n, far):
        row = first + cuda.blockIdx.x
        for column in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            distance = np.float64(distances[row, column])
            # -0 and +0 are one distance; where weights were rounded, one to oneself may be a little less
            if row == column:
                distance = 0.0
            elif distance < far:
                distance += 0.0
            else:
                distance = np.inf
            out[cuda.blockIdx.x, column] = distance

    @jit
    def look(distances, n, far, found):
        shared = cuda.shared.array(threads, np.float64)
        largest = diagonal = 0.0
        for row in range(cuda.blockIdx.x, n, cuda.gridDim.x):
            for column in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                distance = np.float64(distances[row, column])
                if distance < far:
                    largest = max(largest, abs(distance))
                    if row == column:
                        diagonal = min(diagonal, distance)
        largest = -least_of(-largest, shared)
        diagonal = least_of(diagonal, shared)
        if cuda.threadIdx.x == 0:
            if largest > found[LARGEST]:
                cuda.atomic.max(found, LARGEST, largest)
            if diagonal < found[DIAGONAL]:
                cuda.atomic.min(found, DIAGONAL, diagonal)

    @jit
    def diagonal(distances, n, out):
        vertex = cuda.grid(1)
        if vertex < n:
            out[vertex] = distances[vertex, vertex]

    @jit
    def reached(distances, n, far, sets):
        vertex, word = cuda.grid(1), cuda.blockIdx.y
        if vertex < n:
            bits = np.uint32(0)
            for source in range(word * 32, min(word * 32 + 32, n)):
                if distances[source, vertex] < far:
                    bits |= np.uint32(1) << np.uint32(source % 32)
            sets[vertex, word] = bits

    @jit
    def escaped(matrix, n, sets, found):
        # the threads of a warp look at one arc
        source, lane = cuda.blockIdx.x, cuda.threadIdx.x % lanes
        for target in range(cuda.threadIdx.x // lanes, n, threads // lanes):
            weight = np.float64(matrix[source, target])
            if weight < np.inf:
                for word in range(lane, sets.shape[1], lanes):
                    if sets[source, word] & ~sets[target, word]:
                        found[0] = 1

    @jit
    def escaped_arcs(sources, targets, weights, sets, found):
        lane = cuda.threadIdx.x % lanes
        for arc in range(cuda.grid(1) // lanes, weights.shape[0], cuda.gridsize(1) // lanes):
            if np.float64(weights[arc]) < np.inf:
                for word in range(lane, sets.shape[1], lanes):
                    if sets[sources[arc], word] & ~sets[targets[arc], word]:
                        found[0] = 1

    return Functions(
        *(survey, survey_arcs, outward, inward, relax_arcs, enter, clear, lower, lower_pairs, rows_of, leave, look, diagonal),
        *(reached, escaped, escaped_arcs),
    )
