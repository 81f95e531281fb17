"""Distances from some vertices only: a search from each, or the rows of all distances where these are found sooner."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from math import log2
from typing import Any

import numpy as np
import psutil

from fwtui.common import units
from fwtui.common.cores import usable_cores
from fwtui.common.errors import Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.graphs.adjacency import Adjacency, Arcs, least_of_parallel
from fwtui.graphs.bounds import EXACT_INTEGER
from fwtui.graphs.cycles import cycle_among
from fwtui.graphs.library_objects import LazyGraph, adjacency_of
from fwtui.graphs.vertices import Vertices
from fwtui.solver import choose
from fwtui.solver.driver import answer
from fwtui.solver.launching import Clock
from fwtui.solver.result import Result, Stats
from fwtui.solver.solver_graph import Tell, cycle_error

PROOF = "sums in 64 bits"
# measured on one core: seconds for a vertex in a heap and for an arc of SciPy's Dijkstra; relaxations a second of a kernel
_SEARCHED, _RELAXED = 1.5e-8, 5e9
_RELAXED_ON_GPU, _GPU_STARTS = 5e12, 1.0
_ALONE = 0.02  # seconds by which all distances must be sooner to be worth their memory
_AT_ONCE = 64  # sources of one call
_SOON = 1e-3  # seconds that nobody waits for
_ROUNDS = 16  # of the search for potentials, after which a negative cycle is looked for
_CELL = 8 + 4  # bytes of a distance while it is found, and of one in the result


def solve_rows(
    graph: Adjacency | LazyGraph,
    sources: Sequence[Hashable],
    *,
    dtype: str | None = None,
    predecessors: bool = False,
    kernel: str = "auto",
    device: str | int | None = None,
    tell: Tell = lambda share: None,
    clock: Clock | None = None,
) -> Result:
    """The result's rows of these vertices, in their order. Raises Refused, and SciPy's NegativeCycleError.

    A dtype, a kernel or a device that is named finds all distances. Else what is estimated to take least time does.
    """
    clock = clock or Clock()
    rows = _checked(sources, graph.vertices)
    whole = adjacency_of(graph)
    reason = "" if dtype or device is not None or kernel != choose.AUTO.id else _searches(whole, len(rows), predecessors)
    clock.lap("prepare")
    if reason:
        return _searched(whole, rows, predecessors, reason, clock, tell)
    found = answer(graph, dtype=dtype, predecessors=predecessors, kernel=kernel, device=device, tell=tell, clock=clock)
    before = found.predecessors[rows] if found.predecessors is not None else None
    why = f"all distances take less time than searches from {units.counted(len(rows), 'vertex', 'vertices')}"
    stats = replace(found.stats, reason=why if dtype is None and device is None and kernel == choose.AUTO.id else "")
    return Result(np.asarray(found.distances)[rows], before, stats, found.vertices, rows=rows)


def _checked(sources: Sequence[Hashable], vertices: Vertices) -> np.ndarray:
    """The vertices as an array: integers are their numbers, all else are labels. Raises Refused for one that is not there."""
    n = len(vertices)
    rows = [int(source) if isinstance(source, (int, np.integer)) else vertices.row(source) for source in sources]
    if not rows:
        raise Refused("sources is empty; name at least one vertex, or leave it out for all")
    for row in rows:
        if not 0 <= row < n:
            raise Refused(f"source {row} is outside 0 to {n - 1}; choose vertices of the graph")
    return np.array(rows, dtype=np.int64)


def _searches(graph: Adjacency, rows: int, predecessors: bool) -> str:
    """Why searches are the way to that many rows; empty if all distances are found sooner, and there is room for them."""
    from fwtui.machine.hardware import driver_present

    n, edges = graph.n, graph.facts.edges
    by_searches = rows * (n * log2(n + 1) + edges) * _SEARCHED
    on_gpu = n >= choose.WORTH and driver_present()
    by_kernel = n**3 / _RELAXED_ON_GPU + _GPU_STARTS if on_gpu else n**3 / (_RELAXED * len(usable_cores()))
    try:
        choose.check_room(n, "int32", predecessors)
    except Refused:
        return "all distances do not fit into memory"
    if by_searches > by_kernel + _ALONE:
        return ""
    if max(by_searches, by_kernel) < _SOON:
        return "on so small a graph searches take less than a millisecond"
    foreseen = f"about {units.duration(by_searches)}, and all distances {units.duration(by_kernel)}"
    return f"searches from {units.counted(rows, 'vertex', 'vertices')} take {foreseen}"


def _searched(graph: Adjacency, rows: np.ndarray, predecessors: bool, reason: str, clock: Clock, tell: Tell) -> Result:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    n, facts = graph.n, graph.facts
    needed, free = len(rows) * n * (_CELL + 4 * predecessors), psutil.virtual_memory().available
    if needed > max(0, free - KEPT_FREE):
        most = max(0, free - KEPT_FREE) * len(rows) // needed
        raise Refused(
            f"{len(rows):,} rows of {n:,} distances need {units.memory(needed)} and {units.memory(free)} are free; "
            f"choose up to {most:,} sources"
        )
    arcs = graph.all_arcs()
    heights = np.zeros(n) if facts.nonnegative else potentials(n, arcs, graph.vertices)
    sources, targets, weights = least_of_parallel(arcs)
    weights = np.maximum(weights + heights[sources] - heights[targets], 0)  # what rounding leaves below 0
    apart = sources != targets
    matrix = csr_array((weights[apart], (sources[apart], targets[apart])), shape=(n, n))
    distances = np.empty((len(rows), n))
    before = np.empty((len(rows), n), np.int32) if predecessors else None
    clock.lap("prepare")
    for start in range(0, len(rows), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        tell(start / len(rows))
        found: Any = dijkstra(matrix, indices=rows[part], return_predecessors=predecessors)
        if before is None:
            distances[part] = found
        else:
            distances[part], before[part] = found
    distances += heights[None, :] - heights[rows][:, None]
    clock.lap("searches")
    finite = distances[np.isfinite(distances)]
    narrow = not facts.integer or float(np.abs(finite).max(initial=0)) < EXACT_INTEGER
    answered = distances.astype(np.float32) if narrow else distances
    clock.lap("copy out")
    words = {"dtype": "float64", "proof": PROOF, "exact": facts.exact_sums, "kernel": "dijkstra", "tile": 0, "device": "cpu"}
    stats = Stats(n, facts.edges, **words, devices=(), seconds=dict(clock.seconds), reason=reason)
    return Result(answered, before, stats, graph.vertices, rows=rows)


def potentials(n: int, arcs: Arcs, vertices: Vertices) -> np.ndarray:
    """(n,) heights with which no arc is negative: w + h[source] - h[target] >= 0. Raises SciPy's NegativeCycleError.

    Bellman and Ford's search from a vertex that has an arc of weight 0 to each other one; a cycle among the predecessors is
    negative, so it is looked for now and then.
    """
    heights, predecessor = np.zeros(n), np.full(n, -1, dtype=np.int64)
    fell = np.zeros(n, dtype=bool)
    for rounds in range(1, n + 2):
        before = heights.copy()
        reached = before[arcs.sources] + arcs.weights
        np.minimum.at(heights, arcs.targets, reached)
        fell = heights < before
        if not fell.any():
            return heights
        best = fell[arcs.targets] & (reached == heights[arcs.targets])
        predecessor[arcs.targets[best]] = arcs.sources[best]
        if rounds % _ROUNDS == 0 or rounds > n:
            cycle = cycle_among(predecessor)
            if cycle:
                raise cycle_error(vertices, [*cycle, cycle[0]])
    raise cycle_error(vertices, [int(np.flatnonzero(fell)[0])])
