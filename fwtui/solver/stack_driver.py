"""`solve` of a stack of small graphs: all of them at once, each by one thread of the CPU or one block of the GPU.

A graph that is too large for that, and a stack whose distances cannot be proved to fit a number type beforehand, is solved one
graph after the other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import psutil

from fwtui.common.errors import Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.common.units import memory
from fwtui.engine.engine import Engine
from fwtui.graphs.bounds import AFTERWARDS, EXACT_INTEGER, exact_up_to
from fwtui.solver.choose import bytes_a_cell
from fwtui.solver.driver import check_cycles
from fwtui.solver.launching import Clock, compiled
from fwtui.solver.number_type import ROUNDED, choices, far_of
from fwtui.solver.paths import Paths
from fwtui.solver.result import Result, StackResult, Stats
from fwtui.solver.stack import Stack, naming, read
from fwtui_kernels import registry
from fwtui_kernels.auto import AUTO
from fwtui_kernels.plan import NO_EDGE

HOST, GPU = "stacked-cpu", "stacked"
MOST = registry()[HOST].max_n  # vertices of a graph that stays in a core's cache
MOST_ON_GPU = registry()[GPU].max_n  # and in the registers of a block
# seconds of NumPy for a step of one graph and for a relaxation, and how long loading compiled code takes
_NUMPY_STEP, _NUMPY_RELAXATION, _LOADING = 1e-5, 1e-9, 0.4

One = Callable[[Any], Result]  # solves one graph


class Solved(NamedTuple):
    """A stack's distances and predecessors, in its form, and how they were found: once for all, or for each graph."""

    distances: Any
    predecessors: Any | None
    how: Sequence[Stats]


def run(
    given: Any, one: One, dtype: str | None, predecessors: bool, kernel: str, engine: Callable[[int], Engine], clock: Clock
) -> StackResult:
    """The answer for a stack. `engine` is the one for a graph of that many vertices."""
    stack = read(given)
    clock.lap("prepare")

    def alone() -> StackResult:
        return _result(stack, [(stack, _one_by_one(stack, one, clock))], predecessors, clock)

    if kernel != AUTO.id:
        return alone()
    # a GPU pays as for one graph of as much work, unless some graph is too large for a block
    chosen = engine(round(stack.relaxations ** (1 / 3)) if stack.n <= MOST_ON_GPU else 0)
    chosen.activate()
    clock.lap("set-up")
    on_host = chosen.target.backend == "cpu"
    if on_host and _is_quick(stack):
        return alone()
    small = stack.sizes <= (MOST if on_host else MOST_ON_GPU)
    solved = []
    for part in [stack] if small.all() or not small.any() else [stack.part(small), stack.part(~small)]:
        found = None
        if small[part.numbers].all():
            with compiled():
                found = _together(part, dtype, predecessors, chosen, clock)
        solved.append((part, found or _one_by_one(part, one, clock)))
    return _result(stack, solved, predecessors, clock)


def _is_quick(stack: Stack) -> bool:
    """Whether NumPy has solved them before compiled code is loaded."""
    sizes = stack.sizes.astype(np.float64)
    return "numba" not in sys.modules and float((sizes * (_NUMPY_STEP + _NUMPY_RELAXATION * sizes**2)).sum()) < _LOADING


def _one_by_one(stack: Stack, one: One, clock: Clock) -> Solved:
    stack.check()
    results = []
    for place, number in enumerate(stack.numbers.tolist()):
        results.append(naming(number, one, stack.graph(place)))
        clock.add(results[-1].stats.seconds)
    distances = [r.distances for r in results]
    before = [r.predecessors for r in results if r.predecessors is not None] or None
    if stack.even:
        return Solved(np.array(distances), before and np.array(before), [r.stats for r in results])
    return Solved(distances, before, [r.stats for r in results])


def _together(stack: Stack, dtype: str | None, predecessors: bool, engine: Engine, clock: Clock) -> Solved | None:
    """The answer from one launch; None if the distances cannot be proved to fit a type. Call it within compiled()."""
    from fwtui.solver.cpu_stacks import enter, finish_predecessors, first_arcs, leave, look

    facts = stack.facts(clock)
    # without a search, as that may take as long as solving
    choice = next(choices(facts, dtype, lambda enough: (np.inf, False)), None)
    if choice is None or (choice.proof == AFTERWARDS and (choice.dtype != "float32" or facts.integer)):
        return None
    _check_room(stack, choice.dtype, predecessors)
    no_edge, far = np.dtype(choice.dtype).type(NO_EDGE[choice.dtype]), np.float64(far_of(facts, choice.dtype))
    cells = np.empty(stack.given.shape, choice.dtype)
    before = np.empty(stack.given.shape, np.int32) if predecessors else None
    stack.each(clock, enter, stack.given, no_edge, cells)
    if before is not None:
        stack.each(clock, first_arcs, cells, no_edge, before)
    clock.lap("prepare")
    if engine.target.backend == "cpu":
        close_on_host(stack, cells, before, no_edge, clock)
    else:
        from fwtui.solver.device_stacks import close_on_device  # which brings numba.cuda

        close_on_device(stack, cells, before, engine, clock)
    largest, lowest = np.zeros(len(stack)), np.zeros(len(stack))
    stack.each(clock, look, cells, far, largest, lowest)
    for place in np.flatnonzero(lowest < 0).tolist():
        graph = stack.graph(place)
        check_cycles(lambda graph=graph: graph, graph.facts, lowest[place : place + 1], f"graph {stack.numbers[place]}")
    longest = float(largest.max(initial=0))
    wide = choice.dtype != "float32" and longest >= EXACT_INTEGER
    to = np.dtype(np.float64 if wide else np.float32)
    result = cells.view(to) if cells.itemsize == to.itemsize else np.empty(cells.shape, to)
    stack.each(clock, leave, cells, far, result)
    clock.lap("copy out")
    exact = choice.dtype != "float32" or (facts.exact_sums and (choice.proof != AFTERWARDS or exact_up_to(facts, longest)))
    if before is not None:
        astray = np.zeros(len(stack), np.bool_)
        stack.each(clock, finish_predecessors, result, before, astray)
        for place in np.flatnonzero(astray).tolist():
            stack.of(before, place)[...] = Paths(stack.graph(place), stack.of(result, place), exact).predecessors()
        clock.lap("paths")
    kernel = HOST if engine.target.backend == "cpu" else GPU
    proof = choice.proof if exact else ROUNDED
    stats = Stats(facts.n, facts.edges, choice.dtype, proof, exact, kernel, 0, engine.target.backend, (), {})
    return Solved(stack.apart(result), None if before is None else stack.apart(before), [stats])


def close_on_host(stack: Stack, cells: np.ndarray, before: np.ndarray | None, no_edge: Any, clock: Clock) -> None:
    from fwtui_kernels.compiled.cpu_stacks import close_all, close_all_with_predecessors

    if before is None:
        stack.each(clock, close_all, cells, no_edge)
    else:
        stack.each(clock, close_all_with_predecessors, cells, before, no_edge)
    clock.lap("kernels")


def _check_room(stack: Stack, dtype: str, predecessors: bool) -> None:
    """Raises Refused with the memory needed and the free memory."""
    free, needed = psutil.virtual_memory().available, stack.given.size * bytes_a_cell(dtype, predecessors)
    if needed > max(0, free - KEPT_FREE):
        raise Refused(
            f"distances{' and predecessors' if predecessors else ''} of {len(stack):,} graphs in {dtype} need {memory(needed)} "
            f"and {memory(free)} are free; give fewer graphs at a time"
        )


def _result(stack: Stack, parts: Sequence[tuple[Stack, Solved]], predecessors: bool, clock: Clock) -> StackResult:
    """The parts in the order of the stack."""
    _, first = parts[0]
    distances, before = first.distances, first.predecessors
    if len(parts) > 1:
        numbers = np.concatenate([part.numbers for part, _ in parts])
        order = np.argsort(numbers).tolist()
        distances = _ordered([solved.distances for _, solved in parts], order)
        before = _ordered([solved.predecessors for _, solved in parts], order) if predecessors else None
    how = [stats for _, solved in parts for stats in solved.how]

    def said(name: str) -> str:
        return ", ".join(dict.fromkeys(getattr(stats, name) for stats in how))

    stats = Stats(
        n=stack.n,
        edges=sum(stats.edges for stats in how),
        dtype=said("dtype"),
        proof=said("proof"),
        exact=all(stats.exact for stats in how),
        kernel=said("kernel"),
        tile=how[0].tile if len(how) == 1 else 0,
        device=said("device"),
        devices=(),
        seconds=dict(clock.seconds),
        graphs=len(stack),
        relaxations=stack.relaxations,
    )
    return StackResult(distances, before, stats, lambda number: Paths(stack.graph(number), distances[number], stats.exact))


def _ordered(parts: Sequence[Any], order: Sequence[int]) -> list[Any]:
    together = [matrix for part in parts for matrix in part]
    return [together[place] for place in order]
