"""Rows and columns of distances by searches from some or all vertices, without room for the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import psutil

from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.graphs.adjacency import Adjacency, merge_parallel
from fwtui.graphs.bounds import held_below, rounded
from fwtui.graphs.cycles import cycle_or_heights
from fwtui.solver.call import Call
from fwtui.solver.costs import processes, seconds_of_searches
from fwtui.solver.paths import Paths
from fwtui.solver.result import Result, Stats
from fwtui.solver.solver_graph import cycle_error

PROOF = "sums in 64 bits"
_CELL, _WIDE = 4, 8  # bytes of a distance; of one that float32 does not hold


def by_searches(graph: Adjacency, rows: np.ndarray | None, columns: np.ndarray | None, reason: str, call: Call) -> Result:
    """Solve by a Dijkstra search from each source, or backwards from each target if there are fewer targets."""
    from scipy.sparse import csr_array

    from fwtui.solver.searches import block_rows, searched

    n, facts, clock, predecessors = graph.n, graph.facts, call.clock, call.predecessors
    backward = columns is not None and (rows is None or len(columns) < len(rows))
    begins, ends = (columns, rows) if backward else (rows, columns)
    begins = np.arange(n) if begins is None else begins
    shape = len(begins), n if ends is None else len(ends)
    shares = processes(seconds_of_searches(graph, len(begins)))
    beside = (shares + 2) * block_rows(n) * n * (_WIDE + 4 * predecessors)  # a block in each process, and two here
    single, farthest = held_below(facts, "float32"), 0.0
    size, dtype = (_CELL, np.float32) if single else (_WIDE, np.float64)
    _check_room(shape, size + 4 * predecessors, beside)
    sources, targets, weights = arcs = merge_parallel(graph.all_arcs())
    cycle, heights = ((), np.zeros(n)) if facts.nonnegative else cycle_or_heights(replace(graph, dense=None, arcs=arcs))
    if cycle:
        raise cycle_error(graph.vertices, [*cycle, cycle[0]])
    weights = np.maximum(weights + heights[sources] - heights[targets], 0)  # what rounding leaves below 0
    apart = sources != targets
    links = (targets, sources) if backward else (sources, targets)
    matrix = csr_array((weights[apart], (links[0][apart], links[1][apart])), shape=(n, n))
    lower, raised = (heights, -heights) if backward else (-heights, heights)
    distances = np.empty(shape, dtype)
    before = np.empty(shape, np.int32) if predecessors else None
    clock.lap("prepare")
    for part, every, nearest in searched(matrix, begins, predecessors, shares):
        call.tell(part.start / len(begins))
        if before is not None and nearest is not None:
            before[part] = nearest
        found = every if ends is None else every[:, ends]
        found = found + (raised if ends is None else raised[ends])[None, :] + lower[begins[part]][:, None]
        farthest = float(np.abs(found).max(where=np.isfinite(found), initial=farthest))
        if distances.dtype == np.float32 and farthest >= single:
            _check_room(shape, _WIDE)
            wide = np.empty(shape, np.float64)
            wide[: part.start] = distances[: part.start]
            distances = wide
        distances[part] = found
    clock.lap("searches")
    exact = farthest < held_below(facts, "float64")
    stats = Stats(
        *(n, facts.edges, "float64", PROOF if exact else rounded("float64"), exact),
        *("dijkstra", 0, "cpu", ()),
        seconds=dict(clock.seconds),
        reason=reason,
    )
    answered = distances.T if backward else distances
    paths = Paths(graph, answered, stats.exact) if rows is None and columns is None else None
    return Result(answered, before, stats, graph.vertices, paths, rows, columns)


def _check_room(shape: tuple[int, int], per_cell: int, other: int = 0) -> None:
    """Raises Refused if that many rows and columns of distances do not fit into memory, beside `other` bytes."""
    needed, usable = shape[0] * shape[1] * per_cell, max(0, psutil.virtual_memory().available - KEPT_FREE - other)
    if needed > usable:
        raise Refused(
            f"{shape[0]:,} x {shape[1]:,} distances need {units.memory(needed)} and {units.memory(usable)} are free; "
            f"choose up to {usable // per_cell // shape[1]:,} vertices"
        )
