"""A matrix that is on the GPU already: its distances stay there too."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fwtui.common.errors import Refused
from fwtui.engine.engine import Engine
from fwtui.engine.memory import check_memory
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import AFTERWARDS, BY_EDGES, EXACT_INTEGER, exact_up_to
from fwtui.graphs.vertices import Vertices
from fwtui.solver import launching, matrix_kernels
from fwtui.solver.clock import Clock
from fwtui.solver.compiling import compiled
from fwtui.solver.cycles import check_cycles
from fwtui.solver.device_graph import DeviceWeights, Matrix
from fwtui.solver.device_predecessors import far_of, on_device, search_for, terms_of
from fwtui.solver.number_type import ROUNDED, Choice, choices
from fwtui.solver.on_cpu import floating
from fwtui.solver.on_gpu import diagonal_of, extremes, ready, suited
from fwtui.solver.paths import Paths
from fwtui.solver.result import Result, Stats
from kernels.plan import Kernel


def answer(
    matrix: Any, dtype: str | None, kernel: Kernel | None, engine: Engine, predecessors: bool = False, clock: Clock | None = None
) -> Result:
    """Distances as a float32 or float64 device array of a square device matrix, +inf or NaN for no edge; predecessors as an
    int32 one. Raises as solve does.
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise Refused(f"an array of shape {matrix.shape} is no graph, which is a square matrix; give n x n weights")
    given = np.dtype(matrix.dtype)
    if given.kind not in "fiu" or not given.isnative or given.itemsize > 8:
        raise Refused(f"weights of type {given} are no numbers that a GPU has; convert them to float64 or int64")
    from kernels.numba_door.device import cuda

    clock = clock or Clock()
    n = matrix.shape[0]
    with compiled():
        launching.compiling()  # of whoever did not ask
        carried = Matrix(matrix, engine)
        choice = _choice(carried, dtype)
        weights = carried.facts
        clock.lap("prepare", launching.compiling())
        on, shape = suited(kernel, n, choice.dtype, (weights.low or 0) >= 0, engine)
        check_memory(on, shape, engine)
        program, buffers, plan, spent = ready(on, shape, engine, predecessors, not weights.exact_sums)
        clock.take(spent)
        program.load_with(lambda to: carried.enter(to, choice.dtype), buffers, engine.stream)
        engine.synchronize()
        clock.lap("prepare", launching.compiling())
        clock.take({"kernels": engine.clean_pass(program, plan, buffers, "eager")(lambda: None)})
        raw = program.result_on_device(buffers, engine.stream)
        far = far_of(weights, choice.dtype)
        largest, least = extremes(raw, n, far, engine)
        if least < 0:
            check_cycles(partial(_on_host, matrix, engine), weights, diagonal_of(raw, n, engine))
        wide = choice.dtype != "float32" and largest >= EXACT_INTEGER
        distances = cuda.device_array((n, n), np.float64 if wide else np.float32, stream=engine.stream)
        first, size = np.int32(0), np.int32(n)
        launching.launch(matrix_kernels.functions().leave, n, engine.stream, raw, distances, first, size, np.float64(far))
        engine.synchronize()
        clock.lap("copy out", launching.compiling())
        exact = choice.dtype != "float32" or (weights.exact_sums and (choice.proof == BY_EDGES or exact_up_to(weights, largest)))
        before = None
        if predecessors:
            before = _predecessors(matrix, weights, choice, largest, exact, program, buffers, engine)
            clock.lap("paths")
    proof, where = choice.proof if exact else ROUNDED, engine.target.backend
    stats = Stats(n, weights.edges, choice.dtype, proof, exact, on.id, shape.tile, where, dict(clock.seconds))
    return Result(distances, before, stats, Vertices(range(n)))


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
    graph = _on_host(matrix, engine)
    raw = program.unload(buffers, engine.stream)
    distances = floating(raw, choice.dtype, weights.drift, True)
    np.fill_diagonal(distances, 0)
    paths = Paths(graph, distances, exact)
    if found is None:
        from kernels.numba_door.device import cuda

        return cuda.to_device(paths.predecessors(), stream=engine.stream)
    for source, row in zip(hidden.tolist(), paths.by_dijkstra(hidden), strict=True):
        found[source].copy_to_device(row, stream=engine.stream)
    engine.synchronize()
    return found


def _on_host(matrix: Any, engine: Engine) -> Adjacency:
    given = matrix.copy_to_host(stream=engine.stream)
    engine.synchronize()
    return Adjacency(len(given), Vertices(range(len(given))), dense=np.ascontiguousarray(given))


def _choice(carried: Matrix, asked: str | None) -> Choice:
    """The narrowest type that is proved to do, by its weights or by searches; float32 needs no proof."""
    if carried.facts.bad:
        raise Refused("-inf is no weight; give finite numbers, and +inf for no edge")
    if carried.facts.unclear:
        raise Refused(
            "zeros off the diagonal may mean no edge or edges of weight 0, and nothing in the array says which; "
            "put +inf where there is no edge"
        )
    for choice in choices(carried.facts, asked, carried.reach):
        if choice.dtype == "float32" or choice.proof != AFTERWARDS:
            return choice
    raise Refused(f"distances may not fit {asked}, and on a device nothing proves that they do; leave dtype out")
