"""SciPy's own tests, run on `fwtui.shortest_path` (random graphs: tests/attack/test_arrays.py)."""

import inspect
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csgraph
from scipy.sparse.csgraph.tests import test_shortest_path as theirs

from fwtui import shortest_path
from fwtui.solver import paths, scipy_interface


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


@pytest.mark.parametrize("weight", [1e-7, 1e-8, -1e-9, 1e-12])
@pytest.mark.parametrize("unweighted", [False, True])
def test_weights_near_0_are_edges_if_scipy_counts_them(weight: float, unweighted: bool) -> None:
    matrix = np.array([[0, weight, 0], [0, 0, 2], [3, 0, 0]])
    expected = csgraph.shortest_path(matrix, unweighted=unweighted)
    assert shortest_path(matrix, unweighted=unweighted).tolist() == expected.tolist()
