"""Rows and columns of distances of a sparse graph by one elimination, without memory for the other distances."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fwtui.common.cores import usable_cores
from fwtui.common.errors import Refused
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import BY_EDGES, Choice, choices, held_below, rounded
from fwtui.solver.call import Call
from fwtui.solver.compiled_code import compiled
from fwtui.solver.ends import Ends, check_rows_fit
from fwtui.solver.kernel_run import check_cycles
from fwtui.solver.result import Result, Stats
from fwtui_kernels.plan import FLOATS

if TYPE_CHECKING:
    from fwtui_kernels.compiled.trees import Neighbours
    from fwtui_kernels.parts.row_factor import Tree

MAX_ROWS = 64  # maximum rows that a core computes at once
LEAF = 64  # vertices that are not dissected further
_ELIMINATED, _SWEPT, _STORED = 1.2e-10, 1.6e-10, 3e-9  # seconds on one core: a relaxation of each phase, and a distance


class RowElimination:
    """An elimination of all vertices, from which each row of distances costs one sweep over its factor."""

    def __init__(self, graph: Adjacency, ends: Ends, dtype: str | None):
        """Find a tree of separators. Raises Refused if the named data type cannot hold the weights."""
        self.graph, self.ends, self._dtype = graph, ends, dtype
        self.choices = [
            choice
            for choice in choices(graph.facts, dtype, lambda enough: (0.0, False))
            if dtype is not None or choice.dtype in ("int32", "float64")  # a narrower type rarely holds rows of a large graph
        ]
        self._neighbours: dict[str, Neighbours] = {}

    @cached_property
    def tree(self) -> Tree:
        """The tree of separators."""
        with compiled():
            from fwtui_kernels.parts.dissection import dissect
            from fwtui_kernels.parts.row_factor import tree_of

            near = self.neighbours(self.choices[0].dtype)
            return tree_of(dissect(near.begins, near.others, LEAF), near)

    @property
    def bytes(self) -> int:
        """The host memory in bytes for the factor, the rows in progress and the result."""
        first = self.choices[0]
        rows, columns = self.ends.shape
        return self._bytes_of_work(first.dtype) + rows * columns * (4 if self._single_below(first) else 8)

    def _bytes_of_work(self, dtype: str) -> int:
        rows = min(len(usable_cores()) * MAX_ROWS, len(self.ends.begins))
        return np.dtype(dtype).itemsize * (self.tree.cells + rows * self.graph.n)

    @property
    def seconds(self) -> float:
        """The estimated remaining seconds."""
        return self._seconds(self.tree)

    def _seconds(self, tree: Tree) -> float:
        (eliminated, swept), rows = tree.relaxations, len(self.ends.begins)
        work = eliminated * _ELIMINATED + rows * (swept * _SWEPT + self.graph.n * _STORED)
        return work * np.dtype(self.choices[0].dtype).itemsize / 4 / len(usable_cores())

    def neighbours(self, dtype: str) -> Neighbours:
        """The arcs in that type, reversed if the sweeps begin at targets."""
        if dtype not in self._neighbours:
            from fwtui_kernels.compiled.trees import neighbours

            arcs = self.graph.all_arcs()
            self._neighbours[dtype] = neighbours(self.graph.n, *(arcs.reversed() if self.ends.backward else arcs), dtype)
        return self._neighbours[dtype]

    def solve(self, call: Call, reason: str) -> Result:
        """Return the rows and columns. Raises Refused, and SciPy's NegativeCycleError."""
        self.tree  # noqa: B018  # found before the clock of the kernels starts
        call.clock.lap("prepare")
        for choice in self.choices:
            with compiled():
                found = self._solve_in(choice, call)
            if found is not None:
                distances, farthest = found
                return self._result(distances, farthest, choice, call, reason)
        raise Refused(f"some distances overflow {self._dtype}; pass a wider dtype, or omit dtype")

    def _solve_in(self, choice: Choice, call: Call) -> tuple[np.ndarray, float] | None:
        """Return the distances and the greatest absolute one; None if one of them does not fit the type."""
        from fwtui_kernels.parts.row_factor import factorise, least_loop, room_for, rows_from

        graph, tree, begins, columns = self.graph, self.tree, self.ends.begins, self.ends.columns
        near, single = self.neighbours(choice.dtype), self._single_below(choice)
        check_rows_fit(self.ends.shape, 4 if single else 8, self._bytes_of_work(choice.dtype))
        cells = factorise(tree, near)
        if not graph.facts.nonnegative and (loop := least_loop(cells, tree.nodes)) < 0:
            check_cycles(graph, graph.facts, np.array([loop]), choice.dtype)
        room = room_for(tree, len(begins), cells.dtype)
        distances: Any = np.empty(self.ends.shape, np.float32 if single else np.float64)
        step, farthest, at = room.shape[0] * room.shape[2], 0.0, 0
        while at < len(begins):
            part = slice(at, at + step)
            call.report_progress(at / len(begins))
            rows = distances[part] if columns is None else np.empty((len(begins[part]), graph.n), distances.dtype)
            most, escaped = rows_from(tree, near, cells, room, begins[part], choice.far, rows)
            if escaped and choice.proof != BY_EDGES and choice.dtype not in FLOATS:
                return None
            farthest = max(farthest, most)
            if distances.dtype == np.float32 and farthest >= single:
                check_rows_fit(self.ends.shape, 8)
                wide = np.empty(self.ends.shape, np.float64)
                wide[:at] = distances[:at]
                distances = wide
                continue  # recompute these rows in float64
            if columns is not None:
                distances[part] = rows[:, columns]
            at += step
        call.clock.lap("kernels")
        return distances, farthest

    def _single_below(self, choice: Choice) -> float:
        """Return the distance up to which the result is float32; 0 if it is always float64."""
        if self._dtype == "float32":
            return np.inf
        return 0.0 if self._dtype == "float64" else held_below(self.graph.facts, "float32")

    def _result(self, distances: np.ndarray, farthest: float, choice: Choice, call: Call, reason: str) -> Result:
        exact, (eliminated, swept) = farthest < choice.exact_below, self.tree.relaxations
        stats = Stats(
            n=self.graph.n,
            edges=self.graph.facts.edges,
            dtype=choice.dtype,
            proof=choice.proof if exact else rounded(choice.dtype),
            exact=exact,
            kernel="elimination",
            seconds=dict(call.clock.seconds),
            relaxations=int(eliminated + len(self.ends.begins) * swept),
            reason=reason,
        )
        return self.ends.result(distances, None, stats, self.graph)
