"""Chooses the engine, kernel and shape, and checks that the answer fits into memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from math import inf, isqrt
from typing import TYPE_CHECKING

import psutil

from fwtui.common.errors import NoGpu, Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.common.text import instead, shown
from fwtui.common.units import memory
from fwtui.engine.engine import Engine
from fwtui.engine.engine_for import engine_for as engine_of_device
from fwtui.experiment.device import DeviceId
from fwtui.graphs.bounds import EXACT_INTEGER
from fwtui.graphs.graph import EdgeFacts
from fwtui.measure.cuda_words import why_not_started
from fwtui.solver import warm
from fwtui.solver.launching import threads_lost
from fwtui_kernels import registry
from fwtui_kernels.auto import AUTO, in_order
from fwtui_kernels.compiled import cubin_cache
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
_WIDE_DISTANCE = 8  # beside the matrix
_PREDECESSOR = 4
_TILE = 128  # the largest multiple to which the matrix is padded
CPU = engine_of_device(DeviceId("cpu"))
_started_by: set[int] = set()  # the processes that started a GPU: this one, or the one that it was forked from


def named(name: str) -> Kernel | None:
    """The kernel of that id; None for auto. Raises Refused if there is none."""
    if name == AUTO.id:
        return None
    kernel = NUMPY if name == NUMPY.id else registry().get(name)
    if kernel is None:
        raise Refused(f"there is no kernel {shown(str(name))}; {instead(str(name), (AUTO.id, NUMPY.id, *registry()))}")
    return kernel


def engine_for(device: str | int | None, n: int, needed: bool) -> Engine:
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
    engine = engine_of_device(gpu)
    _started_by.add(os.getpid())
    return engine


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
    yield from in_order(backend, dtype)


def shape_of(kernel: Kernel, n: int, dtype: str, nonnegative: bool = True, simulated: bool = False, ranks: int = 1) -> Shape:
    """The tile and options with which the kernel solves a graph."""
    tile = kernel.tile_for(n, simulated) or 1
    return kernel.once(Shape(n, tile, dtype, nonnegative=nonnegative, options=kernel.defaults, ranks=ranks))


def fitting(asked: Kernel | None, facts: EdgeFacts, dtype: str, engine: Engine, kept: int = 0) -> tuple[Kernel, Shape]:
    """Like suited; if the matrix does not fit the device, the kernel that streams it. Raises Refused.

    `kept`: bytes per cell of its rows that stay with each rank.
    """
    kernel, shape = suited(asked, facts.n, dtype, facts.nonnegative, engine)
    if engine.ranks:
        from fwtui.engine.ranks import RankedEngine

        assert isinstance(engine, RankedEngine)
        engine.activate()
        check_shares(kernel, shape, engine, kept)
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


def bytes_a_cell(dtype: str, predecessors: bool, wide: bool = False) -> int:
    """Host memory in bytes per pair of vertices while solving; `wide`: with a float64 result."""
    matrix = ITEMSIZE[dtype] + (_WIDE_DISTANCE if wide else _DISTANCE if ITEMSIZE[dtype] < _DISTANCE else 0)
    return matrix + (_PREDECESSOR if predecessors else 0)


def beside(dtype: str, engine: Engine) -> int:
    """Host memory in bytes per cell that ranks on this host need for their rows, those on their way included."""
    here = [rank for rank in engine.ranks if rank.host == 0]
    copies = 3 if engine.target.backend == "cpu" else 1
    return -(-copies * ITEMSIZE[dtype] * len(here) // len(engine.ranks)) if here else 0


def check_shares(kernel: Kernel, shape: Shape, engine: RankedEngine, kept: int) -> None:
    """Raises Refused if a rank's share does not fit its memory; `kept`: bytes per cell of its rows that stay on its host."""
    matrices = kernel.matrices + 1
    on_gpu = kernel.backend == "cuda"
    # besides, its rows of the graph on their way
    _check_share(shape, shape.itemsize * (1 if on_gpu else matrices + 1) + kept, engine.free_host_bytes(), "")
    if on_gpu:
        _check_share(shape, shape.itemsize * matrices, engine.free_bytes(), "GPU ")


def _check_share(shape: Shape, per_cell: int, free: int, where: str) -> None:
    usable = max(0, free - KEPT_FREE)
    needed = per_cell * shape.rows * shape.padded
    if needed > usable:
        whole = shape.tile * shape.ranks
        most = isqrt(usable * shape.ranks // per_cell) // whole * whole
        raise Refused(
            f"{shape.n:,} vertices in {shape.dtype} need {memory(needed)} of {where}memory for each of {shape.ranks} ranks, and "
            f"{memory(free)} are free; choose a graph of up to {most:,} vertices, or more devices"
        )


def check_room(
    n: int, dtype: str, predecessors: bool, free: int | None = None, low: float | None = None, beside: int = 0
) -> None:
    """Raises Refused with the memory needed, the free memory, and what fits. `free` defaults to the machine's.

    `beside`: bytes per cell that the ranks on this host need. Only the least weight, `low`, shows beforehand that distances
    will be float64; otherwise see check_wide.
    """
    if free is None:
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


def check_wide(n: int, rows: int, predecessors: bool) -> None:
    """Like check_room, for distances that turned out not to fit float32; `predecessors`: if still to be computed.

    `rows`: that many on this host.
    """
    free = psutil.virtual_memory().available
    needed = n * rows * (_WIDE_DISTANCE + (_PREDECESSOR if predecessors else 0))
    if needed > max(0, free - KEPT_FREE):
        raise Refused(
            f"distances of {n:,} vertices from 2^24 on need 64 bits, {memory(needed)} more, and {memory(free)} are free; "
            f"choose dtype float32, which rounds them, or a smaller graph"
        )
