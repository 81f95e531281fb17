"""From a graph in any representation to its distances and paths, with any kernel on any engine."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import psutil

from fwtui.common.errors import Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.common.text import brief
from fwtui.common.units import memory
from fwtui.engine.engine import Engine
from fwtui.experiment.device import DeviceId
from fwtui.graphs.adjacency import DeviceArray, GivenGraph
from fwtui.graphs.bounds import AFTERWARDS, EXACT_INTEGER, ROUNDED, Choice
from fwtui.solver import choose, costs
from fwtui.solver.call import Call
from fwtui.solver.host_graph import HostGraph
from fwtui.solver.launching import compiled
from fwtui.solver.result import Result, Stats
from fwtui.solver.solver_graph import OneGraph, SolverGraph
from fwtui_kernels.parts.elimination import relaxations

Answer = TypeVar("Answer")


def answer(graph: GivenGraph | DeviceArray, call: Call | None = None, engine: Engine | None = None) -> Result:
    """All distances of one graph. `engine` runs the kernels, chosen by the call unless given.

    Raises like solve.
    """
    call = call or Call()
    call.clock.lap("prepare")
    with _engine(graph, call) if engine is None else nullcontext(engine) as chosen_engine:
        return run(_represented(graph, call, chosen_engine), call)


def _engine(graph: GivenGraph | DeviceArray, call: Call) -> AbstractContextManager[Engine]:
    """The engine of one device, or of a job that lasts as long as the block. Raises Refused."""
    resident = not isinstance(graph, GivenGraph)
    if call.devices is not None:
        if resident:
            what = "get their graph from the host, and the array is on a GPU; copy it to the host"
            raise Refused(f"devices {brief(call.devices)} {what}")
        if call.device is not None:
            raise Refused(f"devices {brief(call.devices)} and device {call.device} exclude each other; leave out one of them")
        from fwtui.solver.job import job_engine

        return job_engine(call.devices)
    if call.named is not None and call.named.backend != "cuda":
        if resident:
            raise Refused(f"kernel {call.kernel} runs on the host and the array is on a GPU; copy it, or leave the kernel out")
        if call.device is not None and DeviceId.parse(str(call.device), "cpu").backend == "cuda":
            way = "leave out the device, or name a GPU kernel"
            raise Refused(f"kernel {call.kernel} runs on the CPU, which has no device {call.device}; {way}")
        return nullcontext(choose.CPU)
    if resident:  # of any size, possibly without a length
        return nullcontext(choose.choose_engine(call.device, 0, "an array on a GPU"))
    return nullcontext(choose.choose_engine(call.device, graph.n, f"kernel {call.kernel}" if call.named is not None else ""))


def _represented(graph: GivenGraph | DeviceArray, call: Call, engine: Engine) -> OneGraph:
    """The graph as the engine takes it."""
    if engine.target.backend != "cpu" and not engine.elsewhere:
        from fwtui.solver import device_graph

        engine.activate()
        call.clock.lap("set-up")
        if not isinstance(graph, GivenGraph):
            from fwtui_kernels.compiled.device import cuda

            return device_graph.of_device_array(cuda.as_cuda_array(graph), engine)
        there = device_graph.to_device(graph, engine, call.clock)
        if there is not None:
            return there
    assert isinstance(graph, GivenGraph)
    if engine is choose.CPU:
        call.clock.lap("set-up")
    return HostGraph(graph, engine)


def run(graph: SolverGraph[Answer], call: Call) -> Answer:
    """The answer from the named kernel, or the best known. Raises Refused, and SciPy's NegativeCycleError."""
    for choice in graph.choices(call.dtype):
        call.clock.lap("prepare")
        answer = _attempt(graph, choice, call)
        if answer is not None:
            return answer
    raise Refused(f"some distances are beyond what {call.dtype} can hold; choose another dtype, or leave it out")


def _attempt(graph: SolverGraph[Answer], choice: Choice, call: Call) -> Answer | None:
    """The answer computed in that type; None if some distances were too long for it."""
    facts, engine, clock, dtype = graph.facts, graph.engine, call.clock, choice.dtype
    kernel, shape = graph.suited(call, dtype)
    if engine.elsewhere:
        clock.lap("set-up")
    with compiled(engine.target.backend) if kernel.compiles and not engine.elsewhere else nullcontext():
        closed = graph.closed(kernel, shape, call)
        largest, diagonal = closed.side.look(closed.distances, choice.far)
        graph.check_cycles(diagonal)
        if choice.proof == AFTERWARDS and dtype != "float32" and closed.side.escaped(closed.distances, choice.far):
            return None
        wide = dtype != "float32" and largest >= EXACT_INTEGER
        if wide:
            _check_wide(facts.n, graph.cells_here(shape), call.predecessors)
        distances = closed.side.finished(closed.distances, choice.far, wide)
        clock.lap("copy out")
        traced = closed.trace(largest)
    exact, before = largest < choice.exact_below, None
    if call.predecessors:
        before = graph.predecessors(distances, exact, traced)
        clock.lap("paths")
    stats = Stats(
        n=facts.n,
        edges=facts.edges,
        dtype=dtype,
        proof=choice.proof if exact else ROUNDED,
        exact=exact,
        kernel=kernel.id,
        tile=shape.tile if kernel.tiles else 0,
        device=engine.target.backend,
        devices=tuple(map(str, engine.ranks)),
        seconds=dict(clock.seconds),
        relaxations=0 if shape.order is None else relaxations(shape),
        reason=graph.reason,
    )
    return graph.answer(distances, before, stats)


def _check_wide(n: int, cells: int, predecessors: bool) -> None:
    """Like costs.check_room, for that many distances here that do not fit float32; `predecessors`: if still to be computed."""
    free = psutil.virtual_memory().available
    needed = cells * (costs.WIDE_DISTANCE + (costs.PREDECESSOR if predecessors else 0))
    if needed > max(0, free - KEPT_FREE):
        raise Refused(
            f"distances of {n:,} vertices from 2^24 on need 64 bits, {memory(needed)} more, and {memory(free)} are free; "
            f"choose dtype float32, which rounds them, or a smaller graph"
        )
