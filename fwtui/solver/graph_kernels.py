"""GPU functions for a graph before and after its run: survey the weights, fill the matrix, search, convert and check distances.

Vertices have any integer type, weights any real one; a value that is not finite means no edge. A matrix is (n, n), row-major
or column-major, with one block of threads per row and neighbouring threads on neighbouring cells; over arcs, the threads
stride. `to` is a kernel's padded matrix, and `facts` is of float64. Each function is compiled on its first launch with given
types.
"""

from __future__ import annotations

import numpy as np

from fwtui.solver.compiled_code import THREADS
from fwtui_kernels.compiled.device import cuda, jit

LOW, HIGH, MIN_LOOP, FRACTION, MISSING, ZEROS, BAD, EDGES = range(8)  # results of a survey, LOW and MIN_LOOP negated
LARGEST, DIAGONAL = range(2)  # results of a check of distances, DIAGONAL negated
LANES = min(32, THREADS)
WHOLE = 2.0**53  # every float64 of at least this value is an integer


@jit(device=True, inline="always")
def reduced(value, shared, adding):
    """Return the maximum or the sum of the values of all threads to each thread; `shared` has one float64 per thread."""
    t = cuda.threadIdx.x
    cuda.syncthreads()  # all threads have read the old values
    shared[t] = value
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if t < half:
            shared[t] = shared[t] + shared[t + half] if adding else max(shared[t], shared[t + half])
        cuda.syncthreads()
        half //= 2
    return shared[0]


@jit(device=True, inline="always")
def note(facts, shared, greatest):
    """Raise the first numbers of `facts` to the maxima of one block; one thread per block does it, as atomics serialise."""
    for which in range(len(greatest)):
        most = reduced(greatest[which], shared, False)
        if cuda.threadIdx.x == 0 and most > facts[which]:
            cuda.atomic.max(facts, which, most)


@jit(device=True, inline="always")
def count(facts, shared, edges):
    """Add the edges of one block to the total."""
    edges = reduced(edges, shared, True)
    if cuda.threadIdx.x == 0 and edges > 0:
        cuda.atomic.add(facts, EDGES, edges)


@jit(device=True, inline="always")
def fraction_of(weight):
    """Compute fwtui.graphs.bounds.fineness on the GPU."""
    if abs(weight) >= WHOLE or np.float64(np.int64(weight)) == weight:
        return 0.0
    if np.float64(np.int64(weight * 256.0)) == weight * 256.0:
        return 1.0
    return 3.0 if np.float32(weight) == 0 else 2.0


@jit
def survey_matrix(matrix, n, facts):
    shared = cuda.shared.array(THREADS, np.float64)
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
    note(facts, shared, (-low, high, -loop, fraction, missing, zeros, bad))
    count(facts, shared, edges)


@jit
def outward(matrix, n, distance):
    """Run one round of relaxations from vertex 0; negative weights count as 0."""
    column = cuda.grid(1)
    if column < n:
        least = np.inf
        for row in range(cuda.blockIdx.y, n, cuda.gridDim.y):
            # another block may lower the value at the same time; it is then also the length of a path
            before, weight = distance[row], np.float64(matrix[row, column])
            if before < np.inf and weight < np.inf:
                least = min(least, before + max(weight, 0.0))
        if least < distance[column]:
            cuda.atomic.min(distance, column, least)


@jit
def inward(matrix, n, distance):
    """Run one round of relaxations to vertex 0."""
    shared = cuda.shared.array(THREADS, np.float64)
    row = cuda.blockIdx.x
    least = np.inf
    for column in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        behind, weight = distance[column], np.float64(matrix[row, column])
        if behind < np.inf and weight < np.inf:
            least = min(least, behind + max(weight, 0.0))
    least = -reduced(-least, shared, False)
    if cuda.threadIdx.x == 0 and least < distance[row]:
        distance[row] = least


@jit
def enter(matrix, to, n, no_edge):
    row = cuda.blockIdx.x
    for column in range(cuda.threadIdx.x, to.shape[1], cuda.blockDim.x):
        weight = no_edge
        if row < n and column < n:
            number = np.float64(matrix[row, column])
            if number < np.inf:
                weight = number
        if row == column:
            weight = min(weight, 0.0)
        to[row, column] = weight


@jit
def escaped_matrix(matrix, sets, flag):
    """Set flag[0] to 1 if an arc leads from a vertex that a source reaches to one that it does not reach."""
    n, lane = sets.shape[0], cuda.threadIdx.x % LANES  # the threads of a warp share one arc
    for source in range(cuda.blockIdx.x, n, cuda.gridDim.x):
        for target in range(cuda.threadIdx.x // LANES, n, THREADS // LANES):
            weight = np.float64(matrix[source, target])
            if weight < np.inf:
                for word in range(lane, sets.shape[1], LANES):
                    if sets[source, word] & ~sets[target, word]:
                        flag[0] = 1


@jit
def rows_of(pointers, n, sources):
    for row in range(cuda.blockIdx.x, n, cuda.gridDim.x):
        for place in range(pointers[row] + cuda.threadIdx.x, pointers[row + 1], cuda.blockDim.x):
            sources[place] = row


@jit
def survey_arcs(sources, targets, weights, n, facts):
    shared = cuda.shared.array(THREADS, np.float64)
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
    note(facts, shared, (-low, high, -loop, fraction, 0.0, 0.0, bad))
    count(facts, shared, edges)


@jit
def relax_arcs(sources, targets, weights, distance):
    """Run one round of relaxations over a list of arcs, like `outward` over a matrix."""
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
    """Lower cells of 32 or 64 bits to the weights of their arcs."""
    for arc in range(cuda.grid(1), weights.shape[0], cuda.gridsize(1)):
        weight, source, target = np.float64(weights[arc]), sources[arc], targets[arc]
        # loops that no path uses count in no bound: they may not fit the type
        if weight < np.inf and (source != target or weight < 0):
            cuda.atomic.min(to, (source, target), weight)


@jit
def lower_pairs(sources, targets, weights, to):
    """Lower cells of 16 bits, two in an int32, to non-negative weights."""
    for arc in range(cuda.grid(1), weights.shape[0], cuda.gridsize(1)):
        number, source, column = np.float64(weights[arc]), sources[arc], targets[arc]
        if number < np.inf and source != column:
            weight = np.int32(number)
            at = (source, column // 2)
            shift = np.int32(16 * (column % 2))
            current = to[at]
            # there is no atomic minimum of 16 bits: compare and swap both halves
            while weight < ((current >> shift) & 0xFFFF):
                word = (current & ~(np.int32(0x3FFF) << shift)) | (weight << shift)
                old = cuda.atomic.cas(to, at, current, np.int32(word))
                if old == current:
                    break
                current = old


@jit
def escaped_arcs(sources, targets, weights, sets, flag):
    lane = cuda.threadIdx.x % LANES
    for arc in range(cuda.grid(1) // LANES, weights.shape[0], cuda.gridsize(1) // LANES):
        if np.float64(weights[arc]) < np.inf:
            for word in range(lane, sets.shape[1], LANES):
                if sets[sources[arc], word] & ~sets[targets[arc], word]:
                    flag[0] = 1


@jit
def leave(distances, out, first, n, far):
    """Convert the rows from `first` on to the form of Result."""
    row = first + cuda.blockIdx.x
    for column in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        distance = np.float64(distances[row, column])
        # -0 becomes +0; with rounded weights a diagonal cell may be slightly negative
        if row == column:
            distance = 0.0
        elif distance < far:
            distance += 0.0
        else:
            distance = np.inf
        out[cuda.blockIdx.x, column] = distance


@jit
def look(distances, n, far, facts):
    shared = cuda.shared.array(THREADS, np.float64)
    largest = diagonal = 0.0
    for row in range(cuda.blockIdx.x, n, cuda.gridDim.x):
        for column in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            distance = np.float64(distances[row, column])
            if distance < far:
                largest = max(largest, abs(distance))
                if row == column:
                    diagonal = min(diagonal, distance)
    note(facts, shared, (largest, -diagonal))


@jit
def diagonal(distances, n, out):
    vertex = cuda.grid(1)
    if vertex < n:
        out[vertex] = distances[vertex, vertex]


@jit
def reached(distances, n, far, sets):
    """Set bit s % 32 of sets[v, s // 32] for each source s that reaches v."""
    vertex, word = cuda.grid(1), cuda.blockIdx.y
    if vertex < n:
        bits = np.uint32(0)
        for source in range(word * 32, min(word * 32 + 32, n)):
            if distances[source, vertex] < far:
                bits |= np.uint32(1) << np.uint32(source % 32)
        sets[vertex, word] = bits
