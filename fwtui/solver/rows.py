"""Rows and columns of distances by searches from some or all vertices, without room for the others; and when these are sooner."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log2

import numpy as np

from fwtui.common import units
from fwtui.common.cores import usable_cores
from fwtui.common.errors import Refused
from fwtui.graphs.adjacency import Adjacency, GivenGraph, least_of_parallel
from fwtui.graphs.bounds import EXACT_INTEGER
from fwtui.graphs.cycles import cycle_or_heights
from fwtui.solver import choose
from fwtui.solver.call import Call
from fwtui.solver.paths import Paths
from fwtui.solver.result import Result, Stats
from fwtui.solver.room import check_room, check_some
from fwtui.solver.solver_graph import cycle_error

PROOF = "sums in 64 bits"
_CELL, _WIDE = 4, 8  # bytes of a distance; of one from 2^24 on
SEARCHED = 1e-8  # seconds for a vertex in a heap and for an arc of SciPy's Dijkstra, measured on one core
WORTH_A_PROCESS, _PROCESS_STARTS = 1.0, 0.5  # seconds of searching, and until SciPy is there
_ALONE = 0.02  # seconds by which all distances must be sooner than some, to be worth their memory
_DOUBT = 2  # times by which searches from all vertices must be sooner, as estimates err
_SOON = 1e-3  # seconds that nobody waits for


def may_be_searched(graph: GivenGraph) -> bool:
    """Whether searches from all vertices may be sooner than a kernel on this machine."""
    if graph.n < choose.LEAST:
        return False
    from fwtui.machine.hardware import driver_present

    # where there is no room, a kernel says what fits
    return not driver_present() and choose.is_sparse(graph.adjacency.facts) and _room_for_all(graph.n, False)


def why_searches(graph: Adjacency, count: int, predecessors: bool) -> str:
    """Why searches from that many vertices are the way; empty if a kernel finds all distances sooner, and there is room."""
    if not _room_for_all(graph.n, predecessors):
        return "all distances do not fit into memory"
    alone, whole = seconds_of_searches(graph, count), count == graph.n
    shares = processes(alone)
    by_searches = alone / shares + _PROCESS_STARTS * (shares > 1)
    by_kernel = choose.seconds_of_kernel(graph, by_searches)
    if by_searches * (_DOUBT if whole else 1) > by_kernel + _ALONE:
        return ""
    if max(by_searches, by_kernel) < _SOON:
        return "on so small a graph searches take less than a millisecond"
    begins = "all vertices" if whole else units.counted(count, "vertex", "vertices")
    other = "a kernel" if whole else "all distances"
    return f"searches from {begins} take about {units.duration(by_searches)}, and {other} {units.duration(by_kernel)}"


def _room_for_all(n: int, predecessors: bool) -> bool:
    try:
        check_room(n, "int32", predecessors)
    except Refused:
        return False
    return True


def seconds_of_searches(graph: Adjacency, count: int) -> float:
    """On one core, from that many vertices."""
    return count * (graph.n * log2(graph.n + 1) + graph.facts.edges) * SEARCHED


def processes(seconds: float) -> int:
    """How many share searches that take one core so long; 1: this one alone."""
    return max(1, min(len(usable_cores()), ceil(seconds / WORTH_A_PROCESS)))


def by_searches(graph: Adjacency, rows: np.ndarray | None, columns: np.ndarray | None, reason: str, call: Call) -> Result:
    """By a search from each source, or against the arcs from each target where these are fewer."""
    from scipy.sparse import csr_array

    from fwtui.solver.searches import block_rows, searched

    n, facts, clock, predecessors = graph.n, graph.facts, call.clock, call.predecessors
    backward = columns is not None and (rows is None or len(columns) < len(rows))
    begins, ends = (columns, rows) if backward else (rows, columns)
    begins = np.arange(n) if begins is None else begins
    shape = len(begins), n if ends is None else len(ends)
    shares = processes(seconds_of_searches(graph, len(begins)))
    beside = (shares + 2) * block_rows(n) * n * (_WIDE + 4 * predecessors)  # a block in each process, and two here
    # float32 holds them, unless a weight would become 0 in it
    size, dtype = (_WIDE, np.float64) if facts.vanishing else (_CELL, np.float32)
    check_some(shape, size + 4 * predecessors, beside)
    sources, targets, weights = arcs = least_of_parallel(graph.all_arcs())
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
        if (
            facts.integer
            and distances.dtype == np.float32
            and np.abs(found).max(where=np.isfinite(found), initial=0) >= EXACT_INTEGER
        ):
            check_some(shape, _WIDE)
            distances = distances.astype(np.float64)
        distances[part] = found
    clock.lap("searches")
    words = {"dtype": "float64", "proof": PROOF, "exact": facts.exact_sums, "kernel": "dijkstra", "tile": 0, "device": "cpu"}
    stats = Stats(n, facts.edges, **words, devices=(), seconds=dict(clock.seconds), reason=reason)
    answered = distances.T if backward else distances
    paths = Paths(graph, answered, stats.exact) if rows is None and columns is None else None
    return Result(answered, before, stats, graph.vertices, paths, rows, columns)
