"""Predecessors of distances in GPU memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwtui.engine.engine import Engine
from fwtui.graphs.bounds import exact_below, far_of
from fwtui.graphs.graph import EdgeFacts
from fwtui.solver.call import Clock
from fwtui.solver.costs import free_on_device
from fwtui.solver.paths import TracedPredecessors, share_of
from fwtui_kernels.compiled.device import cuda
from fwtui_kernels.paths.predecessors import Search, Terms, sources_for
from fwtui_kernels.plan import FLOATS, NO_EDGE


def terms_of(facts: EdgeFacts, dtype: str, largest: float) -> Terms | None:
    """Return the terms of a search, for distances up to the absolute value `largest`.

    None if sums with negative weights were rounded.
    """
    is_rounded = dtype in FLOATS and not largest < exact_below(facts, dtype)
    if is_rounded and not facts.nonnegative:
        return None
    slack = share_of(facts.n, dtype) if is_rounded else 0
    return Terms(facts.n, largest, far_of(facts, dtype), NO_EDGE[dtype], not facts.nonnegative, slack)


def found_on_device(
    distances: Any, weights: Any, facts: EdgeFacts, largest: float, engine: Engine, keep_on_device: bool, clock: Clock
) -> TracedPredecessors | None:
    """Return all predecessors, and the sources for which rounding hid some; None if sums with negative weights were
    rounded or memory is short.

    `keep_on_device`: as a device array, else as a host array.

    Call it within compiled().
    """
    terms = terms_of(facts, distances.dtype.name, largest)
    room = free_on_device(engine, 0) - (4 * facts.n**2 if keep_on_device else 0)
    if terms is None or sources_for(facts.n, room) is None:
        return None
    search = Search(distances, weights, terms, engine.stream)
    sources = sources_for(facts.n, room - search.list_bytes)
    if sources is None:
        return None
    return TracedPredecessors(found_by(search, sources, facts.n, engine, keep_on_device, clock), search.unfound())


def found_by(search: Search, sources: int, n: int, engine: Engine, keep_on_device: bool, clock: Clock) -> Any:
    """Return all predecessors, found `sources` rows at a time."""
    predecessors_found = (
        cuda.device_array((n, n), np.int32, stream=engine.stream) if keep_on_device else np.empty((n, n), np.int32)
    )
    part: Any = None
    for source in range(0, n, sources):
        to = predecessors_found[source : min(source + sources, n)]
        if keep_on_device:
            search.find(source, to)
            continue
        if part is None or len(part) != len(to):
            part = None  # two at once may not fit
            part = cuda.device_array(to.shape, np.int32, stream=engine.stream)
        search.find(source, part)
        engine.synchronize()
        clock.lap("paths")
        part.copy_to_host(to, stream=engine.stream)
        engine.synchronize()
        clock.lap("copy out")
    engine.synchronize()
    return predecessors_found
