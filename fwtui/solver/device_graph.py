"""Graphs on the device as they were given there or here: looked at, bounded and laid out where the kernels are.

A dense matrix goes over in its own type and order, a sparse one as its arcs; the host makes no other copy of either.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fwtui.common.memory import KEPT_FREE
from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.library_objects import Rows, Unseen, seen, simple
from fwtui.graphs.limits import MAX_WEIGHT
from fwtui.graphs.number_lines import Arcs
from fwtui.solver import arc_kernels, launching, matrix_kernels
from fwtui.solver.compiling import compiled
from kernels.plan import NO_EDGE

_ROUNDS = 3  # of a search before its distances are looked at; then twice as many, and so on
_MATRICES = 3  # of 32 bits for a kernel, at most, while a graph is there as well
_PADDING = 128
_INDEX = 4  # bytes of a vertex, where it is written out for each arc


@dataclass(frozen=True)
class DeviceWeights:
    """What bounds need to know of a graph that was looked at on its device; as graphs.bounds.Facts."""

    n: int
    integer: bool
    low: float | None
    high: float | None
    grid: bool
    edges: int
    unclear: bool = False  # zeros may mean no edge or edges of weight 0
    bad: bool = False  # -inf, or an arc to or from no vertex

    @property
    def drift(self) -> int | float:
        return (self.n - 1) * -self.low if self.low is not None and self.low < 0 else 0

    @property
    def exact_sums(self) -> bool:
        return self.integer or self.grid


class Carried(ABC):
    """A graph of n vertices on an engine's device. Whoever asks for more than reach() does so within compiling.compiled()."""

    looks = 1  # at a search's distances, at most

    def __init__(self, n: int, engine: Engine, origin: Adjacency | Unseen | None = None):
        self.n = n
        self._engine = engine
        self._origin = origin

    @cached_property
    def facts(self) -> DeviceWeights:
        start = np.zeros(launching.BAD + 1)
        start[launching.LOW], start[launching.HIGH] = np.inf, -np.inf
        found = self._to_device(start)
        self._survey(found)
        told = found.copy_to_host(stream=self._engine.stream)
        self._engine.synchronize()
        low = min(told[launching.LOW], told[launching.LEAST_LOOP]) if told[launching.LEAST_LOOP] < 0 else told[launching.LOW]
        return DeviceWeights(
            n=self.n,
            integer=not told[launching.FRACTIONS],
            low=float(low) if np.isfinite(low) else None,
            high=float(told[launching.HIGH]) if np.isfinite(told[launching.HIGH]) else None,
            grid=not told[launching.OFF_GRID],
            edges=int(told[launching.EDGES]),
            unclear=bool(told[launching.ZEROS] and not told[launching.MISSING]),
            bad=bool(told[launching.BAD]),
        )

    def whole(self) -> Adjacency:
        """What was carried, as the host has it. Raises ValueError where it never was there."""
        if self._origin is None:
            raise ValueError("the host has never had this graph")
        return seen(self._origin)

    def compiling(self) -> float:
        """As launching.compiling."""
        return launching.compiling()

    def reach(self, enough: float) -> tuple[float, bool]:
        """As choice.reach_of: no distance exceeds the first number, if the second is true."""
        with compiled():
            found = [self._searched(enough, inwards) for inwards in (False, True)]
        complete = all(bool(np.isfinite(distance).all()) for distance in found)
        farthest = [float(distance[np.isfinite(distance)].max()) for distance in found]
        return (sum(farthest) if complete else max(farthest)), complete

    def _searched(self, enough: float, inwards: bool) -> np.ndarray:
        """Lengths of some paths from vertex 0, or to it: all that are wanted, or the shortest, or those of so many rounds."""
        now = np.full(self.n, np.inf)
        now[0] = 0
        distance = self._to_device(now)
        for look in range(self.looks):
            for _ in range(_ROUNDS << look):
                self._relax(distance, inwards)
            before, now = now, distance.copy_to_host(stream=self._engine.stream)
            self._engine.synchronize()
            if 2 * now.max() < enough or (now == before).all():
                break
        return now

    def escaped(self, raw: Any, far: float) -> bool:
        """As solver.escaped, of a kernel's distances on the device; `far` and more is no path."""
        from kernels.numba_door.device import cuda

        words = -(-self.n // 32)
        sets = cuda.device_array((self.n, words), np.uint32, stream=self._engine.stream)
        grid = (-(-self.n // launching.THREADS), words)
        self._launch(matrix_kernels.functions().reached, grid, raw, np.int32(self.n), np.float64(far), sets)
        found = self._to_device(np.zeros(1))
        self._escaped(sets, found)
        told = found.copy_to_host(stream=self._engine.stream)
        self._engine.synchronize()
        return bool(told[0])

    @abstractmethod
    def enter(self, to: Any, dtype: str) -> None:
        """Write the graph, padded, into a kernel's device array; asynchronous."""

    @abstractmethod
    def _survey(self, found: Any) -> None: ...

    @abstractmethod
    def _relax(self, distance: Any, inwards: bool) -> None: ...

    @abstractmethod
    def _escaped(self, sets: Any, found: Any) -> None: ...

    def _launch(self, function: Any, grid: int | tuple[int, int], *given: Any) -> None:
        launching.launch(function, grid, self._engine.stream, *given)

    def _to_device(self, array: np.ndarray) -> Any:
        from kernels.numba_door.device import cuda

        return cuda.to_device(array, stream=self._engine.stream)


class Matrix(Carried):
    """A square device array of any real type, +inf or NaN for no edge."""

    looks = 2  # the paths of a dense graph have few edges

    def __init__(self, array: Any, engine: Engine, origin: Adjacency | Unseen | None = None):
        super().__init__(array.shape[0], engine, origin)
        self.array = array

    def enter(self, to: Any, dtype: str) -> None:
        no_edge = np.float64(NO_EDGE[dtype])
        self._launch(matrix_kernels.functions().enter, to.shape[0], self.array, to, np.int32(self.n), no_edge)

    def _survey(self, found: Any) -> None:
        blocks = min(self.n, launching.BLOCKS)
        self._launch(matrix_kernels.functions().survey, blocks, self.array, np.int32(self.n), found)

    def _relax(self, distance: Any, inwards: bool) -> None:
        across = -(-self.n // launching.THREADS)
        down = max(1, min(self.n, launching.BLOCKS) // across)
        do = matrix_kernels.functions()
        function, grid = (do.inward, self.n) if inwards else (do.outward, (across, down))
        self._launch(function, grid, self.array, np.int32(self.n), distance)

    def _escaped(self, sets: Any, found: Any) -> None:
        self._launch(matrix_kernels.functions().escaped, self.n, self.array, np.int32(self.n), sets, found)


class ArcList(Carried):
    """Arcs as three device arrays; of parallel ones the least weight counts."""

    looks = 8

    def __init__(self, n: int, arcs: tuple[Any, Any, Any], engine: Engine, origin: Adjacency | Unseen | None = None):
        super().__init__(n, engine, origin)
        self._arcs = arcs
        self._blocks = max(1, min(-(-arcs[2].shape[0] // launching.THREADS), launching.BLOCKS))

    def enter(self, to: Any, dtype: str) -> None:
        from kernels.numba_door.device import cuda

        do = arc_kernels.functions()
        rows, columns = to.shape
        no_edge = np.float64(NO_EDGE[dtype])
        if dtype != "int16":
            self._launch(do.clear, rows, to, no_edge)
            self._launch(do.lower, self._blocks, *self._arcs, to)
            return
        # two cells to a word, also where a row ends with half of one
        even = to if columns % 2 == 0 else cuda.device_array((rows, columns + 1), np.int16, stream=self._engine.stream)
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


def carry(graph: Adjacency | Unseen, engine: Engine) -> tuple[Carried | None, dict[str, float]]:
    """The graph on the engine's device, and seconds by stage. None where the host has to look through it: where there is no room
    for it beside its distances, for numbers that float64 may not hold, and for what may be no graph.
    """
    parts = _parts(graph)
    if parts is None or not graph.n or (not isinstance(parts, np.ndarray) and not len(parts.targets)):
        return None, {}
    free = engine.free_bytes()
    if free is not None and _size(parts) + _MATRICES * 4 * (graph.n + _PADDING) ** 2 > free - KEPT_FREE:
        return None, {}
    launching.compiling()  # of whoever did not ask
    begin = time.perf_counter()
    with compiled():
        there = _room(parts, engine)
        allocated = time.perf_counter()
        for array, part in zip(there, [parts] if isinstance(parts, np.ndarray) else parts, strict=True):
            array.copy_to_device(part, stream=engine.stream)
        engine.synchronize()
        copied = time.perf_counter()
        carried = Matrix(there[0], engine, graph) if isinstance(parts, np.ndarray) else _arcs(graph, parts, there, engine)
        facts = carried.facts
    seconds = {"allocate": allocated - begin, "copy in": copied - allocated, "compile": launching.compiling()}
    seconds["prepare"] = time.perf_counter() - copied - seconds["compile"]
    unsure = facts.bad or (facts.unclear and isinstance(parts, np.ndarray) and isinstance(graph, Unseen))
    return None if unsure or max(-(facts.low or 0), facts.high or 0) > MAX_WEIGHT else carried, seconds


def _parts(graph: Adjacency | Unseen) -> np.ndarray | Rows | Arcs | None:
    if isinstance(graph, Unseen):
        return graph.parts
    return graph.arcs if graph.dense is None else graph.dense if simple(graph.dense) else None


def _size(parts: np.ndarray | Rows | Arcs) -> int:
    """Bytes that it takes on a device."""
    if isinstance(parts, np.ndarray):
        return parts.nbytes
    return sum(part.nbytes for part in parts) + (_INDEX * len(parts.targets) if isinstance(parts, Rows) else 0)


def _room(parts: np.ndarray | Rows | Arcs, engine: Engine) -> list[Any]:
    """Device arrays of the same shapes, types and orders."""
    from kernels.numba_door.device import cuda

    arrays = [parts] if isinstance(parts, np.ndarray) else parts
    orders = ["C" if array.flags.c_contiguous else "F" for array in arrays]
    return [
        cuda.device_array(a.shape, a.dtype, order=order, stream=engine.stream) for a, order in zip(arrays, orders, strict=True)
    ]


def _arcs(graph: Adjacency | Unseen, parts: Rows | Arcs, there: list[Any], engine: Engine) -> ArcList:
    from kernels.numba_door.device import cuda

    first, targets, weights = there
    if isinstance(parts, Rows):
        rows, first = first, cuda.device_array(len(parts.targets), np.int32, stream=engine.stream)
        blocks = min(graph.n, launching.BLOCKS)
        launching.launch(arc_kernels.functions().rows_of, blocks, engine.stream, rows, np.int32(graph.n), first)
    return ArcList(graph.n, (first, targets, weights), engine, graph)
