"""`fwtui.shortest_path` is SciPy's: SciPy's own tests of it, and random graphs of every kind."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import csgraph
from scipy.sparse.csgraph.tests import test_shortest_path as theirs

from fwtui import shortest_path
from fwtui.solver import like_scipy

KINDS = {
    "whole": lambda rng, n: rng.integers(1, 30, (n, n)),
    "small": lambda rng, n: rng.integers(0, 2, (n, n)),
    "quarters": lambda rng, n: rng.integers(1, 300, (n, n)) / 4,
    "real": lambda rng, n: rng.random((n, n)),
    "negative": lambda rng, n: rng.integers(0, 30, (n, n)) - 3 * (rng.random((n, n)) < 0.02),
    "beyond float32": lambda rng, n: rng.integers(2**23, 2**31 - 1, (n, n)),
    "beyond int32": lambda rng, n: rng.integers(1, 2**62, (n, n)),
    "huge": lambda rng, n: rng.random((n, n)) * 1e300,
    "truth values": lambda rng, n: rng.random((n, n)) < 0.5,
    "NaN": lambda rng, n: np.where(rng.random((n, n)) < 0.1, np.nan, 3),
    "infinite": lambda rng, n: np.where(rng.random((n, n)) < 0.1, np.inf, 3),
}


@pytest.fixture(autouse=True)
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theirs, "shortest_path", shortest_path)
    # of two equal paths the compiled search, once it is loaded, picks another one than theirs
    monkeypatch.delitem(sys.modules, "fwtui.solver.cpu_predecessors", raising=False)


globals().update(
    {
        name: test
        for name, test in vars(theirs).items()
        if name.startswith("test_") and "shortest_path(" in inspect.getsource(test)
    }
)


def outcome(function: Callable[..., Any], graph: object, *arguments: object) -> Any:
    try:
        return function(graph, *arguments)
    except (ValueError, csgraph.NegativeCycleError) as error:
        return type(error), str(error) if isinstance(error, ValueError) else ""


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_numbers_types_and_errors(kind: str) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 20))
        present = rng.random((n, n)) < rng.choice([0.1, 0.3, 0.8])
        weights = np.where(present, KINDS[kind](rng, n), 0)
        rows, columns = np.nonzero(present)
        stored = weights[rows, columns], (rows, columns)  # with zeros
        graphs = weights, scipy.sparse.csr_array(stored, shape=(n, n)), scipy.sparse.csc_matrix(stored, shape=(n, n))
        for graph in graphs:
            for method, directed, unweighted in [("auto", True, False), ("FW", False, False), ("FW", True, True)]:
                expected = outcome(csgraph.shortest_path, graph, method, directed, True, unweighted)
                found = outcome(shortest_path, graph, method, directed, True, unweighted)
                if isinstance(expected[0], type):
                    assert found == expected
                    continue
                assert (found[0] == expected[0]).all() and found[0].dtype == np.float64
                assert ((found[1] >= 0) == (expected[1] >= 0)).all() and found[1].dtype == np.int32


@pytest.mark.parametrize(
    ("weight", "method", "indices", "by_scipy"),
    [
        (3, "auto", None, False),
        (3, "FW", None, False),
        (0.25, "FW", None, False),
        (2**29, "FW", None, False),
        (0.1, "FW", None, True),
        (2**40 + 1, "auto", None, True),
        (3, "D", None, True),
        (3, "auto", [0], True),
    ],
)
def test_who_answers(
    weight: float, method: str, indices: list[int] | None, by_scipy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    original = csgraph.shortest_path
    monkeypatch.setattr(like_scipy.scipys, "shortest_path", lambda *given: asked.append(1) or original(*given))
    assert shortest_path(np.array([[0, weight], [0, 0]]), method, indices=indices).flat[1] == weight
    assert bool(asked) == by_scipy


def test_overwriting_is_what_it_is_in_scipy() -> None:
    graph = np.array([[0.0, 1, 9], [0, 0, 2], [0, 0, 0]])
    found = shortest_path(graph, "FW", overwrite=True)
    assert found is graph and graph[0, 2] == 3
    kept = np.array([[0.0, 1], [0, 0]], dtype=np.float32)
    assert shortest_path(kept, "FW", overwrite=True) is not kept and kept[1, 0] == 0
