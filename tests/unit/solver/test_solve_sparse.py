"""`solve` of sparse graphs: kernels that leave out what is not needed, chosen by what METIS finds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import NegativeCycleError, johnson

from fwtui import solve
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.generate import generate
from fwtui.solver import sparse

pytest.importorskip("pymetis", reason="pymetis is not installed (pip install 'fwtui[sparse]')")


def arcs(n: int, **asked: Any) -> scipy.sparse.csr_array:
    graph = generate(Experiment(n=n, **asked))
    i, j = np.nonzero((graph.matrix != graph.no_edge) & ~np.eye(n, dtype=bool))
    return scipy.sparse.csr_array((graph.matrix[i, j].astype(float), (i, j)), shape=(n, n))


@pytest.mark.parametrize(
    "asked", [{"kind": "road"}, pytest.param({"kind": "grid", "negative": 0.3}, marks=pytest.mark.slow)], ids=str
)
def test_a_graph_with_small_separators_is_ordered(asked: dict[str, Any]) -> None:
    graph = arcs(sparse.LEAST, **asked)
    found = solve(graph, predecessors=True)
    assert found.stats.kernel == "sparse-cpu" and "fewer relaxations than a dense graph" in found.stats.reason
    assert found.stats.relaxations < sparse.LEAST**3 / 4
    some = [0, 100, 2047]
    np.testing.assert_array_equal(found.distances[some], johnson(graph, indices=some).astype(found.distances.dtype))
    path = found.path(100, 2047)
    assert sum(graph[i, j] for i, j in pairwise(path)) == found.distances[100, 2047]


def test_without_small_separators_and_where_a_kernel_is_named_the_plan_is_dense() -> None:
    graph = arcs(sparse.LEAST, density=24 / sparse.LEAST)
    found = solve(graph)
    assert (found.stats.kernel, found.stats.reason) == ("tiled-cpu", "no small separators: the dense plan")
    assert solve(arcs(sparse.LEAST, kind="grid"), kernel="tiled-cpu").stats.reason == ""


def test_a_named_kernel_for_sparse_graphs_takes_any() -> None:
    for n in (1, 30, 300):
        graph = arcs(n, kind="grid")
        found = solve(graph, kernel="sparse-cpu")
        assert found.stats.kernel == "sparse-cpu" and found.stats.reason
        np.testing.assert_array_equal(found.distances, johnson(graph))
    graph[0, 1], graph[1, 0] = -3, 2
    with pytest.raises(NegativeCycleError, match=r"has a negative cycle: [01] -> "):
        solve(graph, kernel="sparse-cpu")
