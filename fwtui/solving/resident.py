"""A matrix that is on the GPU already: its distances stay there too.

Cells are looked at, converted and laid out by one block of threads for each row, neighbours side by side.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from fwtui.errors import Refused
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import AFTERWARDS, BY_EDGES, EXACT_INTEGER, limit, proved_by_edges
from fwtui.graphs.vertices import Vertices
from fwtui.measure.engine import Engine, one_of_each_op
from fwtui.measure.memory import check_memory
from fwtui.solving.choice import NARROW_FIRST, ROUNDED, Choice, unfit
from fwtui.solving.compiling import compiled
from fwtui.solving.device import suited
from fwtui.solving.host import floating
from fwtui.solving.paths import Paths
from fwtui.solving.result import Result, Stats
from fwtui.solving.tracing import far_of, on_device, search_for, terms_of
from kernels.plan import NO_EDGE, Kernel
from kernels.predecessors import compile_search

_THREADS = 256
_LOW, _HIGH, _LEAST_LOOP, _EDGES, _FRACTIONS, _OFF_GRID, _MISSING, _ZEROS, _BAD = range(9)
_LARGEST, _DIAGONAL = range(2)

cuda: Any


@dataclass(frozen=True)
class DeviceWeights:
    """What bounds need to know of a matrix that was looked at on its device; as graphs.bounds.Facts."""

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


def answer(matrix: Any, dtype: str | None, kernel: Kernel | None, engine: Engine, predecessors: bool = False) -> Result:
    """Distances as a float32 or float64 device array of a square device matrix, +inf or NaN for no edge; predecessors as an
    int32 one. Raises as solve does.
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise Refused(f"an array of shape {matrix.shape} is no graph, which is a square matrix; give n x n weights")
    if np.dtype(matrix.dtype).kind not in "fiu":
        raise Refused(f"weights of type {matrix.dtype} are no numbers to add up; convert them to float64 or int64")
    begin = time.perf_counter()
    n = matrix.shape[0]
    with compiled():
        weights = _weights(matrix, engine)
        choice = _choice(weights, dtype)
        on, shape = suited(kernel, n, choice.dtype, (weights.low or 0) >= 0, engine)
        check_memory(on, shape, engine)
        program: Any = on.build(shape, engine.target)
        buffers = program.allocate()
        plan = list(on.plan(shape, False))
        for step in one_of_each_op(plan):
            program.launch(step, buffers, engine.stream)
        if predecessors:
            compile_search(choice.dtype, choice.dtype == "float32" and not weights.exact_sums, engine.target.cc, engine.stream)
        engine.synchronize()
        ready = time.perf_counter()
        enter, leave = _functions()[1:3]
        no_edge = np.float64(NO_EDGE[choice.dtype])
        program.load_with(
            lambda to: enter[to.shape[0], _THREADS, engine.stream](matrix, to, np.int32(n), no_edge), buffers, engine.stream
        )
        engine.synchronize()
        seconds = engine.clean_pass(program, plan, buffers, "eager")(lambda: None)
        ran = time.perf_counter()
        raw = program.result_on_device(buffers, engine.stream)
        far = np.float64(far_of(weights, choice.dtype))
        largest, diagonal = extremes(raw, n, far, engine)
        if diagonal < 0 and weights.exact_sums:
            from scipy.sparse.csgraph import NegativeCycleError

            raise NegativeCycleError("the graph has a negative cycle: some vertex is nearer to itself than 0")
        wide = choice.dtype != "float32" and largest >= EXACT_INTEGER
        distances = cuda.device_array((n, n), np.float64 if wide else np.float32, stream=engine.stream)
        leave[n, _THREADS, engine.stream](raw, distances, np.int32(n), far)
        engine.synchronize()
        left = time.perf_counter()
        spent = {"compile": ready - begin, "kernels": seconds, "copy out": left - ran}
        exact = choice.dtype != "float32" or (
            weights.exact_sums and (choice.proof == BY_EDGES or largest < limit(weights, "float32") / (2 if weights.drift else 1))
        )
        before = None
        if predecessors:
            before = _predecessors(matrix, weights, choice, largest, exact, program, buffers, engine)
            spent["paths"] = time.perf_counter() - left
    stats = Stats(
        n, weights.edges, choice.dtype, choice.proof if exact else ROUNDED, exact, on.id, shape.tile, engine.target.backend, spent
    )
    return Result(distances, before, stats, Vertices(range(n)))


def extremes(raw: Any, n: int, far: float, engine: Engine) -> tuple[float, float]:
    """The greatest absolute value below `far` of the n x n corner of a device array, and the least on its diagonal, or 0."""
    look = _functions()[3]
    found = cuda.to_device(np.array([0.0, 0.0]), stream=engine.stream)
    look[n, _THREADS, engine.stream](raw, np.int32(n), np.float64(far), found)
    told = found.copy_to_host(stream=engine.stream)
    engine.synchronize()
    return float(told[_LARGEST]), float(told[_DIAGONAL])


def _predecessors(
    matrix: Any, weights: DeviceWeights, choice: Choice, largest: float, exact: bool, program: Any, buffers: Any, engine: Engine
) -> Any:
    """As a device array; where the device cannot find them, found by the host from distances alone. So are the rows of sources
    that rounding hid something of.
    """
    terms = terms_of(weights, choice.dtype, largest)
    n = weights.n
    found, hidden = None, np.empty(0, np.int64)
    if terms is not None and (search := search_for(program, buffers, terms, engine, 4 * n * n)) is not None:
        found = on_device(*search, n, engine)
        hidden = search[0].unfound()
        if not len(hidden):
            return found
        del search
    given = np.ascontiguousarray(matrix.copy_to_host(stream=engine.stream))
    raw = program.unload(buffers, engine.stream)
    graph = Adjacency(n, Vertices(range(n)), dense=given)
    distances = floating(raw, choice.dtype, weights.drift, True)
    np.fill_diagonal(distances, 0)
    paths = Paths(graph, distances, exact)
    if found is None:
        return cuda.to_device(paths.predecessors(), stream=engine.stream)
    for source, row in zip(hidden.tolist(), paths.by_dijkstra(hidden), strict=True):
        found[source].copy_to_device(row, stream=engine.stream)
    engine.synchronize()
    return found


def _choice(weights: DeviceWeights, asked: str | None) -> Choice:
    """The narrowest type that the weights alone prove: searches would need the matrix on the host."""
    for dtype in (asked,) if asked is not None else NARROW_FIRST:
        if dtype not in NARROW_FIRST:
            raise Refused(f"dtype {dtype!r} is not one that kernels have; choose one of {', '.join(NARROW_FIRST)}")
        reason = unfit(weights, dtype)
        if reason is None and weights.exact_sums and (weights.high is None or proved_by_edges(weights, dtype)):
            return Choice(dtype, BY_EDGES)
        if asked is not None and dtype != "float32":
            raise Refused(
                reason or f"distances may not fit {dtype}, and on a device nothing proves that they do; leave dtype out"
            )
    return Choice("float32", AFTERWARDS if weights.exact_sums else ROUNDED)


def _weights(matrix: Any, engine: Engine) -> DeviceWeights:
    survey = _functions()[0]
    start = np.zeros(_BAD + 1)
    start[_LOW], start[_HIGH] = np.inf, -np.inf
    found = cuda.to_device(start, stream=engine.stream)
    n = matrix.shape[0]
    survey[n, _THREADS, engine.stream](matrix, np.int32(n), found)
    told = found.copy_to_host(stream=engine.stream)
    engine.synchronize()
    if told[_BAD]:
        raise Refused("-inf is no weight; give finite numbers, and +inf for no edge")
    if told[_ZEROS] and not told[_MISSING]:
        raise Refused(
            "zeros off the diagonal may mean no edge or edges of weight 0, and nothing in the array says which; "
            "put +inf where there is no edge"
        )
    low = min(told[_LOW], told[_LEAST_LOOP]) if told[_LEAST_LOOP] < 0 else told[_LOW]
    return DeviceWeights(
        n=n,
        integer=not told[_FRACTIONS],
        low=float(low) if np.isfinite(low) else None,
        high=float(told[_HIGH]) if np.isfinite(told[_HIGH]) else None,
        grid=not told[_OFF_GRID],
        edges=int(told[_EDGES]),
    )


@cache
def _functions() -> tuple[Any, Any, Any, Any]:
    """survey(matrix, n, found), enter(matrix, to, n, no_edge), leave(result, out, n, far), look(result, n, far, found)."""
    global cuda
    from kernels.device import cuda, jit

    @jit
    def survey(matrix, n, found):
        row = cuda.blockIdx.x
        low = np.inf
        high = -np.inf
        edges = fractions = off_grid = missing = zeros = bad = 0
        for column in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            weight = np.float64(matrix[row, column])
            if weight == -np.inf:
                bad = 1
            elif row == column:
                if weight < 0:
                    cuda.atomic.min(found, _LEAST_LOOP, weight)
                    if weight % 1.0 != 0.0:
                        fractions = 1
                    if weight * 256.0 % 1.0 != 0.0:
                        off_grid = 1
            elif weight < np.inf:
                edges += 1
                low = min(low, weight)
                high = max(high, weight)
                if weight % 1.0 != 0.0:
                    fractions = 1
                if weight * 256.0 % 1.0 != 0.0:
                    off_grid = 1
                if weight == 0:
                    zeros = 1
            else:
                missing = 1
        if edges:
            cuda.atomic.min(found, _LOW, low)
            cuda.atomic.max(found, _HIGH, high)
            cuda.atomic.add(found, _EDGES, np.float64(edges))
        # rarely anything to say, and always the same
        if fractions:
            found[_FRACTIONS] = 1
        if off_grid:
            found[_OFF_GRID] = 1
        if missing:
            found[_MISSING] = 1
        if zeros:
            found[_ZEROS] = 1
        if bad:
            found[_BAD] = 1

    @jit
    def enter(matrix, to, n, no_edge):
        row = cuda.blockIdx.x
        for column in range(cuda.threadIdx.x, to.shape[1], cuda.blockDim.x):
            weight = no_edge
            if row < n and column < n:
                given = np.float64(matrix[row, column])
                if given < np.inf:
                    weight = given
            if row == column:
                weight = min(weight, 0.0)
            to[row, column] = weight

    @jit
    def leave(result, out, n, far):
        row = cuda.blockIdx.x
        for column in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            distance = np.float64(result[row, column])
            # -0 and +0 are one distance
            out[row, column] = distance + 0.0 if distance < far else np.inf

    @jit
    def look(result, n, far, found):
        row = cuda.blockIdx.x
        largest = 0.0
        for column in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            distance = np.float64(result[row, column])
            if distance < far:
                largest = max(largest, abs(distance))
                if row == column and distance < 0:
                    cuda.atomic.min(found, _DIAGONAL, distance)
        if largest > found[_LARGEST]:
            cuda.atomic.max(found, _LARGEST, largest)

    return survey, enter, leave, look
