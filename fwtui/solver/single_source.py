"""Rows and columns of distances by Dijkstra searches, without memory for the other distances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fwtui.graphs.adjacency import Adjacency, merge_parallel
from fwtui.graphs.bounds import held_below, rounded
from fwtui.graphs.cycles import cycle_or_heights
from fwtui.solver.call import Call
from fwtui.solver.costs import processes, seconds_of_searches
from fwtui.solver.ends import Ends, check_rows_fit
from fwtui.solver.kernel_run import cycle_error
from fwtui.solver.result import Result, Stats

PROOF = "sums in 64 bits"
_CELL, _WIDE = 4, 8  # bytes of a distance; of one that float32 does not hold


def solve_by_dijkstra(graph: Adjacency, ends: Ends, reason: str, call: Call) -> Result:
    """Solve by a Dijkstra search from each source, or backwards from each target if there are fewer targets."""
    from scipy.sparse import csr_array

    from fwtui.solver.parallel_dijkstra import block_rows, run_searches

    n, facts, clock, predecessors = graph.n, graph.facts, call.clock, call.predecessors
    backward, begins, columns, shape = ends.backward, ends.begins, ends.columns, ends.shape
    shares = processes(seconds_of_searches(graph, len(begins)))
    working_bytes = (shares + 2) * block_rows(n) * n * (_WIDE + 4 * predecessors)  # a block in each process, and two here
    single, farthest = held_below(facts, "float32"), 0.0
    size, dtype = (_CELL, np.float32) if single else (_WIDE, np.float64)
    check_rows_fit(shape, size + 4 * predecessors, working_bytes)
    sources, targets, weights = arcs = merge_parallel(graph.all_arcs())
    cycle, heights = ((), np.zeros(n)) if facts.nonnegative else cycle_or_heights(replace(graph, dense=None, arcs=arcs))
    if cycle:
        raise cycle_error(graph.vertices, [*cycle, cycle[0]])
    weights = np.maximum(weights + heights[sources] - heights[targets], 0)  # rounding may leave small negative weights
    distinct = sources != targets
    links = (targets, sources) if backward else (sources, targets)
    matrix = csr_array((weights[distinct], (links[0][distinct], links[1][distinct])), shape=(n, n))
    lower, raised = (heights, -heights) if backward else (-heights, heights)
    distances = np.empty(shape, dtype)
    before = np.empty(shape, np.int32) if predecessors else None
    clock.lap("prepare")
    for part, every, nearest in run_searches(matrix, begins, predecessors, shares):
        call.report_progress(part.start / len(begins))
        if before is not None and nearest is not None:
            before[part] = nearest
        found = every if columns is None else every[:, columns]
        found = found + (raised if columns is None else raised[columns])[None, :] + lower[begins[part]][:, None]
        farthest = float(np.abs(found).max(where=np.isfinite(found), initial=farthest))
        if distances.dtype == np.float32 and farthest >= single:
            check_rows_fit(shape, _WIDE)
            wide = np.empty(shape, np.float64)
            wide[: part.start] = distances[: part.start]
            distances = wide
        distances[part] = found
    clock.lap("searches")
    exact = farthest < held_below(facts, "float64")
    proof = PROOF if exact else rounded("float64")
    stats = Stats(n, facts.edges, "float64", proof, exact, "dijkstra", dict(clock.seconds), reason=reason)
    return ends.result(distances, before, stats, graph)
