"""Stacks of small graphs: all of them at once, each by one thread of the CPU or one block of the GPU.

A graph that is too large for that, and a stack whose distances cannot be proved to fit a number type beforehand, is solved one
graph after the other.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import psutil

from fwtui.common.errors import Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.common.units import LARGEST, memory
from fwtui.engine.engine import Engine
from fwtui.graphs.bounds import AFTERWARDS, Choice, facts_of
from fwtui.graphs.library_objects import stack_of
from fwtui.graphs.stack import Stack, naming
from fwtui.solver import launching
from fwtui.solver.call import Call, Clock
from fwtui.solver.choose import choose_engine
from fwtui.solver.costs import bytes_a_cell
from fwtui.solver.driver import answer, run
from fwtui.solver.launching import compiled, on_device
from fwtui.solver.paths import Paths, TracedPredecessors
from fwtui.solver.result import StackResult, Stats
from fwtui.solver.solver_graph import KernelDistances, SolverGraph, check_cycles
from fwtui_kernels import plan_only
from fwtui_kernels.compiled.survey import EDGES, FRACTION, HIGH, LOW, MISSING, ZEROS
from fwtui_kernels.plan import NO_EDGE, Kernel, Shape

HOST, GPU = (plan_only.rung(f"fwtui_kernels.{name}").KERNEL for name in ("k24_stacked_cpu", "k86_stacked"))
MOST, MOST_ON_GPU = HOST.max_n, GPU.max_n  # vertices of a graph that stays in a core's cache, or in the registers of a block
# seconds of NumPy for a step of one graph and for a relaxation, and how long loading compiled code takes
_NUMPY_STEP, _NUMPY_RELAXATION, _LOADING = 1e-5, 1e-9, 0.4


class Solved(NamedTuple):
    """A stack's distances and predecessors, in its form, and how they were found: once for all, or for each graph."""

    distances: Any
    predecessors: Any | None
    how: Sequence[Stats]


def solve_stack(graphs: Any, call: Call | None = None, engine: Engine | None = None) -> StackResult:
    """Like solve for a stack. `engine` runs the kernels, chosen by the call unless given."""
    call = call or Call()
    named, stack = call.named, stack_of(graphs)
    call.clock.lap("prepare")
    if named is not None:
        return _result(stack, [(stack, _one_by_one(stack, call, engine))], call)
    # a GPU pays as for one graph of as much work, unless some graph is too large for a block
    n = round(stack.relaxations ** (1 / 3)) if stack.n <= MOST_ON_GPU else 0
    active_engine = engine or choose_engine(call.device, n)
    active_engine.activate()
    call.clock.lap("set-up")
    on_host = active_engine.target.backend == "cpu"
    if on_host and _is_quick(stack):
        return _result(stack, [(stack, _one_by_one(stack, call, engine))], call)
    small = stack.sizes <= (MOST if on_host else MOST_ON_GPU)
    solved = []
    for part in [stack] if small.all() or not small.any() else [stack.part(small), stack.part(~small)]:
        result = _together(part, call, active_engine) if small[part.numbers].all() else None
        solved.append((part, result or _one_by_one(part, call, engine)))
    return _result(stack, solved, call)


def _is_quick(stack: Stack) -> bool:
    """Whether NumPy has solved them before compiled code is loaded."""
    sizes = stack.sizes.astype(np.float64)
    return "numba" not in sys.modules and float((sizes * (_NUMPY_STEP + _NUMPY_RELAXATION * sizes**2)).sum()) < _LOADING


def _one_by_one(stack: Stack, call: Call, engine: Engine | None) -> Solved:
    stack.check()
    results = []
    for place, number in enumerate(stack.numbers.tolist()):
        results.append(naming(number, answer, stack.graph(place), replace(call, clock=Clock()), engine))
        call.clock.add(results[-1].stats.seconds)
    distances = [r.distances for r in results]
    before = [r.predecessors for r in results if r.predecessors is not None] or None
    if stack.even:
        return Solved(np.array(distances), before and np.array(before), [r.stats for r in results])
    return Solved(distances, before, [r.stats for r in results])


def _together(stack: Stack, call: Call, engine: Engine) -> Solved | None:
    """The answer from one launch; None if the distances cannot be proved to fit a type."""
    with compiled():
        graph = (StackGraph if engine.target.backend == "cpu" else DeviceStackGraph)(stack, engine)
    if max(-(graph.facts.low or 0), graph.facts.high or 0) > LARGEST:  # a survey does not see whether such weights are whole
        return None
    try:
        return run(graph, call)
    except _Unproved:
        return None


class _Unproved(Exception):
    """A proof that a number type holds all distances would need a search of each graph."""


class StackGraph(SolverGraph[Solved]):
    """A stack whose graphs are each closed by one core. Its `distances` are an array like `stack.weights`."""

    _kernel: Kernel = HOST

    def __init__(self, stack: Stack, engine: Engine):
        """Raises Refused if one of them is not a graph."""
        from fwtui_kernels.compiled.cpu_stacks import survey

        self.n = stack.n
        self.engine = engine
        self._stack = stack
        surveys = np.zeros((len(stack), EDGES + 1))
        self._each(survey, stack.weights, surveys)
        if (surveys[:, LOW] == -np.inf).any() or stack.unclear_zeros(surveys[:, MISSING] > 0, surveys[:, ZEROS] > 0).any():
            stack.check()
        low, high = surveys[:, LOW].min(initial=np.inf), surveys[:, HIGH].max(initial=-np.inf)
        self.facts = facts_of(stack.n, int(surveys[:, EDGES].sum()), low, high, surveys[:, FRACTION].max(initial=0))

    def _each(self, function: Any, *arguments: Any) -> None:
        """Call a compiled function for the graphs; compiling or loading it is "compile"."""
        from fwtui_kernels.compiled.cpu_stacks import on_all_cores

        compiled_before, begin, stack = len(function.overloads), time.perf_counter(), self._stack
        function(0, 0, stack.first, stack.sizes, *arguments)
        if len(function.overloads) > compiled_before:
            Clock.compiling += time.perf_counter() - begin
        on_all_cores(function, stack.first, stack.sizes, *arguments)

    def reach(self, enough: float) -> tuple[float, bool]:
        return np.inf, False  # a search may take as long as solving

    def choices(self, dtype: str | None) -> Iterator[Choice]:
        for choice in super().choices(dtype):
            if choice.proof == AFTERWARDS and (choice.dtype != "float32" or self.facts.integer):
                raise _Unproved
            yield choice

    def suited(self, call: Call, dtype: str) -> tuple[Kernel, Shape]:
        stack, free = self._stack, psutil.virtual_memory().available
        needed = stack.weights.size * bytes_a_cell(dtype, call.predecessors)
        if needed > max(0, free - KEPT_FREE):
            raise Refused(
                f"distances{' and predecessors' if call.predecessors else ''} of {len(stack):,} graphs in {dtype} need "
                f"{memory(needed)} and {memory(free)} are free; give fewer graphs at a time"
            )
        return self._kernel, Shape(self.n, dtype=dtype, graphs=len(stack))

    def closed(self, kernel: Kernel, shape: Shape, call: Call) -> KernelDistances:
        from fwtui_kernels.compiled.cpu_stacks import enter, first_arcs

        stack, no_edge = self._stack, np.dtype(shape.dtype).type(NO_EDGE[shape.dtype])
        cells = np.empty(stack.weights.shape, shape.dtype)
        before = np.empty(stack.weights.shape, np.int32) if call.predecessors else None
        clock = call.clock
        self._each(enter, stack.weights, no_edge, cells)
        if before is not None:
            self._each(first_arcs, cells, no_edge, before)
        clock.lap("prepare")
        self._close(cells, before, no_edge, clock)
        return KernelDistances(self, cells, lambda largest: TracedPredecessors(before, np.empty(0, np.int64)))

    def _close(self, cells: np.ndarray, before: np.ndarray | None, no_edge: np.number, clock: Clock) -> None:
        """Floyd-Warshall in each matrix, in place."""
        from fwtui_kernels.compiled import cpu_stacks

        if before is None:
            self._each(cpu_stacks.close_all, cells, no_edge)
        else:
            self._each(cpu_stacks.close_all_with_predecessors, cells, before, no_edge)
        clock.lap("kernels")

    def look(self, distances: np.ndarray, far: float) -> tuple[float, np.ndarray]:
        """The greatest absolute distance, and for each graph the least cell of its diagonal."""
        from fwtui_kernels.compiled.cpu_stacks import look

        most, least = np.zeros(len(self._stack)), np.zeros(len(self._stack))
        self._each(look, distances, np.float64(far), most, least)
        return float(most.max(initial=0)), least

    def check_cycles(self, diagonal: np.ndarray) -> None:
        for place in np.flatnonzero(diagonal < 0).tolist():
            graph = self._stack.graph(place)
            check_cycles(graph, graph.facts, diagonal[place : place + 1], f"graph {self._stack.numbers[place]}")

    def escaped(self, distances: np.ndarray, far: float) -> bool:
        return False  # only types that are proved to suffice are tried

    def cells_here(self, shape: Shape) -> int:
        return self._stack.weights.size

    def finished(self, distances: np.ndarray, far: float, wide: bool) -> np.ndarray:
        from fwtui_kernels.compiled.cpu_stacks import leave

        to = np.dtype(np.float64 if wide else np.float32)
        result = distances.view(to) if distances.itemsize == to.itemsize else np.empty(distances.shape, to)
        self._each(leave, distances, np.float64(far), result)
        return result

    def predecessors(self, distances: np.ndarray, exact: bool, traced: TracedPredecessors | None) -> np.ndarray:
        from fwtui_kernels.compiled.cpu_stacks import finish_predecessors

        assert traced is not None
        stack, before = self._stack, traced.predecessors
        astray = np.zeros(len(stack), np.bool_)
        with compiled():
            self._each(finish_predecessors, distances, before, astray)
        for place in np.flatnonzero(astray).tolist():
            stack.of(before, place)[...] = Paths(stack.graph(place), stack.of(distances, place), exact).predecessors()
        return before

    def answer(self, distances: np.ndarray, predecessors: np.ndarray | None, stats: Stats) -> Solved:
        return Solved(self._stack.apart(distances), None if predecessors is None else self._stack.apart(predecessors), [stats])


class DeviceStackGraph(StackGraph):
    """A stack whose graphs are each closed by one block of a GPU; what comes before and after is done by the CPU."""

    _kernel = GPU

    def suited(self, call: Call, dtype: str) -> tuple[Kernel, Shape]:
        kernel, shape = super().suited(call, dtype)
        needed, free = self._stack.weights.size * (shape.itemsize + 4 * call.predecessors), self.engine.free_bytes()
        if free is not None and needed > free - KEPT_FREE:
            raise Refused(
                f"the stack needs {memory(needed)} and {memory(free)} of device memory are free; "
                "give fewer graphs at a time, or device cpu"
            )
        return kernel, shape

    def _close(self, cells: np.ndarray, before: np.ndarray | None, no_edge: np.number, clock: Clock) -> None:
        from fwtui_kernels.parts.stacks import TILES  # which brings numba.cuda

        stack, engine = self._stack, self.engine
        arrays = [cells] if before is None else [cells, before]
        # by width: graphs share a launch if the same block holds them
        widths = np.array(TILES)[np.searchsorted(TILES, stack.sizes)]
        there = [on_device(array, engine) for array in (*arrays, stack.first, stack.sizes.astype(np.int32))]
        tiles = {int(tile): on_device(np.flatnonzero(widths == tile).astype(np.int32), engine) for tile in np.unique(widths)}
        engine.synchronize()
        clock.lap("copy in")
        for tile, graphs in tiles.items():
            function = _closing(cells.dtype.name, tile, before is not None)
            launching.launch(function, len(graphs), engine.stream, *there, graphs, threads=(tile // 4) ** 2)
        engine.synchronize()
        clock.lap("kernels")
        for array, copy in zip(arrays, there, strict=False):
            copy.copy_to_host(array, stream=engine.stream)
        engine.synchronize()
        clock.lap("copy out")


@cache
def _closing(dtype: str, tile: int, predecessors: bool) -> Any:
    from fwtui_kernels.parts import stacks

    return stacks.closing_with_predecessors(dtype, tile) if predecessors else stacks.closing(dtype, tile)


def _result(stack: Stack, parts: Sequence[tuple[Stack, Solved]], call: Call) -> StackResult:
    """The parts in the order of the stack."""
    _, first = parts[0]
    distances, before = first.distances, first.predecessors
    if len(parts) > 1:
        numbers = np.concatenate([part.numbers for part, _ in parts])
        order = np.argsort(numbers).tolist()
        distances = _ordered([solved.distances for _, solved in parts], order)
        before = _ordered([solved.predecessors for _, solved in parts], order) if call.predecessors else None
    how = [stats for _, solved in parts for stats in solved.how]

    texts = ("dtype", "proof", "kernel", "device")
    words: dict[str, Any] = {name: ", ".join(dict.fromkeys(getattr(one, name) for one in how)) for name in texts}
    edges, exact, tile = sum(one.edges for one in how), all(one.exact for one in how), how[0].tile if len(how) == 1 else 0
    whole = Stats(stack.n, edges, exact=exact, tile=tile, devices=(), seconds=dict(call.clock.seconds), **words)
    stats = replace(whole, graphs=len(stack), relaxations=stack.relaxations)
    return StackResult(distances, before, stats, lambda number: Paths(stack.graph(number), distances[number], stats.exact))


def _ordered(parts: Sequence[Any], order: Sequence[int]) -> list[Any]:
    together = [matrix for part in parts for matrix in part]
    return [together[place] for place in order]
