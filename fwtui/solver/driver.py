"""From a graph in any representation to its distances and paths, with any kernel on any engine."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TypeVar

from fwtui.common.errors import Refused
from fwtui.graphs.bounds import AFTERWARDS, EXACT_INTEGER, ROUNDED, Choice, choices, exact_up_to, far_of
from fwtui.solver.launching import Clock, compiled
from fwtui.solver.result import Stats
from fwtui.solver.solver_graph import SolverGraph, Tell
from fwtui_kernels.plan import Kernel

Answer = TypeVar("Answer")


class Unfit(Refused):
    """No number type is known to hold all distances."""


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
    raise Unfit(reason)


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
    stats = Stats(facts.n, facts.edges, dtype, proof, exact, kernel.id, tile, engine.target.backend, devices, dict(clock.seconds))
    return graph.answer(distances, before, stats)
