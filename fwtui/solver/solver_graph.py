"""A graph as the driver sees it, whatever its representation: on the host, on a GPU, or over ranks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from fwtui.engine.engine import Engine, one_of_each_op
from fwtui.graphs.adjacency import Adjacency, GivenGraph
from fwtui.graphs.bounds import Choice, choices
from fwtui.graphs.cycles import cycle_or_heights
from fwtui.graphs.graph import EdgeFacts
from fwtui.graphs.vertices import Vertices
from fwtui.solver.call import Call, Clock
from fwtui.solver.choose import fitting, sparser
from fwtui.solver.costs import beside, check_room
from fwtui.solver.launching import on_host, put
from fwtui.solver.paths import Paths, TracedPredecessors
from fwtui.solver.result import Result, Stats
from fwtui_kernels.plan import Buffers, Kernel, Program, Shape, Step

_SHOWN = 8  # vertices of a cycle in a message
_PASSES = 64
Answer = TypeVar("Answer", covariant=True)
_MOST_PROGRAMS = 8  # that wait for a graph of the same size
_programs: dict[tuple[str, Shape, Engine], tuple[Program, list[Step]]] = {}


class SolverGraph(Protocol[Answer]):
    """One graph in the representation in which its engine solves it.

    `distances` are a kernel's array, padded and with sentinels, on the side of the graph: from `far` on a cell is no path.
    """

    n: int
    facts: EdgeFacts
    engine: Engine
    reason: str = ""  # why its kernel was chosen, if there was a choice by the graph
    keep_on_device: bool = False  # whether its distances stay there, not on the host

    @abstractmethod
    def reach(self, enough: float) -> tuple[float, bool]:
        """An upper bound on all distances, valid if the second value is true; the search may end below `enough`."""

    def choices(self, dtype: str | None) -> Iterator[Choice]:
        """The types to try, or only that one. Raises Refused if it cannot be."""
        return choices(self.facts, dtype, self.reach)

    @abstractmethod
    def suited(self, call: Call, dtype: str) -> tuple[Kernel, Shape]:
        """The named kernel, or the best one, and its shape. Raises Refused if there is no room for the answer."""

    @abstractmethod
    def closed(self, kernel: Kernel, shape: Shape, call: Call) -> KernelDistances:
        """Load the graph into the kernel and run it."""

    @abstractmethod
    def look(self, distances: Any, far: float) -> tuple[float, np.ndarray]:
        """The greatest absolute distance, and the diagonal if it has a negative cell (else possibly zeros)."""

    @abstractmethod
    def check_cycles(self, diagonal: np.ndarray) -> None:
        """Raises SciPy's NegativeCycleError if a vertex has a negative distance to itself."""

    @abstractmethod
    def escaped(self, distances: Any, far: float) -> bool:
        """Whether some arc leads from a vertex's reachable set out of it: then a distance was too long for the type.
        Without such an arc, all other vertices are unreachable.
        """

    @abstractmethod
    def cells_here(self, shape: Shape) -> int:
        """How many distances come to this host."""

    @abstractmethod
    def finished(self, distances: Any, far: float, wide: bool) -> Any:
        """(n, n) distances in the form of Result: +inf for no path, 0 on the diagonal; float64 if `wide`, else float32."""

    @abstractmethod
    def predecessors(self, distances: Any, exact: bool, traced: TracedPredecessors | None) -> Any:
        """Those of finished distances; `traced` has been found already."""

    @abstractmethod
    def answer(self, distances: Any, predecessors: Any | None, stats: Stats) -> Answer: ...


class KernelDistances(NamedTuple):
    """Distances as a kernel left them, and the representation of the graph on whose side they are."""

    side: SolverGraph[Any]
    distances: Any
    trace: Callable[[float], TracedPredecessors | None]  # finds predecessors, if it can, knowing the greatest absolute distance


class OneGraph(SolverGraph[Result]):
    """What all representations of one graph share; `origin` is the graph as given."""

    def __init__(self, origin: GivenGraph, engine: Engine, facts: EdgeFacts):
        self.n = origin.n
        self.facts = facts
        self.engine = engine
        self.origin = origin

    def whole(self) -> Adjacency:
        """The graph on the host."""
        return self.origin.adjacency

    def suited(self, call: Call, dtype: str) -> tuple[Kernel, Shape]:
        check_room(self.n, dtype, call.predecessors, low=self.facts.low, beside=beside(dtype, self.engine))
        kernel, shape = fitting(call.named, self.facts, dtype, self.engine)
        kernel, shape, self.reason = sparser(call.named, self.origin, self.facts, kernel, shape, self.engine)
        return kernel, shape

    @abstractmethod
    def load(self, program: Program, buffers: Buffers, clock: Clock) -> None:
        """Load the graph into a program."""

    @abstractmethod
    def result(self, program: Program, buffers: Buffers) -> Any:
        """The distances as the program left them."""

    def at(self, home: Literal["host", "device"]) -> OneGraph:
        """The same graph for a program whose matrix is there."""
        return self

    def closed(self, kernel: Kernel, shape: Shape, call: Call) -> KernelDistances:
        engine, facts, clock = self.engine, self.facts, call.clock
        program, plan, buffers = _ready(kernel, shape, engine, clock)
        weights = program.weights(buffers) if call.predecessors else None
        if weights is not None:
            from fwtui_kernels.paths.predecessors import compile_search  # which brings numba

            compile_search(shape.dtype, shape.dtype == "float32" and not facts.exact_sums, engine.target.cc, engine.stream)
            clock.lap("compile")
        side = self.at(program.home)
        side.load(program, buffers, clock)
        launched = count()
        timed = engine.clean_pass(program, plan, buffers, "eager")
        clock.take("kernels", timed(lambda: call.tell(next(launched) / len(plan))))

        def trace(largest: float) -> TracedPredecessors | None:
            if weights is None:
                return None
            from fwtui.solver.device_predecessors import found_on_device

            there = program.result(buffers, engine.stream)
            return found_on_device(there, weights, facts, largest, engine, self.keep_on_device, clock)

        return KernelDistances(side, side.result(program, buffers), trace)

    def check_cycles(self, diagonal: np.ndarray) -> None:
        if not self.facts.nonnegative and (diagonal < 0).any():
            check_cycles(self.whole(), self.facts, diagonal)

    def cells_here(self, shape: Shape) -> int:
        return self.n**2

    def predecessors(self, distances: Any, exact: bool, traced: TracedPredecessors | None) -> Any:
        paths = Paths(self.whole(), on_host(distances, self.engine), exact)
        if traced is None:
            return paths.predecessors()
        before, hidden = traced
        if len(hidden):
            for vertex, row in zip(hidden.tolist(), paths.by_dijkstra(hidden), strict=True):
                put(row, before[vertex], self.engine)
        return before

    def answer(self, distances: Any, predecessors: Any | None, stats: Stats) -> Result:
        paths = Paths(self.origin, distances, stats.exact)
        return Result(distances, predecessors, stats, self.origin.vertices, paths)


def _ready(kernel: Kernel, shape: Shape, engine: Engine, clock: Clock) -> tuple[Program, list[Step], Buffers]:
    """Its program, with all its functions compiled, and new buffers. An earlier program is reused."""
    key = kernel.id, shape, engine
    program, plan = _programs.get(key) or (engine.build(kernel, shape), list(kernel.plan(shape, False)))
    if kernel.compiles:
        clock.lap("compile")
    buffers = program.allocate()
    clock.lap("allocate")
    if kernel.compiles and key not in _programs:
        program.compile(one_of_each_op(plan), buffers, engine.stream)
        engine.synchronize()
        if not engine.ranks and shape.order is None:  # neither ranks nor the order of one graph's vertices come again
            while len(_programs) >= _MOST_PROGRAMS:
                del _programs[next(iter(_programs))]
            _programs[key] = program, plan
        clock.lap("compile")
    return program, plan, buffers


def check_cycles(graph: Adjacency, facts: EdgeFacts, diagonal: np.ndarray) -> None:
    """Raises SciPy's NegativeCycleError, with the vertices of a cycle, if the diagonal is negative by more than rounding."""
    cycle, _ = cycle_or_heights(graph)
    if cycle:
        raise cycle_error(graph.vertices, [*cycle, cycle[0]])
    # float32 may make a cycle of weight 0 slightly negative, but not below this; tiles pass through a short one several times
    rounding = (graph.n + _PASSES) * float(np.finfo(np.float32).eps) * max(-(facts.low or 0), facts.high or 0)
    if facts.integer or float(diagonal.min()) < -rounding:
        raise cycle_error(graph.vertices, [int(diagonal.argmin())])


def cycle_error(vertices: Vertices, closed: Sequence[int]) -> Exception:
    """SciPy's NegativeCycleError with the vertices of a cycle, from one of them back to it, or with one that is on it."""
    from scipy.sparse.csgraph import NegativeCycleError

    names = [vertices.name(v) for v in closed]
    if len(names) > _SHOWN:
        names = [*names[: _SHOWN - 2], "...", names[-1]]
    where = f": {' -> '.join(names)}" if len(names) > 1 else f" through {names[0]}"
    return NegativeCycleError(f"the graph has a negative cycle{where}")
