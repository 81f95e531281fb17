"""The memory check of a run, before anything is allocated."""

from __future__ import annotations

from math import isqrt

import psutil

from fwtui.common.errors import Refused
from fwtui.common.malloc_arenas import RESERVED_MEMORY
from fwtui.common.units import memory
from fwtui.engine.engine import Engine
from fwtui_kernels.plan import Kernel, Shape

# the host holds the input, a padded copy, the result, and the canonical result that is checked (4 bytes a cell)
_HOST_COPIES, _CANONICAL = 3, 4
_REFERENCE = 56  # bytes per cell while SciPy computes the reference
_ROW = 128  # pitched rows begin at multiples of this many bytes
_MANAGED_SHARE = 2  # managed memory must fit this many times into the free memory


def check_memory(kernel: Kernel, shape: Shape, engine: Engine, full: bool = False, free_host: int | None = None) -> None:
    """Raise Refused with the memory needed, the free memory, and the largest n that fits. `full`: compared with SciPy's result;
    `free_host`: free bytes of the host's memory, measured by default."""
    free_device = engine.free_bytes()
    matrices = kernel.matrices + 1  # and the stored input
    in_host = free_device is None or shape.memory == "mapped"
    on_host = (_HOST_COPIES + (matrices if in_host else 0)) * shape.itemsize + _CANONICAL
    shares = [rank for rank in engine.ranks if rank.backend == "cpu" and rank.host == 0]  # all on this host
    on_host += -(-matrices * shape.itemsize * len(shares) // shape.ranks)
    on_host += max(kernel.host_bytes, _REFERENCE if full else 0)
    _check("host", shape, on_host, psutil.virtual_memory().available if free_host is None else free_host)
    if engine.ranks:
        assert free_device is not None
        _check(
            "device" if engine.ranks[0].backend == "cuda" else "host", shape, matrices * shape.itemsize, free_device, shape.ranks
        )
    elif free_device is not None and not in_host:
        where, share = ("managed", _MANAGED_SHARE) if shape.memory == "managed" else ("device", 1)
        _check(where, shape, matrices * shape.itemsize, free_device // share)


def _check(where: str, shape: Shape, per_cell: int, free: int, ranks: int = 1) -> None:
    """Check one memory; `ranks` share the matrix, and `free` is the free memory of each."""
    usable = max(0, free - RESERVED_MEMORY)
    row = -(-shape.padded * per_cell // _ROW) * _ROW
    needed = row * (shape.rows if ranks > 1 else shape.padded)
    if needed > usable:
        whole = shape.tile * ranks  # a row of tiles for each
        fits = isqrt(usable * ranks // per_cell) // whole * whole
        where += f" memory for each of {ranks} ranks" if ranks > 1 else " memory"
        share = " (managed memory may use at most half of the free memory)" if where == "managed memory" else ""
        raise Refused(
            f"n = {shape.n} {shape.dtype} needs {memory(needed)} of {where}, but only {memory(free)} is free{share}; "
            f"choose n up to {fits}"
        )
