"""Predecessors of all pairs on the GPU, from distances and weights.

The predecessor of j on a shortest path from i is a v with d(i, v) + w(v, j) = d(i, j). The search is an argmin version of the
min-plus product of products.py: distances times the arcs that can come last. One word holds a length and its vertex, so that the
inner loop still takes one instruction per relaxation:

    to[v, i]      d(i, v) * 2^shift                        transposed, as in the other products
    middle[v, j]  w(v, j) * 2^shift + v mod 2^shift        infinite, unless the arc (v, j) is strong (short_arcs.py)
    best[i, j]    the minimum: a length in the upper bits, its v in the lower bits

An *epoch* is 2^shift vertices v. At its end, and at some points before, each cell whose upper bits equal its distance stores its
v. A block ends as soon as all its cells have one. A list per block of columns names the rows v with an arc into these columns; no
other rows are loaded. Cells that no strong arc reaches are left to short_arcs.spread.

If lengths are short, a word holds two 16-bit keys, as it holds two int16 distances in products.py.

If sums of weights were rounded, lengths are distances rounded to 21 bits, and of all v within the rounding error the one with the
smallest floating-point sum wins. Cells that remain undecided, mostly distances that are short relative to the longest one, are
tested one by one, with up to n arcs each.

Time: at most n^3 relaxations at the rate of the third phase, about the time of the search for distances. If few arcs can come
last, as in most graphs, and no sums were rounded, each arc is tested separately instead (few_arcs.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from fwtui_kernels.compiled import SIMULATED
from fwtui_kernels.compiled.device import cuda, host_copy
from fwtui_kernels.forms import HOPPER, form_of
from fwtui_kernels.parts.tuning import Product
from fwtui_kernels.paths import few_arcs
from fwtui_kernels.paths.short_arcs import EDGE, ROUNDINGS, TAIL, THREADS, functions
from fwtui_kernels.paths.trace import trace_of
from fwtui_kernels.plan import Shape

MIN_SHIFT, MAX_SHIFT = 4, 20  # an epoch is at least one slab
BLOCK = 128  # rows and columns of a block, in cells
SOURCES = 1 << 14  # maximum rows of one search
FEW = 1 / 16  # maximum share of cells with arcs that can come last, for few_arcs; half of it with two lanes


class Way(NamedTuple):
    """The packing of keys into words, and the division of the product. A key has all bits set if there is no arc or path.

    The sum of two such keys does not overflow, and stays above all valid sums even with negative lengths.
    """

    lanes: int  # keys in a word
    bits: int  # bits of a key
    min_shift: int  # if fewer bits are left, checking the results takes longer than two lanes save
    cut: Product
    simulated: Product

    @property
    def none(self) -> int:
        return (1 << self.bits) - 1

    @property
    def dtype(self) -> type:
        return np.int16 if self.lanes == 2 else np.int32


PAIRS = Way(2, 14, 7, Product(BLOCK, BLOCK // 2, 8, 8, 16), Product(16, 8, 4, 4, 8))
SINGLE = Way(1, 30, MIN_SHIFT, Product(BLOCK, BLOCK, 8, 8, 16), Product(8, 8, 4, 4, 8))


class Terms(NamedTuple):
    """The conversion of distances to integer lengths: `scale` times the distance. Distances of `far` or more mean no path."""

    n: int
    scale: float
    largest: float  # absolute distance
    far: float
    no_edge: float
    negative: bool  # True if some weights are negative
    slack: float = 0  # the relative tolerance between a distance and its rounded sum

    @property
    def bar(self) -> int:
        """Twice the slack of the longest distance as a length, plus the rounding error of lengths."""
        return 2 * int(self.slack * self.largest * self.scale) + 4 if self.slack else 0

    def shift(self, way: Way = SINGLE) -> int | None:
        """Return the bits of a key that select the vertex; None if lengths leave too few."""
        span = int(self.largest * self.scale) * (2 if self.negative else 1) + 2 + self.bar
        shift = min(way.bits - span.bit_length(), MAX_SHIFT)
        return shift if shift >= way.min_shift else None

    def way(self, cc: tuple[int, int] | None) -> Way:
        """Return PAIRS if lengths are short and the GPU relaxes two keys with one instruction, else SINGLE."""
        pairs = not (self.negative or self.slack) and (cc is None or cc >= HOPPER) and self.shift(PAIRS) is not None
        return PAIRS if pairs else SINGLE


def padded(n: int, block: int = BLOCK) -> int:
    """Round n up to whole blocks."""
    return -(-n // block) * block


def recorded(side: int, slab: int) -> int:
    """Return the words of a list of `side` rows, with a tail after each slab."""
    return side // slab * (slab + TAIL)


def device_bytes(n: int, sources: int) -> int:
    """Return the device bytes of a search with that many sources at once, including their predecessors.

    Excludes the distances, the weights and `Search.list_bytes`.
    """
    side = padded(n)
    return (
        4 * (side + 1) * side
        + 4 * (side + 1 + n) * padded(sources)
        + (4 * recorded(side, SINGLE.cut.slab) + side) * side // BLOCK
    )


def sources_for(n: int, free: float) -> int | None:
    """Return the number of sources at once that fit into that many bytes; None if not even one block fits."""
    sources = min(padded(n), SOURCES)
    while device_bytes(n, sources) > free:
        if sources <= BLOCK:
            return None
        sources = padded(sources // 2)
    return sources


class Search:
    """The search for predecessors of one graph, some sources at a time.

    `distance` and `weights` are row-major device arrays of n x n cells or more, of one data type. Every weight that is a shortest
    path equals its distance. `few` forces or forbids few_arcs; None decides by the number of arcs. Raises ValueError if lengths
    leave no bits for a vertex.
    """

    def __init__(
        self, distance: Any, weights: Any, terms: Terms, cc: tuple[int, int] | None, stream: Any, few: bool | None = None
    ):
        way = terms.way(cc)
        shift = terms.shift(way)
        if shift is None:
            raise ValueError(f"lengths up to {terms.largest * terms.scale:g} leave no bits for a vertex in a word")
        self._cut = cut = way.simulated if SIMULATED else way.cut
        rounded = terms.slack > 0
        self._functions = functions(cut.high, cut.slab, rounded)
        form = form_of(Shape(terms.n, dtype="int16" if way.lanes == 2 else "int32"), cc)
        self._trace = trace_of(cut, form, way.none, rounded)
        self._distance, self._weights, self._stream = distance, weights, stream
        number = np.dtype(distance.dtype).type
        self._n, self._scale, self._shift = np.int32(terms.n), (np.float32 if rounded else np.int32)(terms.scale), np.int32(shift)
        self._far, self._no_edge = number(terms.far), number(terms.no_edge)
        self._slack, self._bar, self._rounded = number(terms.slack), np.int32(terms.bar), rounded
        tight = number(ROUNDINGS * np.finfo(number).epsneg) if rounded else self._slack
        self._slacks = (tight, max(tight, self._slack)) if rounded else (self._slack,)
        self._none, self._twice = np.int32(way.none), np.int32(0x10001 if way.lanes == 2 else 1)
        side = self._side = padded(terms.n, cut.high)
        blocks = side // cut.high
        self._low = cuda.to_device(np.zeros(side, np.int32), stream=stream)
        if terms.negative:
            self._by_rows("lowest", terms.n)(distance, self._low, self._n, self._scale, self._far)
        self._keys = cuda.device_array((side + 1, side), way.dtype, stream=stream)
        marks = cuda.to_device(np.zeros((blocks, side), np.uint8), stream=stream)
        weak = cuda.to_device(np.zeros(side, np.int32), stream=stream)
        self._by_rows("sift", side + 1)(
            *(distance, weights, self._low, self._keys, marks, weak),
            *(self._n, self._scale, self._shift, self._none, self._no_edge, self._slack, self._bar),
        )
        # weak arcs into j will be others[ends[j] : ends[j + 1]]
        self._ends = few_arcs.ends_of(host_copy(weak, self._stream))
        self._weak: list[Any] | None = None
        self._few: list[Any] | None = None
        self._few_ends: np.ndarray | None = None
        if not rounded and few is not False:
            counts = cuda.to_device(np.zeros(terms.n, np.int32), stream=stream)
            few_arcs.count[terms.n, THREADS, stream](self._keys, counts, self._n, self._none)
            ends = few_arcs.ends_of(host_copy(counts, self._stream))
            if few or ends[-1] <= FEW / way.lanes * terms.n**2:
                self._few_ends = ends
        if self._few_ends is None:
            self._lists = cuda.device_array((blocks, recorded(side, cut.slab)), np.int32, stream=stream)
            self._lengths = cuda.device_array(blocks, np.int32, stream=stream)
            self._by_rows("enlist", blocks)(marks, self._lists, self._lengths, self._shift)
        self._turned: Any = None
        self._unfound = cuda.to_device(np.zeros(terms.n, np.uint8), stream=stream)

    @property
    def list_bytes(self) -> int:
        """The bytes of the lists of arcs on the device after the first `find`: from zero to 4 bytes per cell."""
        few = 0 if self._few_ends is None else 2 * int(self._few_ends[-1])
        return (int(self._ends[-1]) + few) * np.dtype(np.int32).itemsize

    def find(self, source: int, before: Any) -> None:
        """Fill `before`, a device array (sources, n) of int32, for the sources from `source` on; -9999 means no predecessor."""
        rows, cut = before.shape[0], self._cut
        if self._weak is None and self._ends[-1]:
            arrays = (self._distance, self._weights, self._low)
            terms = (self._n, self._scale, self._no_edge, self._slack, self._bar)
            self._weak = self._listed(self._ends, 1, self._functions.weak_arcs, arrays, terms)
        if self._few is None and self._few_ends is not None:
            terms = (self._n, self._shift, self._none, self._twice)
            self._few = self._listed(self._few_ends, 2, few_arcs.gather, (self._keys,), terms)
            self._keys = None
        wide = padded(rows, cut.high)
        if self._turned is None or self._turned.shape[1] != wide:
            self._turned = None  # freed first, because two may not fit
            self._turned = cuda.device_array((self._side + 1, wide), np.int32, stream=self._stream)
        first = np.int32(source)
        self._functions.turn[(ceil(wide / EDGE), ceil((self._side + 1) / EDGE)), EDGE * EDGE // 4, self._stream](
            *(self._distance, first, self._turned, self._n, self._scale, self._shift, self._none, self._twice, self._far)
        )
        self._by_rows("begin", rows)(self._distance, self._weights, before, first, self._n, self._no_edge)
        if self._few is not None:
            grid = (ceil(int(self._n) / few_arcs.COLUMNS), ceil(wide / few_arcs.SOURCES))
            few_arcs.follow[grid, THREADS, self._stream](
                *(self._turned, *self._few, before), *(first, self._n, np.int32(self._none * self._twice))
            )
        else:
            self._trace[(self._side // cut.high, wide // cut.high), cut.threads, self._stream](
                *(self._turned, self._keys, self._lists, self._lengths, self._distance, self._weights, before),
                *(first, self._n, self._scale, self._shift, self._far, self._bar),
            )
        # the second try, with the full slack, finds paths whose sums were rounded differently
        for slack in self._slacks:
            if self._rounded:
                self._by_rows("settle", rows)(
                    *(self._distance, self._weights, self._keys, before, first, self._n, self._none, self._far, slack)
                )
            if self._weak is not None:
                self._by_rows("spread", rows)(self._distance, before, first, *self._weak, self._n, self._scale, self._far, slack)
        if self._rounded:
            self._by_rows("unfound", rows)(self._distance, before, first, self._n, self._far, self._unfound)

    def unfound(self) -> np.ndarray:
        """Return the searched sources with a path that rounding hides."""
        return np.nonzero(host_copy(self._unfound, self._stream))[0]

    def _by_rows(self, name: str, rows: int) -> Callable[..., None]:
        return getattr(self._functions, name)[rows, THREADS, self._stream]

    def _listed(
        self, ends: np.ndarray, arrays: int, function: Any, matrices: tuple[Any, ...], terms: tuple[Any, ...]
    ) -> list[Any]:
        """Run a function that writes that many lists of arcs; return the start of each vertex's arcs, and the lists."""
        first = cuda.to_device(ends, stream=self._stream)
        lists = [cuda.device_array(max(1, int(ends[-1])), np.int32, stream=self._stream) for _ in range(arrays)]
        counts = cuda.to_device(np.zeros(len(ends) - 1, np.int32), stream=self._stream)
        function[int(self._n), THREADS, self._stream](*matrices, first, counts, *lists, *terms)
        return [first, *lists]


@cache
def compile_search(dtype: str, rounded: bool, cc: tuple[int, int] | None, stream: Any) -> None:
    """Compile everything that searches with that type launch, by searches on two vertices."""
    # arcs of length 0, with and without negative weights, use every function
    cells = cuda.to_device(np.zeros((2, 2), dtype), stream=stream)
    for negative, few in ((False, False),) if rounded else ((True, True), (True, False), (False, True), (False, False)):
        search = Search(cells, cells, Terms(2, 1, 1, 1, 1, negative, 0.5 if rounded else 0), cc, stream, few)
        search.find(0, cuda.device_array((2, 2), np.int32, stream=stream))
