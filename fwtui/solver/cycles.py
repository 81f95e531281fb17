"""Whether distances from vertices to themselves say that there is a negative cycle, and which."""

from __future__ import annotations

from collections.abc import Callable
from math import fsum

import numpy as np

from fwtui.graphs.adjacency import Adjacency, weights_along
from fwtui.graphs.bounds import Facts
from fwtui.graphs.cycles import negative_cycle
from fwtui.solver.number_type import unfit

_SHOWN = 8  # vertices of a cycle in words


def check_cycles(whole: Callable[[], Adjacency], facts: Facts, diagonal: np.ndarray) -> None:
    """Raises SciPy's NegativeCycleError, with the vertices of a cycle, where a vertex is nearer to itself than 0."""
    low = facts.low or 0
    if low >= 0 or not (diagonal < 0).any():
        return
    adjacency = whole()
    weights = np.empty((adjacency.n, adjacency.n), dtype=np.int32 if unfit(facts, "int32") is None else np.float32)
    adjacency.fill(weights)
    cycle = negative_cycle(weights)
    closed = [*cycle, *cycle[:1]]
    if not cycle or fsum(weights_along(adjacency, closed)) >= 0:
        # float32 may make a cycle of weight 0 a little less, but no more than this
        rounding = adjacency.n * float(np.finfo(np.float32).eps) * max(-low, facts.high or 0)
        if facts.integer or float(diagonal.min()) < -rounding:
            closed = [int(diagonal.argmin())]
        else:
            return
    from scipy.sparse.csgraph import NegativeCycleError

    names = [adjacency.vertices.name(v) for v in closed]
    if len(names) > _SHOWN:
        names = [*names[: _SHOWN - 2], "...", names[-1]]
    where = f": {' -> '.join(names)}" if len(names) > 1 else f" through {names[0]}"
    raise NegativeCycleError(f"the graph has a negative cycle{where}")
