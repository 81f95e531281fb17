"""`solve` of a stack of small graphs: all of them at once, each by one thread of the CPU or one block of the GPU.

Their matrices lie one after the other in one array. A graph that is too large for that, and a stack whose distances cannot be
proved to fit a number type beforehand, is solved one graph after the other.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import psutil

from fwtui.common.errors import Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.common.units import memory
from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import AFTERWARDS, EXACT_INTEGER, exact_up_to, facts_of
from fwtui.graphs.graph import Facts
from fwtui.graphs.library_objects import of_object, weights_in
from fwtui.graphs.vertices import Vertices
from fwtui.solver.driver import check_cycles
from fwtui.solver.launching import Clock, compiled
from fwtui.solver.number_type import ROUNDED, choices, far_of
from fwtui.solver.paths import Paths
from fwtui.solver.picking import bytes_a_cell
from fwtui.solver.result import Result, StackResult, Stats
from kernels.auto import AUTO
from kernels.plan import NO_EDGE

MOST = 256  # vertices of a graph that stays in a core's cache
MOST_ON_GPU = 128  # and in the registers of a block
HOST, GPU = "stacked-cpu", "stacked"
_NATIVE = (np.float64, np.float32, np.int64, np.int32)  # types that are read as they are; others become float64
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

    def facts(self, clock: Clock) -> Facts:
        """What holds for each of the graphs. Raises Refused if one is none."""
        from fwtui.solver.cpu_stacks import BAD, EDGES, FRACTION, HIGH, LOW, MISSING, ZEROS, survey

        told = np.zeros((len(self), EDGES + 1))
        self.each(clock, survey, self.given, told)
        if told[:, BAD].any():
            where = self.numbers[told[:, BAD].argmax()]
            raise Refused(f"-inf is not a weight, and graph {where} has it; give finite numbers, and +inf for no edge")
        marked = self.clear | (told[:, MISSING] > 0)
        unclear = (told[:, ZEROS] > 0) & ~(marked.any() if self.even else marked)
        if unclear.any():
            raise Refused(
                f"zeros off the diagonal of graph {self.numbers[unclear.argmax()]} may mean no edge or edges of weight 0, and "
                "nothing says which; put +inf where there is no edge, or give numpy.ma.array(weights) for edges"
            )
        return facts_of(
            self.n,
            int(told[:, EDGES].sum()),
            float(told[:, LOW].min(initial=np.inf)),
            float(told[:, HIGH].max(initial=-np.inf)),
            bool((told[:, FRACTION] == 0).all()),
            bool((told[:, FRACTION] <= 1).all()),
        )

    def each(self, clock: Clock, function: Any, *given: Any) -> None:
        """Call a compiled function for the graphs; compiling or loading it is "compile"."""
        from kernels.numba_door.cpu_stacks import on_all_cores

        known, begin = len(function.overloads), time.perf_counter()
        function(0, 0, self.first, self.sizes, *given)
        if len(function.overloads) > known:
            Clock.compiling += time.perf_counter() - begin
        on_all_cores(function, self.first, self.sizes, *given)


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
    read = [_naming(number, _matrix, graph) for number, graph in enumerate(given)]
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


def _naming(number: int, work: Callable[..., Any], *given: Any) -> Any:
    """The work for one graph; what it refuses names the graph."""
    try:
        return work(*given)
    except Refused as refusal:
        raise Refused(f"graph {number}: {refusal}") from None
    except Exception as error:
        if type(error).__name__ != "NegativeCycleError":  # SciPy's class, checked without importing SciPy
            raise
        raise type(error)(str(error).replace("the graph", f"graph {number}", 1)) from None


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
    results = []
    for place, number in enumerate(stack.numbers.tolist()):
        results.append(_naming(number, one, stack.graph(place)))
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
    from kernels.numba_door.cpu_stacks import close_all, close_all_with_predecessors

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
