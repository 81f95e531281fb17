"""Predecessors of distances that a GPU has just found, while they are still there."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from fwtui.common.memory import KEPT_FREE
from fwtui.engine.engine import Engine
from fwtui.experiment.experiment import GRID
from fwtui.graphs.bounds import Facts, limit
from fwtui.solver.paths import share_of
from kernels.paths.predecessors import Search, Terms, sources_for
from kernels.plan import NO_EDGE

_ROUNDED_BITS = 21  # of a length where sums were rounded: what is left of a key says which of 256 vertices


def far_of(facts: Facts, dtype: str) -> float:
    """From here on a cell says that there is no path; see graphs.canonical."""
    return np.inf if dtype == "float32" else NO_EDGE[dtype] - 2 * facts.drift


def terms_of(facts: Facts, dtype: str, largest: float) -> Terms | None:
    """How a search reads distances of up to that absolute value; None where lengths are too large, or where sums were rounded
    that have negative weights in them.
    """
    negative = (facts.low or 0) < 0
    if dtype == "float32" and not (facts.exact_sums and largest < limit(facts, dtype) / (2 if negative else 1)):
        if negative or not 0 < largest < np.inf:
            return None
        scale = 2.0 ** (_ROUNDED_BITS - np.ceil(np.log2(largest)))
        if not np.float32(scale) < np.inf:
            return None
        return Terms(facts.n, float(scale), largest, np.inf, np.inf, False, share_of(facts.n))
    scale = 1 if facts.integer else GRID
    terms = Terms(facts.n, scale, largest, far_of(facts, dtype), NO_EDGE[dtype], negative)
    return terms if terms.shift() is not None else None


def search_for(program: Any, buffers: Any, terms: Terms, engine: Engine, more: int = 0) -> tuple[Search, int] | None:
    """A search in what a program has left in its buffers, and for how many sources at once the memory is enough, if `more`
    bytes have to fit too. None where it is not enough, or where the kernel keeps its matrices in an order of its own.

    Called where compiled code may be made.
    """
    from kernels.programs.cuda_program import CudaProgram

    if not isinstance(program, CudaProgram) or program.reorders:
        return None
    free = engine.free_bytes()
    room = np.inf if free is None else free - KEPT_FREE - more
    if sources_for(terms.n, room) is None:
        return None
    distance = program.result_on_device(buffers, engine.stream)
    search = Search(distance, buffers[-1], terms, engine.target.cc, engine.stream)
    sources = sources_for(terms.n, room - search.list_bytes)
    return None if sources is None else (search, sources)


def on_device(search: Search, sources: int, n: int, engine: Engine) -> Any:
    """All predecessors as a device array."""
    from kernels.numba_door.device import cuda

    found = cuda.device_array((n, n), np.int32, stream=engine.stream)
    for source in range(0, n, sources):
        search.find(source, found[source : min(source + sources, n)])
    engine.synchronize()
    return found


def on_host(search: Search, sources: int, n: int, engine: Engine) -> tuple[np.ndarray, float]:
    """All predecessors as a host array, and how many seconds were spent copying."""
    from kernels.numba_door.device import cuda

    found, copying = np.empty((n, n), np.int32), 0.0
    part: Any = None
    for source in range(0, n, sources):
        to = found[source : source + sources]
        if part is None or len(part) != len(to):
            part = None  # two of them at once may not fit
            part = cuda.device_array(to.shape, np.int32, stream=engine.stream)
        search.find(source, part)
        engine.synchronize()
        begin = time.perf_counter()
        part.copy_to_host(to, stream=engine.stream)
        engine.synchronize()
        copying += time.perf_counter() - begin
    return found, copying
