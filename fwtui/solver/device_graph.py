"""Graphs of the host or of a GPU, which the GPU checks, bounds and lays out; it also converts their distances.

A dense matrix is copied in its own type and order, a sparse one as its arcs; the host makes no other copy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from fwtui.common import units
from fwtui.common.cores import usable_cores
from fwtui.common.errors import Refused
from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency, CsrRows, DeviceArray, GivenGraph, LazyGraph
from fwtui.graphs.bounds import facts_of, longest, proved_by_edges
from fwtui.solver import compiled_code, graph_kernels
from fwtui.solver.call import Call, Clock
from fwtui.solver.compiled_code import compiled, on_device, on_host
from fwtui.solver.costs import check_device_room, free_on_device
from fwtui.solver.graph_kernels import BAD, DIAGONAL, EDGES, FRACTION, HIGH, LARGEST, LOW, MIN_LOOP, MISSING, ZEROS
from fwtui_kernels.compiled.device import cuda
from fwtui_kernels.plan import NO_EDGE, Buffers, Program

_ROUNDS = 3  # rounds of a search before its distances are checked; then twice as many, and so on
_LOOKS, _FEW_LOOKS, _DENSE_LOOKS = 8, 4, 2  # checks, at most; the paths of a dense graph have few edges
_MATRICES = 2  # number of 32-bit matrices of a kernel, in addition to the graph
_INDEX = 4  # bytes per vertex of an arc
Piece = tuple[int, np.ndarray, np.ndarray]  # the first row of some, where they belong, and where the device's copy goes


class DeviceGraph:
    """A graph in device memory: a square array of any real type, or three arrays of arcs; of parallel arcs the lightest counts.

    `keep`: its distances stay on the device. Its kernels are launched within compiled().
    """

    piece_bytes = 1 << 24  # bytes of distances that are converted and copied at once
    copying_threads = 8  # maximum number of host threads, each with a piece of pinned memory
    home: ClassVar[Literal["device"]] = "device"

    def __init__(self, arrays: tuple[Any, ...], n: int, engine: Engine, origin: GivenGraph, keep: bool = False):
        self.n, self.engine, self.origin, self.keep = n, engine, origin, keep
        self._arrays, self._dense = arrays, len(arrays) == 1
        self._blocks = max(1, min(n if self._dense else -(-len(arrays[-1]) // compiled_code.THREADS), compiled_code.BLOCKS))
        start = np.full(EDGES + 1, -np.inf)
        start[EDGES] = 0
        survey_of = graph_kernels.survey_matrix if self._dense else graph_kernels.survey_arcs
        survey = self._filled(survey_of, self._blocks, start, *arrays, np.int32(n))
        low = -max(survey[LOW], survey[MIN_LOOP]) if survey[MIN_LOOP] > 0 else -survey[LOW]
        self.facts = facts_of(n, int(survey[EDGES]), low, survey[HIGH], survey[FRACTION])
        self.unclear = bool(survey[ZEROS] and not survey[MISSING])  # no edges, or edges of weight 0?
        self.bad = bool(survey[BAD])  # -inf, or an arc to or from a missing vertex

    @property
    def to_host(self) -> bool:
        """Return whether the distances are copied to the host."""
        return not self.keep

    def reach(self, enough: float) -> tuple[float, bool]:
        """Return an upper bound on all distances, and whether it is valid; the searches end below `enough`.

        For arcs whose distances provably fit int32, few checks are made, and the bound is infinite if they do not reach all
        vertices: longer searches take more time than int16 saves.
        """
        few = not self._dense and proved_by_edges(self.facts, "int32")
        looks = _DENSE_LOOKS if self._dense else _FEW_LOOKS if few else _LOOKS
        lengths: list[np.ndarray] = []
        with compiled(self.engine.target.backend):
            for inwards in (False, True):
                lengths.append(self._searched(enough, inwards, looks))
                if few and np.isinf(lengths[-1]).any():
                    return np.inf, False
        return longest(*lengths)

    def _searched(self, enough: float, inwards: bool, looks: int) -> np.ndarray:
        """Return lengths of paths from or to vertex 0, once they are small enough or shortest, or after the last check."""
        now = np.full(self.n, np.inf)
        now[0] = 0
        distance = on_device(now, self.engine)
        for look in range(looks):
            for _ in range(_ROUNDS << look):
                self._relax(distance, inwards)
            before, now = now, on_host(distance, self.engine)
            if 2 * now.max() < enough or (now == before).all():
                break
        return now

    def load(self, program: Program, buffers: Buffers, clock: Clock) -> None:
        """Load the graph into a program."""
        program.fill(self.enter, buffers, self.engine.stream)
        self.engine.synchronize()
        clock.lap("prepare")

    def unload(self, program: Program, buffers: Buffers, far: float) -> tuple[Any, float, np.ndarray]:
        """Return the distances as the program left them, the greatest absolute one, and their diagonal.

        Zeros may replace a diagonal without negative cells.
        """
        distances, n = program.result(buffers, self.engine.stream), np.int32(self.n)
        extremes = self._filled(graph_kernels.look, min(self.n, compiled_code.BLOCKS), np.zeros(2), distances, n, np.float64(far))
        diagonal = np.zeros(self.n)
        if extremes[DIAGONAL] > 0:
            diagonal = self._filled(graph_kernels.diagonal, -(-self.n // compiled_code.THREADS), diagonal, distances, n)
        return distances, float(extremes[LARGEST]), diagonal

    def escaped(self, distances: Any, far: float) -> bool:
        """Return whether an arc leads from a vertex with a distance to one without: then the distance overflowed."""
        set_words = -(-self.n // 32)
        sets = self._empty((self.n, set_words), np.uint32)
        grid = -(-self.n // compiled_code.THREADS), set_words
        self._launch(graph_kernels.reached, grid, distances, np.int32(self.n), np.float64(far), sets)
        escaped = graph_kernels.escaped_matrix if self._dense else graph_kernels.escaped_arcs
        return bool(self._filled(escaped, self._blocks, np.zeros(1), *self._arrays, sets)[0])

    def finished(self, distances: Any, far: float, wide: bool, reuse: bool) -> Any:
        """Return the distances in the form of Result, on the device or copied to the host piece by piece.

        With `reuse` they may overwrite those of the kernel.
        """
        n, to = self.n, np.dtype(np.float64 if wide else np.float32)
        if self.keep:
            if reuse and distances.shape == (n, n) and distances.dtype.itemsize == to.itemsize:
                whole = distances.view(to)
            else:
                check_device_room(self.engine, n, n * n * to.itemsize)
                whole = self._empty((n, n), to)
            self._leave(distances, 0, whole, n, far)
            self.engine.synchronize()
            return whole
        result = np.empty((n, n), to)
        rows = max(1, min(n, self.piece_bytes // (n * to.itemsize)))
        piece = self._empty((rows, n), to)
        starts = range(0, n, rows)
        copied = self._by_threads if len(starts) > 4 * self.copying_threads else self._directly
        for first, part, here in copied(result, starts):
            self._leave(distances, first, piece, len(part), far)
            piece[: len(part)].copy_to_host(here, stream=self.engine.stream)
            self.engine.synchronize()
        return result

    def _directly(self, result: np.ndarray, starts: range) -> Iterator[Piece]:
        for first in starts:
            part = result[first : first + starts.step]
            yield first, part, part

    def _by_threads(self, result: np.ndarray, starts: range) -> Iterator[Piece]:
        """Yield pieces of pinned memory, from which threads copy: the first write to new host memory is slow."""
        threads = min(self.copying_threads, len(usable_cores()))
        staged = [cuda.pinned_array((starts.step, self.n), result.dtype) for _ in range(threads)]
        with ThreadPoolExecutor(threads) as pool:
            copying: deque[Future[None]] = deque()
            for number, (first, part, _) in enumerate(self._directly(result, starts)):
                if len(copying) == threads:
                    copying.popleft().result()
                here = staged[number % threads][: len(part)]
                yield first, part, here
                copying.append(pool.submit(np.copyto, part, here))
            for last in copying:
                last.result()

    def _leave(self, distances: Any, first: int, to: Any, rows: int, far: float) -> None:
        self._launch(graph_kernels.leave, rows, distances, to, np.int32(first), np.int32(self.n), np.float64(far))

    def enter(self, to: Any) -> None:
        """Write the graph, padded, into a kernel's device array; asynchronous."""
        rows, columns = to.shape
        no_edge = np.float64(NO_EDGE[to.dtype.name])
        if self._dense:
            self._launch(graph_kernels.enter, rows, *self._arrays, to, np.int32(self.n), no_edge)
            return
        if to.dtype != np.int16:
            self._launch(graph_kernels.clear, rows, to, no_edge)
            self._launch(graph_kernels.lower, self._blocks, *self._arrays, to)
            return
        # two cells to a word, also where a row ends with half of one
        even = to if columns % 2 == 0 else self._empty((rows, columns + 1), np.int16)
        self._launch(graph_kernels.clear, rows, even, no_edge)
        self._launch(graph_kernels.lower_pairs, self._blocks, *self._arrays, even.view(np.int32))
        if even is not to:
            self._launch(graph_kernels.enter, rows, even, to, np.int32(columns), no_edge)

    def _relax(self, distance: Any, inwards: bool) -> None:
        if not self._dense:
            sources, targets, weights = self._arrays
            ends = (targets, sources) if inwards else (sources, targets)
            self._launch(graph_kernels.relax_arcs, self._blocks, *ends, weights, distance)
            return
        across = -(-self.n // compiled_code.THREADS)
        down = max(1, self._blocks // across)
        function, grid = (graph_kernels.inward, self.n) if inwards else (graph_kernels.outward, (across, down))
        self._launch(function, grid, *self._arrays, np.int32(self.n), distance)

    def _launch(self, function: Any, grid: int | tuple[int, int], *arguments: Any) -> None:
        compiled_code.launch(function, grid, self.engine.stream, *arguments)

    def _filled(self, function: Any, grid: int, start: np.ndarray, *arguments: Any) -> np.ndarray:
        """Launch the function and return its last argument, filled, on the host."""
        result = on_device(start, self.engine)
        self._launch(function, grid, *arguments, result)
        return on_host(result, self.engine)

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return cuda.device_array(shape, dtype, stream=self.engine.stream)


def on_gpu(graph: GivenGraph | DeviceArray, engine: Engine, call: Call) -> DeviceGraph | None:
    """Return the graph on the engine's device; None if the host must check it, see to_device. Raises Refused."""
    if isinstance(graph, GivenGraph):
        return to_device(graph, engine, call.clock, call.keep_on_device)
    return of_device_array(cuda.as_cuda_array(graph), engine)


def of_device_array(matrix: Any, engine: Engine) -> DeviceGraph:
    """Represent a square device array as a graph. Raises Refused if it is not one."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise Refused(f"an array of shape {matrix.shape} is not a graph; pass a square matrix of n x n weights")
    kind = np.dtype(matrix.dtype)
    if kind.kind not in "fiu" or not kind.isnative or kind.itemsize > 8:
        raise Refused(f"weights of type {kind} are not supported on a GPU; convert them to float64 or int64")
    with compiled(engine.target.backend):
        origin = LazyGraph(len(matrix), matrix, partial(_copied, matrix, engine))
        graph = DeviceGraph((matrix,), len(matrix), engine, origin, keep=True)
        if graph.bad:
            raise Refused("-inf is not a weight; pass finite numbers, and +inf for no edge")
        if graph.unclear:
            raise Refused(
                "zeros off the diagonal may mean no edge or edges of weight 0, and the array does not distinguish them; "
                "put +inf where there is no edge"
            )
    return graph


def _copied(matrix: Any, engine: Engine) -> Adjacency:
    return Adjacency(len(matrix), dense=np.ascontiguousarray(on_host(matrix, engine)))


def to_device(graph: GivenGraph, engine: Engine, clock: Clock, keep: bool = False) -> DeviceGraph | None:
    """Copy the graph to the engine's device; `keep`: leave its distances there.

    None if the host must check it: the graph and a kernel's matrices may not fit together, its values may not fit float64, or it
    may not be a graph. Raises Refused if kept distances do not fit.
    """
    parts = graph.parts
    if parts is None:
        return None
    arrays = [parts] if isinstance(parts, np.ndarray) else list(parts)
    needed = sum(array.nbytes for array in arrays) + _MATRICES * 4 * graph.n**2
    if isinstance(parts, CsrRows):
        needed += _INDEX * len(parts.targets)
    if keep:
        check_device_room(engine, graph.n, needed)
    elif needed > free_on_device(engine, needed):
        return None
    if not arrays[-1].size:
        return None
    clock.lap("prepare")
    with compiled(engine.target.backend):
        orders = ["C" if array.flags.c_contiguous else "F" for array in arrays]
        there = [cuda.device_array(a.shape, a.dtype, order=o, stream=engine.stream) for a, o in zip(arrays, orders, strict=True)]
        clock.lap("allocate")
        for array, part in zip(there, arrays, strict=True):
            array.copy_to_device(part, stream=engine.stream)
        engine.synchronize()
        clock.lap("copy in")
        if isinstance(parts, CsrRows):
            there[0] = _sources(there[0], there[1], engine)
        on_engine = DeviceGraph(tuple(there), graph.n, engine, graph, keep=keep)
    clock.lap("prepare")
    facts = on_engine.facts
    unsure = on_engine.bad or (on_engine.unclear and isinstance(parts, np.ndarray) and isinstance(graph, LazyGraph))
    return None if unsure or facts.largest_weight > units.LARGEST else on_engine


def _sources(pointers: Any, targets: Any, engine: Engine) -> Any:
    """Return the source of each entry of CSR rows, as a device array."""
    n, sources = len(pointers) - 1, cuda.device_array(len(targets), np.int32, stream=engine.stream)
    compiled_code.launch(graph_kernels.rows_of, min(n, compiled_code.BLOCKS), engine.stream, pointers, np.int32(n), sources)
    return sources
