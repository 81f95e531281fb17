"""From a graph in any representation to its distances and paths, with any kernel on any engine."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from fwtui.common.errors import Refused
from fwtui.common.text import brief
from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import GivenGraph
from fwtui.graphs.bounds import AFTERWARDS, EXACT_INTEGER, ROUNDED, Choice, choices, exact_up_to, far_of
from fwtui.solver import choose, warm
from fwtui.solver.host_graph import HostGraph, OneCoreGraph
from fwtui.solver.launching import Clock, compiled, threads_lost
from fwtui.solver.result import Result, Stats
from fwtui.solver.solver_graph import OneGraph, SolverGraph, Tell
from fwtui_kernels.parts.supernodal import elimination
from fwtui_kernels.plan import Kernel

Answer = TypeVar("Answer")


def answer(
    graph: Any,
    *,
    dtype: str | None = None,
    predecessors: bool = False,
    kernel: str = "auto",
    device: str | int | None = None,
    devices: str | None = None,
    engine: Engine | None = None,
    tell: Tell = lambda share: None,
    clock: Clock | None = None,
) -> Result:
    """Like solve, for an Adjacency, a LazyGraph or a device's array. `tell` gets the share done; `engine` runs the kernels,
    chosen by `device` unless given.
    """
    clock = clock or Clock()
    clock.lap("prepare")
    named = choose.named(kernel)
    with _engine(graph, named, device, devices) if engine is None else nullcontext(engine) as chosen:
        here = _represented(graph, chosen, named, clock)
        result = run(here, named, dtype, predecessors, clock, tell)
    if named is None and chosen is choose.CPU:
        warm.everyday.took(result.stats)
    return result


def _engine(graph: Any, named: Kernel | None, device: str | int | None, devices: str | None) -> AbstractContextManager[Engine]:
    """The engine of one device, or of a job that lasts as long as the block. Raises Refused."""
    resident = not isinstance(graph, GivenGraph)
    if devices is not None:
        if resident:
            what = "get their graph from the host, and the array is on a GPU; copy it to the host"
            raise Refused(f"devices {brief(devices)} {what}")
        if device is not None:
            raise Refused(f"devices {brief(devices)} and device {device} exclude each other; leave out one of them")
        from fwtui.solver.job import job_engine

        return job_engine(devices)
    if named is not None and named.backend != "cuda":
        if resident:
            raise Refused(f"kernel {named.id} runs on the host and the array is on a GPU; copy it, or leave the kernel out")
        return nullcontext(choose.CPU)
    # an array on a GPU is of any size, possibly without a length
    return nullcontext(choose.engine_for(device, 0 if resident else graph.n, resident or named is not None))


def _represented(graph: Any, engine: Engine, named: Kernel | None, clock: Clock) -> OneGraph:
    """The graph as the engine takes it."""
    if engine.elsewhere:
        return HostGraph(graph, engine)
    engine.activate()
    if engine.target.backend != "cpu":
        from fwtui.solver import device_graph

        clock.lap("set-up")
        if not isinstance(graph, GivenGraph):
            from fwtui_kernels.compiled.device import cuda

            return device_graph.of_device_array(cuda.as_cuda_array(graph), engine)
        return device_graph.to_device(graph, engine, clock) or HostGraph(graph, engine)
    code = warm.everyday.ready(graph.n) if named is None and (graph.n <= warm.MOST or threads_lost()) else None
    clock.lap("set-up")
    return HostGraph(graph, engine) if code is None else OneCoreGraph(graph, engine, code)


def run(
    graph: SolverGraph[Answer],
    named: Kernel | None = None,
    dtype: str | None = None,
    predecessors: bool = False,
    clock: Clock | None = None,
    tell: Tell = lambda share: None,
) -> Answer:
    """The answer from the named kernel, or the best known. Raises Refused, and SciPy's NegativeCycleError."""
    clock = clock or Clock()
    reason = f"some distances are beyond what {dtype} can hold; choose another dtype, or leave it out"
    for choice in choices(graph.facts, dtype, graph.reach):
        refusal = graph.refuses(choice)
        if refusal is not None:
            reason = refusal
            continue
        clock.lap("prepare")
        answer = _attempt(graph, choice, named, predecessors, clock, tell)
        if answer is not None:
            return answer
    raise Refused(reason)


def _attempt(
    graph: SolverGraph[Answer], choice: Choice, named: Kernel | None, predecessors: bool, clock: Clock, tell: Tell
) -> Answer | None:
    """The answer computed in that type; None if some distances were too long for it."""
    facts, engine, dtype = graph.facts, graph.engine, choice.dtype
    kernel, shape = graph.suited(named, dtype, predecessors)
    if engine.elsewhere:
        clock.lap("set-up")
    far, unproved = far_of(facts, dtype), choice.proof == AFTERWARDS
    with compiled() if kernel.compiles and not engine.elsewhere else nullcontext():
        closed = graph.closed(kernel, shape, predecessors, clock, tell)
        largest, diagonal = closed.side.look(closed.distances, far)
        graph.check_cycles(diagonal)
        if unproved and dtype != "float32" and closed.side.escaped(closed.distances, far):
            return None
        wide = dtype != "float32" and largest >= EXACT_INTEGER
        if wide:
            graph.check_wide(shape, predecessors)
        distances = closed.side.finished(closed.distances, far, wide)
        clock.lap("copy out")
        traced = closed.trace(largest)
    exact = dtype != "float32" or (facts.exact_sums and (not unproved or exact_up_to(facts, largest)))
    before = None
    if predecessors:
        before = graph.predecessors(distances, exact, traced)
        clock.lap("paths")
    proof, tile = choice.proof if exact else ROUNDED, shape.tile if kernel.tiles else 0
    devices = tuple(map(str, engine.ranks))
    seconds, relaxations = dict(clock.seconds), elimination(shape).relaxations(shape.tile) if shape.order is not None else 0
    told = (dtype, proof, exact, kernel.id, tile, engine.target.backend, devices, seconds)
    stats = Stats(facts.n, facts.edges, *told, relaxations=relaxations, reason=graph.reason)
    return graph.answer(distances, before, stats)
