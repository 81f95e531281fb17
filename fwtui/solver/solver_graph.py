"""A graph in the representation in which its engine solves it: on the host, on a GPU, or over ranks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import count
from typing import Any, Literal

import numpy as np
import psutil

from fwtui.common.errors import Refused
from fwtui.common.malloc_arenas import RESERVED_MEMORY
from fwtui.common.units import memory
from fwtui.engine.engine import Engine, one_of_each_op
from fwtui.graphs.adjacency import Adjacency, GivenGraph
from fwtui.graphs.bounds import AFTERWARDS, EXACT_INTEGER, Choice, choices, rounded
from fwtui.graphs.cycles import cycle_or_heights
from fwtui.graphs.graph import EdgeFacts
from fwtui.graphs.vertices import Vertices
from fwtui.solver.call import Call, Clock
from fwtui.solver.choose import fitting, sparser
from fwtui.solver.compiled_code import compiled, on_device, on_host
from fwtui.solver.costs import PREDECESSOR, WIDE_DISTANCE, check_device_room, check_room, rank_bytes_per_cell
from fwtui.solver.paths import Paths, TracedPredecessors
from fwtui.solver.result import Result, Stats
from fwtui_kernels.parts.elimination import relaxations
from fwtui_kernels.plan import FLOATS, Buffers, Kernel, Program, Shape, Step

_SHOWN = 8  # vertices of a cycle in a message
_PASSES = 64
_MAX_PROGRAMS = 8  # programs that are cached for the next graph of the same size
_programs: dict[tuple[str, Shape, Engine], tuple[Program, list[Step]]] = {}


class SolverGraph(ABC):
    """A graph in the representation in which its engine solves it; `origin` is the input graph.

    `distances` is the padded array of a kernel, in the memory of the graph; a cell of at least `far` means that no path exists.
    """

    reason = ""  # for the choice of the kernel, if the graph decided

    def __init__(self, origin: GivenGraph, engine: Engine, facts: EdgeFacts, keep_on_device: bool = False):
        self.n = origin.n
        self.facts = facts
        self.engine = engine
        self.origin = origin
        self.keep_on_device = keep_on_device

    def solve(self, call: Call) -> Result:
        """Solve by the named kernel, or the fastest. Raises Refused, and SciPy's NegativeCycleError."""
        for choice in self.choices(call.dtype):
            call.clock.lap("prepare")
            result = self._solve_in(choice, call)
            if result is not None:
                return result
        raise Refused(f"some distances overflow {call.dtype}; pass a wider dtype, or omit dtype")

    def _solve_in(self, choice: Choice, call: Call) -> Result | None:
        """Return the result computed in that type; None if some distances overflow it, or if a wider type avoids rounding."""
        engine, clock, dtype = self.engine, call.clock, choice.dtype
        kernel, shape = self.choose_kernel(call, dtype)
        if engine.elsewhere:
            clock.lap("set-up")
        with compiled(engine.target.backend) if kernel.compiles and not engine.elsewhere else nullcontext():
            program, plan, buffers = _ready(kernel, shape, engine, clock)
            weights = program.weights(buffers) if call.predecessors else None
            if weights is not None:
                from fwtui_kernels.paths.predecessors import compile_search  # imports numba

                compile_search(dtype, engine.stream)
                clock.lap("compile")
            side = self.at(program.home)
            side.load(program, buffers, clock)
            launched = count()
            timed = engine.timed_repetition(program, plan, buffers, "eager")
            clock.take("kernels", timed(lambda: call.report_progress(next(launched) / len(plan))))
            distances, largest, diagonal = side.unload(program, buffers, choice.far)
            if not self.facts.nonnegative and (diagonal < 0).any():
                check_cycles(self.origin.adjacency, self.facts, diagonal, dtype)
            exact = largest < choice.exact_below
            if call.dtype is None and dtype == "float32" and not exact:
                return None
            if choice.proof == AFTERWARDS and dtype not in FLOATS and side.escaped(distances, choice.far):
                return None
            wide = dtype == "float64" or (dtype not in FLOATS and largest >= EXACT_INTEGER)
            if wide and dtype not in FLOATS:
                _check_wide(self.n, side.cells_here(shape), call.predecessors)
            distances = side.finished(distances, choice.far, wide, reuse=weights is None)
            clock.lap("copy out")
            before = traced = None
            if weights is not None:
                from fwtui.solver.device_predecessors import found_on_device

                there = program.result(buffers, engine.stream)
                traced = found_on_device(there, weights, self.facts, largest, engine, self.keep_on_device, clock)
        if call.predecessors:
            before = self.predecessors(distances, exact, traced)
            clock.lap("paths")
        stats = Stats(
            n=self.n,
            edges=self.facts.edges,
            dtype=dtype,
            proof=choice.proof if exact else rounded(dtype),
            exact=exact,
            kernel=kernel.id,
            tile=shape.tile if kernel.tiles else 0,
            device=engine.target.backend,
            devices=tuple(map(str, engine.ranks)),
            seconds=dict(clock.seconds),
            relaxations=0 if shape.order is None else relaxations(shape),
            reason=self.reason,
        )
        return self.result(distances, before, stats)

    def choices(self, dtype: str | None) -> Iterator[Choice]:
        """Yield the data types to try, or only the requested one. Raises Refused if it cannot hold the weights."""
        return choices(self.facts, dtype, self.reach)

    @abstractmethod
    def reach(self, enough: float) -> tuple[float, bool]:
        """Return an upper bound on all distances, valid if the second value is true; the search may end below `enough`."""

    def choose_kernel(self, call: Call, dtype: str) -> tuple[Kernel, Shape]:
        """Return the named kernel, or the best one, and its shape. Raises Refused if the result does not fit in memory."""
        kernel, shape = fitting(call.named, self.facts, dtype, self.engine)
        if self.cells_here(shape) or kernel.streams is not None or call.predecessors:
            check_room(self.n, dtype, call.predecessors, low=self.facts.low, rank_bytes=rank_bytes_per_cell(dtype, self.engine))
        kernel, shape, self.reason = sparser(call.named, self.origin, self.facts, kernel, shape, self.engine)
        return kernel, shape

    def at(self, home: Literal["host", "device"]) -> SolverGraph:
        """Return the same graph in the memory of the program's matrix."""
        return self

    @abstractmethod
    def load(self, program: Program, buffers: Buffers, clock: Clock) -> None:
        """Load the graph into a program."""

    @abstractmethod
    def unload(self, program: Program, buffers: Buffers, far: float) -> tuple[Any, float, np.ndarray]:
        """Return the distances as the program left them, the greatest absolute one, and their diagonal.

        Zeros may replace a diagonal without negative cells.
        """

    @abstractmethod
    def escaped(self, distances: Any, far: float) -> bool:
        """Return whether an arc leads from a vertex with a distance to one without: then the distance overflowed."""

    def cells_here(self, shape: Shape) -> int:
        """Return the number of distances that are copied to this host."""
        return self.n**2

    @abstractmethod
    def finished(self, distances: Any, far: float, wide: bool, reuse: bool) -> Any:
        """Return (n, n) distances in the form of Result: +inf for no path, 0 on the diagonal; float64 if `wide`, else float32.

        With `reuse` they may overwrite those of the kernel.
        """

    def predecessors(self, distances: Any, exact: bool, traced: TracedPredecessors | None) -> Any:
        """Return the predecessors of finished distances; `traced` are those that the GPU found."""
        paths = Paths(self.origin.adjacency, on_host(distances, self.engine), exact)
        if traced is None:
            return paths.predecessors()
        before, hidden = traced
        if len(hidden):
            for vertex, row in zip(hidden.tolist(), paths.by_dijkstra(hidden), strict=True):
                if isinstance(before, np.ndarray):
                    before[vertex] = row
                else:
                    before[vertex].copy_to_device(row, stream=self.engine.stream)
            self.engine.synchronize()
        return before

    def result(self, distances: Any, predecessors: Any | None, stats: Stats) -> Result:
        if self.keep_on_device:
            arrays = (distances, predecessors)
            check_device_room(self.engine, self.n, sum(a.nbytes for a in arrays if isinstance(a, np.ndarray)))
            distances, predecessors = (on_device(array, self.engine) for array in arrays)
            return Result(distances, predecessors, stats, self.origin.vertices)
        return Result(distances, predecessors, stats, self.origin.vertices, Paths(self.origin, distances, stats.exact))


def _ready(kernel: Kernel, shape: Shape, engine: Engine, clock: Clock) -> tuple[Program, list[Step], Buffers]:
    """Return the compiled program, its plan and new buffers. Programs of earlier graphs are reused."""
    key = kernel.id, shape, engine
    program, plan = _programs.get(key) or (engine.build(kernel, shape), list(kernel.plan(shape, False)))
    clock.lap("compile" if kernel.compiles else "set-up")  # without compiling, building imports a library
    buffers = program.allocate()
    clock.lap("allocate")
    if kernel.compiles and key not in _programs:
        program.compile(one_of_each_op(plan), buffers, engine.stream)
        engine.synchronize()
        if not engine.ranks and shape.order is None:  # neither ranks nor the order of one graph's vertices come again
            while len(_programs) >= _MAX_PROGRAMS:
                del _programs[next(iter(_programs))]
            _programs[key] = program, plan
        clock.lap("compile")
    return program, plan, buffers


def _check_wide(n: int, cells: int, predecessors: bool) -> None:
    """Raise Refused if `cells` float64 distances do not fit in memory, next to predecessors that are still to be computed."""
    free = psutil.virtual_memory().available
    needed = cells * (WIDE_DISTANCE + (PREDECESSOR if predecessors else 0))
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
