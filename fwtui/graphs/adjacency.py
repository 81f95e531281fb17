"""An input graph before a data type is chosen: a dense matrix or arcs, possibly unchecked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from fwtui.common.units import counted
from fwtui.graphs.bounds import facts_of, fineness
from fwtui.graphs.graph import EdgeFacts, blocks
from fwtui.graphs.vertices import Vertices
from fwtui_kernels.plan import NO_EDGE, EliminationOrder

_SHORT = 1 << 31  # two vertex numbers below this are packed into one int64
_TABLE = 1 << 26  # up to this many cells, a table of bytes is faster than sorting
_DENSE = 4  # above one edge in this many cells, arcs take more memory than the matrix


class Arcs(NamedTuple):
    sources: np.ndarray  # int64, from 0
    targets: np.ndarray
    weights: np.ndarray  # float64

    def reversed(self) -> Arcs:
        return Arcs(self.targets, self.sources, self.weights)

    def with_reverse(self, which: np.ndarray | slice = slice(None), sign: float = 1.0) -> Arcs:
        """Return all arcs, and those of `which` also in the other direction, their weights times `sign`."""
        sources, targets, weights = (part[which] for part in self)
        return Arcs(*map(np.concatenate, zip(self, (targets, sources, sign * weights), strict=True)))


class ArcCollector:
    """Arcs as they are read. When more than `most` are held, parallel ones are merged, which frees their memory."""

    def __init__(self, most: int, merge: np.ufunc = np.minimum):
        self._parts = [Arcs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        self._count = 0
        self._most = self._room = most
        self._merge = merge
        self.merged = 0  # arcs merged into others; if the lightest counts, only those between different vertices

    def add(self, arcs: Arcs) -> None:
        self._parts.append(arcs)
        self._count += len(arcs.weights)
        if self._count > self._room:
            collected = self.all()
            left = merge_parallel(collected, self._merge)
            count = _count_distinct if self._merge is np.minimum else lambda arcs: len(arcs.weights)
            self.merged += count(collected) - count(left)
            self._parts, self._count = [left], len(left.weights)
            self._room = max(self._most, 2 * self._count)

    def all(self) -> Arcs:
        return Arcs(*map(np.concatenate, zip(*self._parts, strict=True)))


def _count_distinct(arcs: Arcs) -> int:
    return int(np.count_nonzero(arcs.sources != arcs.targets))


def merge_parallel(arcs: Arcs, merge: np.ufunc = np.minimum) -> Arcs:
    """Merge the arcs of each pair of vertices into one: the lightest, or with np.add the sum of all."""
    if not len(arcs.weights):
        return arcs
    ends = [arcs.sources, arcs.targets]
    if max(int(part.max()) for part in ends) >= _SHORT:
        ends = np.split(np.unique(np.concatenate(ends), return_inverse=True)[1], 2)
    keys = ends[0] * _SHORT + ends[1]
    order = np.argsort(keys)
    keys = keys[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    left = order[first]
    return Arcs(arcs.sources[left], arcs.targets[left], merge.reduceat(arcs.weights[order], first))


def count_parallel(n: int, sources: np.ndarray, targets: np.ndarray) -> int:
    """Return how many of the arcs have the source and target of an earlier one."""
    keys = sources.astype(np.int64) * n + targets
    if (keys[1:] > keys[:-1]).all():  # the order in which most programs write a matrix
        return 0
    if n * n <= _TABLE:
        seen = np.zeros(n * n, bool)
        seen[keys] = True
        return len(keys) - int(np.count_nonzero(seen))
    keys.sort()
    return int(np.count_nonzero(keys[1:] == keys[:-1]))


def graph_of_arcs(
    n: int,
    labels: Sequence[Hashable] | None,
    arcs: Arcs,
    *,
    merged: int = 0,
    undirected: bool = False,
    mirrored: bool = False,
    add: bool = False,
    notes: tuple[str, ...] = (),
) -> Adjacency:
    """Return the graph of the arcs of a file or an object, with a note if some are parallel.

    The rule for all containers: of parallel edges the lightest counts, but duplicate entries of a sparse matrix (of SciPy, in
    .npz or .mtx) add up, as they do in SciPy (`add`).
    `undirected` also adds every arc in the other direction; `mirrored` means that the arcs already contain them.
    """
    ends = (np.minimum(*arcs[:2]), np.maximum(*arcs[:2])) if undirected else arcs[:2]
    counts = arcs.sources < arcs.targets if mirrored else arcs.sources != arcs.targets
    if not add and not counts.all():
        ends = ends[0][counts], ends[1][counts]
    if parallel := merged + count_parallel(n, *ends):
        noun, rule = ("duplicate entry", "duplicates add up") if add else ("parallel edge", "the lightest counts")
        notes = (*notes, f"{counted(parallel, noun, 'duplicate entries' if add else '')}: {rule}")
    if add:
        arcs, merged = merge_parallel(arcs, np.add) if parallel else arcs, 0
    graph = Adjacency(n, labels, arcs=arcs, merged=merged, notes=notes)
    return both_ways(graph) if undirected else graph


@dataclass(frozen=True)
class Adjacency:
    """A directed weighted graph of n vertices: either `dense` or `arcs`; of parallel arcs the lightest counts."""

    n: int
    labels: Sequence[Hashable] | None = None  # names of the vertices; None: 0 .. n - 1
    arcs: Arcs | None = None
    dense: np.ndarray | None = None  # (n, n) of any real type; a value that is not finite means no edge
    name: str = ""
    merged: int = 0  # arcs that were parallel to others, and are not in `arcs`
    notes: tuple[str, ...] = ()  # choices made where the file or object is ambiguous: a phrase each
    orders: dict[tuple[str, int], EliminationOrder | None] = field(
        default_factory=dict, compare=False
    )  # found, by kernel and tile

    @cached_property
    def facts(self) -> EdgeFacts:
        if self.arcs is not None:
            return _facts_of_arcs(self.n, self.arcs, self.merged)
        assert self.dense is not None
        return _facts_of_matrix(self.dense)

    @cached_property
    def vertices(self) -> Vertices:
        return Vertices(range(self.n) if self.labels is None else self.labels)

    @property
    def adjacency(self) -> Adjacency:
        """Return this graph itself; LazyGraph has the same property."""
        return self

    @property
    def parts(self) -> np.ndarray | Arcs | None:
        """Return the arrays if other programs can use them unchanged, else None."""
        if self.dense is None:
            return self.arcs
        return self.dense if is_plain(self.dense) else None

    def pieces(self) -> Iterator[Arcs]:
        """Yield all arcs, self-loops included, a few rows of the matrix at a time."""
        if self.arcs is not None:
            yield self.arcs
            return
        assert self.dense is not None
        for rows in blocks(self.dense):
            block = self.dense[rows]
            # NumPy searches one axis 40x faster than two
            sources, targets = np.divmod(np.flatnonzero(np.isfinite(block)), self.n)
            yield Arcs(sources + rows.start, targets, block[sources, targets].astype(np.float64))

    def all_arcs(self) -> Arcs:
        """Return the arcs in one piece."""
        pieces = list(self.pieces())
        return pieces[0] if len(pieces) == 1 else Arcs(*(np.concatenate(part) for part in zip(*pieces, strict=True)))

    def fill(self, matrix: np.ndarray) -> None:
        """Write the graph into the upper left corner of a matrix of a kernel's type; the padding has no edges."""
        n, no_edge = self.n, NO_EDGE[matrix.dtype.name]
        if self.dense is None:
            assert self.arcs is not None
            matrix.fill(no_edge)
            _lower(matrix, self.arcs, 0)
        else:
            matrix[n:, :] = no_edge
            matrix[:, n:] = no_edge
            for rows in blocks(self.dense):
                matrix[rows, :n] = _converted(self.dense[rows], matrix.dtype)
        diagonal = np.arange(len(matrix))
        matrix[diagonal, diagonal] = np.minimum(matrix[diagonal, diagonal], 0)


class CsrRows(NamedTuple):
    """A sparse matrix row by row, like SciPy's csr: entries of row v are pointers[v] : pointers[v + 1]."""

    pointers: np.ndarray
    targets: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class LazyGraph:
    """A graph whose arrays are not yet checked: `look` may still raise, or find arcs to or from missing vertices."""

    n: int
    parts: np.ndarray | CsrRows
    look: Callable[[], Adjacency]
    name: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def adjacency(self) -> Adjacency:
        """Return the result of `look`, called once."""
        return self.look()

    @property
    def vertices(self) -> Vertices:
        return Vertices(range(self.n))


GivenGraph = Adjacency | LazyGraph


class DeviceArray(Protocol):
    """An array on a GPU, from any package."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


class RowBlocks:
    """The rows of a graph's matrix in a kernel's type, computed on access: `blocks[low:high]` has the shape (high - low, n)."""

    def __init__(self, graph: Adjacency, dtype: str):
        self._graph, self._dtype = graph, np.dtype(dtype)
        if graph.dense is None:
            assert graph.arcs is not None
            order = np.argsort(graph.arcs.sources, kind="stable")
            self._arcs = Arcs(*(part[order] for part in graph.arcs))

    def __getitem__(self, rows: slice) -> np.ndarray:
        graph, vertices = self._graph, np.arange(rows.start, rows.stop)
        places = vertices - rows.start
        if graph.dense is not None:
            block = _converted(graph.dense[rows], self._dtype)
        else:
            block = np.full((len(vertices), graph.n), NO_EDGE[self._dtype.name], self._dtype)
            part = slice(*np.searchsorted(self._arcs.sources, [rows.start, rows.stop]))
            _lower(block, Arcs(*(ends[part] for ends in self._arcs)), rows.start)
        block[places, vertices] = np.minimum(block[places, vertices], 0)
        return block


def _lower(matrix: np.ndarray, arcs: Arcs, first: int) -> None:
    """Lower the cells of rows from `first` on to the weights of their arcs; positive self-loops are skipped."""
    sources, targets, weights = arcs
    weights = np.where(sources == targets, np.minimum(weights, 0), weights)
    np.minimum.at(matrix.reshape(-1), (sources - first) * matrix.shape[1] + targets, weights.astype(matrix.dtype))


def _converted(block: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert weights to a kernel's type, with its sentinel for no edge."""
    if block.dtype.kind == "f":
        no_edge = NO_EDGE[dtype.name]
        if float(block.dtype.type(no_edge)) != no_edge:
            block = block.astype(np.float64)  # a rounded sentinel would be out of bounds
        with np.errstate(invalid="ignore"):
            block = np.minimum(block, block.dtype.type(no_edge))
        missing = np.isnan(block)  # fmin may return a signalling NaN such as R's NA
        if missing.any():
            block[missing] = no_edge
    return block.astype(dtype)


def both_ways(graph: Adjacency) -> Adjacency:
    """Return the graph with every edge in both directions."""
    return replace(graph, dense=None, arcs=graph.all_arcs().with_reverse(), merged=2 * graph.merged, orders={})


def is_plain(array: np.ndarray) -> bool:
    """Return whether the array is contiguous and has a native real dtype."""
    whole = array.flags.c_contiguous or array.flags.f_contiguous
    return (
        whole and array.dtype.isnative and array.dtype.kind in "fiu" and array.dtype.itemsize <= 8 and array.dtype != np.float16
    )


def count_finite(dense: np.ndarray) -> int:
    """Count the cells of a matrix that are numbers."""
    if dense.dtype.kind != "f":
        return dense.size
    return sum(int(np.count_nonzero(np.isfinite(dense[rows]))) for rows in blocks(dense))


def of_dense(dense: np.ndarray, finite: int) -> Adjacency:
    """Return the graph of a square matrix in which +inf and NaN mean no edge, as arcs if few cells are `finite`."""
    n = len(dense)
    whole = Adjacency(n, dense=dense)
    return whole if finite * _DENSE >= n * n else Adjacency(n, arcs=whole.all_arcs())


def of_rows(n: int, rows: CsrRows, look: Callable[[], Adjacency]) -> LazyGraph | None:
    """Return the CSR arrays unchanged; None if pointers are invalid, or arrays need conversion or summed duplicates first."""
    pointers, count = rows.pointers, len(rows.targets)
    ends = len(pointers) == n + 1 and pointers[0] == 0 and pointers[-1] == count == len(rows.weights)
    sound = ends and all(map(is_plain, rows)) and not (pointers[1:] < pointers[:-1]).any()
    if not sound:
        return None
    falls = np.flatnonzero(rows.targets[1:] <= rows.targets[:-1]) + 1  # ascending targets within a row mean no duplicates
    return LazyGraph(n, rows, look) if np.isin(falls, pointers).all() else None


def of_matrix(matrix: np.ndarray, look: Callable[[], Adjacency]) -> LazyGraph | None:
    """Return the array unchanged; None if it is not square or must be converted first."""
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    return LazyGraph(len(matrix), matrix, look) if square and is_plain(matrix) else None


def _facts_of_arcs(n: int, arcs: Arcs, merged: int) -> EdgeFacts:
    is_edge = arcs.sources != arcs.targets
    lasting = arcs.weights[is_edge | (arcs.weights < 0)]
    low, high = lasting.min(initial=np.inf), arcs.weights[is_edge].max(initial=-np.inf)
    return facts_of(n, int(np.count_nonzero(is_edge)) + merged, low, high, fineness(lasting))


def _facts_of_matrix(dense: np.ndarray) -> EdgeFacts:
    edges, low, high, finest = 0, np.inf, -np.inf, 0
    for rows in blocks(dense) if len(dense) > 1 else ():
        cells = _numbers(dense[rows], np.arange(rows.start, rows.stop))
        present = int(np.count_nonzero(cells == cells))
        if not present:
            continue
        edges += present
        # `cells` has no signalling NaN, which fmin and fmax may return: arithmetic has made it quiet
        low, high = min(low, float(np.fmin.reduce(cells, axis=None))), max(high, float(np.fmax.reduce(cells, axis=None)))
        finest = fineness(cells, finest)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        loops = dense.diagonal().astype(np.float64)
    negative = loops[np.isfinite(loops) & (loops < 0)]
    return facts_of(len(dense), edges, min(low, negative.min(initial=np.inf)), high, fineness(negative, finest))


def _numbers(block: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """Return weights as floats, with NaN for no edge and on the diagonal.

    It avoids masks: selecting cells is 20x slower than scanning all of them.
    """
    cells = block.astype(block.dtype.newbyteorder("=") if block.dtype.kind == "f" else np.float64)
    cells[vertices - vertices[0], vertices] = np.nan
    if block.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            cells += cells - cells  # infinity minus infinity is NaN
    return cells
