"""What the device does to matrices beside the kernels: look at weights, convert them, lay them out, and the same with distances.

Rows are looked at by one block of threads each, neighbours side by side.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fwtui.solver import launching

LARGEST, DIAGONAL = range(2)  # what a look at distances finds

cuda: Any
fraction_of: Any
least_of: Any
note: Any


class Functions(NamedTuple):
    """A matrix is (n, n), row-major or by columns; `to` the padded one of a kernel; `found` float64."""

    survey: Any  # (matrix, n, found)
    outward: Any  # (matrix, n, distance): one round of relaxations from vertex 0, negative weights as 0
    inward: Any  # (matrix, n, distance): to vertex 0
    enter: Any  # (matrix, to, n, no_edge)
    leave: Any  # (distances, out, first, n, far): rows from `first` on
    look: Any  # (distances, n, far, found)
    diagonal: Any  # (distances, n, out)
    reached: Any  # (distances, n, far, sets): sets[v, s // 32] has a bit for each source s that reaches v
    escaped: Any  # (matrix, n, sets, found): found[0] is 1 where an arc leads from what a source reaches to what it does not


@cache
def functions() -> Functions:
    """Each compiled when it is first launched with such types."""
    global cuda, fraction_of, least_of, note
    from kernels.numba_door.device import cuda, jit

    least_of, fraction_of, note = launching.shared_functions()
    threads, lanes = launching.THREADS, min(32, launching.THREADS)

    @jit
    def survey(matrix, n, found):
        shared = cuda.shared.array(threads, np.float64)
        low, high, loop = np.inf, -np.inf, 0.0
        edges = fraction = missing = zeros = bad = 0.0
        for row in range(cuda.blockIdx.x, n, cuda.gridDim.x):
            for column in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                weight = np.float64(matrix[row, column])
                if weight == -np.inf:
                    bad = 1.0
                elif row == column and not weight < 0:
                    if not weight < np.inf:
                        missing = 1.0
                elif weight < np.inf:
                    fraction = max(fraction, fraction_of(weight))
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
        note(found, shared, low, high, loop, edges, fraction, missing, zeros, bad)

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

    return Functions(survey, outward, inward, enter, leave, look, diagonal, reached, escaped)
