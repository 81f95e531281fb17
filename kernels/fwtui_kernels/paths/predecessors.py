"""The vertex before the last one on every shortest path, found on the GPU from distances and weights.

For each i and j some v with d(i, v) + w(v, j) = d(i, j): that is one more product like those of products.py, of the distances
with the arcs that may come last, whose minimum is known and whose position is wanted. So that the inner loop stays the same,
one instruction for each relaxation, a number and its place share a word:

    to[v, i]      d(i, v) * 2^shift                        transposed, as in the other products
    middle[v, j]  w(v, j) * 2^shift + v mod 2^shift        far, unless the arc (v, j) is a strong one (short_arcs.py)
    best[i, j]    the least sum: its upper part is a length, its lower part says which v

An *epoch* is 2^shift vertices v. At its end, and now and then before it, cells whose upper part is their distance write down
their v. Where all have one the block ends. Only rows v that have an arc into one of a block's columns are loaded at all; a
list for each block of columns names them. What no strong arc reaches is left to short_arcs.spread.

Where lengths are short two such words of 16 bits lie side by side, as int16 distances do in products.py.

Where sums of weights were rounded, lengths are distances rounded to 21 bits, and of all v whose sum is as near as rounding leaves
it the one with the least sum of floats is kept; cells that this does not settle, such as most of those that are short beside the
longest, are looked at one by one, with up to n arcs each.

Time: at most n^3 relaxations at the pace of the third phase, as much as the distances took. Where few arcs may come last, as in
most graphs, these are looked at one by one instead (few_arcs.py), unless sums were rounded.
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

MIN_SHIFT, MAX_SHIFT = 4, 20  # an epoch is a slab at least
BLOCK = 128  # cells of a block's side
SOURCES = 1 << 14  # rows at once, at most
FEW = 1 / 16  # greatest share of cells that may be last arcs to test each singly; half of it with two lanes


class Way(NamedTuple):
    """How many sums share a word, in which blocks; a key has that many bits, and one that is no arc or no path has them all set.

    Two such keys together do not wrap, and even with negative lengths added they stay above those that are one.
    """

    lanes: int
    bits: int
    least_shift: int  # with fewer, checking the results takes longer than two lanes save
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
    """How distances are read. Lengths are `scale` times distances, and whole; from `far` on a cell says that there is no path."""

    n: int
    scale: float
    largest: float  # absolute distance
    far: float
    no_edge: float
    negative: bool  # whether there are weights below 0
    slack: float = 0  # the relative tolerance between a distance and its rounded sum

    @property
    def bar(self) -> int:
        """The slack of the longest distance, twice, in lengths, and what rounding them adds."""
        return 2 * int(self.slack * self.largest * self.scale) + 4 if self.slack else 0

    def shift(self, way: Way = SINGLE) -> int | None:
        """The bits of a key that select the vertex; None if lengths leave too few."""
        span = int(self.largest * self.scale) * (2 if self.negative else 1) + 2 + self.bar
        shift = min(way.bits - span.bit_length(), MAX_SHIFT)
        return shift if shift >= way.least_shift else None

    def way(self, cc: tuple[int, int] | None) -> Way:
        """Two lanes if lengths are short and the GPU relaxes two with one instruction."""
        pairs = not (self.negative or self.slack) and (cc is None or cc >= HOPPER) and self.shift(PAIRS) is not None
        return PAIRS if pairs else SINGLE


def padded(n: int, block: int = BLOCK) -> int:
    """n in whole blocks."""
    return -(-n // block) * block


def recorded(side: int, slab: int) -> int:
    """Words of a list of as many rows: slab by slab, each with a tail."""
    return side // slab * (slab + TAIL)


def device_bytes(n: int, sources: int) -> int:
    """What a search needs besides distances, weights and `Search.list_bytes`, with room for that many sources at once and their
    answers.
    """
    side = padded(n)
    return (
        4 * (side + 1) * side
        + 4 * (side + 1 + n) * padded(sources)
        + (4 * recorded(side, SINGLE.cut.slab) + side) * side // BLOCK
    )


def sources_for(n: int, free: float) -> int | None:
    """Return the number of sources that fit in that many bytes at once; None if not even a block of them does."""
    sources = min(padded(n), SOURCES)
    while device_bytes(n, sources) > free:
        if sources <= BLOCK:
            return None
        sources = padded(sources // 2)
    return sources


class Search:
    """Predecessors of one graph, some sources at a time.

    `distance` and `weights` are row-major device arrays of n x n cells or more, of one type; every weight that is a shortest
    path equals its distance. `few`: whether to look at arc after arc, unless that is to be decided here. Raises ValueError
    if lengths leave no room for a vertex in a word.
    """

    def __init__(
        self, distance: Any, weights: Any, terms: Terms, cc: tuple[int, int] | None, stream: Any, few: bool | None = None
    ):
        way = terms.way(cc)
        shift = terms.shift(way)
        if shift is None:
            raise ValueError(f"lengths up to {terms.largest * terms.scale:g} leave no room for a vertex in a word")
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
        # by their ends: weak arcs into j will be others[ends[j] : ends[j + 1]]
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
        """Return the bytes of the edge lists on the device after the first `find`: zero, or up to 4 bytes per cell."""
        few = 0 if self._few_ends is None else 2 * int(self._few_ends[-1])
        return (int(self._ends[-1]) + few) * np.dtype(np.int32).itemsize

    def find(self, source: int, before: Any) -> None:
        """Fills `before`, a device array (sources, n) of int32, for sources from `source` on; -9999 is none."""
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
            self._turned = None  # two at once may not fit
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
        # if the sums of a path were rounded differently, again with the full slack
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
        """The searched sources with a predecessor hidden by rounding."""
        return np.nonzero(host_copy(self._unfound, self._stream))[0]

    def _by_rows(self, name: str, rows: int) -> Callable[..., None]:
        return getattr(self._functions, name)[rows, THREADS, self._stream]

    def _listed(
        self, ends: np.ndarray, arrays: int, function: Any, matrices: tuple[Any, ...], terms: tuple[Any, ...]
    ) -> list[Any]:
        """The output of a function that writes that many lists of arcs: the start of each vertex's arcs, and the lists."""
        first = cuda.to_device(ends, stream=self._stream)
        lists = [cuda.device_array(max(1, int(ends[-1])), np.int32, stream=self._stream) for _ in range(arrays)]
        counts = cuda.to_device(np.zeros(len(ends) - 1, np.int32), stream=self._stream)
        function[int(self._n), THREADS, self._stream](*matrices, first, counts, *lists, *terms)
        return [first, *lists]


@cache
def compile_search(dtype: str, rounded: bool, cc: tuple[int, int] | None, stream: Any) -> None:
    """Compile everything that searches with that type launch, by searches on two vertices."""
    # arcs of length 0 and the possibility of negative ones leave nothing out
    cells = cuda.to_device(np.zeros((2, 2), dtype), stream=stream)
    for negative, few in ((False, False),) if rounded else ((True, True), (True, False), (False, True), (False, False)):
        search = Search(cells, cells, Terms(2, 1, 1, 1, 1, negative, 0.5 if rounded else 0), cc, stream, few)
        search.find(0, cuda.device_array((2, 2), np.int32, stream=stream))
