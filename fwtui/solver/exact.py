"""Answers that lose no digit: for callers who expect float64 and must not get distances that float32 rounded."""

from __future__ import annotations

import numpy as np

from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import unfit
from fwtui.solver.result import Result
from fwtui.solver.solve import answer


def exactly(graph: Adjacency, predecessors: bool) -> Result | None:
    """The answer if kernels find it without rounding a sum, else None. Raises like solve."""
    facts = graph.facts
    if not facts.exact_sums or (facts.integer and unfit(facts, "int32")):  # float32 has fewer digits than int32
        return None
    result = answer(graph, predecessors=predecessors)
    return result if result.stats.exact else None


def in_float64(graph: Adjacency, predecessors: bool, method: str) -> tuple[np.ndarray, np.ndarray | None]:
    """(n, n) distances and predecessors: from kernels if they are exact, else from SciPy, in float64 by the method.

    Raises like solve.
    """
    result = exactly(graph, predecessors)
    if result is not None:
        return result.distances, result.predecessors
    from scipy.sparse import csgraph, csr_array

    sources, targets, weights = graph.all_arcs()
    if (weights[sources == targets] < 0).any():  # which SciPy's Floyd-Warshall does not look at
        raise csgraph.NegativeCycleError("the graph has a negative self-loop")
    order = np.lexsort((weights, targets, sources))
    sources, targets, weights = sources[order], targets[order], weights[order]
    # SciPy would add parallel arcs up
    least = np.r_[True, (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])][: len(weights)]
    matrix = csr_array((weights[least], (sources[least], targets[least])), shape=(graph.n, graph.n))
    if predecessors:
        return csgraph.shortest_path(matrix, method=method, return_predecessors=True)
    return csgraph.shortest_path(matrix, method=method), None
