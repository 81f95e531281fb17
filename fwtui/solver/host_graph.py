"""A graph in host memory, whose distances NumPy checks and converts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency, GivenGraph, RowBlocks
from fwtui.graphs.bounds import longest
from fwtui.graphs.graph import EdgeFacts, blocks, each_block
from fwtui.solver.call import Clock
from fwtui.solver.compiled_code import on_host
from fwtui_kernels.plan import Buffers, Program

_BITS_AT_ONCE = 1 << 24  # bytes for sets of vertices
_RELAXED_BY_NUMPY = 1 << 24  # arcs that NumPy relaxes in the time of importing SciPy, 0.1 s
_DENSE_ROUNDS = 3  # rounds of a search in a dense matrix, whose paths have few edges


@dataclass
class HostGraph:
    """A graph in host memory. Its matrix becomes the distances, in place if cells have the same width.

    Distances of a kernel are padded; a cell of at least `far` means that no path exists. `keep`: they end on the engine's device.
    """

    origin: GivenGraph
    engine: Engine
    facts: EdgeFacts
    keep: bool = False
    home: ClassVar[Literal["host"]] = "host"
    to_host: ClassVar[bool] = True  # the distances are copied to the host

    def reach(self, enough: float) -> tuple[float, bool]:
        """Return an upper bound on all distances, max d(v, .) + max d(., v) for v = 0, and whether it is valid.

        A dense matrix is searched until that is less than `enough`. Negative weights count as 0, which never shortens a distance.
        """
        graph = self.origin.adjacency
        if graph.arcs is None:
            return longest(*_of_dense(graph, enough))
        sources, targets, weights = graph.arcs
        weights = np.maximum(weights, 0)
        return longest(*(from_first(graph.n, *ends, weights) for ends in ((sources, targets), (targets, sources))))

    def load(self, program: Program, buffers: Buffers, clock: Clock) -> None:
        """Load the graph into a program."""
        graph, stream = self.origin.adjacency, self.engine.stream
        if self.engine.ranks:  # block by block, so that no rank needs the whole matrix
            blocks_of_rows: Any = RowBlocks(graph, program.shape.dtype)
            program.load(blocks_of_rows, buffers, stream)
            clock.lap("copy in")
            return

        def copied(to: Any) -> None:
            matrix = np.empty(to.shape, to.dtype)
            graph.fill(matrix)
            clock.lap("prepare")
            to.copy_to_device(matrix, stream=stream)
            self.engine.synchronize()

        program.fill(copied if program.home == "device" else graph.fill, buffers, stream)
        self.engine.synchronize()
        clock.lap("copy in" if program.home == "device" else "prepare")

    def unload(self, program: Program, buffers: Buffers, far: float) -> tuple[Any, float, np.ndarray]:
        """Return the distances as the program left them, the greatest absolute one, and their diagonal."""
        distances = on_host(program.result(buffers, self.engine.stream), self.engine)
        corner = distances[: self.facts.n, : self.facts.n]

        def greatest(rows: slice) -> float:
            return float(np.abs(np.where(corner[rows] < far, corner[rows], 0)).max(initial=0))

        return distances, max(each_block(corner, greatest), default=0.0), corner.diagonal()

    def escaped(self, distances: np.ndarray, far: float) -> bool:
        """Return whether an arc leads from a vertex with a distance to one without: then the distance overflowed."""
        # a row of bits for each vertex: one bit per source, set if the source reaches the vertex
        sets = np.ascontiguousarray(np.packbits(distances[: self.facts.n, : self.facts.n] < far, axis=0).T)
        step = max(1, _BITS_AT_ONCE // max(1, sets.shape[1]))
        for sources, targets, _ in self.origin.adjacency.pieces():
            for part in (slice(start, start + step) for start in range(0, len(sources), step)):
                if (sets[sources[part]] & ~sets[targets[part]]).any():
                    return True
        return False

    def finished(self, distances: np.ndarray, far: float, wide: bool, reuse: bool) -> np.ndarray:
        """Return (n, n) distances in the form of Result: +inf for no path, 0 on the diagonal; float64 if `wide`, else float32.

        They overwrite those of the kernel if cells have the same width.
        """
        n, to = self.facts.n, np.dtype(np.float64 if wide else np.float32)
        if distances.itemsize == to.itemsize:
            result = _packed(distances, n).view(to)
            distances = result.view(distances.dtype)
        else:
            result = np.empty((n, n), to)

        def finish(rows: slice) -> None:
            cells = distances[rows, :n]
            if cells.dtype.kind == "f":
                result[rows] += 0  # -0 becomes +0
            else:
                result[rows] = np.where(cells >= far, to.type(np.inf), cells.astype(to))

        each_block(result, finish)
        np.fill_diagonal(result, 0)  # rounded weights may make it slightly negative
        return result


def _packed(whole: np.ndarray, n: int) -> np.ndarray:
    """Return the n x n corner of a matrix without gaps between rows, moved within its memory if possible."""
    flat = np.require(whole, requirements=["C", "W"]).reshape(-1)
    pitch = whole.shape[1]
    for row in range(1, n) if pitch > n else ():
        flat[row * n : (row + 1) * n] = flat[row * pitch : row * pitch + n]  # never overtaking the moved rows
    return flat[: n * n].reshape(n, n)


def from_first(
    n: int, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray, most: int = _RELAXED_BY_NUMPY
) -> np.ndarray:
    """Return (n,) distances from vertex 0 over arcs of non-negative weight, +inf for no path.

    All arcs are relaxed repeatedly until nothing changes (Bellman, Ford); if `most` relaxations are not enough, SciPy's
    Dijkstra takes over.
    """
    distance = np.full(n, np.inf)
    distance[0] = 0
    for _ in range(most // max(1, len(weights))):
        before = distance.copy()
        np.minimum.at(distance, targets, before[sources] + weights)
        if (distance == before).all():
            return distance
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    distinct = sources != targets
    # SciPy adds parallel arcs up, and the sum is at least their minimum
    return dijkstra(csr_array((weights[distinct], (sources[distinct], targets[distinct])), shape=(n, n)), indices=0)


def _of_dense(graph: Adjacency, enough: float) -> list[np.ndarray]:
    """Return the lengths of the shortest paths with few edges, upper bounds on the distances from and to vertex 0."""
    assert graph.dense is not None
    arcs = []
    for matrix in (graph.dense, graph.dense.T):
        distance = np.full(graph.n, np.inf)
        distance[0] = 0
        # the first round is one row
        for rows in [slice(0, 1), *(rows for _ in range(_DENSE_ROUNDS) for rows in blocks(matrix))]:
            block = matrix[rows].astype(np.float64)
            block[~np.isfinite(block)] = np.inf
            np.maximum(block, 0, out=block)
            block += distance[rows, None]
            np.minimum(distance, block.min(axis=0), out=distance)
            if 2 * distance.max() < enough:
                break
        arcs.append(distance)
    return arcs
