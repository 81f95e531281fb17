"""One run of a kernel for a graph: launches, checks of the distances, predecessors, and the form of the result."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from fwtui.common.errors import Refused
from fwtui.common.malloc_arenas import RESERVED_MEMORY
from fwtui.common.units import memory
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import AFTERWARDS, EXACT_INTEGER, Choice, rounded
from fwtui.graphs.cycles import cycle_or_heights
from fwtui.graphs.graph import EdgeFacts
from fwtui.graphs.vertices import Vertices
from fwtui.solver.call import Call
from fwtui.solver.compiled_code import compiled, on_device, on_host, ready_program
from fwtui.solver.costs import PREDECESSOR, WIDE_DISTANCE, check_device_room
from fwtui.solver.host_graph import HostGraph
from fwtui.solver.kernel_choice import choose_kernel
from fwtui.solver.paths import Paths, TracedPredecessors
from fwtui.solver.result import Result, Stats
from fwtui_kernels.parts.elimination import relaxations
from fwtui_kernels.plan import FLOATS

if TYPE_CHECKING:
    from fwtui.solver.device_graph import DeviceGraph

_SHOWN = 8  # vertices of a cycle in a message
_PASSES = 64


def solve_in(graph: HostGraph | DeviceGraph, choice: Choice, call: Call) -> Result | None:
    """Return the result computed in that data type; None if some distances overflow it, or if a wider type avoids rounding.

    Raises Refused, and SciPy's NegativeCycleError.
    """
    engine, facts, origin, clock, dtype = graph.engine, graph.facts, graph.origin, call.clock, choice.dtype
    kernel, shape, reason = choose_kernel(origin, facts, call, dtype, engine, graph.to_host)
    with compiled(engine.target.backend) if kernel.compiles else nullcontext():
        program, plan, buffers = ready_program(kernel, shape, engine, clock)
        weights = program.weights(buffers) if call.predecessors else None
        if weights is not None:
            from fwtui_kernels.paths.predecessors import compile_search  # imports numba

            compile_search(dtype, engine.stream)
            clock.lap("compile")
        side = graph if program.home == graph.home else HostGraph(origin, engine, facts, graph.keep)
        side.load(program, buffers, clock)
        launched = count()
        timed = engine.timed_repetition(program, plan, buffers, "eager")
        clock.take("kernels", timed(lambda: call.report_progress(next(launched) / len(plan))))
        distances, largest, diagonal = side.unload(program, buffers, choice.far)
        if not facts.nonnegative and (diagonal < 0).any():
            check_cycles(origin.adjacency, facts, diagonal, dtype)
        exact = largest < choice.exact_below
        if call.dtype is None and dtype == "float32" and not exact:
            return None
        if choice.proof == AFTERWARDS and dtype not in FLOATS and side.escaped(distances, choice.far):
            return None
        wide = dtype == "float64" or (dtype not in FLOATS and largest >= EXACT_INTEGER)
        if wide and dtype not in FLOATS and side.to_host:
            _check_wide(facts.n, call.predecessors)
        distances = side.finished(distances, choice.far, wide, reuse=weights is None)
        clock.lap("copy out")
        before = traced = None
        if weights is not None:
            from fwtui.solver.device_predecessors import found_on_device

            there = program.result(buffers, engine.stream)
            traced = found_on_device(there, weights, facts, largest, engine, graph.keep, clock)
    if call.predecessors:
        before = _predecessors(graph, distances, exact, traced)
        clock.lap("paths")
    stats = Stats(
        n=facts.n,
        edges=facts.edges,
        dtype=dtype,
        proof=choice.proof if exact else rounded(dtype),
        exact=exact,
        kernel=kernel.id,
        tile=shape.tile if kernel.tiles else 0,
        device=engine.target.backend,
        devices=tuple(map(str, engine.ranks)),
        seconds=dict(clock.seconds),
        relaxations=0 if shape.order is None else relaxations(shape),
        reason=reason,
    )
    if not graph.keep:
        return Result(distances, before, stats, origin.vertices, Paths(origin, distances, exact))
    check_device_room(engine, facts.n, sum(a.nbytes for a in (distances, before) if isinstance(a, np.ndarray)))
    return Result(on_device(distances, engine), on_device(before, engine), stats, origin.vertices)


def _predecessors(graph: HostGraph | DeviceGraph, distances: Any, exact: bool, traced: TracedPredecessors | None) -> Any:
    """Return the predecessors of finished distances; `traced` are those that the GPU found."""
    engine = graph.engine
    paths = Paths(graph.origin.adjacency, on_host(distances, engine), exact)
    if traced is None:
        return paths.predecessors()
    before, hidden = traced
    if len(hidden):
        for vertex, row in zip(hidden.tolist(), paths.by_dijkstra(hidden), strict=True):
            if isinstance(before, np.ndarray):
                before[vertex] = row
            else:
                before[vertex].copy_to_device(row, stream=engine.stream)
        engine.synchronize()
    return before


def _check_wide(n: int, predecessors: bool) -> None:
    """Raise Refused if float64 distances do not fit in memory, next to predecessors that are still to be computed."""
    free = psutil.virtual_memory().available
    needed = n**2 * (WIDE_DISTANCE + (PREDECESSOR if predecessors else 0))
    if needed > max(0, free - RESERVED_MEMORY):
        raise Refused(
            f"distances of {n:,} vertices that reach 2^24 need 64 bits, {memory(needed)} more, but only {memory(free)} is free; "
            f"choose dtype float32, which rounds them, or a smaller graph"
        )


def check_cycles(graph: Adjacency, facts: EdgeFacts, diagonal: np.ndarray, dtype: str) -> None:
    """Raise SciPy's NegativeCycleError, with the vertices of a cycle, if the diagonal is negative by more than rounding."""
    cycle, _ = cycle_or_heights(graph)
    if cycle:
        raise cycle_error(graph.vertices, [*cycle, cycle[0]])
    # rounding may make a cycle of weight 0 slightly negative, but not below this; tiles pass through a short one several times
    eps = float(np.finfo(dtype).eps) if dtype in FLOATS else 0.0
    if facts.integer or float(diagonal.min()) < -(graph.n + _PASSES) * eps * facts.largest_weight:
        raise cycle_error(graph.vertices, [int(diagonal.argmin())])


def cycle_error(vertices: Vertices, closed: Sequence[int]) -> Exception:
    """Return SciPy's NegativeCycleError with the vertices of a closed cycle, or with one vertex that is on it."""
    from scipy.sparse.csgraph import NegativeCycleError

    names = [vertices.name(v) for v in closed]
    if len(names) > _SHOWN:
        names = [*names[: _SHOWN - 2], "...", names[-1]]
    where = f": {' -> '.join(names)}" if len(names) > 1 else f" through {names[0]}"
    return NegativeCycleError(f"the graph has a negative cycle{where}")
