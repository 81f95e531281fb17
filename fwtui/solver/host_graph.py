"""A graph in host memory: laid out there, and its distances checked and finished there, by NumPy or by code compiled ahead."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwtui.common import units
from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import facts_of, longest
from fwtui.graphs.graph import Facts, blocks
from fwtui.graphs.library_objects import LazyGraph, is_plain
from fwtui.solver.launching import Clock, on_host
from fwtui.solver.number_type import reach_of
from fwtui.solver.solver_graph import OneGraph
from fwtui_kernels.one_core import BAD, EDGES, FRACTION, HIGH, LOW, MISSING, ZEROS, OneCore
from fwtui_kernels.plan import NO_EDGE, Buffers, Kernel, Program, Shape

_BITS_AT_ONCE = 1 << 24  # bytes for sets of vertices
_ROUNDS = 16  # of a search by compiled code, at most


class HostGraph(OneGraph):
    """One matrix, which becomes the distances, without a second one if cells have the same width."""

    @property
    def facts(self) -> Facts:
        return self.whole().facts

    def reach(self, enough: float) -> tuple[float, bool]:
        return reach_of(self.whole(), enough)

    def load(self, program: Program, buffers: Buffers, clock: Clock) -> None:
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
        corner = distances[: self.n, : self.n]
        return largest(corner, far), corner.diagonal().copy()

    def escaped(self, distances: np.ndarray, far: float) -> bool:
        sets = reached(distances[: self.n, : self.n], far)
        return any(leads_out(arcs.sources, arcs.targets, sets) for arcs in self.whole().pieces())

    def finished(self, distances: np.ndarray, far: float, wide: bool) -> np.ndarray:
        return finished(distances, np.arange(self.n), self.n, far, wide)


class OneCoreGraph(HostGraph):
    """A graph of everyday size: a dense one is looked through and finished by code compiled ahead, a sparse one by NumPy."""

    def __init__(self, origin: Adjacency | LazyGraph, engine: Engine, code: OneCore):
        super().__init__(origin, engine)
        self._code = code
        parts = origin.dense if isinstance(origin, Adjacency) else origin.parts
        dense = isinstance(parts, np.ndarray) and is_plain(parts)
        self._given = np.ascontiguousarray(parts, np.float64) if dense else None
        if self._given is not None:
            told = code.survey(self._given)
            self._facts = facts_of(self.n, int(told[EDGES]), told[LOW], told[HIGH], told[FRACTION] == 0, told[FRACTION] <= 1)
            unclear = isinstance(origin, LazyGraph) and told[ZEROS] and not told[MISSING]  # no edges, or edges of weight 0?
            if told[BAD] or unclear or max(-(self._facts.low or 0), self._facts.high or 0) > units.LARGEST:
                self._given = None  # the host checks it, and says what is wrong

    def suited(self, named: Kernel | None, dtype: str, predecessors: bool) -> tuple[Kernel, Shape]:
        return super().suited(self._code.kernel, dtype, predecessors)

    @property
    def facts(self) -> Facts:
        return super().facts if self._given is None else self._facts

    def reach(self, enough: float) -> tuple[float, bool]:
        if self._given is None:
            return super().reach(enough)
        ends = outward, inward = np.full((2, self.n), np.inf)
        ends[:, 0] = 0
        for _ in range(_ROUNDS):
            before = ends.copy()
            self._code.search(self._given, outward, inward)
            if 2 * ends.max() < enough or (ends == before).all():
                break
        return longest(outward, inward)

    def load(self, program: Program, buffers: Buffers, clock: Clock) -> None:
        if self._given is None:
            super().load(program, buffers, clock)
            return
        self._code.enter(self._given, float(NO_EDGE[program.shape.dtype]), buffers[0])
        clock.lap("prepare")

    def look(self, distances: np.ndarray, far: float) -> tuple[float, np.ndarray]:
        return self._code.largest(distances, far), distances.diagonal()[: self.n].copy()

    def finished(self, distances: np.ndarray, far: float, wide: bool) -> np.ndarray:
        result = np.empty((self.n, self.n), np.float64 if wide else np.float32)
        self._code.leave(distances, far, result)
        return result


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
