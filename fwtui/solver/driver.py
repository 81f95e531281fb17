"""From a graph on host or device to its distances and paths, with any kernel on any engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from itertools import count
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from fwtui.common.errors import Refused
from fwtui.engine.engine import Engine, one_of_each_op
from fwtui.engine.memory import check_memory
from fwtui.graphs.adjacency import Adjacency, weights_along
from fwtui.graphs.bounds import AFTERWARDS, EXACT_INTEGER, exact_up_to
from fwtui.graphs.cycles import negative_cycle
from fwtui.graphs.graph import Facts
from fwtui.solver.choose import beside, bytes_a_cell, check_room, check_wide, fitting, suited
from fwtui.solver.host_graph import HostGraph
from fwtui.solver.launching import Clock, compiled, on_device, on_host, put
from fwtui.solver.number_type import ROUNDED, Choice, choices, far_of, unfit
from fwtui.solver.paths import Paths
from fwtui.solver.result import Result, Stats
from fwtui_kernels.plan import ITEMSIZE, Buffers, Kernel, Program, Shape, Step

if TYPE_CHECKING:
    from fwtui.solver.device_graph import DeviceGraph  # which brings numba

    Source = HostGraph | DeviceGraph

Tell = Callable[[float], None]  # the share of the work done
_KEPT = 8  # programs
_SHOWN = 8  # vertices of a cycle in a message

_kept: dict[tuple[str, Shape, Engine], tuple[Program, list[Step]]] = {}


def run(
    source: Source,
    named: Kernel | None = None,
    dtype: str | None = None,
    predecessors: bool = False,
    clock: Clock | None = None,
    tell: Tell = lambda share: None,
) -> Result:
    """The answer from the named kernel, or the best known. Raises Refused, and SciPy's NegativeCycleError."""
    clock = clock or Clock()
    for choice in choices(source.facts, dtype, source.reach):
        if source.keep_on_device and choice.dtype != "float32" and choice.proof == AFTERWARDS:
            continue
        clock.lap("prepare")
        result = _tried(source, choice, named, predecessors, clock, tell)
        if result is not None:
            return result
    if source.keep_on_device:
        raise Refused(f"distances may not fit {dtype}, and on a device this cannot be proved; leave dtype out")
    raise Refused(f"some distances are beyond what {dtype} can hold; choose another dtype, or leave it out")


def _tried(source: Source, choice: Choice, named: Kernel | None, predecessors: bool, clock: Clock, tell: Tell) -> Result | None:
    """The answer computed in that type; None if some distances were too long for it."""
    facts, engine, dtype, unproved = source.facts, source.engine, choice.dtype, choice.proof == AFTERWARDS
    if source.keep_on_device:
        kernel, shape = suited(named, facts.n, dtype, (facts.low or 0) >= 0, engine)
        check_memory(kernel, shape, engine)
    elif not source.gathers:
        kernel, shape = fitting(named, facts, dtype, engine, bytes_a_cell(dtype, predecessors) + ITEMSIZE[dtype] * predecessors)
    else:
        check_room(facts.n, dtype, predecessors, low=facts.low, beside=beside(dtype, engine))
        kernel, shape = fitting(named, facts, dtype, engine)
        if engine.elsewhere:
            clock.lap("set-up")
    with compiled() if kernel.compiles and not engine.elsewhere else nullcontext():
        program, plan, buffers = _ready(kernel, shape, engine, clock)
        weights = program.weights(buffers) if predecessors else None
        if weights is not None:
            from fwtui_kernels.paths.predecessors import compile_search  # which brings numba

            compile_search(dtype, dtype == "float32" and not facts.exact_sums, engine.target.cc, engine.stream)
            clock.lap("compile")
        place: Source = source if program.home == "device" or isinstance(source, HostGraph) else HostGraph(source.whole(), engine)
        place.load(program, buffers, clock)
        launched = count()
        timed = engine.clean_pass(program, plan, buffers, "eager")
        clock.take("kernels", timed(lambda: tell(next(launched) / len(plan))))
        far = far_of(facts, dtype)
        raw = place.result(program, buffers)
        largest, diagonal = place.look(raw, far)
        check_cycles(source.whole, facts, diagonal)
        if unproved and dtype != "float32" and place.escaped(raw, far):
            return None
        wide = dtype != "float32" and largest >= EXACT_INTEGER
        if wide and not source.keep_on_device:
            rows = shape.rows * sum(rank.host == 0 for rank in engine.ranks)
            check_wide(facts.n, facts.n if source.gathers else rows, predecessors)
        distances = place.finished(raw, far, wide)
        clock.lap("copy out")
        traced = None
        if weights is not None:
            from fwtui.solver.device_predecessors import found_on_device

            there = program.result(buffers, engine.stream)
            traced = found_on_device(there, weights, facts, largest, engine, source.keep_on_device, clock)
    exact = dtype != "float32" or (facts.exact_sums and (not unproved or exact_up_to(facts, largest)))
    paths = None if source.keep_on_device or not source.gathers else Paths(source.origin, distances, exact)
    before, hidden = traced or (None, np.empty(0, np.int64))
    if predecessors and not source.gathers:
        before = source.predecessors(exact)
    elif predecessors and (before is None or len(hidden)):
        here = paths or Paths(source.whole(), on_host(distances, engine), exact)
        if before is None:
            before = here.predecessors()
        else:
            for vertex, row in zip(hidden.tolist(), here.by_dijkstra(hidden), strict=True):
                put(row, before[vertex], engine)
    if predecessors:
        clock.lap("paths")
    if source.keep_on_device:
        distances, before = on_device(distances, engine), on_device(before, engine)
    proof, tile = choice.proof if exact else ROUNDED, shape.tile if kernel.tiles else 0
    devices = tuple(map(str, engine.ranks))
    backend, seconds = engine.target.backend, dict(clock.seconds)
    stats = Stats(facts.n, facts.edges, dtype, proof, exact, kernel.id, tile, backend, devices, seconds)
    return Result(distances, before, stats, source.origin.vertices, paths, source.rows)


def check_cycles(whole: Callable[[], Adjacency], facts: Facts, diagonal: np.ndarray, what: str = "the graph") -> None:
    """Raises SciPy's NegativeCycleError, with the vertices of a cycle, if a vertex has a negative distance to itself."""
    low = facts.low or 0
    if low >= 0 or not (diagonal < 0).any():
        return
    adjacency = whole()
    weights = np.empty((adjacency.n, adjacency.n), dtype=np.int32 if unfit(facts, "int32") is None else np.float32)
    adjacency.fill(weights)
    cycle = negative_cycle(weights)
    closed = [*cycle, *cycle[:1]]
    if not cycle or fsum(weights_along(adjacency, closed)) >= 0:
        # float32 may make a cycle of weight 0 slightly negative, but not below this
        rounding = adjacency.n * float(np.finfo(np.float32).eps) * max(-low, facts.high or 0)
        if facts.integer or float(diagonal.min()) < -rounding:
            closed = [int(diagonal.argmin())]
        else:
            return
    from scipy.sparse.csgraph import NegativeCycleError

    names = [adjacency.vertices.name(v) for v in closed]
    if len(names) > _SHOWN:
        names = [*names[: _SHOWN - 2], "...", names[-1]]
    where = f": {' -> '.join(names)}" if len(names) > 1 else f" through {names[0]}"
    raise NegativeCycleError(f"{what} has a negative cycle{where}")


def _ready(kernel: Kernel, shape: Shape, engine: Engine, clock: Clock) -> tuple[Program, list[Step], Buffers]:
    """Its program, with all its functions compiled, and new buffers. An earlier program is reused."""
    key = kernel.id, shape, engine
    program, plan = _kept.get(key) or (engine.build(kernel, shape), list(kernel.plan(shape, False)))
    if kernel.compiles:
        clock.lap("compile")
    buffers = program.allocate()
    clock.lap("allocate")
    if kernel.compiles and key not in _kept:
        program.compile(one_of_each_op(plan), buffers, engine.stream)
        engine.synchronize()
        if not engine.ranks:  # which are gone afterwards
            while len(_kept) >= _KEPT:
                del _kept[next(iter(_kept))]
            _kept[key] = program, plan
        clock.lap("compile")
    return program, plan, buffers
