"""One graph in host memory, by what takes least time: searches from some or all vertices, or a kernel for all distances."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import psutil

from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.graphs.adjacency import Adjacency, GivenGraph, least_of_parallel
from fwtui.graphs.bounds import EXACT_INTEGER
from fwtui.graphs.cycles import cycle_or_heights
from fwtui.graphs.vertices import Vertices
from fwtui.solver.driver import answer
from fwtui.solver.estimates import may_be_searched, processes, seconds_of_searches, why_searches
from fwtui.solver.launching import Clock
from fwtui.solver.paths import Paths
from fwtui.solver.result import Result, Stats
from fwtui.solver.solver_graph import Tell, cycle_error
from fwtui_kernels.auto import AUTO

PROOF = "sums in 64 bits"
_CELL, _WIDE = 4, 8  # bytes of a distance; of one from 2^24 on


def solve_one(
    graph: GivenGraph,
    sources: Sequence[Hashable] | None = None,
    targets: Sequence[Hashable] | None = None,
    *,
    dtype: str | None = None,
    predecessors: bool = False,
    kernel: str = "auto",
    device: str | int | None = None,
    devices: str | None = None,
    tell: Tell = lambda share: None,
    clock: Clock | None = None,
) -> Result:
    """The result's rows of these sources and columns of these targets, in their order; None: all. Raises Refused, Failed, and
    SciPy's NegativeCycleError.

    A dtype, a kernel or devices that are named find all distances. Else what is estimated to take least time does.
    """
    clock = clock or Clock()
    if targets is not None and predecessors:
        raise Refused("paths to some targets need whole rows of predecessors; leave out either targets or predecessors")
    rows, columns = (_checked(*given, graph.vertices) for given in (("source", sources), ("target", targets)))
    fewest = min((len(ends) for ends in (rows, columns) if ends is not None), default=graph.n)
    free, whole = dtype is device is devices is None and kernel == AUTO.id, rows is None and columns is None
    searchable = free and (not whole or may_be_searched(graph))
    reason = why_searches(graph.adjacency, fewest, predecessors) if searchable else ""
    clock.lap("prepare")
    if reason:
        return _searched(graph.adjacency, rows, columns, predecessors, reason, clock, tell)
    chosen = {"dtype": dtype, "predecessors": predecessors, "kernel": kernel, "device": device, "devices": devices}
    found = answer(graph, **chosen, tell=tell, clock=clock)
    if whole:
        return found
    why = f"all distances take less time than searches from {units.counted(fewest, 'vertex', 'vertices')}" if free else ""
    wanted = slice(None) if rows is None else rows
    distances = np.asarray(found.distances)[wanted]
    before = found.predecessors[wanted] if found.predecessors is not None else None
    if columns is not None:
        distances = distances[:, columns]
    return Result(distances, before, replace(found.stats, reason=why), found.vertices, rows=rows, columns=columns)


def _checked(what: str, ends: Sequence[Hashable] | None, vertices: Vertices) -> np.ndarray | None:
    """The vertices as an array: integers are their numbers, all else are labels. Raises Refused for one that is not there."""
    if ends is None:
        return None
    array = isinstance(ends, np.ndarray) and (ends.ndim != 1 or ends.dtype == bool)
    if array or isinstance(ends, (str, bytes)) or not isinstance(ends, Iterable):
        raise Refused(f"{what}s is no list of vertices; give one like [3, 17], or numpy.flatnonzero(mask)")
    n = len(vertices)
    numbers = [int(end) if isinstance(end, (int, np.integer)) else vertices.row(end) for end in ends]
    if not numbers:
        raise Refused(f"{what}s is empty; name at least one vertex, or leave it out for all")
    for number in numbers:
        if not 0 <= number < n:
            raise Refused(f"{what} {number} is outside 0 to {n - 1}; choose vertices of the graph")
    return np.array(numbers, dtype=np.int64)


def _searched(
    graph: Adjacency,
    rows: np.ndarray | None,
    columns: np.ndarray | None,
    predecessors: bool,
    reason: str,
    clock: Clock,
    tell: Tell,
) -> Result:
    """By a search from each source, or against the arcs from each target where these are fewer."""
    from scipy.sparse import csr_array

    from fwtui.solver.searches import block_rows, searched

    n, facts = graph.n, graph.facts
    backward = columns is not None and (rows is None or len(columns) < len(rows))
    begins, ends = (columns, rows) if backward else (rows, columns)
    begins = np.arange(n) if begins is None else begins
    shape = len(begins), n if ends is None else len(ends)
    shares = processes(seconds_of_searches(graph, len(begins)))
    beside = (shares + 2) * block_rows(n) * n * (_WIDE + 4 * predecessors)  # a block in each process, and two here
    # float32 holds them, unless a weight would become 0 in it
    size, dtype = (_WIDE, np.float64) if facts.vanishing else (_CELL, np.float32)
    _check_room(shape, size + 4 * predecessors, beside)
    arcs = graph.all_arcs()
    cycle, heights = ((), np.zeros(n)) if facts.nonnegative else cycle_or_heights(graph)
    if cycle:
        raise cycle_error(graph.vertices, [*cycle, cycle[0]])
    sources, targets, weights = least_of_parallel(arcs)
    weights = np.maximum(weights + heights[sources] - heights[targets], 0)  # what rounding leaves below 0
    apart = sources != targets
    links = (targets, sources) if backward else (sources, targets)
    matrix = csr_array((weights[apart], (links[0][apart], links[1][apart])), shape=(n, n))
    lower, raised = (heights, -heights) if backward else (-heights, heights)
    distances = np.empty(shape, dtype)
    before = np.empty(shape, np.int32) if predecessors else None
    clock.lap("prepare")
    for part, every, nearest in searched(matrix, begins, predecessors, shares):
        tell(part.start / len(begins))
        if before is not None and nearest is not None:
            before[part] = nearest
        found = every if ends is None else every[:, ends]
        found = found + (raised if ends is None else raised[ends])[None, :] + lower[begins[part]][:, None]
        if (
            facts.integer
            and distances.dtype == np.float32
            and np.abs(found).max(where=np.isfinite(found), initial=0) >= EXACT_INTEGER
        ):
            _check_room(shape, _WIDE)
            distances = distances.astype(np.float64)
        distances[part] = found
    clock.lap("searches")
    words = {"dtype": "float64", "proof": PROOF, "exact": facts.exact_sums, "kernel": "dijkstra", "tile": 0, "device": "cpu"}
    stats = Stats(n, facts.edges, **words, devices=(), seconds=dict(clock.seconds), reason=reason)
    answered = distances.T if backward else distances
    paths = Paths(graph, answered, stats.exact) if rows is None and columns is None else None
    return Result(answered, before, stats, graph.vertices, paths, rows, columns)


def _check_room(shape: tuple[int, int], bytes_a_cell: int, beside: int = 0) -> None:
    """Raises Refused if the distances do not fit into memory."""
    cells = shape[0] * shape[1]
    needed, usable = cells * bytes_a_cell, max(0, psutil.virtual_memory().available - KEPT_FREE - beside)
    if needed > usable:
        raise Refused(
            f"{shape[0]:,} x {shape[1]:,} distances need {units.memory(needed)} and {units.memory(usable)} are free; "
            f"choose up to {usable // bytes_a_cell // shape[1]:,} vertices"
        )
