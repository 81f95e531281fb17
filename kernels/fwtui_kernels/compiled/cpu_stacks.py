"""Many small graphs on a CPU: each is closed by one thread, in its cache. Compiled once for all sizes.

The matrices lie one after the other in `cells`: graph g has `sizes[g]` vertices, and its first cell is `first[g]`. A call does
the graphs begin .. end - 1 and releases Python's lock; `on_all_cores` makes calls for all of them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import ceil
from typing import Any

import numpy as np
from numba import get_num_threads

from fwtui_kernels.compiled.locked_njit import njit

_PIECES = 8  # for each thread, so that those with larger graphs do not end later
_LEAST = 1 << 22  # relaxations of a call: less takes no longer than starting a thread


def on_all_cores(function: Any, first: Any, sizes: Any, *given: Any) -> None:
    """Call such a function for all graphs, a few in each call, on as many threads as Numba uses; for little work on this one."""
    threads, count, edge = get_num_threads(), len(sizes), np.asarray(sizes, np.float64)
    least = _LEAST * count / max(1.0, float((edge * edge * edge).sum()))
    step = max(1, -(-count // (threads * _PIECES)), ceil(least))
    if count <= step:
        function(0, count, first, sizes, *given)
        return
    with ThreadPoolExecutor(threads) as pool:
        pieces = [pool.submit(function, at, min(at + step, count), first, sizes, *given) for at in range(0, count, step)]
    for piece in pieces:
        piece.result()


@njit(cache=True, nogil=True)
def close_all(begin, end, first, sizes, cells, no_edge):
    """Floyd-Warshall in each matrix, in place."""
    for graph in range(begin, end):
        n = sizes[graph]
        own = cells[first[graph] : first[graph] + n * n].reshape((n, n))
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
        own = cells[first[graph] : first[graph] + n * n].reshape((n, n))
        last = before[first[graph] : first[graph] + n * n].reshape((n, n))
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
