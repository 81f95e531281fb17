"""Which vertex comes before the last one on a shortest path, found from the distances alone.

An arc can only be the last one on a shortest path if it is one itself. Few arcs are, so the search through them costs little
next to finding the distances, takes no part in it, and works for whatever computed them.
"""

from __future__ import annotations

import sys
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.graph import blocks
from fwtui.graphs.lines import Arcs
from kernels.plan import NO_EDGE

_WITHOUT_NUMBA = 1 << 23  # arcs looked at: less than it takes to load compiled code
NONE = -9999  # as scipy.sparse.csgraph says it
ROUNDINGS = 64  # half units in the last place by which rounded sums of one path may differ in practice


class _Ordered(NamedTuple):
    """Arcs by one of their ends: those of vertex v are first[v] : first[v + 1]."""

    first: np.ndarray
    others: np.ndarray
    weights: np.ndarray


class Paths:
    """Shortest paths of one graph, from its distances: (n, n), floating, +inf for no path, no negative cycle.

    `exact`: sums of weights equal distances to the last bit. Otherwise paths are right within rounding.
    """

    def __init__(self, adjacency: Adjacency, distances: np.ndarray, exact: bool):
        self.adjacency = adjacency
        self.distances = distances
        self._exact = exact

    def predecessors(self, sources: np.ndarray | None = None) -> np.ndarray:
        """For each source (all unless given) a row of int32: the vertex before j on a shortest path to j, or -9999."""
        n = self.adjacency.n
        sources = np.arange(n, dtype=np.int64) if sources is None else np.asarray(sources, dtype=np.int64)
        found = np.full((len(sources), n), NONE, dtype=np.int32)
        if "fwtui.solving.trees" not in sys.modules and len(sources) * len(self._short.weights) <= _WITHOUT_NUMBA:
            for s, source in enumerate(sources):
                found[s] = self.row(int(source))
            return found
        strong, weak = self._by_strength()
        from fwtui.solving.compiling import compiled

        with compiled():
            from fwtui.solving.trees import nearest_before, spread

            # a strong arc leads away from the source, so that following them cannot lead back
            dtype, far = self._narrow()
            into = _ordered(strong.targets, strong.sources, strong.weights, n, dtype)
            nearest_before(self.distances, sources, *into, self._slack, dtype.type(far), found)
            if len(weak.weights):
                out = _ordered(weak.sources, weak.targets, weak.weights, n, self.distances.dtype)
                back = _ordered(weak.targets, weak.sources, weak.weights, n, self.distances.dtype)
                spread(self.distances, sources, *out, *back, self._slack, found)
        if not self._exact:
            self._mend(sources, found)
        return found

    def _narrow(self) -> tuple[np.dtype, float]:
        """The type to add in and what no path is in it: 16 bit, if whole distances fit, are twice as many in a vector."""
        far = NO_EDGE["int16"]
        if self._exact and self.adjacency.integer and (self.adjacency.low or 0) >= 0:
            farthest = max(
                float(self.distances[rows].max(initial=0, where=np.isfinite(self.distances[rows])))
                for rows in blocks(self.distances)
            )
            if farthest < far:
                return np.dtype(np.int16), far
        return self.distances.dtype, np.inf

    def path(self, source: int, target: int) -> list[int]:
        """The vertices of one shortest path, both ends included; [] where there is none."""
        if not np.isfinite(self.distances[source, target]):
            return []
        return follow(self.row(source), source, target)

    def row(self, source: int) -> np.ndarray:
        """Predecessors of one source, searched without compiled code: better for a few sources."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order

        n, row = self.adjacency.n, self.distances[source].astype(np.float64)
        arcs = self._short
        gap = np.abs(row[arcs.sources] + arcs.weights - np.where(np.isfinite(row), row, -np.inf)[arcs.targets])
        tight = gap <= self._slack[arcs.targets]
        graph = csr_array((np.ones(int(tight.sum())), (arcs.sources[tight], arcs.targets[tight])), shape=(n, n))
        found = breadth_first_order(graph, source, return_predecessors=True)[1].astype(np.int32)[None]
        if not self._exact:
            self._mend(np.array([source]), found)
        return found[0]

    @cached_property
    def _slack(self) -> np.ndarray:
        """How far, per last vertex, a rounded sum may be from a distance and still be it."""
        distances, n = self.distances, self.adjacency.n
        if self._exact:
            return np.zeros(n, dtype=distances.dtype)
        largest = np.zeros(n)
        for rows in blocks(distances):
            block = np.abs(distances[rows])
            np.maximum(largest, block.max(axis=0, initial=0, where=np.isfinite(block)), out=largest)
        if (self.adjacency.low or 0) < 0:
            largest[:] = largest.max(initial=0)  # sums of both signs cancel, and their rounding does not
        roundings = min(2 * n + 2, ROUNDINGS)
        return (largest * roundings * np.finfo(np.float32).epsneg).astype(distances.dtype)

    @cached_property
    def _short(self) -> Arcs:
        """The arcs that are shortest paths themselves; of equal ones each, which does no harm."""
        kept = []
        dense = self.adjacency.dense
        if dense is not None:
            for rows in blocks(dense):
                block = dense[rows]
                with np.errstate(invalid="ignore"):
                    short = (
                        block <= self.distances[rows] + self._slack if block.dtype.kind == "f" else block <= self.distances[rows]
                    )
                own = np.arange(rows.start, rows.stop)
                short[own - rows.start, own] = False
                short &= np.isfinite(block)
                sources, targets = np.nonzero(short)
                kept.append(Arcs(sources + rows.start, targets, block[sources, targets].astype(np.float64)))
        else:
            for arcs in self.adjacency.pieces():
                short = arcs.weights <= self.distances[arcs.sources, arcs.targets] + self._slack[arcs.targets].astype(np.float64)
                short &= arcs.sources != arcs.targets
                kept.append(Arcs(*(part[short] for part in arcs)))
        return Arcs(*(np.concatenate(part) for part in zip(*kept, strict=True)))

    def _by_strength(self) -> tuple[Arcs, Arcs]:
        """Arcs that make every path longer, even where weights are negative, and the others.

        Least distances to each vertex are potentials under which no weight is below 0.
        """
        arcs = self._short
        lengths = arcs.weights
        if self._exact and (self.adjacency.low or 0) >= 0 and lengths.min(initial=1) > 0:
            return arcs, Arcs(*(part[:0] for part in arcs))
        if (self.adjacency.low or 0) < 0:
            potentials = np.zeros(self.adjacency.n)
            for rows in blocks(self.distances):
                np.minimum(potentials, self.distances[rows].min(axis=0), out=potentials)
            lengths = lengths + potentials[arcs.sources] - potentials[arcs.targets]
        strong = lengths > 2 * self._slack[arcs.targets].astype(np.float64)
        return Arcs(*(part[strong] for part in arcs)), Arcs(*(part[~strong] for part in arcs))

    def _mend(self, sources: np.ndarray, found: np.ndarray) -> None:
        """Rows in which rounding hid a predecessor or led in a circle: by Dijkstra in double precision."""
        for s, source in enumerate(sources):
            if not _leads_back(found[s], int(source), np.isfinite(self.distances[source])):
                found[s] = self.by_dijkstra(int(source))

    def by_dijkstra(self, source: int) -> np.ndarray:
        """Predecessors of one source by its own search, in double precision."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        arcs = _least(self.adjacency.all_arcs(), self.adjacency.n)
        lengths = arcs.weights
        if (self.adjacency.low or 0) < 0:
            row = self.distances.min(axis=0).astype(np.float64)
            lengths = np.maximum(lengths + row[arcs.sources] - row[arcs.targets], 0)
        graph = csr_array((lengths, (arcs.sources, arcs.targets)), shape=(self.adjacency.n,) * 2)
        return dijkstra(graph, indices=source, return_predecessors=True)[1]


def follow(before: np.ndarray, source: int, target: int) -> list[int]:
    """The vertices from source to target along a row of predecessors; [] where they do not lead there."""
    backwards = [target]
    while backwards[-1] != source:
        vertex = int(before[backwards[-1]])
        if vertex < 0 or len(backwards) > len(before):
            return []
        backwards.append(vertex)
    return backwards[::-1]


def _leads_back(before: np.ndarray, source: int, reached: np.ndarray) -> bool:
    """Whether every vertex that is reached comes from the source, by doubling the steps."""
    above = np.where(before >= 0, before, np.arange(len(before), dtype=before.dtype))
    for _ in range(len(before).bit_length()):
        above = above[above]
    return bool((above[reached] == source).all())


def _ordered(keys: np.ndarray, others: np.ndarray, weights: np.ndarray, n: int, dtype: np.dtype) -> _Ordered:
    # 16 bits are sorted by counting
    order = np.argsort(keys.astype(np.uint16) if n <= 65536 else keys, kind="stable")
    first = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=n), out=first[1:])
    # as wide as the numbers that they are chosen by, so that one mask serves both
    narrow = np.uint16 if n <= 65536 and dtype.itemsize == 2 else np.int32
    return _Ordered(first, others[order].astype(narrow), weights[order].astype(dtype))


def _least(arcs: Arcs, n: int) -> Arcs:
    """One arc for each pair of vertices, the least of the parallel ones: SciPy would add them up."""
    cells = arcs.sources * n + arcs.targets
    order = np.lexsort((arcs.weights, cells))
    cells = cells[order]
    kept = order[np.concatenate([[True], cells[1:] != cells[:-1]])] if len(order) else order
    return Arcs(*(part[kept] for part in arcs))
