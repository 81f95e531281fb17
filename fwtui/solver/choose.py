"""Chooses by what a graph is solved: on which engine, by searches or a kernel, and which kernel; and checks that there is room.

Of all distances it estimates how long each way takes: searches, a dense kernel, or one for sparse graphs, which METIS puts in
order.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from math import ceil, inf, isqrt, log2
from typing import TYPE_CHECKING

import psutil

from fwtui.common import units
from fwtui.common.cores import usable_cores
from fwtui.common.errors import NoGpu, Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.common.units import memory
from fwtui.engine.engine import Engine
from fwtui.engine.engine_for import engine_for
from fwtui.experiment.device import DeviceId
from fwtui.graphs.adjacency import Adjacency, GivenGraph, LazyGraph
from fwtui.graphs.bounds import EXACT_INTEGER
from fwtui.graphs.graph import EdgeFacts
from fwtui.measure.cuda_words import why_not_started
from fwtui.solver import warm
from fwtui.solver.launching import threads_lost
from fwtui_kernels import registry
from fwtui_kernels.auto import in_order as best_first
from fwtui_kernels.compiled import cubin_cache
from fwtui_kernels.parts.supernodal import elimination
from fwtui_kernels.peers.packages import NUMPY
from fwtui_kernels.plan import ITEMSIZE, Kernel, Shape
from fwtui_kernels.streaming import out_of_core

if TYPE_CHECKING:
    from fwtui.engine.ranks import RankedEngine

WORTH = 2048  # vertices from which starting a GPU pays
# vertices up to which plain NumPy is faster than importing numba (0.4 s on two cores), and if numba is already imported
_NUMPY_MOST, _ALWAYS_NUMPY = 1024, 256
_ALWAYS_FITS = 256  # vertices whose matrices take less memory than NumPy itself
_DISTANCE = 4  # bytes per cell of the result, in place of the matrix if that is as wide
WIDE_DISTANCE = 8  # beside the matrix
PREDECESSOR = 4
_TILE = 128  # the largest multiple to which the matrix is padded
CPU = engine_for(DeviceId("cpu"))
_started_by: set[int] = set()  # the processes that started a GPU: this one, or the one that it was forked from
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


def choose_engine(device: str | int | None, n: int, needed: bool) -> Engine:
    """The GPU to use, or the CPU. Raises NoGpu for a missing GPU and Refused for an unknown device."""
    wanted = DeviceId.parse("auto" if device is None else str(device), "cpu")
    if wanted.backend == "cpu":
        if needed:
            raise Refused("device 'cpu' does not suit it; give a GPU's number, or leave it out")
        return CPU
    asked = needed or wanted.backend == "cuda"
    if not asked and n < _worth():
        return CPU
    if not asked and not cubin_cache.some():  # else a GPU has been here
        from fwtui.machine.hardware import driver_present

        if not driver_present():
            return CPU
    gpu = wanted.on("cuda")
    try:
        return cuda_engine(gpu)
    except Exception as error:  # no package, no driver, no such GPU: each has its own exception class
        if asked:
            raise NoGpu(f"GPU {gpu} cannot be used ({why_not_started(str(error))[:200]}); run `fwtui doctor`") from None
        return CPU


def _worth() -> float:
    """Vertices from which a GPU pays."""
    if not _started_by:
        return WORTH
    if _started_by != {os.getpid()}:  # in a forked process CUDA does not work
        return inf
    return warm.WORTH_STANDING if warm.everyday.gpu_pays else WORTH


def cuda_engine(gpu: DeviceId) -> Engine:
    engine = engine_for(gpu)
    _started_by.add(os.getpid())
    return engine


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
    if graph.n < LEAST:
        return False
    from fwtui.machine.hardware import driver_present

    # where there is no room, a kernel says what fits
    return not driver_present() and _is_sparse(graph.adjacency.facts) and _room_for_all(graph.n, False)


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
    ordered = _ordered(graph, graph.facts, backend, "int32", min(dense, most), None)
    if ordered is None or ordered.order is None:
        return besides + dense
    return besides + _relaxed(elimination(ordered).relaxations(ordered.tile), backend)


def _relaxed(relaxations: int, backend: str, itemsize: int = 4) -> float:
    """Seconds of a kernel."""
    return relaxations * itemsize / 4 / (_RELAXED_ON_GPU if backend == "cuda" else _RELAXED * len(usable_cores()))


def suited(asked: Kernel | None, n: int, dtype: str, nonnegative: bool, engine: Engine) -> tuple[Kernel, Shape]:
    """The requested kernel, or the best known one that takes the size. Raises Refused if none does."""
    if asked is not None and engine.ranks and not (asked.ranked and asked.backend == engine.target.backend):
        other = next(_known(n, dtype, engine)).id
        raise Refused(f"kernel {asked.id} does not run on these devices; choose {other}, or leave out the kernel or the devices")
    simulated = engine.target.backend == "simulator"
    first: str | None = None
    for kernel in [asked] if asked is not None else _known(n, dtype, engine):
        shape = shape_of(kernel, n, dtype, nonnegative, simulated, max(1, len(engine.ranks)))
        reason = kernel.refuses(shape) or kernel.lacks(shape, engine.target)
        if reason is None and (kernel.simulates or not simulated):
            return kernel, shape
        first = first or reason
    raise Refused(first or f"no kernel takes {n:,} vertices in {dtype} here; choose another dtype")


def _known(n: int, dtype: str, engine: Engine) -> Iterator[Kernel]:
    """Best known first; on the CPU, small graphs are done before compiled code is loaded."""
    backend = "cpu" if engine.target.backend == "cpu" else "cuda"
    if engine.ranks:
        yield from (kernel for kernel in registry().values() if kernel.ranked and kernel.backend == backend)
        return
    if backend == "cpu" and (threads_lost() or n <= (_NUMPY_MOST if "numba" not in sys.modules else _ALWAYS_NUMPY)):
        yield NUMPY
    yield from best_first(backend, dtype)


def shape_of(kernel: Kernel, n: int, dtype: str, nonnegative: bool = True, simulated: bool = False, ranks: int = 1) -> Shape:
    """The tile and options with which the kernel solves a graph."""
    tile = kernel.tile_for(n, simulated) or 1
    return kernel.once(Shape(n, tile, dtype, nonnegative=nonnegative, options=kernel.defaults, ranks=ranks))


def fitting(asked: Kernel | None, facts: EdgeFacts, dtype: str, engine: Engine, result_bytes: int = 0) -> tuple[Kernel, Shape]:
    """Like suited; if the matrix does not fit the device, the kernel that streams it. Raises Refused.

    `result_bytes`: bytes per cell of its rows that stay with each rank.
    """
    kernel, shape = suited(asked, facts.n, dtype, facts.nonnegative, engine)
    if engine.ranks:
        from fwtui.engine.ranks import RankedEngine

        assert isinstance(engine, RankedEngine)
        engine.activate()
        check_shares(kernel, shape, engine, result_bytes)
        return kernel, shape
    free = engine.free_bytes()
    if free is None:
        return kernel, shape
    usable = free - KEPT_FREE
    if kernel.fitted(shape, usable) is None:
        kernel = out_of_core.KERNEL
        shape = shape_of(kernel, facts.n, dtype, shape.nonnegative)
    fitted = kernel.fitted(shape, usable)
    if fitted is None:
        most = kernel.largest_n(dtype, usable)
        raise Refused(
            f"{facts.n:,} vertices in {dtype} need more than the {memory(free)} of device memory that are free, "
            f"even tile by tile; choose a graph of up to {most:,} vertices, or device cpu"
        )
    if kernel.streams is not None:
        check_room(fitted.padded, dtype, False)  # the matrix stays with the host
    return kernel, fitted


def sparser(
    asked: Kernel | None, graph: GivenGraph, facts: EdgeFacts, kernel: Kernel, shape: Shape, engine: Engine
) -> tuple[Kernel, Shape, str]:
    """The kernel and its shape, or those of one for sparse graphs that takes less time; and why, if METIS was asked.

    Where a kernel is named, it is that one.
    """
    backend = engine.target.backend
    if kernel.ordered is not None:
        ordered = in_order(kernel, shape, graph.adjacency)
    elif asked is not None or backend not in SPARSE or engine.ranks:
        return kernel, shape, ""
    else:
        ordered = _ordered(graph, facts, backend, shape.dtype, _relaxed(shape.n**3, backend, shape.itemsize), engine)
        if ordered is None:
            return kernel, shape, ""
    if ordered.order is None:
        return kernel, shape, "no small separators: the dense plan"
    times = ordered.n**3 / elimination(ordered).relaxations(ordered.tile)
    nodes = units.counted(len(ordered.order.supernodes), "supernode")
    reason = f"{nodes} leave {units.gain(times)} fewer relaxations than a dense graph"
    return kernel if kernel.ordered is not None else registry()[SPARSE[backend]], ordered, reason


def _ordered(
    graph: GivenGraph, facts: EdgeFacts, backend: str, dtype: str, seconds: float, engine: Engine | None
) -> Shape | None:
    """The shape for the kernel for sparse graphs, in METIS's order if that is best; None if there is no room, or if
    METIS would take more seconds than that.
    """
    if not _order_pays(graph, facts, seconds):
        return None
    kernel = registry()[SPARSE[backend]]
    shape = shape_of(kernel, facts.n, dtype, facts.nonnegative)
    if not _fits(kernel, shape, engine):
        return None
    ordered = in_order(kernel, shape, graph.adjacency)
    return ordered if _fits(kernel, ordered, engine) else None  # it is padded more


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


def bytes_a_cell(dtype: str, predecessors: bool, wide: bool = False) -> int:
    """Host memory in bytes per pair of vertices while solving; `wide`: with a float64 result."""
    matrix = ITEMSIZE[dtype] + (WIDE_DISTANCE if wide else _DISTANCE if ITEMSIZE[dtype] < _DISTANCE else 0)
    return matrix + (PREDECESSOR if predecessors else 0)


def beside(dtype: str, engine: Engine) -> int:
    """Host memory in bytes per cell that ranks on this host need for their rows, those on their way included."""
    here = [rank for rank in engine.ranks if rank.host == 0]
    copies = 3 if engine.target.backend == "cpu" else 1
    return -(-copies * ITEMSIZE[dtype] * len(here) // len(engine.ranks)) if here else 0


def check_shares(kernel: Kernel, shape: Shape, engine: RankedEngine, result_bytes: int) -> None:
    """Raises Refused if a rank's share does not fit its memory; for `result_bytes` see fitting."""
    matrices, on_gpu = kernel.matrices + 1, kernel.backend == "cuda"
    # on the host besides, its rows of the graph on their way
    shares = [(shape.itemsize * (1 if on_gpu else matrices + 1) + result_bytes, engine.free_host_bytes(), "")]
    if on_gpu:
        shares.append((shape.itemsize * matrices, engine.free_bytes(), "GPU "))
    for per_cell, free, where in shares:
        usable = max(0, free - KEPT_FREE)
        needed = per_cell * shape.rows * shape.padded
        if needed > usable:
            whole = shape.tile * shape.ranks
            most = isqrt(usable * shape.ranks // per_cell) // whole * whole
            raise Refused(
                f"{shape.n:,} vertices in {shape.dtype} need {memory(needed)} of {where}memory for each of {shape.ranks} ranks, "
                f"and {memory(free)} are free; choose a graph of up to {most:,} vertices, or more devices"
            )


def check_room(n: int, dtype: str, predecessors: bool, low: float | None = None, beside: int = 0) -> None:
    """Raises Refused with the memory needed, the free memory, and what fits.

    `beside`: bytes per cell that the ranks on this host need. Only the least weight, `low`, shows beforehand that distances
    will be float64; otherwise there is a second check when it shows.
    """
    if n <= _ALWAYS_FITS:  # the question would take longer than the answer
        return
    free = psutil.virtual_memory().available
    usable = max(0, free - KEPT_FREE)
    wide = dtype == "int32" and (low or 0) >= EXACT_INTEGER
    per_cell = bytes_a_cell(dtype, predecessors, wide) + beside
    padded = -(-n // _TILE) * _TILE if n > _TILE else n
    needed = per_cell * padded**2
    if needed <= usable:
        return
    what = f"distances{' and predecessors' if predecessors else ''}"
    ways = [f"a graph of up to {isqrt(usable // per_cell) // _TILE * _TILE:,} vertices"]
    if not beside:
        ways.append(f"the rows of up to {usable // (per_cell * n):,} of them (sources)")
    if predecessors and (bytes_a_cell(dtype, False, wide) + beside) * padded**2 <= usable:
        ways.append("distances alone, from which single paths can be found")
    raise Refused(
        f"{what} of {n:,} vertices in {dtype} need {memory(needed)} and {memory(free)} are free; what fits is {' or '.join(ways)}"
    )
