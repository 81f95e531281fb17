"""`solve` of sparse graphs: kernels that leave out what is not needed, chosen by what METIS finds."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from pretending import Pretend
from scipy.sparse.csgraph import NegativeCycleError, johnson

from fwtui import solve
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.generate import generate
from fwtui.graphs.library_objects import adjacency_of, graph_of
from fwtui.solver import estimates
from fwtui.solver.choose import shape_of
from fwtui.solver.estimates import LEAST
from fwtui_kernels import registry
from fwtui_kernels.plan import Target

pytest.importorskip("pymetis", reason="pymetis is not installed (pip install 'fwtui[sparse]')")


def arcs(n: int, **asked: Any) -> scipy.sparse.csr_array:
    graph = generate(Experiment(n=n, **asked))
    i, j = np.nonzero((graph.matrix != graph.no_edge) & ~np.eye(n, dtype=bool))
    return scipy.sparse.csr_array((graph.matrix[i, j].astype(float), (i, j)), shape=(n, n))


@pytest.mark.parametrize(
    "asked", [{"kind": "road"}, pytest.param({"kind": "grid", "negative": 0.3}, marks=pytest.mark.slow)], ids=str
)
def test_a_graph_with_small_separators_is_ordered(asked: dict[str, Any]) -> None:
    graph = arcs(LEAST, **asked)
    found = solve(graph, predecessors=True)
    assert found.stats.kernel == "sparse-cpu" and "fewer relaxations than a dense graph" in found.stats.reason
    assert found.stats.relaxations < LEAST**3 / 4
    some = [0, 100, 2047]
    np.testing.assert_array_equal(found.distances[some], johnson(graph, indices=some).astype(found.distances.dtype))
    path = found.path(100, 2047)
    assert sum(graph[i, j] for i, j in pairwise(path)) == found.distances[100, 2047]


def test_without_small_separators_and_where_a_kernel_is_named_the_plan_is_dense() -> None:
    graph = arcs(LEAST, density=24 / LEAST)
    found = solve(graph)
    assert (found.stats.kernel, found.stats.reason) == ("tiled-cpu", "no small separators: the dense plan")
    assert solve(arcs(LEAST, kind="grid"), kernel="tiled-cpu").stats.reason == ""


@pytest.mark.parametrize(
    ("order", "free", "kernel"), [(1e-9, 8 * 2**30, "sparse"), (1e-9, 2**20, "dense"), (1.0, 8 * 2**30, "dense")]
)
def test_on_a_gpu_it_is_ordered_where_that_takes_less_time_and_fits(
    order: float, free: int, kernel: str, pretend: Pretend
) -> None:
    pretend.limits(estimates, _ORDERED=order)
    graph, dense = adjacency_of(graph_of(arcs(LEAST, kind="grid"))), registry()["look-ahead"]
    shape = shape_of(dense, LEAST, "int32")
    gpu: Any = SimpleNamespace(target=Target("cuda"), ranks=(), free_bytes=lambda: free)
    chosen, ordered, reason = estimates.sparser(None, graph, graph.facts, dense, shape, gpu)
    assert (chosen.id == "sparse") == (kernel == "sparse") == (ordered.order is not None) == bool(reason)


def test_a_named_kernel_for_sparse_graphs_takes_any() -> None:
    for n in (1, 30, 300):
        graph = arcs(n, kind="grid")
        found = solve(graph, kernel="sparse-cpu")
        assert found.stats.kernel == "sparse-cpu" and found.stats.reason
        np.testing.assert_array_equal(found.distances, johnson(graph))
    graph[0, 1], graph[1, 0] = -3, 2
    with pytest.raises(NegativeCycleError, match=r"has a negative cycle: [01] -> "):
        solve(graph, kernel="sparse-cpu")
