"""Whether an answer fits into memory, said before anything is allocated."""

from __future__ import annotations

from math import isqrt

import psutil

from fwtui.common.errors import Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.common.units import memory
from fwtui.graphs.bounds import EXACT_INTEGER
from kernels.plan import ITEMSIZE

_DISTANCE = 4  # bytes a cell of the result, in the same place as the matrix where that is as wide
_WIDE_DISTANCE = 8  # beside the matrix
_PREDECESSOR = 4
_TILE = 128  # the matrix is padded to a multiple of it at most


def bytes_a_cell(dtype: str, predecessors: bool, wide: bool = False) -> int:
    """What a pair of vertices takes in host memory while its distance is found; `wide`: and made a float64."""
    matrix = ITEMSIZE[dtype] + (_WIDE_DISTANCE if wide else _DISTANCE if ITEMSIZE[dtype] < _DISTANCE else 0)
    return matrix + (_PREDECESSOR if predecessors else 0)


def check_room(n: int, dtype: str, predecessors: bool, free: int | None = None, low: float | None = None) -> None:
    """Raises Refused with what it takes, what is free, and what fits instead. `free` is what the machine has unless given.

    Only a least weight, `low`, says beforehand that distances will be float64; otherwise see check_wide.
    """
    free = psutil.virtual_memory().available if free is None else free
    usable = max(0, free - KEPT_FREE)
    wide = dtype == "int32" and (low or 0) >= EXACT_INTEGER
    per_cell = bytes_a_cell(dtype, predecessors, wide)
    padded = -(-n // _TILE) * _TILE if n > _TILE else n
    needed = per_cell * padded**2
    if needed <= usable:
        return
    what = f"distances{' and predecessors' if predecessors else ''}"
    ways = [f"a graph of up to {isqrt(usable // per_cell) // _TILE * _TILE:,} vertices"]
    if predecessors and bytes_a_cell(dtype, False, wide) * padded**2 <= usable:
        ways.append("distances alone, from which single paths can be found")
    raise Refused(
        f"{what} of {n:,} vertices in {dtype} need {memory(needed)} and {memory(free)} are free; what fits is {' or '.join(ways)}"
    )


def check_wide(n: int, predecessors: bool) -> None:
    """As check_room, once distances are there that float32 does not hold; `predecessors`: they are still to be made."""
    free = psutil.virtual_memory().available
    needed = n**2 * (_WIDE_DISTANCE + (_PREDECESSOR if predecessors else 0))
    if needed > max(0, free - KEPT_FREE):
        raise Refused(
            f"distances of {n:,} vertices from 2^24 on need 64 bits, {memory(needed)} more, and {memory(free)} are free; "
            f"choose dtype float32, which rounds them, or a smaller graph"
        )
