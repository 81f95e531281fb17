"""A graph in host memory: laid out there, and its distances checked and finished there."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.graph import Facts, blocks
from fwtui.graphs.library_objects import LazyGraph, adjacency_of
from fwtui.solver.launching import Clock, on_host
from fwtui.solver.number_type import reach_of
from fwtui_kernels.plan import Buffers, Program

_BITS_AT_ONCE = 1 << 24  # bytes for sets of vertices


class HostGraph:
    """One matrix, which becomes the distances, without a second one if cells have the same width.

    `distances` are a kernel's array, padded and with sentinels, on the side of the graph: from `far` on a cell is no path.
    """

    keep_on_device = False
    gathers = True  # whether the result has all rows

    def __init__(self, origin: Adjacency | LazyGraph, engine: Engine):
        self.n = origin.n
        self.engine = engine
        self.origin = origin

    @property
    def facts(self) -> Facts:
        return self.whole().facts

    def whole(self) -> Adjacency:
        """The graph on the host."""
        return adjacency_of(self.origin)

    @property
    def rows(self) -> np.ndarray | None:
        """The vertices of the result's rows, if not all."""
        return None

    def predecessors(self, exact: bool) -> np.ndarray:
        """Those of the result's rows, where it has not all."""
        raise NotImplementedError

    def reach(self, enough: float) -> tuple[float, bool]:
        """Like number_type.reach_of."""
        return reach_of(self.whole(), enough)

    def load(self, program: Program, buffers: Buffers, clock: Clock) -> None:
        """Load the graph into a program."""
        graph, stream = self.whole(), self.engine.stream

        def copied(to: Any) -> None:
            matrix = np.empty(to.shape, to.dtype)
            graph.fill(matrix)
            clock.lap("prepare")
            to.copy_to_device(matrix, stream=stream)
            self.engine.synchronize()

        program.fill(copied if program.home == "device" else graph.fill, buffers, stream)
        self.engine.synchronize()
        clock.lap("copy in" if program.home == "device" else "prepare")

    def result(self, program: Program, buffers: Buffers) -> np.ndarray:
        return on_host(program.result(buffers, self.engine.stream), self.engine)

    def look(self, distances: np.ndarray, far: float) -> tuple[float, np.ndarray]:
        """The greatest absolute distance, and the diagonal if it has a negative cell (else possibly zeros)."""
        corner = distances[: self.n, : self.n]
        return largest(corner, far), corner.diagonal().copy()

    def escaped(self, distances: np.ndarray, far: float) -> bool:
        """Whether some arc leads from a vertex's reachable set out of it: then a distance was too long for the type.
        Without such an arc, all other vertices are unreachable.
        """
        sets = reached(distances[: self.n, : self.n], far)
        return any(leads_out(arcs.sources, arcs.targets, sets) for arcs in self.whole().pieces())

    def finished(self, distances: np.ndarray, far: float, wide: bool) -> np.ndarray:
        """(n, n) distances in the form of Result: +inf for no path, 0 on the diagonal; float64 if `wide`, else float32."""
        return finished(distances, np.arange(self.n), self.n, far, wide)


def largest(distances: np.ndarray, far: float) -> float:
    """The greatest absolute distance in some rows."""
    found = (float(np.abs(distances[rows]).max(initial=0, where=distances[rows] < far)) for rows in blocks(distances))
    return max(found, default=0.0)


def reached(distances: np.ndarray, far: float) -> np.ndarray:
    """Row v: which of the sources, the rows of the distances, reach v, as bits."""
    return np.ascontiguousarray(np.packbits(distances < far, axis=0).T)


def leads_out(sources: np.ndarray, targets: np.ndarray, sets: np.ndarray) -> bool:
    """Whether some arc leads from a vertex that a source reaches to one that it does not."""
    rows = max(1, _BITS_AT_ONCE // max(1, sets.shape[1]))
    parts = (slice(start, start + rows) for start in range(0, len(sources), rows))
    return any(bool((sets[sources[part]] & ~sets[targets[part]]).any()) for part in parts)


def finished(distances: np.ndarray, sources: np.ndarray, n: int, far: float, wide: bool) -> np.ndarray:
    """(sources, n) distances in the form of Result, in place of the kernel's if cells have the same width."""
    to = np.dtype(np.float64 if wide else np.float32)
    if distances.itemsize == to.itemsize:
        result = _packed(distances, len(sources), n).view(to)
        distances = result.view(distances.dtype)
    else:
        result = np.empty((len(sources), n), to)
    for rows in blocks(result):
        cells = distances[rows, :n]
        if cells.dtype.kind == "f":
            result[rows] += np.float32(0)  # -0 becomes +0
        else:
            result[rows] = np.where(cells >= far, to.type(np.inf), cells.astype(to))
    result[np.arange(len(sources)), sources] = 0  # with rounded weights it may be slightly negative
    return result


def _packed(whole: np.ndarray, rows: int, n: int) -> np.ndarray:
    """The rows x n corner of a matrix without gaps between rows, moved within its memory if possible."""
    if whole.shape == (rows, n):
        return np.require(whole, requirements=["C", "W"])
    flat = np.require(whole, requirements=["C", "W"]).reshape(-1)
    pitch = whole.shape[1]
    for row in range(1, rows):
        flat[row * n : (row + 1) * n] = flat[row * pitch : row * pitch + n]  # never overtaking the moved rows
    return flat[: rows * n].reshape(rows, n)
