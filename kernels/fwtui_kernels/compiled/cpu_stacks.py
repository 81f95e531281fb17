"""Many small graphs on a CPU: each is looked through, closed and finished by one thread, in its cache. Compiled for all sizes.

The matrices lie one after the other in `cells`: graph g has `sizes[g]` vertices, and its first cell is `first[g]`; so do those
in `weights`, where a value that is not finite means no edge. A call does the graphs begin .. end - 1 and releases Python's lock;
`on_all_cores` makes calls for all of them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import ceil
from typing import Any

import numba
import numpy as np
from numba import get_num_threads

from fwtui_kernels.compiled import one_core_aot
from fwtui_kernels.compiled.locked_njit import njit
from fwtui_kernels.compiled.survey import NONE

_survey, _enter, _largest, _leave = one_core_aot.survey, one_core_aot.enter, one_core_aot.largest, one_core_aot.leave
_PIECES = 8  # for each thread, so that those with larger graphs do not end later
_LEAST = 1 << 22  # relaxations of a call: less takes no longer than starting a thread


def on_all_cores(function: Any, first: Any, sizes: Any, *arguments: Any) -> None:
    """Call such a function for all graphs, a few in each call, on as many threads as Numba uses; for little work on this one."""
    threads, count, edge = get_num_threads(), len(sizes), np.asarray(sizes, np.float64)
    least = _LEAST * count / max(1.0, float((edge * edge * edge).sum()))
    step = max(1, -(-count // (threads * _PIECES)), ceil(least))
    if count <= step:
        function(0, count, first, sizes, *arguments)
        return
    with ThreadPoolExecutor(threads) as pool:
        pieces = [pool.submit(function, at, min(at + step, count), first, sizes, *arguments) for at in range(0, count, step)]
    for piece in pieces:
        piece.result()


@numba.njit
def _own(flat, first, sizes, graph):
    """The matrix of a graph."""
    n = sizes[graph]
    return flat[first[graph] : first[graph] + n * n].reshape((n, n))


@njit(cache=True, nogil=True)
def survey(begin, end, first, sizes, weights, surveyed):
    """For each graph a row of what is known of its weights, as one_core_aot.survey tells it."""
    loop = np.empty(surveyed.shape[1])
    for graph in range(begin, end):
        _survey(_own(weights, first, sizes, graph), surveyed[graph], loop)


@njit(cache=True, nogil=True)
def enter(begin, end, first, sizes, weights, no_edge, cells):
    """The weights in a kernel's type."""
    for graph in range(begin, end):
        _enter(_own(weights, first, sizes, graph), no_edge, _own(cells, first, sizes, graph))


@njit(cache=True, nogil=True)
def first_arcs(begin, end, first, sizes, cells, no_edge, before):
    """Predecessors on paths of one edge."""
    for graph in range(begin, end):
        own, last = _own(cells, first, sizes, graph), _own(before, first, sizes, graph)
        for i in range(sizes[graph]):
            for j in range(sizes[graph]):
                last[i, j] = i if i != j and own[i, j] < no_edge else NONE


@njit(cache=True, nogil=True)
def close_all(begin, end, first, sizes, cells, no_edge):
    """Floyd-Warshall in each matrix, in place."""
    for graph in range(begin, end):
        n, own = sizes[graph], _own(cells, first, sizes, graph)
        number = own.dtype.type
        for k in range(n):
            middle = own[k].copy()
            for i in range(n):
                row = own[i]
                to_k = row[k]
                # sparse graphs begin with few paths
                if to_k < no_edge:
                    for j in range(n):
                        via = number(to_k + middle[j])
                        row[j] = via if via < row[j] else row[j]


@njit(cache=True, nogil=True)
def close_all_with_predecessors(begin, end, first, sizes, cells, before, no_edge):
    """The same; `before` has the vertex before j on the path from i to j, and only a shorter path replaces it.

    So no vertex comes before itself, even on cycles of weight 0, unless rounding makes one path shorter than itself.
    """
    for graph in range(begin, end):
        n = sizes[graph]
        own, last = _own(cells, first, sizes, graph), _own(before, first, sizes, graph)
        number = own.dtype.type
        for k in range(n):
            middle = own[k].copy()
            last_from_k = last[k].copy()
            for i in range(n):
                row = own[i]
                last_of_row = last[i]
                to_k = row[k]
                if to_k < no_edge:
                    for j in range(n):
                        via = number(to_k + middle[j])
                        shorter = via < row[j]
                        last_of_row[j] = last_from_k[j] if shorter else last_of_row[j]
                        row[j] = via if shorter else row[j]


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
        visited = np.empty(n, np.int64)
        broken = False
        for i in range(n):
            # a vertex has n where it leads to the source, else the number of the walk that came by, or -1
            visited[:] = -1
            visited[i] = n
            for j in range(n):
                if i == j or not own[i, j] < np.inf:
                    last[i, j] = NONE
                    continue
                v = j
                while v >= 0 and visited[v] < 0:
                    visited[v] = j
                    v = last[i, v]
                if v < 0 or visited[v] == j:
                    broken = True
                    break
                v = j
                while visited[v] == j:
                    visited[v] = n
                    v = last[i, v]
            if broken:
                break
        astray[graph] = broken
