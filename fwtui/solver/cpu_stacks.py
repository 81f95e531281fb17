"""Many small graphs before and after they are solved, compiled for the CPU; imports numba.

The functions are called by compiled.cpu_stacks.on_all_cores, with its arguments. A value that is not finite
means no edge.
"""

from __future__ import annotations

import numpy as np

from fwtui.solver.paths import NONE
from fwtui_kernels.compiled.locked_njit import njit
from fwtui_kernels.one_core import BAD, EDGES, FRACTION, HIGH, LOW, MISSING, ZEROS

_WHOLE = 2.0**53  # every float64 from here up is a whole number


@njit(cache=True, nogil=True)
def survey(begin, end, first, sizes, given, told):
    """For each graph a row of what is known of its weights; FRACTION is 0 for whole ones, 1 for multiples of 1/256, else 2."""
    for graph in range(begin, end):
        n = sizes[graph]
        low, high, fraction = np.inf, -np.inf, 0.0
        missing = zeros = bad = edges = 0
        for i in range(n):
            for j in range(n):
                weight = np.float64(given[first[graph] + i * n + j])
                if weight == -np.inf:
                    bad = 1
                elif not weight < np.inf:
                    missing = 1
                elif i != j or weight < 0:
                    if abs(weight) < _WHOLE and np.float64(np.int64(weight)) != weight:
                        part = 1.0 if np.float64(np.int64(weight * 256.0)) == weight * 256.0 else 2.0
                        fraction = max(fraction, part)
                    low = min(low, weight)
                    if i != j:
                        edges += 1
                        high = max(high, weight)
                        zeros += weight == 0
        told[graph, LOW] = low
        told[graph, HIGH] = high
        told[graph, FRACTION] = fraction
        told[graph, MISSING] = missing
        told[graph, ZEROS] = zeros
        told[graph, BAD] = bad
        told[graph, EDGES] = edges


@njit(cache=True, nogil=True)
def enter(begin, end, first, sizes, given, no_edge, cells):
    """The weights in a kernel's type, its sentinel for no edge, and nothing above 0 on the diagonal."""
    number = cells.dtype.type
    for graph in range(begin, end):
        n = sizes[graph]
        for i in range(n):
            for j in range(n):
                at = first[graph] + i * n + j
                weight = given[at]
                if i == j and not weight < 0:
                    cells[at] = 0
                else:
                    cells[at] = number(weight) if weight < np.inf else no_edge


@njit(cache=True, nogil=True)
def first_arcs(begin, end, first, sizes, cells, no_edge, before):
    """Predecessors on paths of one edge."""
    for graph in range(begin, end):
        n = sizes[graph]
        for i in range(n):
            for j in range(n):
                at = first[graph] + i * n + j
                before[at] = i if i != j and cells[at] < no_edge else NONE


@njit(cache=True, nogil=True)
def look(begin, end, first, sizes, cells, far, largest, lowest):
    """For each graph the greatest absolute distance, and the least cell of the diagonal."""
    for graph in range(begin, end):
        n = sizes[graph]
        most = least = np.float64(0)
        for at in range(first[graph], first[graph] + n * n):
            if cells[at] < far:
                most = max(most, abs(np.float64(cells[at])))
        for i in range(n):
            least = min(least, np.float64(cells[first[graph] + i * (n + 1)]))
        largest[graph] = most
        lowest[graph] = least


@njit(cache=True, nogil=True)
def leave(begin, end, first, sizes, cells, far, result):
    """The distances in the form of a result: +inf for no path, 0 on the diagonal. `result` may be the memory of `cells`."""
    number = result.dtype.type
    for graph in range(begin, end):
        n = sizes[graph]
        # a copy, so that the compiler sees two pieces of memory
        own = cells[first[graph] : first[graph] + n * n].copy()
        to = result[first[graph] : first[graph] + n * n]
        for at in range(n * n):
            # -0 becomes +0
            to[at] = number(own[at]) + number(0) if own[at] < far else number(np.inf)
        for i in range(n):
            to[i * (n + 1)] = 0


@njit(cache=True, nogil=True)
def finish_predecessors(begin, end, first, sizes, distances, before, astray):
    """None if there is no path; `astray` is set for each graph in which some vertex does not lead back to its source."""
    for graph in range(begin, end):
        n = sizes[graph]
        own = distances[first[graph] : first[graph] + n * n].reshape((n, n))
        last = before[first[graph] : first[graph] + n * n].reshape((n, n))
        seen = np.empty(n, np.int64)
        lost = False
        for i in range(n):
            # a vertex has n where it leads to the source, else the number of the walk that came by, or -1
            seen[:] = -1
            seen[i] = n
            for j in range(n):
                if i == j or not own[i, j] < np.inf:
                    last[i, j] = NONE
                    continue
                v = j
                while v >= 0 and seen[v] < 0:
                    seen[v] = j
                    v = last[i, v]
                if v < 0 or seen[v] == j:
                    lost = True
                    break
                v = j
                while seen[v] == j:
                    seen[v] = n
                    v = last[i, v]
            if lost:
                break
        astray[graph] = lost
