"""Stacks of small graphs: all of them at once, each by one thread of the CPU or one block of the GPU.

A graph that is too large for that, and a stack whose distances cannot be proved to fit a number type beforehand, is solved one
graph after the other.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import psutil

from fwtui.common.errors import Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.common.units import LARGEST, memory
from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import AFTERWARDS, Choice, facts_of
from fwtui.graphs.graph import EdgeFacts
from fwtui.graphs.library_objects import of_object, weights_in
from fwtui.graphs.vertices import Vertices
from fwtui.solver import launching
from fwtui.solver.choose import bytes_a_cell, engine_for, named
from fwtui.solver.driver import answer, run
from fwtui.solver.launching import Clock, compiled, on_device
from fwtui.solver.paths import Paths, Traced
from fwtui.solver.result import Result, StackResult, Stats
from fwtui.solver.solver_graph import Closed, SolverGraph, Tell, check_cycles
from fwtui_kernels import plan_only
from fwtui_kernels.auto import AUTO
from fwtui_kernels.compiled.survey import EDGES, FRACTION, HIGH, LOW, MISSING, ZEROS
from fwtui_kernels.plan import NO_EDGE, Kernel, Shape

_NATIVE = (np.float64, np.float32, np.int64, np.int32)  # types that are read as they are; others become float64
HOST, GPU = (plan_only.rung(f"fwtui_kernels.{name}").KERNEL for name in ("k24_stacked_cpu", "k86_stacked"))
MOST, MOST_ON_GPU = HOST.max_n, GPU.max_n  # vertices of a graph that stays in a core's cache, or in the registers of a block
# seconds of NumPy for a step of one graph and for a relaxation, and how long loading compiled code takes
_NUMPY_STEP, _NUMPY_RELAXATION, _LOADING = 1e-5, 1e-9, 0.4

One = Callable[[Any], Result]  # solves one graph


def is_stack(given: Any) -> bool:
    """Whether it is several graphs: an array of three dimensions, or a list of what is a graph each."""
    if isinstance(given, np.ndarray):
        return given.ndim == 3
    if not isinstance(given, list | tuple) or not given:
        return False
    first, networkx = given[0], sys.modules.get("networkx")
    if isinstance(first, list | tuple):
        return bool(first) and isinstance(first[0], list | tuple)
    return getattr(first, "ndim", 0) == 2 or (networkx is not None and isinstance(first, networkx.Graph))


@dataclass(frozen=True)
class Stack:
    """Graphs whose matrices lie one after the other, in one array of weights."""

    given: np.ndarray  # of one dimension; a value that is not finite means no edge
    sizes: np.ndarray  # vertices of each graph
    numbers: np.ndarray  # what the graphs are called
    clear: np.ndarray  # for each graph whether a zero is known to be an edge of weight 0
    even: bool  # an array was given, and an array is wanted

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def first(self) -> np.ndarray:
        """The first cell of each graph."""
        return np.cumsum(self.sizes**2) - self.sizes**2

    @property
    def n(self) -> int:
        """The most vertices of a graph."""
        return int(self.sizes.max(initial=0))

    @property
    def relaxations(self) -> int:
        return sum(n**3 for n in self.sizes.tolist())

    def of(self, flat: np.ndarray, number: int) -> np.ndarray:
        """One graph's matrix in an array like `given`."""
        n, at = int(self.sizes[number]), int(self.first[number])
        return flat[at : at + n * n].reshape(n, n)

    def apart(self, flat: np.ndarray) -> Any:
        """An array like `given` in the form in which the stack was given."""
        return flat.reshape(len(self), self.n, self.n) if self.even else [self.of(flat, number) for number in range(len(self))]

    def graph(self, number: int) -> Adjacency:
        n = int(self.sizes[number])
        return Adjacency(n, Vertices(range(n)), dense=self.of(self.given, number))

    def part(self, chosen: np.ndarray) -> Stack:
        """Some of its graphs, as a list."""
        numbers = np.flatnonzero(chosen)
        cells = [self.of(self.given, number).reshape(-1) for number in numbers.tolist()]
        return Stack(np.concatenate(cells), self.sizes[numbers], self.numbers[numbers], self.clear[numbers], False)

    def facts(self, clock: Clock) -> EdgeFacts:
        """What holds for each of the graphs. Raises Refused if one is none."""
        from fwtui.solver.cpu_stacks import survey

        told = np.zeros((len(self), EDGES + 1))
        self.each(clock, survey, self.given, told)
        if (told[:, LOW] == -np.inf).any() or self._unclear(told[:, MISSING] > 0, told[:, ZEROS] > 0).any():
            self.check()
        return facts_of(
            self.n,
            int(told[:, EDGES].sum()),
            float(told[:, LOW].min(initial=np.inf)),
            float(told[:, HIGH].max(initial=-np.inf)),
            float(told[:, FRACTION].max(initial=0)),
        )

    def check(self) -> None:
        """Raises Refused if one is not a graph. By NumPy, where there is no compiled code, or it has a doubt."""
        matrices = [self.of(self.given, number) for number in range(len(self))]
        for number, matrix in zip(self.numbers, matrices, strict=True):
            if (matrix == -np.inf).any():
                raise Refused(f"-inf is not a weight, and graph {number} has it; give finite numbers, and +inf for no edge")
        missing = np.array([not np.isfinite(matrix).all() for matrix in matrices])
        zeros = np.array([np.count_nonzero(matrix == 0) > np.count_nonzero(matrix.diagonal() == 0) for matrix in matrices])
        unclear = self._unclear(missing, zeros)
        if unclear.any():
            raise Refused(
                f"zeros off the diagonal of graph {self.numbers[unclear.argmax()]} may mean no edge or edges of weight 0, and "
                "nothing says which; put +inf where there is no edge, or give numpy.ma.array(weights) for edges"
            )

    def _unclear(self, missing: np.ndarray, zeros: np.ndarray) -> np.ndarray:
        """For each graph whether nothing says what its zeros mean, from whether it has no edge somewhere, and zeros."""
        marked = self.clear | missing
        return zeros & ~(marked.any() if self.even else marked)

    def each(self, clock: Clock, function: Any, *given: Any) -> None:
        """Call a compiled function for the graphs; compiling or loading it is "compile"."""
        from fwtui_kernels.compiled.cpu_stacks import on_all_cores

        known, begin = len(function.overloads), time.perf_counter()
        function(0, 0, self.first, self.sizes, *given)
        if len(function.overloads) > known:
            Clock.compiling += time.perf_counter() - begin
        on_all_cores(function, self.first, self.sizes, *given)


class Solved(NamedTuple):
    """A stack's distances and predecessors, in its form, and how they were found: once for all, or for each graph."""

    distances: Any
    predecessors: Any | None
    how: Sequence[Stats]


def solve_stack(
    given: Any,
    *,
    dtype: str | None = None,
    predecessors: bool = False,
    kernel: str = AUTO.id,
    device: str | int | None = None,
    engine: Engine | None = None,
    clock: Clock | None = None,
) -> StackResult:
    """Like solve for a stack. `engine` runs the kernels, chosen by `device` unless given."""
    clock = clock or Clock()
    named(kernel)
    one = partial(answer, dtype=dtype, predecessors=predecessors, kernel=kernel, device=device, engine=engine)
    stack = read(given)
    clock.lap("prepare")

    def alone() -> StackResult:
        return _result(stack, [(stack, _one_by_one(stack, one, clock))], predecessors, clock)

    if kernel != AUTO.id:
        return alone()
    # a GPU pays as for one graph of as much work, unless some graph is too large for a block
    n = round(stack.relaxations ** (1 / 3)) if stack.n <= MOST_ON_GPU else 0
    chosen = engine or engine_for(device, n, False)
    chosen.activate()
    clock.lap("set-up")
    on_host = chosen.target.backend == "cpu"
    if on_host and _is_quick(stack):
        return alone()
    small = stack.sizes <= (MOST if on_host else MOST_ON_GPU)
    solved = []
    for part in [stack] if small.all() or not small.any() else [stack.part(small), stack.part(~small)]:
        found = _together(part, dtype, predecessors, chosen, clock) if small[part.numbers].all() else None
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
    """The answer from one launch; None if the distances cannot be proved to fit a type."""
    with compiled():
        graph = (StackGraph if engine.target.backend == "cpu" else DeviceStackGraph)(stack, engine, clock)
    if max(-(graph.facts.low or 0), graph.facts.high or 0) > LARGEST:  # a survey does not see whether such weights are whole
        return None
    try:
        return run(graph, None, dtype, predecessors, clock)
    except _Unproved:
        return None


class _Unproved(Exception):
    """A proof that a number type holds all distances would need a search of each graph."""


class StackGraph(SolverGraph[Solved]):
    """A stack whose graphs are each closed by one core. Its `distances` are an array like `stack.given`."""

    keep_on_device = False
    _kernel: Kernel = HOST

    def __init__(self, stack: Stack, engine: Engine, clock: Clock):
        self.n = stack.n
        self.engine = engine
        self._stack, self._clock = stack, clock
        self._facts = stack.facts(clock)

    @property
    def facts(self) -> EdgeFacts:
        return self._facts

    def reach(self, enough: float) -> tuple[float, bool]:
        return np.inf, False  # a search may take as long as solving

    def refuses(self, choice: Choice) -> str | None:
        if choice.proof != AFTERWARDS or (choice.dtype == "float32" and not self.facts.integer):
            return None
        raise _Unproved

    def suited(self, named: Kernel | None, dtype: str, predecessors: bool) -> tuple[Kernel, Shape]:
        stack, free = self._stack, psutil.virtual_memory().available
        needed = stack.given.size * bytes_a_cell(dtype, predecessors)
        if needed > max(0, free - KEPT_FREE):
            raise Refused(
                f"distances{' and predecessors' if predecessors else ''} of {len(stack):,} graphs in {dtype} need "
                f"{memory(needed)} and {memory(free)} are free; give fewer graphs at a time"
            )
        return self._kernel, Shape(self.n, dtype=dtype, graphs=len(stack))

    def closed(self, kernel: Kernel, shape: Shape, predecessors: bool, clock: Clock, tell: Tell) -> Closed:
        from fwtui.solver.cpu_stacks import enter, first_arcs

        stack, no_edge = self._stack, np.dtype(shape.dtype).type(NO_EDGE[shape.dtype])
        cells = np.empty(stack.given.shape, shape.dtype)
        before = np.empty(stack.given.shape, np.int32) if predecessors else None
        stack.each(clock, enter, stack.given, no_edge, cells)
        if before is not None:
            stack.each(clock, first_arcs, cells, no_edge, before)
        clock.lap("prepare")
        self._close(cells, before, no_edge, clock)
        return Closed(self, cells, lambda largest: Traced(before, np.empty(0, np.int64)))

    def _close(self, cells: np.ndarray, before: np.ndarray | None, no_edge: np.number, clock: Clock) -> None:
        """Floyd-Warshall in each matrix, in place."""
        from fwtui_kernels.compiled import cpu_stacks

        if before is None:
            self._stack.each(clock, cpu_stacks.close_all, cells, no_edge)
        else:
            self._stack.each(clock, cpu_stacks.close_all_with_predecessors, cells, before, no_edge)
        clock.lap("kernels")

    def look(self, distances: np.ndarray, far: float) -> tuple[float, np.ndarray]:
        """The greatest absolute distance, and for each graph the least cell of its diagonal."""
        from fwtui.solver.cpu_stacks import look

        most, least = np.zeros(len(self._stack)), np.zeros(len(self._stack))
        self._stack.each(self._clock, look, distances, np.float64(far), most, least)
        return float(most.max(initial=0)), least

    def check_cycles(self, diagonal: np.ndarray) -> None:
        for place in np.flatnonzero(diagonal < 0).tolist():
            graph = self._stack.graph(place)
            check_cycles(graph, graph.facts, diagonal[place : place + 1], f"graph {self._stack.numbers[place]}")

    def escaped(self, distances: np.ndarray, far: float) -> bool:
        return False  # only types that are proved to suffice are tried

    def finished(self, distances: np.ndarray, far: float, wide: bool) -> np.ndarray:
        from fwtui.solver.cpu_stacks import leave

        to = np.dtype(np.float64 if wide else np.float32)
        result = distances.view(to) if distances.itemsize == to.itemsize else np.empty(distances.shape, to)
        self._stack.each(self._clock, leave, distances, np.float64(far), result)
        return result

    def predecessors(self, distances: np.ndarray, exact: bool, traced: Traced | None) -> np.ndarray:
        from fwtui.solver.cpu_stacks import finish_predecessors

        assert traced is not None
        stack, before = self._stack, traced.predecessors
        astray = np.zeros(len(stack), np.bool_)
        with compiled():
            stack.each(self._clock, finish_predecessors, distances, before, astray)
        for place in np.flatnonzero(astray).tolist():
            stack.of(before, place)[...] = Paths(stack.graph(place), stack.of(distances, place), exact).predecessors()
        return before

    def answer(self, distances: np.ndarray, predecessors: np.ndarray | None, stats: Stats) -> Solved:
        return Solved(self._stack.apart(distances), None if predecessors is None else self._stack.apart(predecessors), [stats])


class DeviceStackGraph(StackGraph):
    """A stack whose graphs are each closed by one block of a GPU; what comes before and after is done by the CPU."""

    _kernel = GPU

    def suited(self, named: Kernel | None, dtype: str, predecessors: bool) -> tuple[Kernel, Shape]:
        kernel, shape = super().suited(named, dtype, predecessors)
        needed, free = self._stack.given.size * (shape.itemsize + 4 * predecessors), self.engine.free_bytes()
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
        chosen = {int(tile): on_device(np.flatnonzero(widths == tile).astype(np.int32), engine) for tile in np.unique(widths)}
        engine.synchronize()
        clock.lap("copy in")
        for tile, graphs in chosen.items():
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


def read(given: Any) -> Stack:
    """The stack in an array or a list. Raises Refused if it is none, TypeError for an object of unknown kind."""
    if isinstance(given, np.ndarray):
        count, rows, columns = given.shape
        if rows != columns:
            raise Refused(f"an array of shape {given.shape} is not a stack of graphs; give b square matrices of n x n weights")
        if not count:
            raise Refused(f"an array of shape {given.shape} holds no graph; give at least one")
        weights, clear = weights_in(given), isinstance(given, np.ma.MaskedArray)
        return Stack(_native(weights), np.full(count, rows), np.arange(count), np.full(count, clear), True)
    read = [naming(number, _matrix, graph) for number, graph in enumerate(given)]
    cells = [matrix.reshape(-1) for matrix, _ in read]
    if len({part.dtype for part in cells}) > 1:
        cells = [part.astype(np.float64) for part in cells]
    sizes = np.array([len(matrix) for matrix, _ in read])
    return Stack(_native(np.concatenate(cells)), sizes, np.arange(len(sizes)), np.array([clear for _, clear in read]), False)


def _native(weights: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(weights, None if weights.dtype in _NATIVE else np.float64).reshape(-1)


def _matrix(graph: Any) -> tuple[np.ndarray, bool]:
    """A graph's weights, +inf for no edge, and whether zeros are edges for sure."""
    if isinstance(graph, np.ndarray | list | tuple):
        weights = weights_in(graph)
        if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
            raise Refused(f"an array of shape {weights.shape} is not a graph; give a square matrix of n x n weights")
        return weights, isinstance(graph, np.ma.MaskedArray)
    adjacency = of_object(graph)
    matrix = np.full((adjacency.n, adjacency.n), np.inf)
    sources, targets, weights = adjacency.all_arcs()
    np.minimum.at(matrix, (sources, targets), weights)
    return matrix, True


def naming(number: int, work: Callable[..., Any], *given: Any) -> Any:
    """The work for one graph; what it refuses names the graph."""
    try:
        return work(*given)
    except Refused as refusal:
        raise Refused(f"graph {number}: {refusal}") from None
    except Exception as error:
        if type(error).__name__ != "NegativeCycleError":  # SciPy's class, checked without importing SciPy
            raise
        raise type(error)(str(error).replace("the graph", f"graph {number}", 1)) from None


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

    said = ("dtype", "proof", "kernel", "device")
    words: dict[str, Any] = {name: ", ".join(dict.fromkeys(getattr(one, name) for one in how)) for name in said}
    edges, exact, tile = sum(one.edges for one in how), all(one.exact for one in how), how[0].tile if len(how) == 1 else 0
    whole = Stats(stack.n, edges, exact=exact, tile=tile, devices=(), seconds=dict(clock.seconds), **words)
    stats = replace(whole, graphs=len(stack), relaxations=stack.relaxations)
    return StackResult(distances, before, stats, lambda number: Paths(stack.graph(number), distances[number], stats.exact))


def _ordered(parts: Sequence[Any], order: Sequence[int]) -> list[Any]:
    together = [matrix for part in parts for matrix in part]
    return [together[place] for place in order]
