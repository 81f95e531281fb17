"""The method of a call: a kernel for all pairs, one elimination for some rows, or Dijkstra searches."""

from __future__ import annotations

import sys
from math import inf
from typing import TYPE_CHECKING, Literal, NamedTuple

from fwtui.common.errors import Refused
from fwtui.common.units import counted, duration
from fwtui.graphs.adjacency import Adjacency, GivenGraph
from fwtui.solver.compiled_code import threads_lost
from fwtui.solver.costs import (
    MIN_ON_GPU,
    MIN_SPARSE,
    check_room,
    free_on_host,
    is_sparse,
    ordered_shape,
    processes,
    seconds_of,
    seconds_of_searches,
)
from fwtui.solver.ends import Ends
from fwtui_kernels.parts.elimination import relaxations

if TYPE_CHECKING:
    from fwtui.solver.row_elimination import RowElimination

_GPU_STARTS, _COPIED = 1.0, 8e9  # seconds, and bytes a second of all distances to new memory of the host
_PROCESS_STARTS, _NUMBA_STARTS = 0.5, 0.5  # seconds until SciPy, or numba and compiled code, are loaded
_DISSECTED = 2e-6  # seconds for each vertex until the work of an elimination is known
_MIN_SAVING = 0.02  # seconds that a method must save to be preferred to a kernel: it needs other memory
_MIN_SPEEDUP = 2  # a search from every vertex must be so many times faster, as estimates err
_NEGLIGIBLE = 1e-3  # seconds that no user notices


class Method(NamedTuple):
    """A method and the reason for it; the reason is empty if there was no choice."""

    name: Literal["kernel", "searches", "elimination"]
    reason: str = ""
    elimination: RowElimination | None = None


KERNEL = Method("kernel")


def choose_method(graph: GivenGraph, ends: Ends, predecessors: bool, dtype: str | None = None) -> Method:
    """Return the method with the least estimated time. Searches do not offer a choice of the data type."""
    whole = ends.sources is None and ends.targets is None
    if whole and (dtype is not None or not _may_be_searched(graph)):
        return KERNEL
    try:
        check_room(graph.n, "int32", predecessors)
        fits = True
    except Refused:
        if whole:  # the kernel's own check names the graphs that fit
            return KERNEL
        fits = False
    count = len(ends.begins)
    on_one_core = inf if dtype is not None else seconds_of_searches(graph.adjacency, count)
    shares = 1 if dtype is not None else processes(on_one_core)
    by_searches = on_one_core / shares + _PROCESS_STARTS * (shares > 1)
    elimination = None if whole or predecessors else _elimination(graph.adjacency, ends, dtype, by_searches)
    by_elimination = inf if elimination is None else elimination.seconds
    least = min(by_searches, by_elimination)
    by_kernel = _seconds_of_kernel(graph.adjacency, least) if fits else inf
    if least == inf or least * (_MIN_SPEEDUP if whole else 1) > by_kernel + _MIN_SAVING:
        return KERNEL
    vertices = "all vertices" if whole else counted(count, "vertex", "vertices")
    others = [] if by_searches == inf else [f"searches from {vertices} take about {duration(by_searches)}"]
    if fits:
        others.append(f"{'a kernel' if whole else 'all distances'} {duration(by_kernel)}")
    else:
        others.append("all distances do not fit into memory")
    if by_elimination < by_searches:
        others.insert(0, f"an elimination and {counted(count, 'sweep')} take about {duration(by_elimination)}")
        return Method("elimination", ", ".join(others), elimination)
    if max(by_searches, by_kernel) < _NEGLIGIBLE:
        return Method("searches", "on so small a graph searches take less than a millisecond")
    return Method("searches", ", and ".join(others) if fits else others[-1])


def _may_be_searched(graph: GivenGraph) -> bool:
    """Return whether Dijkstra searches from all vertices may be faster than a kernel on this machine."""
    if graph.n < MIN_SPARSE:
        return False
    from fwtui.machine.hardware import driver_present

    return not driver_present() and is_sparse(graph.adjacency.facts)


def _elimination(graph: Adjacency, ends: Ends, dtype: str | None, seconds: float) -> RowElimination | None:
    """Return the elimination for a sparse graph; None if it would take more time than that, or too much memory."""
    unloaded = "numba" not in sys.modules
    if threads_lost() or not is_sparse(graph.facts) or graph.n * _DISSECTED + _NUMBA_STARTS * unloaded > seconds:
        return None
    from fwtui.solver.row_elimination import RowElimination

    elimination = RowElimination(graph, ends, dtype)
    return elimination if elimination.bytes < free_on_host() else None


def _seconds_of_kernel(graph: Adjacency, most: float) -> float:
    """Estimate the seconds for all distances by the best kernel; order the graph only if that may push them below `most`."""
    from fwtui.machine.hardware import driver_present

    backend = "cuda" if graph.n >= MIN_ON_GPU and driver_present() else "cpu"
    other = _GPU_STARTS + 4 * graph.n**2 / _COPIED if backend == "cuda" else 0.0
    dense = seconds_of(graph.n**3, backend)
    ordered = ordered_shape(graph, graph.facts, backend, "int32", min(dense, most), None)
    if ordered is None or ordered.order is None:
        return other + dense
    return other + seconds_of(relaxations(ordered), backend)
