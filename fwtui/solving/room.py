"""Whether an answer fits into memory, said before anything is allocated."""

from __future__ import annotations

from math import isqrt

from fwtui.errors import Refused
from fwtui.units import memory
from kernels.plan import ITEMSIZE

KEEP_FREE = 1 << 28  # for everything else on the machine
_DISTANCE = 4  # bytes a cell of the result, in the same place as the matrix where that is as wide
_PREDECESSOR = 4
_TILE = 128  # the matrix is padded to a multiple of it at most


def bytes_a_cell(dtype: str, predecessors: bool) -> int:
    """What a pair of vertices takes in host memory while its distance is found."""
    matrix = ITEMSIZE[dtype] + (_DISTANCE if ITEMSIZE[dtype] < _DISTANCE else 0)
    return matrix + (_PREDECESSOR if predecessors else 0)


def check_room(n: int, dtype: str, predecessors: bool, free: int | None = None) -> None:
    """Raises Refused with what it takes, what is free, and what fits instead. `free` is what the machine has unless given."""
    if free is None:
        import psutil

        free = psutil.virtual_memory().available
    usable = max(0, free - KEEP_FREE)
    per_cell = bytes_a_cell(dtype, predecessors)
    padded = -(-n // _TILE) * _TILE if n > _TILE else n
    needed = per_cell * padded**2
    if needed <= usable:
        return
    what = f"distances{' and predecessors' if predecessors else ''}"
    ways = [f"a graph of up to {isqrt(usable // per_cell) // _TILE * _TILE:,} vertices"]
    if predecessors and bytes_a_cell(dtype, False) * padded**2 <= usable:
        ways.append("distances alone, from which single paths can be found")
    raise Refused(
        f"{what} of {n:,} vertices in {dtype} need {memory(needed)} and {memory(free)} are free; what fits is {' or '.join(ways)}"
    )
