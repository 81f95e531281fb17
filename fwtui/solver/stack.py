"""A stack of small graphs: their matrices lie one after the other in one array."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fwtui.common.errors import Refused
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import facts_of
from fwtui.graphs.graph import Facts
from fwtui.graphs.library_objects import of_object, weights_in
from fwtui.graphs.vertices import Vertices
from fwtui.solver.launching import Clock

_NATIVE = (np.float64, np.float32, np.int64, np.int32)  # types that are read as they are; others become float64


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
        from fwtui.solver.cpu_stacks import survey
        from fwtui_kernels.one_core import BAD, EDGES, FRACTION, HIGH, LOW, MISSING, ZEROS

        told = np.zeros((len(self), EDGES + 1))
        self.each(clock, survey, self.given, told)
        self._check(told[:, BAD] > 0, told[:, MISSING] > 0, told[:, ZEROS] > 0)
        return facts_of(
            self.n,
            int(told[:, EDGES].sum()),
            float(told[:, LOW].min(initial=np.inf)),
            float(told[:, HIGH].max(initial=-np.inf)),
            bool((told[:, FRACTION] == 0).all()),
            bool((told[:, FRACTION] <= 1).all()),
        )

    def check(self) -> None:
        """Raises Refused if one is not a graph. By NumPy, before graphs are solved without compiled code."""
        matrices = [self.of(self.given, number) for number in range(len(self))]
        bad = np.array([bool((matrix == -np.inf).any()) for matrix in matrices])
        missing = np.array([not np.isfinite(matrix).all() for matrix in matrices])
        zeros = np.array([np.count_nonzero(matrix == 0) > np.count_nonzero(matrix.diagonal() == 0) for matrix in matrices])
        self._check(bad, missing, zeros)

    def _check(self, bad: np.ndarray, missing: np.ndarray, zeros: np.ndarray) -> None:
        """For each graph whether it has -inf, no edge somewhere, and zeros off its diagonal."""
        if bad.any():
            where = self.numbers[bad.argmax()]
            raise Refused(f"-inf is not a weight, and graph {where} has it; give finite numbers, and +inf for no edge")
        marked = self.clear | missing
        unclear = zeros & ~(marked.any() if self.even else marked)
        if unclear.any():
            raise Refused(
                f"zeros off the diagonal of graph {self.numbers[unclear.argmax()]} may mean no edge or edges of weight 0, and "
                "nothing says which; put +inf where there is no edge, or give numpy.ma.array(weights) for edges"
            )

    def each(self, clock: Clock, function: Any, *given: Any) -> None:
        """Call a compiled function for the graphs; compiling or loading it is "compile"."""
        from fwtui_kernels.compiled.cpu_stacks import on_all_cores

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
