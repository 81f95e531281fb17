"""The vertex before the last one on every shortest path, found on the GPU from distances and weights.

For each i and j some v with d(i, v) + w(v, j) = d(i, j): that is one more product like those of products.py, of the distances
with the arcs that may come last, whose minimum is known and whose place is asked for. So that the inner loop stays the same,
one instruction for each relaxation, a number and its place share a word:

    to[v, i]      d(i, v) * 2^shift                        turned over, as in the other products
    middle[v, j]  w(v, j) * 2^shift + v mod 2^shift        far, unless the arc (v, j) is a strong one (short_arcs.py)
    best[i, j]    the least sum: its upper part is a length, its lower part says which v

An *epoch* is 2^shift vertices v. At its end, and now and then before it, cells whose upper part is their distance write down
their v. Where all have one the block ends. Only rows v that have an arc into one of a block's columns are loaded at all; a
list for each block of columns names them. What no strong arc reaches is left to short_arcs.spread.

Where lengths are short two such words of 16 bits lie side by side, as int16 distances do in products.py.

Time: at most n^3 relaxations at the pace of the third phase, as much as the distances took; with few short arcs far less.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from kernels.forms import FORMS, HOPPER, WORD_BYTES, form_of
from kernels.plan import Shape
from kernels.short_arcs import TAIL, THREADS, functions, half_of, length_helper
from kernels.tuning import Product

anew: Any
bring: Any
commit_copies: Any
copy_async: Any
cuda: Any
place: Any
relax_tile: Any
wait_copies: Any
whole: Any
LEAST_SHIFT, MOST_SHIFT = 4, 20  # an epoch is a slab at least
BLOCK = 128  # cells of a block's side
SOURCES = 1 << 14  # rows at once, at most


class Way(NamedTuple):
    """How many sums share a word, in which blocks; a key has so many bits, and one that is no arc or no path has them all set.

    Two such keys together do not wrap, and even with negative lengths added they stay above those that are one.
    """

    lanes: int
    bits: int
    least_shift: int  # with fewer, looking at the results takes longer than two lanes save
    cut: Product
    simulated: Product

    @property
    def none(self) -> int:
        return (1 << self.bits) - 1

    @property
    def dtype(self) -> type:
        return np.int16 if self.lanes == 2 else np.int32


PAIRS = Way(2, 14, 6, Product(BLOCK, BLOCK // 2, 8, 8, 16, 2), Product(16, 8, 4, 4, 8, 2))
SINGLE = Way(1, 30, LEAST_SHIFT, Product(BLOCK, BLOCK, 8, 8, 16, 2), Product(8, 8, 4, 4, 8, 2))


class Terms(NamedTuple):
    """How distances are read. Lengths are `scale` times distances, and whole; from `far` on a cell says that there is no path."""

    n: int
    scale: float
    largest: float  # absolute distance
    far: float
    no_edge: float
    negative: bool  # whether there are weights below 0
    slack: float = 0  # where sums were rounded: how far a distance may be from the sum that it is

    @property
    def bar(self) -> int:
        """The slack in lengths, twice, and what rounding them adds."""
        return 2 * int(self.slack * self.scale) + 4 if self.slack else 0

    def shift(self, way: Way = SINGLE) -> int | None:
        """The bits of a key that say which vertex; None where lengths leave too few."""
        span = int(self.largest * self.scale) * (2 if self.negative else 1) + 2 + self.bar
        shift = min(way.bits - span.bit_length(), MOST_SHIFT)
        return shift if shift >= way.least_shift else None

    def way(self, cc: tuple[int, int] | None) -> Way:
        """Two lanes where lengths are short and the GPU relaxes two with one instruction."""
        pairs = not (self.negative or self.slack) and (cc is None or cc >= HOPPER) and self.shift(PAIRS) is not None
        return PAIRS if pairs else SINGLE


def padded(n: int, block: int = BLOCK) -> int:
    """n in whole blocks."""
    return -(-n // block) * block


def recorded(side: int, slab: int) -> int:
    """Words of a list of as many rows: slab by slab, each with a tail."""
    return side // slab * (slab + TAIL)


def device_bytes(n: int, sources: int) -> int:
    """What a search needs besides distances and weights, with room for so many sources at once and their answers."""
    side = padded(n)
    return (
        4 * (side + 1) * side
        + 4 * (side + 1 + n) * padded(sources)
        + (4 * recorded(side, SINGLE.cut.slab) + side) * side // BLOCK
    )


def sources_for(n: int, free: float) -> int | None:
    """How many sources at once fit that many bytes; None if not even a block of them does."""
    sources = min(padded(n), SOURCES)
    while device_bytes(n, sources) > free:
        if sources <= BLOCK:
            return None
        sources = padded(sources // 2)
    return sources


class Search:
    """Predecessors of one graph, some sources at a time.

    `distance` and `weights` are row-major device arrays of n x n cells or more, of one type; every weight that is a shortest
    path equals its distance. Raises ValueError where lengths leave no room for a vertex in a word.
    """

    def __init__(self, distance: Any, weights: Any, terms: Terms, cc: tuple[int, int] | None, stream: Any):
        from kernels.device import SIM, cuda

        way = terms.way(cc)
        shift = terms.shift(way)
        if shift is None:
            raise ValueError(f"lengths up to {terms.largest * terms.scale:g} leave no room for a vertex in a word")
        self._cut = cut = way.simulated if SIM else way.cut
        self._threads, self._edge = (4, 4) if SIM else (THREADS, 32)
        rounded = terms.slack > 0
        self._functions = functions(cut.high, cut.slab, self._threads, self._edge, rounded)
        form = form_of(Shape(terms.n, dtype="int16" if way.lanes == 2 else "int32"), cc)
        self._trace = trace_of(cut, form, way.none, rounded)
        self._distance, self._weights, self._stream = distance, weights, stream
        number = np.dtype(distance.dtype).type
        self._n, self._scale, self._shift = np.int32(terms.n), (np.float32 if rounded else np.int32)(terms.scale), np.int32(shift)
        self._far, self._no_edge = number(terms.far), number(terms.no_edge)
        self._slack, self._bar, self._rounded = number(terms.slack), np.int32(terms.bar), rounded
        self._none, self._twice = np.int32(way.none), np.int32(0x10001 if way.lanes == 2 else 1)
        side = self._side = padded(terms.n, cut.high)
        blocks = side // cut.high
        self._low = cuda.to_device(np.zeros(side, np.int32), stream=stream)
        if terms.negative:
            self._by_rows("lowest", terms.n)(distance, self._low, self._n, self._scale, self._far)
        self._keys = cuda.device_array((side + 1, side), way.dtype, stream=stream)
        self._lists = cuda.device_array((blocks, recorded(side, cut.slab)), np.int32, stream=stream)
        self._lengths = cuda.device_array(blocks, np.int32, stream=stream)
        marks = cuda.to_device(np.zeros((blocks, side), np.uint8), stream=stream)
        weak = cuda.to_device(np.zeros(side, np.int32), stream=stream)
        self._by_rows("sift", side + 1)(
            *(distance, weights, self._low, self._keys, marks, weak),
            *(self._n, self._scale, self._shift, self._none, self._no_edge, self._slack, self._bar),
        )
        self._by_rows("enlist", blocks)(marks, self._lists, self._lengths, self._shift)
        self._weak = self._weak_arcs(weak.copy_to_host(stream=stream))
        self._turned: Any = None
        self._unfound = cuda.to_device(np.zeros(terms.n, np.uint8), stream=stream)

    def find(self, source: int, before: Any) -> None:
        """Fills `before`, a device array (sources, n) of int32, for sources from `source` on; -9999 is none."""
        from kernels.device import cuda

        rows, cut, edge = before.shape[0], self._cut, self._edge
        wide = padded(rows, cut.high)
        if self._turned is None or self._turned.shape[1] != wide:
            self._turned = None  # two of them at once may not fit
            self._turned = cuda.device_array((self._side + 1, wide), np.int32, stream=self._stream)
        first = np.int32(source)
        self._functions.turn[(ceil(wide / edge), ceil((self._side + 1) / edge)), edge * edge // 4, self._stream](
            *(self._distance, first, self._turned, self._n, self._scale, self._shift, self._none, self._twice, self._far)
        )
        self._by_rows("begin", rows)(self._distance, self._weights, before, first, self._n, self._no_edge)
        self._trace[(self._side // cut.high, wide // cut.high), cut.threads, self._stream](
            *(self._turned, self._keys, self._lists, self._lengths, self._distance, self._weights, before),
            *(first, self._n, self._scale, self._shift, self._far, self._bar),
        )
        if self._rounded:
            self._by_rows("settle", rows)(
                *(self._distance, self._weights, self._keys, before, first, self._n, self._none, self._far)
            )
        if self._weak is not None:
            self._by_rows("spread", rows)(self._distance, before, first, *self._weak, self._n, self._scale, self._far)
        if self._rounded:
            self._by_rows("unfound", rows)(self._distance, before, first, self._n, self._far, self._unfound)

    def unfound(self) -> np.ndarray:
        """The sources, of those that were searched for, that rounding hid a predecessor of."""
        rows = self._unfound.copy_to_host(stream=self._stream)
        self._stream.synchronize()
        return np.nonzero(rows)[0]

    def _by_rows(self, name: str, rows: int) -> Callable[..., None]:
        return getattr(self._functions, name)[rows, self._threads, self._stream]

    def _weak_arcs(self, counts: np.ndarray) -> tuple[Any, Any] | None:
        """Weak arcs by their ends: those into j are others[first[j] : first[j + 1]]."""
        from kernels.device import cuda

        self._stream.synchronize()
        if not counts.any():
            return None
        ends = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=ends[1:])
        first = cuda.to_device(ends, stream=self._stream)
        others = cuda.device_array(int(ends[-1]), np.int32, stream=self._stream)
        taken = cuda.to_device(np.zeros(len(counts), np.int32), stream=self._stream)
        self._by_rows("weak_arcs", int(self._n))(
            *(self._distance, self._weights, self._low, first, taken, others),
            *(self._n, self._scale, self._no_edge, self._slack, self._bar),
        )
        return first, others


def compile_search(dtype: str, rounded: bool, cc: tuple[int, int] | None, stream: Any) -> None:
    """Everything that searches in distances of that type launch, compiled by searches on two vertices."""
    from kernels.device import cuda

    # arcs of length 0 and the possibility of negative ones leave nothing out
    cells = cuda.to_device(np.zeros((2, 2), dtype), stream=stream)
    for negative in (False,) if rounded else (True, False):
        search = Search(cells, cells, Terms(2, 1, 1, 1, 1, negative, 0.5 if rounded else 0), cc, stream)
        search.find(0, cuda.device_array((2, 2), np.int32, stream=stream))


@cache
def trace_of(cut: Product, form: int, none: int, rounded: bool) -> Any:
    """trace(turned, keys, lists, lengths, distance, weights, before, source, n, scale, shift, far, bar)."""
    global anew, bring, commit_copies, copy_async, cuda, place, relax_tile, wait_copies, whole
    from kernels import products
    from kernels.device import ALIGN16, anew, commit_copies, copy_async, cuda, int32, jit, relax_tile, uint32, wait_copies

    products.shared_helpers()
    place, whole = products.place, length_helper()
    half = half_of(rounded)
    high, wide, rows, columns, slab, stages = cut.high, cut.wide, cut.rows, cut.columns, cut.slab, cut.stages
    cut.copies(slab, high, wide)
    lanes = FORMS[form].lanes
    empty = none * (0x10001 if lanes == 2 else 1)
    across_cells, bits, every = columns * lanes, WORD_BYTES * 8 // lanes, (1 << WORD_BYTES * 8 // lanes) - 1
    depth, threads, down, across = cut.depth, cut.threads, high // rows, wide // columns
    row_gap, column_gap = 4 * high // rows, 4 * wide // columns
    to_ring, middle_ring, cells = stages * slab * high, stages * slab * wide, rows * columns
    ahead, under_way = stages - 1, stages - 2
    to_pieces, middle_pieces = high // 4, wide // 4
    to_lines, middle_lines = threads // to_pieces, threads // middle_pieces
    record = slab + TAIL
    if 4 * threads < record or high != wide * lanes:
        raise ValueError(f"{cut}: too few threads to copy a record, or a block of cells that is no square")
    # the rows of a slab have to be known when its copies start, so its record comes as much earlier as the slab itself
    records = 1 << (2 * ahead).bit_length()
    record_ring = records * record

    @jit(device=True, inline="always")
    def bring(shared, slot, wide, matrix, pitch, block, listed, at, pieces, lines, slab, t):
        """The rows that are listed from `at` on, of a slab: `wide` words of each, asynchronously."""
        for piece in range(slab // lines):
            line = uint32(t // pieces + piece * lines)
            v = listed[uint32(at + line)]
            word = t % pieces * 4
            copy_async(shared, uint32((slot + line) * wide + word), matrix, v * pitch + int32(block * wide + word))

    @jit(launch_bounds=cut.bounds)
    def trace(turned, keys, lists, lengths, distance, weights, before, source, n, scale, shift, far, bar):
        to = cuda.shared.array(to_ring, int32, ALIGN16)
        middle = cuda.shared.array(middle_ring, int32, ALIGN16)
        listed = cuda.shared.array(record_ring, int32, ALIGN16)
        best = cuda.local.array(cells, int32)
        held = cuda.local.array(cells, int32)
        t = uint32(cuda.threadIdx.x)
        y, x = place(t, down, across)
        slabs = uint32(lengths[cuda.blockIdx.x] // slab)
        first = cuda.blockIdx.x * lists.shape[1]
        turned_pitch = int32(turned.shape[1])
        keys_pitch = int32(keys.shape[1] // lanes)
        for s in range(2 * ahead):
            if s < slabs and t < record // 4:
                copy_async(listed, s * record + 4 * t, lists, first + s * record + 4 * t)
        commit_copies()
        wait_copies(0)
        cuda.syncthreads()
        for s in range(ahead):
            if s < slabs:
                bring(to, s * slab, high, turned, turned_pitch, cuda.blockIdx.y, listed, s * record, to_pieces, to_lines, slab, t)
                bring(
                    middle,
                    s * slab,
                    wide,
                    keys,
                    keys_pitch,
                    cuda.blockIdx.x,
                    listed,
                    s * record,
                    middle_pieces,
                    middle_lines,
                    slab,
                    t,
                )
            commit_copies()
        for i in range(cells):
            best[i] = empty
        s = uint32(0)
        while s < slabs:
            wait_copies(under_way)
            cuda.syncthreads()
            coming = uint32(s + ahead)
            if coming < slabs:
                # computed for each slab, as in products.py: kept, it would take registers of the tile
                again = anew(t)
                slot = uint32(coming % stages * slab)
                at = uint32(coming % records * record)
                bring(to, slot, high, turned, turned_pitch, cuda.blockIdx.y, listed, at, to_pieces, to_lines, slab, again)
                bring(middle, slot, wide, keys, keys_pitch, cuda.blockIdx.x, listed, at, middle_pieces, middle_lines, slab, again)
                coming = uint32(coming + ahead)
                if coming < slabs and again < record // 4:
                    copy_async(listed, uint32(coming % records * record + 4 * again), lists, first + coming * record + 4 * again)
            commit_copies()
            for k in range(0, slab, depth):
                k_at = s % stages * slab + k
                relax_tile(best, to, k_at * high + 4 * y, middle, k_at * wide + 4 * x, rows, columns, high, wide, depth, form)
            epoch = listed[uint32(s % records * record + slab)]
            s = uint32(s + 1)
            if epoch >= 0:
                missing = 0
                # the registers of best have constant indices only; what the loop below reads need not be registers
                for i in range(cells):
                    held[i] = best[i]
                    best[i] = empty
                for r in range(rows):
                    row = int32(cuda.blockIdx.y * high + 4 * y + r // 4 * row_gap + r % 4)
                    for c in range(across_cells):
                        word = c // lanes
                        column = int32((cuda.blockIdx.x * wide + 4 * x + word // 4 * column_gap + word % 4) * lanes + c % lanes)
                        key = held[r * columns + word]
                        if lanes == 2:
                            key = int32(key >> c % lanes * bits & every)
                        if row < before.shape[0] and column < n:
                            cell = distance[source + row, column]
                            if cell < far and source + row != column:
                                if abs(int32(key >> shift) - whole(cell, scale, half)) <= bar:
                                    v = int32((epoch << shift) | (key & ((1 << shift) - 1)))
                                    if rounded:
                                        old = before[row, column]
                                        via = distance[source + row, v] + weights[v, column]
                                        # of those that rounding cannot tell apart the nearest
                                        if old < 0 or via < distance[source + row, old] + weights[old, column]:
                                            before[row, column] = v
                                        missing = 1
                                    else:
                                        before[row, column] = v
                                elif rounded or before[row, column] < 0:
                                    missing = 1
                if not cuda.syncthreads_or(missing):
                    break
        wait_copies(0)

    return trace
