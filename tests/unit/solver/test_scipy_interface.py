"""SciPy's own tests, run on `fwtui.shortest_path` (random graphs: tests/attack/test_arrays.py)."""

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pretending import Pretend
from scipy.sparse import csgraph
from scipy.sparse.csgraph.tests import test_shortest_path as theirs

from fwtui import shortest_path
from fwtui.solver import costs, paths, scipy_interface


@pytest.fixture(autouse=True)
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theirs, "shortest_path", shortest_path)
    # of two equal paths the compiled search, once numba is loaded, picks another one than theirs
    monkeypatch.setattr(paths, "sys", SimpleNamespace(modules={}))


globals().update(
    {name: one for name, one in vars(theirs).items() if name.startswith("test_") and "shortest_path(" in inspect.getsource(one)}
)


@pytest.mark.parametrize(
    ("weight", "method", "indices", "by_scipy"),
    [
        *((3, "auto", None, False), (2**40 + 1, "auto", None, False), (2**53 + 2, "auto", None, True), (3, "auto", [0], True)),
        *((3, "FW", None, False), (0.25, "FW", None, False), (2**29, "FW", None, False), (0.1, "FW", None, True)),
        (3, "D", None, True),
    ],
)
def test_scipy_or_fwtui_answers(
    weight: float, method: str, indices: list[int] | None, by_scipy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    original = csgraph.shortest_path
    monkeypatch.setattr(scipy_interface.scipys, "shortest_path", lambda *given: asked.append(1) or original(*given))
    assert shortest_path(np.array([[0, weight], [0, 0]]), method, indices=indices).flat[1] == weight
    assert bool(asked) == by_scipy


@pytest.mark.parametrize("indices", [(7, 299, 7, *range(40)), np.int64(5)], ids=["many", "one"])
def test_some_rows_are_those_of_scipy(indices: Any, monkeypatch: pytest.MonkeyPatch, pretend: Pretend) -> None:
    graph = np.random.default_rng(4).integers(1, 99, (300, 300))
    expected = csgraph.shortest_path(graph, indices=indices, return_predecessors=True)
    if np.ndim(indices) == 0:
        pretend.limits(costs, SECONDS_PER_STEP=1.0)  # only a GPU is sooner than one search
    monkeypatch.setattr(scipy_interface.scipys, "shortest_path", None)
    distances, before = shortest_path(graph, indices=indices, return_predecessors=True)
    np.testing.assert_array_equal(distances, expected[0])
    assert before.shape == expected[1].shape


def test_overwriting_works_as_in_scipy() -> None:
    graph = np.array([[0.0, 1, 9], [0, 0, 2], [0, 0, 0]])
    found = shortest_path(graph, "FW", overwrite=True)
    assert found is graph and graph[0, 2] == 3
    kept = np.array([[0.0, 1], [0, 0]], dtype=np.float32)
    assert shortest_path(kept, "FW", overwrite=True) is not kept and kept[1, 0] == 0


@pytest.mark.parametrize("weight", [1e-7, 1e-8, -1e-9, 1e-12])
@pytest.mark.parametrize("unweighted", [False, True])
def test_weights_near_0_are_edges_if_scipy_counts_them(weight: float, unweighted: bool) -> None:
    matrix = np.array([[0, weight, 0], [0, 0, 2], [3, 0, 0]])
    expected = csgraph.shortest_path(matrix, unweighted=unweighted)
    assert shortest_path(matrix, unweighted=unweighted).tolist() == expected.tolist()
