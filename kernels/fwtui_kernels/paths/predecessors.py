"""Predecessors of all pairs on the GPU, from distances and weights.

The predecessor of j on a shortest path from i is a v with d(i, v) + w(v, j) = d(i, j). Only an arc that is a shortest path
itself can come last, in most graphs a small part of all arcs (last_arcs.py). These arcs into each j are listed by ascending v.
They are tested one by one in the transposed distances, so that 32 threads test 128 sources at once: loads of v are coalesced,
and values of j stay in registers. Without rounding a cell is done with the first v that fits, else the v with the least sum
wins. Weak arcs, those of length 0, follow in a second step, `spread`.

Time: at most n^2 comparisons per listed arc into a vertex. Each comparison reads a cell, mostly from a cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from fwtui_kernels.compiled.device import cuda, host_copy
from fwtui_kernels.paths.last_arcs import CHUNK, COLUMNS, EDGE, SOURCES, THREADS, functions
from fwtui_kernels.plan import FLOATS

BLOCK = 128  # sources are searched in multiples of it
MAX_SOURCES = 1 << 14  # sources of one search
ROUNDINGS = 16  # slack of the first try, in half units in the last place
STRONG, WEAK = np.int32(0), np.int32(1)


class Terms(NamedTuple):
    """The meaning of distances. Those of `far` or more mean no path, and weights of `no_edge` or more no arc."""

    n: int
    largest: float  # absolute distance
    far: float
    no_edge: float
    negative: bool  # True if some weights are negative
    slack: float = 0  # the relative tolerance between a distance and its rounded sum


def padded(sources: int, block: int = BLOCK) -> int:
    """Round a number of sources up to whole blocks."""
    return -(-sources // block) * block


def device_bytes(n: int, sources: int) -> int:
    """Return the device bytes of a search with that many sources at once, including their predecessors.

    Excludes the distances, the weights and `Search.list_bytes`.
    """
    return (8 + 4) * n * padded(sources) + 8 * n * (ceil(n / CHUNK) + 5)


def sources_for(n: int, free: float) -> int | None:
    """Return the number of sources at once that fit into that many bytes; None if not even one block fits."""
    sources = min(padded(n), MAX_SOURCES)
    while device_bytes(n, sources) > free:
        if sources <= BLOCK:
            return None
        sources = padded(sources // 2)
    return sources


class _Arcs:
    """The strong or the weak arcs of a graph, listed by their target when they are first needed."""

    def __init__(self, search: Search, weak: np.int32):
        self._search, self._weak, n = search, weak, search.terms.n
        self._counts = cuda.device_array((ceil(n / CHUNK), n), np.int32, stream=search.stream)
        totals = cuda.device_array(n, np.int32, stream=search.stream)
        self._by_chunks("count", self._counts)
        search.functions.start[ceil(n / THREADS), THREADS, search.stream](self._counts, totals, np.int32(n))
        self._ends = np.append(0, np.cumsum(host_copy(totals, search.stream), dtype=np.int64))
        self._listed: tuple[Any, Any, Any] | None = None

    def __len__(self) -> int:
        return int(self._ends[-1])

    @property
    def lists(self) -> tuple[Any, Any, Any]:
        """The arrays `first`, `others` and `lengths`."""
        if self._listed is None:
            search, size = self._search, max(1, len(self))
            self._listed = (
                cuda.to_device(self._ends, stream=search.stream),
                cuda.device_array(size, np.int32, stream=search.stream),
                cuda.device_array(size, search.weights.dtype, stream=search.stream),
            )
            self._by_chunks("gather", self._counts, *self._listed)
            self._counts = None
        return self._listed

    def _by_chunks(self, name: str, *arrays: Any) -> None:
        search, n = self._search, self._search.terms.n
        getattr(search.functions, name)[(ceil(n / THREADS), ceil(n / CHUNK)), THREADS, search.stream](
            *(search.distance, search.weights, search.low, *arrays),
            *(np.int32(n), search.no_edge, search.slack, search.bar, self._weak),
        )


class Search:
    """The search for predecessors of one graph, some sources at a time.

    `distance` and `weights` are row-major device arrays of n x n cells or more, of one data type. Every weight that is a shortest
    path equals its distance.
    """

    def __init__(self, distance: Any, weights: Any, terms: Terms, stream: Any):
        self.distance, self.weights, self.terms, self.stream = distance, weights, terms, stream
        self.functions = functions(np.dtype(distance.dtype).name)
        number = np.dtype(distance.dtype).type
        self.far, self.no_edge, self.slack = number(terms.far), number(terms.no_edge), number(terms.slack)
        # twice the slack of the longest distance, so that a strong arc always leads to a longer distance
        self.bar = np.float64(2 * terms.slack * terms.largest)
        tight = number(ROUNDINGS * np.finfo(number).epsneg) if terms.slack else self.slack
        # the second try, with the full slack, finds paths whose sums were rounded differently
        self._slacks = (tight, max(tight, self.slack)) if terms.slack else (self.slack,)
        self.low = cuda.to_device(np.zeros(terms.n), stream=stream)
        if terms.negative:
            self._by_rows("lowest", terms.n)(distance, self.low, np.int32(terms.n), self.far)
        self._strong, self._weak = _Arcs(self, STRONG), _Arcs(self, WEAK)
        self._turned: Any = None
        self._unfound = cuda.to_device(np.zeros(terms.n, np.uint8), stream=stream)

    @property
    def list_bytes(self) -> int:
        """The bytes of the lists of arcs on the device after the first `find`."""
        return (len(self._strong) + len(self._weak)) * (4 + self.weights.dtype.itemsize)

    def find(self, source: int, before: Any) -> None:
        """Fill `before`, a device array (sources, n) of int32, for the sources from `source` on; -9999 means no predecessor."""
        rows, n, first = before.shape[0], np.int32(self.terms.n), np.int32(source)
        wide = padded(rows, EDGE)
        if self._turned is None or self._turned.shape[1] != wide:
            self._turned = None  # freed first, because two may not fit
            self._turned = cuda.device_array((self.terms.n, wide), self.distance.dtype, stream=self.stream)
        self.functions.turn[(wide // EDGE, ceil(self.terms.n / EDGE)), EDGE * EDGE // 4, self.stream](
            self.distance, first, self._turned, n, self.far, self.no_edge
        )
        self._by_rows("begin", rows)(self.distance, self.weights, before, first, n, self.no_edge)
        for slack in self._slacks:
            if len(self._strong):
                grid = (ceil(self.terms.n / COLUMNS), ceil(wide / SOURCES))
                self.functions.follow[grid, THREADS, self.stream](
                    self._turned, *self._strong.lists, before, first, n, self.no_edge, slack
                )
            if len(self._weak):
                self._by_rows("spread", rows)(self.distance, *self._weak.lists, before, first, n, self.far, slack)
        if self.terms.slack:
            self._by_rows("unfound", rows)(self.distance, before, first, n, self.far, self._unfound)

    def unfound(self) -> np.ndarray:
        """Return the searched sources with a path that rounding hides."""
        return np.nonzero(host_copy(self._unfound, self.stream))[0]

    def _by_rows(self, name: str, rows: int) -> Callable[..., None]:
        return getattr(self.functions, name)[rows, THREADS, self.stream]


@cache
def compile_search(dtype: str, stream: Any) -> None:
    """Compile everything that searches with that type launch, by a search on three vertices."""
    # arcs of length 1 and 0, negative weights and rounding use every function
    cells = cuda.to_device(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], dtype), stream=stream)
    search = Search(cells, cells, Terms(3, 1, 2, 2, True, 0.25 if dtype in FLOATS else 0), stream)
    search.find(0, cuda.device_array((3, 3), np.int32, stream=stream))
