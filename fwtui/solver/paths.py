"""Predecessors on shortest paths, from the distances and the arcs.

An arc can be the last one on a shortest path only if it is a shortest path itself. Few arcs are, so searching them is cheap
compared with finding the distances, and works with any kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fwtui.graphs.adjacency import Adjacency, Arcs, GivenGraph, merge_parallel
from fwtui.graphs.graph import EdgeFacts, blocks
from fwtui.solver.compiled_code import compiled, threads_lost
from fwtui_kernels.plan import NO_EDGE, NO_PREDECESSOR

_WITHOUT_NUMBA = 1 << 24  # arcs of all searches: Dijkstra's takes less time than loading compiled code
_AT_ONCE = 64  # sources per call of Dijkstra, which returns distances too
ROUNDINGS = 64  # half units in the last place: the difference of rounded sums of one path in practice


def share_of(n: int, dtype: str) -> float:
    """Return the relative tolerance between a sum rounded in that type and a distance, for non-negative weights."""
    return min(2 * n + 2, ROUNDINGS) * float(np.finfo(dtype).epsneg)


class TracedPredecessors(NamedTuple):
    """Predecessors found on the GPU, and the sources for which rounding hid some."""

    predecessors: Any
    hidden: np.ndarray


class _Slack(NamedTuple):
    """The tolerance between a rounded sum and a distance: `fixed` for weights of both signs, else a share."""

    share: np.number  # tolerance as a share of that distance
    fixed: np.ndarray  # for each last vertex
    most: np.ndarray  # tolerance for the longest distance to each vertex


@dataclass(eq=False)
class Paths:
    """Shortest paths of one graph, from its distances: (n, n), floating, +inf for no path, no negative cycle.

    `exact`: sums of weights equal distances to the last bit. Otherwise each sum is within some roundings of its distance, or of
    the longest one if there are negative weights.
    """

    graph: GivenGraph
    distances: np.ndarray
    exact: bool

    @property
    def adjacency(self) -> Adjacency:
        return self.graph.adjacency

    @property
    def facts(self) -> EdgeFacts:
        return self.adjacency.facts

    @cached_property
    def sources(self) -> np.ndarray:
        """The vertex of each row of the distances."""
        return np.arange(len(self.distances))

    def predecessors(self) -> np.ndarray:
        """Return (sources, n) of int32: for each source the vertex before j on a shortest path to j, or -9999."""
        if threads_lost() or ("numba" not in sys.modules and self.facts.n * len(self._short.weights) <= _WITHOUT_NUMBA):
            predecessors = self.by_dijkstra(self.sources)
            if self.exact:  # an arc rather than a detour of the same length, as SciPy's floyd_warshall has it
                predecessors[self._short.sources, self._short.targets] = self._short.sources
            return predecessors
        return self.compiled_search()

    def compiled_search(self) -> np.ndarray:
        """Return the predecessors, found by compiled code on all cores."""
        n = self.facts.n
        predecessors = np.full(self.distances.shape, NO_PREDECESSOR, dtype=np.int32)
        strong, weak = self._by_strength()
        slack = self._slack
        with compiled():
            from fwtui.solver.cpu_predecessors import nearest_before, spread

            # strong arcs lead away from the source, so following them cannot lead back
            dtype, far = self._narrow()
            into = _ordered(strong.targets, strong.sources, strong.weights, n, dtype)
            nearest_before(self.distances, self.sources, *into, slack.fixed, slack.share, dtype.type(far), predecessors)
            if len(weak.weights):
                out = _ordered(weak.sources, weak.targets, weak.weights, n, self.distances.dtype)
                back = _ordered(weak.targets, weak.sources, weak.weights, n, self.distances.dtype)
                spread(self.distances, self.sources, *out, *back, slack.fixed, slack.share, predecessors)
        if not self.exact:
            self._mend(predecessors)
        return predecessors

    def _narrow(self) -> tuple[np.dtype, float]:
        """Return the type for sums and its value for no path: 16 bits, twice the cells per vector, if integer distances fit."""
        far = NO_EDGE["int16"]
        if self.exact and self.facts.integer and self.facts.nonnegative:
            farthest = (
                self.distances[rows].max(initial=0, where=np.isfinite(self.distances[rows])) for rows in blocks(self.distances)
            )
            if max(farthest, default=0) < far:
                return np.dtype(np.int16), far
        return self.distances.dtype, np.inf

    def path(self, source: int, target: int) -> list[int]:
        """Return the vertices of one shortest path, both ends included; [] if there is none."""
        if not np.isfinite(self.distances[source, target]):
            return []
        return follow(self.by_dijkstra(np.array([source]))[0], source, target)

    @cached_property
    def _slack(self) -> _Slack:
        distances, n = self.distances, self.facts.n
        number, none = distances.dtype.type, np.zeros(n, dtype=distances.dtype)
        if self.exact:
            return _Slack(number(0), none, none)
        largest = np.zeros(n)
        for rows in blocks(distances):
            block = np.abs(distances[rows])
            np.maximum(largest, block.max(axis=0, initial=0, where=np.isfinite(block)), out=largest)
        share = share_of(n, distances.dtype.name)
        if not self.facts.nonnegative:
            fixed = np.full(n, share * largest.max(initial=0), dtype=distances.dtype)
            return _Slack(number(0), fixed, fixed)
        return _Slack(number(share), none, (share * largest).astype(distances.dtype))

    def _is_short(self, weights: np.ndarray, distances: np.ndarray, fixed: np.ndarray) -> np.ndarray:
        """Return the mask of weights that equal the distances within the tolerance; `fixed` is the tolerance by last vertex."""
        if self.exact:
            return weights <= distances
        with np.errstate(invalid="ignore"):
            return weights <= distances + (distances * self._slack.share + fixed)

    @cached_property
    def _short(self) -> Arcs:
        """The arcs that are shortest paths themselves, with the weights of the kernel; equal parallel arcs are all included."""
        pieces = [Arcs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        fixed = self._slack.fixed
        if self.adjacency.dense is not None:
            pieces += self._short_cells(self.adjacency.dense)
        else:
            for arcs in self.adjacency.pieces():
                weights = arcs.weights if self.exact else arcs.weights.astype(self.distances.dtype)
                short = self._is_short(weights, self.distances[arcs.sources, arcs.targets], fixed[arcs.targets])
                short &= arcs.sources != arcs.targets
                pieces.append(Arcs(arcs.sources[short], arcs.targets[short], weights[short].astype(np.float64)))
        return Arcs(*(np.concatenate(part) for part in zip(*pieces, strict=True)))

    def _short_cells(self, weights: np.ndarray) -> Iterator[Arcs]:
        """Yield the arcs of a matrix that are shortest paths."""
        for rows in blocks(weights):
            block = weights[rows] if self.exact else weights[rows].astype(self.distances.dtype)
            short = self._is_short(block, self.distances[rows], self._slack.fixed)
            vertices = self.sources[rows]
            short[np.arange(len(vertices)), vertices] = False
            short &= np.isfinite(block)
            places, targets = np.nonzero(short)
            yield Arcs(vertices[places], targets, block[places, targets].astype(np.float64))

    def _by_strength(self) -> tuple[Arcs, Arcs]:
        """Return the arcs that lengthen every path, also if weights are negative, and the other arcs.

        The least distances to each vertex are potentials that make all weights non-negative.
        """
        arcs = self._short
        lengths = arcs.weights
        if self.exact and self.facts.nonnegative and lengths.min(initial=1) > 0:
            return arcs, Arcs(*(part[:0] for part in arcs))
        if not self.facts.nonnegative:
            lengths = lengths + self._potentials[arcs.sources] - self._potentials[arcs.targets]
        strong = lengths > 2 * self._slack.most[arcs.targets].astype(np.float64)
        return Arcs(*(part[strong] for part in arcs)), Arcs(*(part[~strong] for part in arcs))

    @cached_property
    def _potentials(self) -> np.ndarray:
        """The least distance to each vertex, (n,); at most 0."""
        least = np.zeros(self.facts.n)
        for rows in blocks(self.distances):
            np.minimum(least, self.distances[rows].min(axis=0), out=least)
        return least

    def _mend(self, predecessors: np.ndarray) -> None:
        """Recompute rows in which rounding hid a predecessor or made a cycle by Dijkstra searches in float64."""
        ends = [
            _leads_back(before, int(source), np.isfinite(row))
            for before, source, row in zip(predecessors, self.sources, self.distances, strict=True)
        ]
        hidden = np.flatnonzero(~np.array(ends, dtype=bool))
        if len(hidden):
            predecessors[hidden] = self.by_dijkstra(self.sources[hidden])

    def by_dijkstra(self, sources: np.ndarray) -> np.ndarray:
        """Return the predecessors of these sources by Dijkstra searches in float64: (sources, n) of int32."""
        from scipy.sparse.csgraph import dijkstra

        predecessors = np.empty((len(sources), self.facts.n), dtype=np.int32)
        for start in range(0, len(sources), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            predecessors[part] = dijkstra(self._searched, indices=sources[part], return_predecessors=True)[1]
        return predecessors

    @cached_property
    def _searched(self) -> Any:
        """The short arcs as a sparse matrix for Dijkstra searches, with non-negative weights."""
        from scipy.sparse import csr_array

        n, arcs = self.facts.n, merge_parallel(self._short)
        lengths = arcs.weights
        if not self.facts.nonnegative:
            lengths = np.maximum(lengths + self._potentials[arcs.sources] - self._potentials[arcs.targets], 0)
        return csr_array((lengths, (arcs.sources, arcs.targets)), shape=(n, n))


def follow(before: np.ndarray, source: int, target: int) -> list[int]:
    """Return the vertices from source to target along a row of predecessors; [] if they do not lead there."""
    backwards = [target]
    while backwards[-1] != source:
        vertex = int(before[backwards[-1]])
        if vertex < 0 or len(backwards) > len(before):
            return []
        backwards.append(vertex)
    return backwards[::-1]


def _leads_back(before: np.ndarray, source: int, reached: np.ndarray) -> bool:
    """Return whether every reached vertex leads back to the source, by pointer doubling."""
    above = np.where(before >= 0, before, np.arange(len(before), dtype=before.dtype))
    for _ in range(len(before).bit_length()):
        above = above[above]
    return bool((above[reached] == source).all())


def _ordered(
    keys: np.ndarray, others: np.ndarray, weights: np.ndarray, n: int, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group arcs by one end. Return `first`, other ends and weights; vertex v has first[v] : first[v + 1]."""
    # 16 bits are sorted by counting
    order = np.argsort(keys.astype(np.uint16) if n <= 65536 else keys, kind="stable")
    first = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=n), out=first[1:])
    # the keys have the same width, so that one mask serves both
    narrow = np.uint16 if n <= 65536 and dtype.itemsize == 2 else np.int32
    return first, others[order].astype(narrow), weights[order].astype(dtype)
