"""Cost model of solve: memory for the distances, and Dijkstra searches against a kernel."""

from __future__ import annotations

import gc
from dataclasses import replace
from math import ceil, inf, isqrt, log2

import psutil

from fwtui.common.cores import usable_cores
from fwtui.common.errors import Refused
from fwtui.common.malloc_arenas import RESERVED_MEMORY
from fwtui.common.units import memory
from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency, GivenGraph, LazyGraph
from fwtui.graphs.bounds import EXACT_INTEGER
from fwtui.graphs.graph import EdgeFacts
from fwtui.solver.compiled_code import threads_lost
from fwtui_kernels import registry
from fwtui_kernels.plan import ITEMSIZE, Kernel, Shape

MIN_ON_GPU, MIN_ON_STARTED_GPU = 2048, 768  # vertices from which a GPU pays: to start it, and if this process has used it already
SPARSE = {"cpu": "sparse-cpu", "cuda": "sparse"}  # kernels, by backend
MIN_SPARSE = 2048  # vertices from which an elimination is considered, unless a sparse kernel is named
MAX_DEGREE = 32  # maximum average number of edges per vertex
_ALWAYS_FITS = 256  # vertices whose matrices take less memory than NumPy itself
_DISTANCE = 4  # bytes per cell of the result, in place of the matrix if that is as wide
WIDE_DISTANCE = 8  # bytes per cell of a float64 result, in addition to the matrix
PREDECESSOR = 4
_TILE = 128  # the largest multiple to which the matrix is padded
_COPIES = 6  # maximum number of copies of the matrix on the host, in addition to the result
# measured on one core: seconds for a vertex in a heap and for an arc of SciPy's Dijkstra, and to search a cell of a dense matrix
# for an edge
SECONDS_PER_STEP, _SECONDS_OF_CELL = 1e-8, 1e-9
# seconds of nested dissection, the tree and the tables of a plan for a vertex and for an edge, measured on 16 cores with 8,192
# vertices, where the choice is close; larger graphs take less
_SECONDS_OF_ORDER, _SECONDS_OF_EDGE = 2e-6, 2e-6
_RELAXED, _RELAXED_ON_GPU = 1.2e10, 1.6e13  # relaxations a second in 32 bits of a core, and of an H100; in 16 bits twice as many
SECONDS_PER_PROCESS = 1.0  # seconds of searches for which another process pays


def seconds_of_searches(graph: Adjacency, count: int) -> float:
    """Estimate the seconds of Dijkstra searches from `count` vertices on one core."""
    return count * (graph.n * log2(graph.n + 1) + graph.facts.edges) * SECONDS_PER_STEP


def processes(seconds: float) -> int:
    """Return the number of processes for searches that take one core so many seconds; 1 means this process only."""
    return max(1, min(len(usable_cores()), ceil(seconds / SECONDS_PER_PROCESS)))


def seconds_of(relaxations: int, backend: str, itemsize: int = 4) -> float:
    """Estimate the seconds of a kernel."""
    return relaxations * itemsize / 4 / (_RELAXED_ON_GPU if backend == "cuda" else _RELAXED * len(usable_cores()))


def ordered_shape(
    graph: GivenGraph, facts: EdgeFacts, backend: str, dtype: str, seconds: float, engine: Engine | None
) -> Shape | None:
    """Return the shape for the sparse kernel, with an elimination order if that needs least work.

    None if the graph is not sparse, the order would take more than `seconds`, threads do not work, or memory is short.
    """
    unseen = isinstance(graph, LazyGraph) and getattr(graph.parts, "ndim", 0) == 2
    ordering = facts.n * _SECONDS_OF_ORDER + facts.edges * _SECONDS_OF_EDGE + facts.n**2 * _SECONDS_OF_CELL * unseen
    if not is_sparse(facts) or ordering >= seconds:
        return None
    if threads_lost():
        return None
    kernel = registry()[SPARSE[backend]]
    shape = shape_of(kernel, facts.n, dtype, facts.nonnegative)
    if not _fits(kernel, shape, engine):
        return None
    ordered = in_order(kernel, shape, graph.adjacency)
    return ordered if _fits(kernel, ordered, engine) else None  # the padding in this order may not fit


def free_on_host() -> int:
    """Return the bytes of host memory that solve may use."""
    return max(0, psutil.virtual_memory().available - RESERVED_MEMORY)


def free_on_device(engine: Engine, needed: float) -> float:
    """Return the bytes of device memory that solve may use; infinite if programs use host memory.

    If they are fewer than `needed`, collect garbage first: a traceback in it may hold the frames of earlier calls, and these hold
    arrays.
    """
    free = engine.free_bytes()
    if free is not None and free - RESERVED_MEMORY < needed:
        gc.collect()
        free = engine.free_bytes()
    return inf if free is None else max(0, free - RESERVED_MEMORY)


def check_device_room(engine: Engine, n: int, needed: int, way: str = "omit keep") -> None:
    """Raise Refused if that many bytes for distances on the GPU are not free there; `way` is the first remedy to name."""
    if (free := free_on_device(engine, needed)) < needed:
        raise Refused(
            f"distances of {n:,} vertices on the GPU need {memory(needed)} of device memory, but only {memory(free)} is free; "
            f"{way}, or choose a smaller graph"
        )


def is_sparse(facts: EdgeFacts) -> bool:
    """Return whether the graph is large and sparse enough that another method may be faster than the dense plan."""
    return facts.n >= MIN_SPARSE and facts.edges <= MAX_DEGREE * facts.n


def _fits(kernel: Kernel, shape: Shape, engine: Engine | None) -> bool:
    """Return whether the matrix and its copies fit in memory, on the engine's GPU or on the host."""
    if kernel.backend == "cuda":
        return engine is None or kernel.bytes_of(shape) <= free_on_device(engine, kernel.bytes_of(shape))
    return _COPIES * shape.n**2 * shape.itemsize < psutil.virtual_memory().available - RESERVED_MEMORY


def in_order(kernel: Kernel, shape: Shape, graph: Adjacency) -> Shape:
    """Return the shape with the order of least work, cached with the graph; unchanged if the dense plan needs less."""
    assert kernel.ordered is not None
    key = kernel.id, shape.tile
    if key not in graph.orders:
        arcs = graph.all_arcs()
        graph.orders[key] = kernel.ordered(shape, arcs).order
    return replace(shape, order=graph.orders[key])


def shape_of(kernel: Kernel, n: int, dtype: str, nonnegative: bool = True, simulated: bool = False, ranks: int = 1) -> Shape:
    """Return the shape with the kernel's tile and options for a graph."""
    tile = kernel.tile_for(n, simulated, dtype) or 1
    return kernel.once(Shape(n, tile, dtype, nonnegative=nonnegative, options=kernel.defaults, ranks=ranks))


def check_room(n: int, dtype: str, predecessors: bool, low: float | None = None) -> None:
    """Raise Refused with the memory needed, the free memory, and the sizes that fit.

    `low`, the least weight, shows before the run whether the distances will be float64; without it, the caller checks again once
    their type is known.
    """
    if n <= _ALWAYS_FITS:  # reading the free memory takes longer than solving
        return
    free = psutil.virtual_memory().available
    usable = max(0, free - RESERVED_MEMORY)
    wide = dtype == "int32" and (low or 0) >= EXACT_INTEGER
    per_cell = bytes_a_cell(dtype, predecessors, wide)
    padded = -(-n // _TILE) * _TILE if n > _TILE else n
    needed = per_cell * padded**2
    if needed <= usable:
        return
    what = f"distances{' and predecessors' if predecessors else ''}"
    ways = [
        f"a graph of up to {isqrt(usable // per_cell) // _TILE * _TILE:,} vertices",
        f"the rows of up to {usable // (per_cell * n):,} of them (sources)",
    ]
    if predecessors and bytes_a_cell(dtype, False, wide) * padded**2 <= usable:
        ways.append("distances without predecessors, from which single paths can be found")
    raise Refused(
        f"{what} of {n:,} vertices in {dtype} need {memory(needed)}, but only {memory(free)} is free; choose {' or '.join(ways)}"
    )


def bytes_a_cell(dtype: str, predecessors: bool, wide: bool = False) -> int:
    """Return the host memory in bytes per pair of vertices while solving; `wide` means a float64 result."""
    matrix = ITEMSIZE[dtype] + (WIDE_DISTANCE if wide else _DISTANCE if ITEMSIZE[dtype] < _DISTANCE else 0)
    return matrix + (PREDECESSOR if predecessors else 0)
