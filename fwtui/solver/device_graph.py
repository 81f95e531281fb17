"""Graphs on a GPU, as they were given there or here: looked at, bounded and laid out there, and their distances finished there.

A dense matrix goes over in its own type and order, a sparse one as its arcs; the host makes no other copy of either.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import longest
from fwtui.graphs.library_objects import Rows, Unseen, seen, simple
from fwtui.graphs.limits import MAX_WEIGHT
from fwtui.graphs.vertices import Vertices
from fwtui.solver import arc_kernels, launching, matrix_kernels
from fwtui.solver.clock import Clock
from fwtui.solver.compiling import compiled
from fwtui.solver.launching import on_device, on_host
from fwtui.solver.source import Found, Source
from kernels.plan import NO_EDGE, Buffers, Program

_ROUNDS = 3  # of a search before its distances are looked at; then twice as many, and so on
_MATRICES = 3  # of 32 bits for a kernel, at most, while a graph is there as well
_PADDING = 128
_INDEX = 4  # bytes of a vertex, where it is written out for each arc
_PIECE = 1 << 26  # bytes of distances that are converted and copied at once


@dataclass(frozen=True)
class DeviceWeights:
    """What bounds need to know of a graph that was looked at on its device; as graphs.bounds.Facts."""

    n: int
    integer: bool
    low: float | None
    high: float | None
    grid: bool
    edges: int

    @property
    def drift(self) -> int | float:
        return (self.n - 1) * -self.low if self.low is not None and self.low < 0 else 0

    @property
    def exact_sums(self) -> bool:
        return self.integer or self.grid


class Carried(Source):
    """A graph of n vertices on an engine's device. What is launched for it is launched within compiling.compiled()."""

    looks = 1  # at a search's distances, at most

    def __init__(self, n: int, engine: Engine, origin: Adjacency | Unseen | None = None):
        self.n = n
        self.engine = engine
        self.origin = origin
        start = np.zeros(launching.BAD + 1)
        start[launching.LOW], start[launching.HIGH] = np.inf, -np.inf
        found = on_device(start, self.engine)
        self._survey(found)
        told = on_host(found, self.engine)
        low = min(told[launching.LOW], told[launching.LEAST_LOOP]) if told[launching.LEAST_LOOP] < 0 else told[launching.LOW]
        self.facts = DeviceWeights(
            n=self.n,
            integer=told[launching.FRACTION] == 0,
            low=float(low) if np.isfinite(low) else None,
            high=float(told[launching.HIGH]) if np.isfinite(told[launching.HIGH]) else None,
            grid=told[launching.FRACTION] <= 1,
            edges=int(told[launching.EDGES]),
        )
        self.unclear = bool(told[launching.ZEROS] and not told[launching.MISSING])  # no edges, or edges of weight 0?
        self.bad = bool(told[launching.BAD])  # -inf, or an arc to or from no vertex

    def reach(self, enough: float) -> tuple[float, bool]:
        with compiled():
            return longest(*(self._searched(enough, inwards) for inwards in (False, True)))

    def _searched(self, enough: float, inwards: bool) -> np.ndarray:
        """Lengths of some paths from vertex 0, or to it: all that are wanted, or the shortest, or those of so many rounds."""
        now = np.full(self.n, np.inf)
        now[0] = 0
        distance = on_device(now, self.engine)
        for look in range(self.looks):
            for _ in range(_ROUNDS << look):
                self._relax(distance, inwards)
            before, now = now, on_host(distance, self.engine)
            if 2 * now.max() < enough or (now == before).all():
                break
        return now

    def load(self, program: Program, buffers: Buffers, clock: Clock) -> None:
        program.fill(self.enter, buffers, self.engine.stream)
        self.engine.synchronize()
        clock.lap("prepare", launching.compiling())

    def result(self, program: Program, buffers: Buffers) -> Any:
        return program.result(buffers, self.engine.stream)

    def look(self, distances: Any, far: float) -> Found:
        found = on_device(np.zeros(2), self.engine)
        do, n = matrix_kernels.functions(), np.int32(self.n)
        self._launch(do.look, min(self.n, launching.BLOCKS), distances, n, np.float64(far), found)
        told = on_host(found, self.engine)
        diagonal = np.zeros(self.n)
        if told[matrix_kernels.DIAGONAL] < 0:
            there = on_device(diagonal, self.engine)
            self._launch(do.diagonal, -(-self.n // launching.THREADS), distances, n, there)
            diagonal = on_host(there, self.engine)
        return Found(float(told[matrix_kernels.LARGEST]), diagonal)

    def escaped(self, distances: Any, far: float) -> bool:
        words = -(-self.n // 32)
        sets = self._empty((self.n, words), np.uint32)
        grid = (-(-self.n // launching.THREADS), words)
        self._launch(matrix_kernels.functions().reached, grid, distances, np.int32(self.n), np.float64(far), sets)
        found = on_device(np.zeros(1), self.engine)
        self._escaped(sets, found)
        return bool(on_host(found, self.engine)[0])

    def finished(self, distances: Any, far: float, wide: bool) -> Any:
        """As a device array where the graph was given as one; else converted and copied, a piece after the other."""
        n, to = self.n, np.dtype(np.float64 if wide else np.float32)
        result: Any = self._empty((n, n), to) if self.stays else np.empty((n, n), to)
        rows = n if self.stays else max(1, min(n, _PIECE // (n * to.itemsize)))
        piece = result if self.stays else self._empty((rows, n), to)
        for first in range(0, n, rows):
            part = result[first : first + rows]
            leave = matrix_kernels.functions().leave
            self._launch(leave, len(part), distances, piece, np.int32(first), np.int32(n), np.float64(far))
            if not self.stays:
                piece[: len(part)].copy_to_host(part, stream=self.engine.stream)
        self.engine.synchronize()
        return result

    @abstractmethod
    def enter(self, to: Any) -> None:
        """Write the graph, padded, into a kernel's device array; asynchronous."""

    @abstractmethod
    def _survey(self, found: Any) -> None: ...

    @abstractmethod
    def _relax(self, distance: Any, inwards: bool) -> None: ...

    @abstractmethod
    def _escaped(self, sets: Any, found: Any) -> None: ...

    def _launch(self, function: Any, grid: int | tuple[int, int], *given: Any) -> None:
        launching.launch(function, grid, self.engine.stream, *given)

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        from kernels.numba_door.device import cuda

        return cuda.device_array(shape, dtype, stream=self.engine.stream)


class Matrix(Carried):
    """A square device array of any real type, +inf or NaN for no edge."""

    looks = 2  # the paths of a dense graph have few edges

    def __init__(self, array: Any, engine: Engine, origin: Adjacency | Unseen | None = None):
        self._array = array
        super().__init__(array.shape[0], engine, origin)

    def whole(self) -> Adjacency:
        if self.origin is not None:
            return seen(self.origin)
        return Adjacency(self.n, Vertices(range(self.n)), dense=np.ascontiguousarray(on_host(self._array, self.engine)))

    def enter(self, to: Any) -> None:
        no_edge = np.float64(NO_EDGE[to.dtype.name])
        self._launch(matrix_kernels.functions().enter, to.shape[0], self._array, to, np.int32(self.n), no_edge)

    def _survey(self, found: Any) -> None:
        blocks = min(self.n, launching.BLOCKS)
        self._launch(matrix_kernels.functions().survey, blocks, self._array, np.int32(self.n), found)

    def _relax(self, distance: Any, inwards: bool) -> None:
        across = -(-self.n // launching.THREADS)
        down = max(1, min(self.n, launching.BLOCKS) // across)
        do = matrix_kernels.functions()
        function, grid = (do.inward, self.n) if inwards else (do.outward, (across, down))
        self._launch(function, grid, self._array, np.int32(self.n), distance)

    def _escaped(self, sets: Any, found: Any) -> None:
        self._launch(matrix_kernels.functions().escaped, self.n, self._array, np.int32(self.n), sets, found)


class ArcList(Carried):
    """Arcs as three device arrays; of parallel ones the least weight counts."""

    looks = 8

    def __init__(self, n: int, arcs: tuple[Any, Any, Any], engine: Engine, origin: Adjacency | Unseen | None = None):
        self._arcs = arcs
        self._blocks = max(1, min(-(-arcs[2].shape[0] // launching.THREADS), launching.BLOCKS))
        super().__init__(n, engine, origin)

    def enter(self, to: Any) -> None:
        do = arc_kernels.functions()
        rows, columns = to.shape
        no_edge = np.float64(NO_EDGE[to.dtype.name])
        if to.dtype != np.int16:
            self._launch(do.clear, rows, to, no_edge)
            self._launch(do.lower, self._blocks, *self._arcs, to)
            return
        # two cells to a word, also where a row ends with half of one
        even = to if columns % 2 == 0 else self._empty((rows, columns + 1), np.int16)
        self._launch(do.clear, rows, even, no_edge)
        self._launch(do.lower_pairs, self._blocks, *self._arcs, even.view(np.int32))
        if even is not to:
            self._launch(matrix_kernels.functions().enter, rows, even, to, np.int32(columns), no_edge)

    def _survey(self, found: Any) -> None:
        self._launch(arc_kernels.functions().survey, self._blocks, *self._arcs, np.int32(self.n), found)

    def _relax(self, distance: Any, inwards: bool) -> None:
        sources, targets, weights = self._arcs
        ends = (targets, sources) if inwards else (sources, targets)
        self._launch(arc_kernels.functions().relax, self._blocks, *ends, weights, distance)

    def _escaped(self, sets: Any, found: Any) -> None:
        self._launch(arc_kernels.functions().escaped, self._blocks, *self._arcs, sets, found)


def resident(matrix: Any, engine: Engine) -> Matrix:
    """A square device array as a graph. Raises Refused for what is none."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise Refused(f"an array of shape {matrix.shape} is no graph, which is a square matrix; give n x n weights")
    given = np.dtype(matrix.dtype)
    if given.kind not in "fiu" or not given.isnative or given.itemsize > 8:
        raise Refused(f"weights of type {given} are no numbers that a GPU has; convert them to float64 or int64")
    launching.compiling()  # of calls before this one
    with compiled():
        carried = Matrix(matrix, engine)
        if carried.bad:
            raise Refused("-inf is no weight; give finite numbers, and +inf for no edge")
        if carried.unclear:
            raise Refused(
                "zeros off the diagonal may mean no edge or edges of weight 0, and nothing in the array says which; "
                "put +inf where there is no edge"
            )
    return carried


def carry(graph: Adjacency | Unseen, engine: Engine, clock: Clock) -> Carried | None:
    """The graph on the engine's device. None where the host has to look through it: where there is no room for it beside its
    distances, for numbers that float64 may not hold, and for what may be no graph.
    """
    if isinstance(graph, Unseen):
        parts = graph.parts
    else:
        parts = graph.arcs if graph.dense is None else graph.dense if simple(graph.dense) else None
    if parts is None:
        return None
    arrays = [parts] if isinstance(parts, np.ndarray) else list(parts)
    free, size = engine.free_bytes(), sum(array.nbytes for array in arrays) + _MATRICES * 4 * (graph.n + _PADDING) ** 2
    if isinstance(parts, Rows):
        size += _INDEX * len(parts.targets)
    if not arrays[-1].size or (free is not None and size > free - KEPT_FREE):
        return None
    launching.compiling()  # of calls before this one
    clock.lap("prepare")
    with compiled():
        from kernels.numba_door.device import cuda

        orders = ["C" if array.flags.c_contiguous else "F" for array in arrays]
        there = [cuda.device_array(a.shape, a.dtype, order=o, stream=engine.stream) for a, o in zip(arrays, orders, strict=True)]
        clock.lap("allocate")
        for array, part in zip(there, arrays, strict=True):
            array.copy_to_device(part, stream=engine.stream)
        engine.synchronize()
        clock.lap("copy in")
        if isinstance(parts, Rows):
            rows, there[0] = there[0], cuda.device_array(len(parts.targets), np.int32, stream=engine.stream)
            blocks = min(graph.n, launching.BLOCKS)
            launching.launch(arc_kernels.functions().rows_of, blocks, engine.stream, rows, np.int32(graph.n), there[0])
        dense = isinstance(parts, np.ndarray)
        carried = Matrix(there[0], engine, graph) if dense else ArcList(graph.n, (there[0], there[1], there[2]), engine, graph)
    clock.lap("prepare", launching.compiling())
    facts = carried.facts
    unsure = carried.bad or (carried.unclear and dense and isinstance(graph, Unseen))
    return None if unsure or max(-(facts.low or 0), facts.high or 0) > MAX_WEIGHT else carried
