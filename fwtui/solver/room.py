"""Whether distances fit into memory: all of them, each rank's share, some of them, and those that turn out to be wide."""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING

import psutil

from fwtui.common.errors import Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.common.units import memory
from fwtui.engine.engine import Engine
from fwtui.graphs.bounds import EXACT_INTEGER
from fwtui_kernels.plan import ITEMSIZE, Kernel, Shape

if TYPE_CHECKING:
    from fwtui.engine.ranks import RankedEngine

_ALWAYS_FITS = 256  # vertices whose matrices take less memory than NumPy itself
_DISTANCE = 4  # bytes per cell of the result, in place of the matrix if that is as wide
_WIDE = 8  # beside the matrix
_PREDECESSOR = 4
_TILE = 128  # the largest multiple to which the matrix is padded


def bytes_a_cell(dtype: str, predecessors: bool, wide: bool = False) -> int:
    """Host memory in bytes per pair of vertices while solving; `wide`: with a float64 result."""
    matrix = ITEMSIZE[dtype] + (_WIDE if wide else _DISTANCE if ITEMSIZE[dtype] < _DISTANCE else 0)
    return matrix + (_PREDECESSOR if predecessors else 0)


def beside(dtype: str, engine: Engine) -> int:
    """Host memory in bytes per cell that ranks on this host need for their rows, those on their way included."""
    here = [rank for rank in engine.ranks if rank.host == 0]
    copies = 3 if engine.target.backend == "cpu" else 1
    return -(-copies * ITEMSIZE[dtype] * len(here) // len(engine.ranks)) if here else 0


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


def check_some(shape: tuple[int, int], per_cell: int, other: int = 0) -> None:
    """Like check_room, for that many rows and columns of distances, with `other` bytes that are needed besides."""
    needed, usable = shape[0] * shape[1] * per_cell, max(0, psutil.virtual_memory().available - KEPT_FREE - other)
    if needed > usable:
        raise Refused(
            f"{shape[0]:,} x {shape[1]:,} distances need {memory(needed)} and {memory(usable)} are free; "
            f"choose up to {usable // per_cell // shape[1]:,} vertices"
        )


def check_wide(n: int, cells: int, predecessors: bool) -> None:
    """Like check_room, for that many distances here that do not fit float32; `predecessors`: if still to be computed."""
    free = psutil.virtual_memory().available
    needed = cells * (_WIDE + (_PREDECESSOR if predecessors else 0))
    if needed > max(0, free - KEPT_FREE):
        raise Refused(
            f"distances of {n:,} vertices from 2^24 on need 64 bits, {memory(needed)} more, and {memory(free)} are free; "
            f"choose dtype float32, which rounds them, or a smaller graph"
        )
