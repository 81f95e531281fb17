"""The number type for a graph's distances, and the proof that it holds them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import shown
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import AFTERWARDS, BY_EDGES, BY_SEARCHES, limit, longest, proved_by_edges
from fwtui.graphs.graph import Facts, blocks
from fwtui_kernels.plan import DTYPES, NO_EDGE

ROUNDED = "rounded: sums of these weights need more digits than float32 has"
NARROW_FIRST = ("int16", "int32", "float32")
_LOOKED_AT = 1 << 24  # arcs relaxed in a tenth of a second
_ROUNDS = 3  # of a search through a dense matrix, whose paths have few edges


class Choice(NamedTuple):
    """A type and the proof that it holds every distance: a text of graphs.bounds, or ROUNDED."""

    dtype: str
    proof: str


def choices(graph: Facts, asked: str | None, reach_of: Callable[[float], tuple[float, bool]]) -> Iterator[Choice]:
    """The types to try, narrowest first, or only the requested one. A later one is for an overflow of an earlier one.

    `reach_of` searches like the function below. Raises Refused if the requested type cannot hold the weights.
    """
    if asked is not None and asked not in DTYPES:
        raise Refused(f"dtype {shown(str(asked))} is not one that kernels have; choose one of {', '.join(DTYPES)}")
    greatest = max(abs(graph.low or 0), abs(graph.high or 0))
    if greatest * max(graph.n, 1) >= float(np.finfo(np.float32).max):
        raise Refused(f"weights up to {greatest:g} leave no room for sums in float32; scale them down")
    if asked is not None and (reason := unfit(graph, asked)):
        raise Refused(reason)
    reach: float | None = None
    complete = True
    for dtype in (asked,) if asked is not None else NARROW_FIRST:
        if unfit(graph, dtype) is not None:
            continue
        if graph.high is None or (graph.exact_sums and proved_by_edges(graph, dtype)):
            yield Choice(dtype, BY_EDGES)
        elif dtype == "float32":
            # the result shows it: while distances stay small, no sum lost a digit
            yield Choice(dtype, AFTERWARDS if graph.exact_sums else ROUNDED)
        else:
            if reach is None:
                reach, complete = reach_of(limit(graph, dtype))
            if reach < limit(graph, dtype) and complete:
                yield Choice(dtype, BY_SEARCHES)
            elif asked is not None or (reach < limit(graph, dtype) and not graph.drift):
                yield Choice(dtype, AFTERWARDS)


def unfit(adjacency: Facts, dtype: str) -> str | None:
    """Why the weights do not fit the type, in a sentence."""
    if dtype == "float32":
        return None
    if not adjacency.integer:
        return f"weights that are not whole do not fit {dtype}; choose float32"
    low, high = adjacency.low or 0, adjacency.high or 0
    if dtype == "int16" and low < 0:
        return f"int16 takes no negative weights, and {low:g} is one; choose int32 or float32"
    if max(-low, high) >= NO_EDGE[dtype] or limit(adjacency, dtype) <= 0:
        wider = "int32" if dtype == "int16" else "float32"
        worst = low if -low > high or adjacency.drift else high
        return f"weight {worst:g} on {adjacency.n:,} vertices leaves no room in {dtype}; choose {wider}"
    return None


def far_of(facts: Facts, dtype: str) -> float:
    """From this value up a cell of a kernel's distances means no path; see graphs.canonical."""
    return np.inf if dtype == "float32" else NO_EDGE[dtype] - 2 * facts.drift


def reach_of(adjacency: Adjacency, enough: float) -> tuple[float, bool]:
    """An upper bound on all distances, valid if the second value is true: max d(v, .) + max d(., v) for v = 0.

    A dense matrix is searched until that is less than `enough`. Negative weights count as 0, which never shortens a distance.
    """
    if adjacency.arcs is None:
        return longest(*_of_dense(adjacency, enough))
    sources, targets, weights = adjacency.arcs
    weights = np.maximum(weights, 0)
    return longest(*(from_first(adjacency.n, *ends, weights) for ends in ((sources, targets), (targets, sources))))


def from_first(n: int, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n,) distances from vertex 0 over arcs of nonnegative weight, +inf for no path.

    All arcs are relaxed repeatedly until nothing changes (Bellman, Ford); if that would take longer than loading SciPy, its
    Dijkstra takes over.
    """
    distance = np.full(n, np.inf)
    distance[0] = 0
    for _ in range(_LOOKED_AT // max(1, len(weights))):
        before = distance.copy()
        np.minimum.at(distance, targets, before[sources] + weights)
        if (distance == before).all():
            return distance
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    apart = sources != targets
    # SciPy adds parallel arcs up, and the sum is at least their minimum
    return dijkstra(csr_array((weights[apart], (sources[apart], targets[apart])), shape=(n, n)), indices=0)


def _of_dense(adjacency: Adjacency, enough: float) -> list[np.ndarray]:
    """Lengths of the shortest paths with few edges, which bound the distances from above."""
    assert adjacency.dense is not None
    found = []
    for matrix in (adjacency.dense, adjacency.dense.T):
        distance = np.full(adjacency.n, np.inf)
        distance[0] = 0
        # the first round is one row
        for rows in [slice(0, 1), *(rows for _ in range(_ROUNDS) for rows in blocks(matrix))]:
            block = matrix[rows].astype(np.float64)
            block[~np.isfinite(block)] = np.inf
            np.maximum(block, 0, out=block)
            block += distance[rows, None]
            np.minimum(distance, block.min(axis=0), out=distance)
            if 2 * distance.max() < enough:
                break
        found.append(distance)
    return found
