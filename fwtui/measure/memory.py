"""Whether a run fits, said before anything is allocated."""

from __future__ import annotations

from math import isqrt

import psutil

from fwtui.errors import Refused
from fwtui.measure.engine import Engine
from fwtui.units import memory
from kernels.plan import Shape

# input, padded copy, result, and the canonical result that is checked (4 bytes a cell)
_HOST_COPIES, _CANONICAL = 3, 4
_CPU_BUFFERS = _DEVICE_BUFFERS = 2
_KEEP_FREE = 1 << 28  # for everything else on the machine


def check_memory(shape: Shape, engine: Engine) -> None:
    """Raises Refused with what the run needs, what is free, and which n fits instead."""
    free_device = engine.free_bytes()
    on_host = _HOST_COPIES + (_CPU_BUFFERS if free_device is None else 0)
    _check("host", shape, on_host * shape.itemsize + _CANONICAL, psutil.virtual_memory().available)
    if free_device is not None:
        _check("device", shape, _DEVICE_BUFFERS * shape.itemsize, free_device)


def _check(where: str, shape: Shape, per_cell: int, free: int) -> None:
    usable = max(0, free - _KEEP_FREE)
    needed = per_cell * shape.padded**2
    if needed > usable:
        fits = isqrt(usable // per_cell) // shape.tile * shape.tile
        raise Refused(
            f"n = {shape.n} {shape.dtype} needs {memory(needed)} of {where} memory and {memory(free)} are free; "
            f"choose n up to {fits}"
        )
