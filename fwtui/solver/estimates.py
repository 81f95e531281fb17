"""How long each way of solving a graph takes: searches, a dense kernel, or one for sparse graphs, which METIS puts in order."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.util import find_spec
from math import ceil, log2

import psutil

from fwtui.common import units
from fwtui.common.cores import usable_cores
from fwtui.common.errors import Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency, GivenGraph, LazyGraph
from fwtui.graphs.graph import EdgeFacts
from fwtui.solver.choose import WORTH, check_room, shape_of
from fwtui.solver.launching import threads_lost
from fwtui_kernels import registry
from fwtui_kernels.parts.supernodal import elimination
from fwtui_kernels.plan import Kernel, Shape

SPARSE = {"cpu": "sparse-cpu", "cuda": "sparse"}  # kernels, by backend
LEAST = 2048  # vertices of a graph for which METIS is asked, unless such a kernel is named
MOST_DEGREE = 32  # on average
_COPIES = 6  # of the matrix on the host, at most, beside the result
# measured on one core: seconds for a vertex in a heap and for an arc of SciPy's Dijkstra; for a vertex in METIS's order, its tree
# and the tables of a plan; for a cell of a dense matrix in which the edges are looked for
SEARCHED, _ORDERED, _LOOKED_AT = 1e-8, 3e-5, 1e-9
_RELAXED, _RELAXED_ON_GPU = 1.2e10, 1.6e13  # relaxations a second in 32 bits of a core, and of an H100; in 16 bits twice as many
_GPU_STARTS, _COPIED = 1.0, 8e9  # seconds, and bytes a second of all distances to new memory of the host
WORTH_A_PROCESS, _PROCESS_STARTS = 1.0, 0.5  # seconds of searching, and until SciPy is there
_ALONE = 0.02  # seconds by which all distances must be sooner than some, to be worth their memory
_DOUBT = 2  # times by which searches from all vertices must be sooner, as estimates err
_SOON = 1e-3  # seconds that nobody waits for


def seconds_of_searches(graph: Adjacency, count: int) -> float:
    """On one core, from that many vertices."""
    return count * (graph.n * log2(graph.n + 1) + graph.facts.edges) * SEARCHED


def processes(seconds: float) -> int:
    """How many share searches that take one core so long; 1: this one alone."""
    return max(1, min(len(usable_cores()), ceil(seconds / WORTH_A_PROCESS)))


def why_searches(graph: Adjacency, count: int, predecessors: bool) -> str:
    """Why searches from that many vertices are the way; empty if a kernel finds all distances sooner, and there is room."""
    if not _room_for_all(graph.n, predecessors):
        return "all distances do not fit into memory"
    alone, whole = seconds_of_searches(graph, count), count == graph.n
    shares = processes(alone)
    by_searches = alone / shares + _PROCESS_STARTS * (shares > 1)
    by_kernel = _seconds_of_kernel(graph, by_searches)
    if by_searches * (_DOUBT if whole else 1) > by_kernel + _ALONE:
        return ""
    if max(by_searches, by_kernel) < _SOON:
        return "on so small a graph searches take less than a millisecond"
    begins = "all vertices" if whole else units.counted(count, "vertex", "vertices")
    other = "a kernel" if whole else "all distances"
    return f"searches from {begins} take about {units.duration(by_searches)}, and {other} {units.duration(by_kernel)}"


def may_be_searched(graph: GivenGraph) -> bool:
    """Whether searches from all vertices may be sooner than a kernel on this machine."""
    from fwtui.machine.hardware import driver_present

    return (
        graph.n >= LEAST
        and not driver_present()
        and _is_sparse(graph.adjacency.facts)
        and _room_for_all(graph.n, False)  # else a kernel says what fits
    )


def _room_for_all(n: int, predecessors: bool) -> bool:
    try:
        check_room(n, "int32", predecessors)
    except Refused:
        return False
    return True


def _seconds_of_kernel(graph: Adjacency, most: float) -> float:
    """For all distances by the best kernel of this machine; METIS is asked only if that may change what is less than `most`."""
    from fwtui.machine.hardware import driver_present

    backend = "cuda" if graph.n >= WORTH and driver_present() else "cpu"
    besides = _GPU_STARTS + 4 * graph.n**2 / _COPIED if backend == "cuda" else 0.0
    dense = _relaxed(graph.n**3, backend)
    kernel = registry()[SPARSE[backend]]
    shape = shape_of(kernel, graph.n, "int32", graph.facts.nonnegative)
    if _order_pays(graph, graph.facts, min(dense, most)) and _fits(kernel, shape, None):
        ordered = in_order(kernel, shape, graph)
        if ordered.order is not None:
            return besides + _relaxed(elimination(ordered).relaxations(ordered.tile), backend)
    return besides + dense


def _relaxed(relaxations: int, backend: str, itemsize: int = 4) -> float:
    """Seconds of a kernel."""
    return relaxations * itemsize / 4 / (_RELAXED_ON_GPU if backend == "cuda" else _RELAXED * len(usable_cores()))


def sparser(
    named: Kernel | None, graph: GivenGraph, facts: EdgeFacts, kernel: Kernel, shape: Shape, engine: Engine
) -> tuple[Kernel, Shape, str]:
    """The kernel and its shape, or those of one for sparse graphs that takes less time; and why, if METIS was asked.

    Where a kernel is named, it is that one.
    """
    backend = engine.target.backend
    if kernel.ordered is not None:
        other, ordered = kernel, in_order(kernel, shape, graph.adjacency)
    elif named is not None or backend not in SPARSE or engine.ranks:
        return kernel, shape, ""
    else:
        other = registry()[SPARSE[backend]]
        tried = shape_of(other, shape.n, shape.dtype, shape.nonnegative)
        if not _order_pays(graph, facts, _relaxed(shape.n**3, backend, shape.itemsize)) or not _fits(other, tried, engine):
            return kernel, shape, ""
        ordered = in_order(other, tried, graph.adjacency)
        if not _fits(other, ordered, engine):  # which is padded more
            return kernel, shape, ""
    if ordered.order is None:
        return kernel, shape, "no small separators: the dense plan"
    times = ordered.n**3 / elimination(ordered).relaxations(ordered.tile)
    nodes = units.counted(len(ordered.order.supernodes), "supernode")
    return other, ordered, f"{nodes} leave {units.gain(times)} fewer relaxations than a dense graph"


def _fits(kernel: Kernel, shape: Shape, engine: Engine | None) -> bool:
    """Whether there is room for the matrix and its copies, on the engine's GPU or on the host."""
    if kernel.backend == "cuda":
        free = engine.free_bytes() if engine is not None else None
        return free is None or kernel.fitted(shape, free - KEPT_FREE) is not None
    return _COPIES * shape.n**2 * shape.itemsize < psutil.virtual_memory().available - KEPT_FREE


def in_order(kernel: Kernel, shape: Shape, graph: Adjacency) -> Shape:
    """The shape with the order in which the kernel has least to do, which is kept with the graph; unchanged if dense is best."""
    assert kernel.ordered is not None
    key = kernel.id, shape.tile
    if key not in graph.orders:
        arcs = graph.all_arcs()
        graph.orders[key] = kernel.ordered(shape, (arcs.sources, arcs.targets)).order
    return replace(shape, order=graph.orders[key])


def _is_sparse(facts: EdgeFacts) -> bool:
    """Whether it is so large, and has so few edges, that something other than the dense plan may be sooner."""
    return facts.n >= LEAST and facts.edges <= MOST_DEGREE * facts.n


def _order_pays(graph: GivenGraph, facts: EdgeFacts, seconds: float) -> bool:
    """Whether the graph is sparse, and METIS is there and done in fewer seconds."""
    if not _is_sparse(facts) or threads_lost() or ("pymetis" not in sys.modules and find_spec("pymetis") is None):
        return False
    unseen = isinstance(graph, LazyGraph) and getattr(graph.parts, "ndim", 0) == 2
    return facts.n * _ORDERED + facts.n**2 * _LOOKED_AT * unseen < seconds
