"""Proofs that every distance of a graph fits a data type: that of a run, or the narrowest one for `solve`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import quoted
from fwtui.graphs import GRID
from fwtui.graphs.graph import EdgeFacts, GraphInput
from fwtui_kernels.plan import DTYPES, FLOATS, NO_EDGE

EXACT_INTEGER = 2**24  # float32 holds every integer up to this
EXACT_REAL = 2**16  # above it float32 skips multiples of 1/256
_EXACT = {"float32": (EXACT_INTEGER, EXACT_REAL), "float64": (2**53, 2**45)}  # both limits, by type
BY_EDGES = "proved by (n-1) x greatest weight"
BY_SEARCHES = "proved by two searches from vertex 0"
AFTERWARDS = "checked afterwards"
_NARROW_FIRST = ("int16", "int32", "float32", "float64")
# (matrix, sources, potentials, no edge) -> distances from each source, as fwtui.engine.reference_distances.distances_from
Search = Callable[[np.ndarray, np.ndarray, np.ndarray | None, float], np.ndarray]


def facts_of(n: int, edges: int, low: float, high: float, fineness: float) -> EdgeFacts:
    """Return the facts, with None for an infinite weight; `fineness` is the result of fineness()."""
    least, greatest = (float(weight) if np.isfinite(weight) else None for weight in (low, high))
    return EdgeFacts(n, edges, least, greatest, fineness == 0, fineness <= 1, vanishing=fineness > 2)


def fineness(weights: np.ndarray, least: int = 0) -> int:
    """Return 0 for integers, 1 for multiples of 1/256, 2 for others, 3 if one becomes 0 in float32; at least `least`.

    NaN means no edge.
    """
    present = int(np.count_nonzero(weights == weights)) if least < 2 else 0
    if least == 0 and np.count_nonzero(weights == np.rint(weights)) == present:
        return 0
    if least < 2 and np.count_nonzero(weights * GRID == np.rint(weights * GRID)) == present:
        return 1
    with np.errstate(over="ignore"):  # large weights are rejected by size
        return 3 if least == 3 or np.count_nonzero(weights) != np.count_nonzero(weights.astype(np.float32)) else 2


def rounded(dtype: str) -> str:
    """Return the text that replaces the proof if sums were rounded."""
    return f"rounded: sums of these weights need more digits than {dtype} has"


def held_below(graph: EdgeFacts, dtype: str) -> float:
    """Return the bound below which the floating type represents every distance; 0 for weights off the 1/256 grid."""
    return float(_EXACT[dtype][not graph.integer]) if graph.exact_sums else 0.0


def limit(graph: EdgeFacts, dtype: str) -> float:
    """Return the bound below which distances are exact and differ from "no path"; negative edges need headroom on both sides."""
    if dtype not in FLOATS:
        most = float(NO_EDGE[dtype])
    else:
        most = held_below(graph, dtype) or float(np.finfo(dtype).max)
    return most - 2 * graph.drift


def exact_below(graph: EdgeFacts, dtype: str) -> float:
    """Return the bound below which the floating type is exact for distances and for all intermediate sums."""
    return limit(graph, dtype) / (2 if graph.drift else 1) if graph.exact_sums else 0.0


def proved_by_edges(graph: EdgeFacts, dtype: str) -> bool:
    """Return whether no path of n - 1 edges can reach the limit."""
    return (graph.n - 1) * max(graph.high or 0, 0) < limit(graph, dtype)


class Choice(NamedTuple):
    """A data type for distances, and the meaning of its values."""

    dtype: str
    proof: str  # reason why the type holds every distance, or the text of rounded()
    far: float  # cells of this value or more mean no path
    exact_below: float  # while all distances are smaller, no sum of weights was rounded


def choices(graph: EdgeFacts, dtype_text: str | None, reach_within: Callable[[float], tuple[float, bool]]) -> Iterator[Choice]:
    """Yield the types to try, narrowest first, or only the requested one.

    The caller takes the next type if one overflows or rounds a sum.

    `reach_within(distance)` returns the result of longest(); its searches may stop at that distance. Raises Refused if the
    requested type cannot hold the weights.
    """
    if dtype_text is not None and dtype_text not in DTYPES:
        raise Refused(f"dtype {quoted(str(dtype_text))} is not supported; choose one of {', '.join(DTYPES)}")
    if reason := unfit(graph, dtype_text or _NARROW_FIRST[-1]):
        raise Refused(reason)
    reach: float | None = None
    complete = True
    for dtype in (dtype_text,) if dtype_text is not None else _NARROW_FIRST:
        if unfit(graph, dtype) is not None:
            continue
        if dtype_text is None and dtype == "float32" and (graph.integer or not graph.exact_sums):
            continue  # int32 holds more integers, and float32 rounds the sums of other weights
        far = far_of(graph, dtype)
        if graph.high is None or (graph.exact_sums and proved_by_edges(graph, dtype)):
            yield Choice(dtype, BY_EDGES, far, np.inf)
        elif dtype in FLOATS:
            # the result proves it: while distances stay small, no sum is rounded
            yield Choice(dtype, AFTERWARDS if graph.exact_sums else rounded(dtype), far, exact_below(graph, dtype))
        else:
            if reach is None:
                reach, complete = reach_within(limit(graph, dtype))
            if reach < limit(graph, dtype) and complete:
                yield Choice(dtype, BY_SEARCHES, far, np.inf)
            elif dtype_text is not None or (reach < limit(graph, dtype) and not graph.drift):
                yield Choice(dtype, AFTERWARDS, far, np.inf)


def unfit(graph: EdgeFacts, dtype: str) -> str | None:
    """Explain why the weights do not fit the dtype."""
    low, high = graph.low or 0, graph.high or 0
    if dtype in FLOATS:
        greatest, wider = max(-low, high), "; choose float64" if dtype == "float32" else "; scale them down"
        if greatest * max(graph.n, 1) >= float(np.finfo(dtype).max):
            return f"weights up to {greatest:g} leave no room for sums in {dtype}{wider}"
        if dtype == "float32" and 0 < greatest < float(np.finfo(np.float32).tiny):
            return f"weights up to {greatest:g} are too small for float32; choose float64"
        if dtype == "float32" and graph.vanishing:
            return f"a nonzero weight would become 0 in float32, next to weights up to {greatest:g}; choose float64"
        return None
    if not graph.integer:
        return f"weights that are not integers do not fit {dtype}; choose float32 or float64"
    if dtype == "int16" and low < 0:
        return f"int16 does not support negative weights such as {low:g}; choose int32 or float64"
    if max(-low, high) >= NO_EDGE[dtype] or limit(graph, dtype) <= 0:
        wider = "int32" if dtype == "int16" else "float64"
        worst = low if -low > high or graph.drift else high
        return f"weight {worst:g} on {graph.n:,} vertices leaves no room in {dtype}; choose {wider}"
    return None


def far_of(facts: EdgeFacts, dtype: str) -> float:
    """Return the smallest cell value of a kernel's distances that means no path; see graphs.canonical."""
    return NO_EDGE[dtype] - 2 * facts.drift


def check_range(graph: GraphInput, dtype: str, distances_from: Search) -> str:
    """Return the proof that all distances fit the type; `distances_from` searches a graph. Raises Refused if they may not.

    The bound is d(i, j) <= d(i, v) + d(v, j). If v does not reach every vertex, or some vertex does not reach v, there is
    no bound before the run, and verification has to check.
    """
    if graph.high is None:
        return BY_EDGES  # no edge, no path
    most = limit(graph, dtype)
    if most <= 0:
        raise Refused(
            f"negative weights down to {graph.low:g} on {graph.n} vertices leave no room in {dtype}; "
            "choose weights nearer to 0, or a smaller graph"
        )
    if proved_by_edges(graph, dtype):
        return BY_EDGES
    matrix, start = graph.matrix, np.zeros(1, dtype=np.int64)
    if graph.may_have_negative_cycles:
        matrix = np.maximum(matrix, matrix.dtype.type(0))  # no shorter than the true weights: the bound still holds
    backward = None if graph.potentials is None else -graph.potentials
    outward = distances_from(matrix, start, graph.potentials, graph.no_edge)
    reach, complete = longest(outward, distances_from(matrix.T, start, backward, graph.no_edge))
    if reach >= most:
        raise Refused(_sentence(reach, most, graph, dtype))
    return BY_SEARCHES if complete else AFTERWARDS


def longest(outward: np.ndarray, inward: np.ndarray) -> tuple[float, bool]:
    """Return an upper bound on all distances from those to and from one vertex, and whether they are all finite."""
    complete = bool(np.isfinite(outward).all() and np.isfinite(inward).all())
    farthest = [max(0.0, float(d[np.isfinite(d)].max())) for d in (outward, inward)]
    return (sum(farthest) if complete else max(farthest)), complete


def _sentence(reach: float, most: float, graph: GraphInput, dtype: str) -> str:
    wider = "int32" if dtype == "int16" or (dtype == "float32" and graph.integer) else "float64"
    way = "choose smaller weights" if dtype == wider else f"choose {wider}, or smaller weights"
    what = "exactly " if dtype in FLOATS and graph.exact_sums else ""
    return f"distances may reach {reach:,.6g}, and {dtype} holds them {what}only below {most:,.6g} here; {way}"
