"""Predecessors of distances that a GPU has just found, while they are still there."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwtui.experiment import GRID
from fwtui.graphs.bounds import Facts, limit
from fwtui.measure.engine import Engine
from fwtui.solving import device
from kernels.plan import NO_EDGE
from kernels.predecessors import Search, Terms, sources_for


def far_of(facts: Facts, dtype: str) -> float:
    """From here on a cell says that there is no path; see graphs.canonical."""
    return np.inf if dtype == "float32" else NO_EDGE[dtype] - 2 * facts.drift


def terms_of(facts: Facts, dtype: str, largest: float) -> Terms | None:
    """How a search reads distances of up to that absolute value; None where sums were rounded or lengths are too large."""
    negative = (facts.low or 0) < 0
    if dtype == "float32" and not (facts.exact_sums and largest < limit(facts, dtype) / (2 if negative else 1)):
        return None
    scale = 1 if facts.integer else GRID
    terms = Terms(facts.n, scale, largest, far_of(facts, dtype), NO_EDGE[dtype], negative)
    return terms if terms.shift is not None else None


def traced(program: Any, buffers: Any, terms: Terms, engine: Engine, answer: np.ndarray | None = None) -> Any | None:
    """int32 (n, n), -9999 for none, in `answer` on the host or else in a new array on the device. None where a search is not
    possible: for want of memory, or because the kernel keeps its matrices in an order of its own.

    `program` has run; its buffers hold distances and weights. Called where compiled code may be made.
    """
    from kernels.cuda_program import CudaProgram
    from kernels.device import cuda

    if not isinstance(program, CudaProgram) or program.reorders:
        return None
    n, stream = terms.n, engine.stream
    free = engine.free_bytes()
    if free is not None and answer is None:
        free -= 4 * n * n
    sources = sources_for(n, np.inf if free is None else free - device.SPARE)
    if sources is None:
        return None
    distance, weights = program.result_on_device(buffers, stream), buffers[-1]
    whole = cuda.device_array((n, n), np.int32, stream=stream) if answer is None else None
    search = Search(distance, weights, terms, engine.target.cc, stream)
    part: Any = None
    for source in range(0, n, sources):
        stop = min(source + sources, n)
        if whole is not None:
            search.find(source, whole[source:stop])
            continue
        if part is None or part.shape[0] != stop - source:
            part = cuda.device_array((stop - source, n), np.int32, stream=stream)
        search.find(source, part)
        assert answer is not None
        part.copy_to_host(answer[source:stop], stream=stream)
    engine.synchronize()
    return whole if answer is None else answer
