"""`solve` against SciPy's Johnson: 300 random graphs of every kind, number type and sign, by each way of solving."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from random_graphs import random_graph
from test_solve import check_paths

from fwtui import solve


@pytest.mark.parametrize(
    "numbers", [range(25), *(pytest.param(range(k, k + 55), marks=pytest.mark.slow) for k in range(25, 300, 55))], ids=str
)
def test_any_graph_by_any_way(numbers: range) -> None:
    for number in numbers:
        graph, expected = random_graph(number)
        n = len(expected)
        kernel = ("auto", "tiled-cpu", "sparse-cpu" if find_spec("pymetis") else "serial")[number % 7 % 3]
        found = solve(graph, kernel=kernel, predecessors=number % 4 == 0)
        assert np.array_equal(found.distances, expected), (number, kernel)
        if found.predecessors is not None:
            matrix = np.full((n, n), np.inf)
            matrix[graph.tocoo().coords] = graph.data
            check_paths(matrix, found.distances, found.predecessors, 0)
        some = np.random.default_rng(number).integers(0, n, 3).tolist()
        assert np.array_equal(solve(graph, sources=some).distances, expected[some]), number
        assert np.array_equal(solve(graph, targets=some).distances, expected[:, some]), number
