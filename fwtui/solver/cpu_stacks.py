"""Many small graphs before and after they are solved, compiled for the CPU; imports numba.

The functions are called by compiled.cpu_stacks.on_all_cores, with its arguments. A value that is not finite
means no edge.
"""

from __future__ import annotations

import numba
import numpy as np

from fwtui.solver.paths import NONE
from fwtui_kernels.compiled import one_core_aot
from fwtui_kernels.compiled.locked_njit import njit

_survey, _enter, _largest, _leave = one_core_aot.survey, one_core_aot.enter, one_core_aot.largest, one_core_aot.leave


@numba.njit
def _own(flat, first, sizes, graph):
    """The matrix of a graph."""
    n = sizes[graph]
    return flat[first[graph] : first[graph] + n * n].reshape((n, n))


@njit(cache=True, nogil=True)
def survey(begin, end, first, sizes, given, told):
    """For each graph a row of what is known of its weights, as one_core_aot.survey tells it."""
    loop = np.empty(told.shape[1])
    for graph in range(begin, end):
        _survey(_own(given, first, sizes, graph), told[graph], loop)


@njit(cache=True, nogil=True)
def enter(begin, end, first, sizes, given, no_edge, cells):
    """The weights in a kernel's type."""
    for graph in range(begin, end):
        _enter(_own(given, first, sizes, graph), no_edge, _own(cells, first, sizes, graph))


@njit(cache=True, nogil=True)
def first_arcs(begin, end, first, sizes, cells, no_edge, before):
    """Predecessors on paths of one edge."""
    for graph in range(begin, end):
        own, last = _own(cells, first, sizes, graph), _own(before, first, sizes, graph)
        for i in range(sizes[graph]):
            for j in range(sizes[graph]):
                last[i, j] = i if i != j and own[i, j] < no_edge else NONE


@njit(cache=True, nogil=True)
def look(begin, end, first, sizes, cells, far, most, least):
    """For each graph the greatest absolute distance, and the least cell of the diagonal."""
    for graph in range(begin, end):
        own = _own(cells, first, sizes, graph)
        _largest(own, far, most[graph : graph + 1])
        for i in range(sizes[graph]):
            least[graph] = min(least[graph], np.float64(own[i, i]))


@njit(cache=True, nogil=True)
def leave(begin, end, first, sizes, cells, far, result):
    """The distances in the form of a result, which may be the memory of `cells`."""
    for graph in range(begin, end):
        # a copy, so that the compiler sees two pieces of memory
        _leave(_own(cells, first, sizes, graph).copy(), far, _own(result, first, sizes, graph))


@njit(cache=True, nogil=True)
def finish_predecessors(begin, end, first, sizes, distances, before, astray):
    """None if there is no path; `astray` is set for each graph in which some vertex does not lead back to its source."""
    for graph in range(begin, end):
        n = sizes[graph]
        own, last = _own(distances, first, sizes, graph), _own(before, first, sizes, graph)
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
