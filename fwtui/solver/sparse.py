"""Whether a graph is solved by a kernel that leaves out what a sparse one does not need."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.util import find_spec

import psutil

from fwtui.common import units
from fwtui.common.memory import KEPT_FREE
from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.library_objects import LazyGraph, adjacency_of
from fwtui.solver.choose import shape_of
from fwtui.solver.launching import threads_lost
from fwtui_kernels import registry
from fwtui_kernels.parts.supernodal import elimination
from fwtui_kernels.plan import Kernel, Shape

LEAST = 2048  # vertices of a graph for which METIS is asked, unless such a kernel is named
MOST_DEGREE = 32  # on average
_COPIES = 6  # of the matrix, at most, beside the result


def sparser(
    named: Kernel | None, graph: Adjacency | LazyGraph, kernel: Kernel, shape: Shape, engine: Engine
) -> tuple[Kernel, Shape, str]:
    """The kernel and its shape, or those of one for sparse graphs that has less to do; and why, if METIS was asked.

    On a GPU, and where another one is named, only the named kernel is ordered.
    """
    if kernel.ordered is None:
        if named is not None or engine.target.backend != "cpu" or engine.ranks or not worth_asking(graph, shape):
            return kernel, shape, ""
        other = registry()["sparse-cpu"]
        tried = shape_of(other, shape.n, shape.dtype, shape.nonnegative)
    else:
        other, tried = kernel, shape
    ordered = in_order(other, tried, adjacency_of(graph))
    if ordered.order is None:
        return kernel, shape, "no small separators: the dense plan"
    times = ordered.n**3 / elimination(ordered).relaxations(ordered.tile)
    nodes = units.counted(len(ordered.order.supernodes), "supernode")
    return other, ordered, f"{nodes} leave {units.gain(times)} fewer relaxations than a dense graph"


def in_order(kernel: Kernel, shape: Shape, graph: Adjacency) -> Shape:
    """The shape with the order in which the kernel has least to do, which is kept with the graph; unchanged if dense is best."""
    assert kernel.ordered is not None
    key = kernel.id, shape.tile
    if key not in graph.orders:
        arcs = graph.all_arcs()
        graph.orders[key] = kernel.ordered(shape, (arcs.sources, arcs.targets)).order
    return replace(shape, order=graph.orders[key])


def is_sparse(graph: Adjacency | LazyGraph) -> bool:
    """Whether it is so large, and has so few edges, that something other than the dense plan may be sooner."""
    return graph.n >= LEAST and adjacency_of(graph).facts.edges <= MOST_DEGREE * graph.n


def worth_asking(graph: Adjacency | LazyGraph, shape: Shape) -> bool:
    """Whether the graph is sparse, METIS is there, and so is room for further copies of the matrix."""
    if not is_sparse(graph) or threads_lost() or ("pymetis" not in sys.modules and find_spec("pymetis") is None):
        return False
    return _COPIES * shape.n**2 * shape.itemsize < psutil.virtual_memory().available - KEPT_FREE
