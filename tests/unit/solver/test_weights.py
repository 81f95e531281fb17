"""Facts about weights that choose a data type: range, grid, and distances from vertex 0."""

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from fwtui import solve
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import GRID
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.graph import EdgeFacts
from fwtui.solver import host_graph


def brute(dense: np.ndarray) -> EdgeFacts:
    loops = dense.diagonal().astype(float)
    apart = dense[~np.eye(len(dense), dtype=bool)].astype(float)
    apart = apart[np.isfinite(apart)]
    both = np.concatenate([apart, loops[np.isfinite(loops) & (loops < 0)]])
    whole, grid = (bool((both * scale == np.rint(both * scale)).all()) for scale in (1, GRID))
    vanishing = bool(((both != 0) & (both.astype(np.float32) == 0)).any())
    low, high = float(both.min()) if len(both) else None, float(apart.max()) if len(apart) else None
    return EdgeFacts(len(dense), len(apart), low, high, whole, grid, vanishing=vanishing)


@settings(max_examples=300)
@given(
    st.integers(1, 6),
    st.integers(0, 10**6),
    st.sampled_from(["<f4", ">f4", "<f8", "i1", "u1", "i4", "i8"]),
    st.sampled_from([0.0, 1 / 256, 0.1, 1e-46]),
)
@example(n=600, seed=1, kind="<f8", fraction=1 / 256)  # several blocks of rows
@example(n=600, seed=2, kind="i4", fraction=0.0)
def test_facts_of_a_matrix_are_those_of_a_plain_scan(n: int, seed: int, kind: str, fraction: float) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.integers(0 if kind[0] == "u" else -3, 9, (n, n)).astype(kind)
    if "f" in kind:
        dense += (fraction * rng.integers(0, 2, (n, n))).astype(kind)
        dense[rng.random((n, n)) < rng.random()] = np.inf
        dense[rng.random((n, n)) < 0.1] = np.nan
    before = dense.copy()
    assert Adjacency(n, dense=dense).facts == brute(dense)
    assert np.array_equal(dense, before, equal_nan="f" in kind), "the caller's matrix is left alone"


_LOST = np.array([[0, 1], [1e-46, 0]])


@pytest.mark.parametrize("graph", [_LOST, coo_array(_LOST), np.where(np.eye(200), 1e-46, 1)[::-1]])
def test_no_weight_becomes_0_unnoticed(graph: Any) -> None:
    with pytest.raises(Refused, match="a nonzero weight would become 0 in float32, next to weights up to 1; choose float64"):
        solve(graph, dtype="float32")
    assert solve(graph).distances[solve(graph).distances > 0].min() == 1e-46


@pytest.mark.parametrize("looked_at", [0, 40, 1 << 24])
def test_the_search_from_vertex_0_is_dijkstras(looked_at: int) -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 30))
        m = int(rng.integers(0, 3 * n))
        u, v, w = rng.integers(0, n, m), rng.integers(0, n, m), rng.integers(0, 9, m).astype(float)
        matrix = np.full((n, n), np.inf)
        np.minimum.at(matrix, (u, v), w)
        rows, columns = np.nonzero(np.isfinite(matrix) & ~np.eye(n, dtype=bool))
        expected = dijkstra(coo_array((matrix[rows, columns], (rows, columns)), shape=(n, n)).tocsr(), indices=0)
        found = host_graph.from_first(n, u, v, w, looked_at)
        if looked_at > 40:
            assert found.tolist() == expected.tolist()
        else:  # where SciPy goes on, it adds up parallel arcs
            assert (found >= expected).all() and (np.isfinite(found) == np.isfinite(expected)).all()


def test_a_road_is_searched_without_loading_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("scipy.sparse", "scipy.sparse.csgraph"):
        monkeypatch.setitem(sys.modules, name, None)
    n = 2000
    ends = np.arange(n - 1)
    assert host_graph.from_first(n, ends, ends + 1, np.full(n - 1, 3.0)).tolist() == (3.0 * np.arange(n)).tolist()
