"""`solve` of arrays that are on a GPU: in Numba's simulator, and what is said before anything is launched."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from in_simulator import in_simulator
from pretending import Pretend

import fwtui
from fwtui.common.errors import NoGpu, Refused
from fwtui.solver import choose

# the file's own module global `cuda` is what the simulator swaps
RESIDENT = """
import sys
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import NegativeCycleError, shortest_path
from fwtui.common.errors import Refused
from fwtui.engine.engine import HostEngine
from fwtui.solver import device_graph, device_predecessors, driver, launching
from fwtui_kernels import registry
from fwtui_kernels.compiled.device import cuda
from fwtui_kernels.plan import Target
engine = HostEngine(Target("simulator"), cuda.stream())

def ask(matrix, dtype=None, kernel=None):
    clock = launching.Clock()
    graph = device_graph.of_device_array(cuda.to_device(matrix), engine)
    return driver.run(graph, registry()[kernel] if kernel else None, dtype, True, clock)

rng = np.random.default_rng(4)
chain = np.full((5, 5), np.inf)
chain[np.arange(4), np.arange(1, 5)] = 2.0**24 + 1
for kernel, low, scale, dtype, back in (
    (None, 1, 1, "int16", "float32"),
    ("katz-kider", 1, 1000, "int32", "float32"),
    ("staged-load", -2, 1, "int32", "float32"),
    ("naive-vector", 1, 0.25, "float32", "float32"),
    ("naive", 1, 0.1, "float32", "float32"),
):
    matrix = np.where(rng.random((7, 7)) < 0.5, rng.integers(1, 30, (7, 7)) * scale, np.inf)
    lift = rng.integers(0, 20, 7) * (low < 0)
    matrix += lift[:, None] - lift[None, :]
    matrix[0, 1] = np.nan
    np.fill_diagonal(matrix, 0)
    result = ask(matrix, kernel=kernel if kernel in registry() else None)
    got = result.distances.copy_to_host()
    present = np.isfinite(matrix)
    expected = shortest_path(csr_array((matrix[present], np.nonzero(present)), shape=(7, 7)), method="FW")
    assert (np.allclose(got, expected, rtol=1e-6) if scale == 0.1 else (got == expected).all()), kernel
    assert (result.stats.dtype, got.dtype.name, result.stats.exact) == (dtype, back, scale != 0.1)
    assert result.stats.edges == np.isfinite(matrix).sum() - 7
    before = result.predecessors.copy_to_host()
    assert ((before >= 0) == (np.isfinite(expected) & (np.arange(7) != np.arange(7)[:, None]))).all()
    for i, j in zip(*np.nonzero(before >= 0)):
        path = result.path(i, j)
        assert path[0] == i and path[-1] == j
        assert np.isclose(sum(matrix[u, v] for u, v in zip(path, path[1:])), expected[i, j], rtol=1e-6 * (scale == 0.1), atol=0)
# where rounding hides the paths of two sources, the host searches for those alone
from fwtui.solver import paths
matrix = np.where(rng.random((9, 9)) < 0.5, rng.random((9, 9)), np.inf)
np.fill_diagonal(matrix, 0)
expected = shortest_path(csr_array(np.where(np.isfinite(matrix), matrix, 0)), method="FW")
whole, mend, asked = device_predecessors.found_by, paths.Paths.by_dijkstra, []

def spoilt(search, *given):
    found = whole(search, *given)
    for source in (2, 7):
        found[source] = -5
    search.unfound = lambda: np.array([2, 7])
    return found

device_predecessors.found_by = spoilt
every = paths.Paths.predecessors
paths.Paths.predecessors = lambda *given: sys.exit("all paths were found again")
paths.Paths.by_dijkstra = lambda self, sources: asked.extend(sources.tolist()) or mend(self, sources)
for given in (matrix, np.asfortranarray(matrix), matrix.astype(np.float32)):
    result = ask(given, kernel="naive")
    before = result.predecessors.copy_to_host()
    assert hasattr(result.predecessors, "copy_to_host") and asked == [2, 7], asked
    assert ((before >= 0) == (np.isfinite(expected) & (np.arange(9) != np.arange(9)[:, None]))).all()
    for i, j in zip(*np.nonzero(before >= 0)):
        path = result.path(i, j)
        assert path[0] == i and np.isclose(sum(matrix[u, v] for u, v in zip(path, path[1:])), expected[i, j], rtol=1e-6, atol=0)
    asked.clear()
device_predecessors.found_by, paths.Paths.predecessors, paths.Paths.by_dijkstra = whole, every, mend
far = ask(chain)
assert far.distances.copy_to_host()[0, 4] == 4 * (2**24 + 1) and far.stats.dtype == "int32"
# its own graph kernels are compiled once, like the kernels; here each takes a thousand seconds
launch = launching.launch

def slowly(*given):
    launching.Clock.compiling += 1000
    launch(*given)

launching.launch = slowly
result = ask(chain)
launching.launch = launch
told = result.stats.seconds
assert set(told) == {"compile", "allocate", "prepare", "kernels", "copy out", "paths"}, told
assert told["compile"] > 4000 and result.stats.total < told["compile"] + 1000, told
# what is no edge on the diagonal says that a zero is one
none = ask(np.where(np.eye(3) > 0, np.inf, 0.0))
assert none.stats.edges == 6 and (none.distances.copy_to_host() == 0).all()
# a cycle of weight 0 whose sum is rounded to less
back = np.array([[0, 0.1, np.inf], [np.inf, 0, 0.7], [-0.8, np.inf, 0]])
assert (ask(back, kernel="naive").distances.copy_to_host().diagonal() == 0).all()
back[2, 0] = -0.80001
loop = np.array([[0, 1], [1, -0.1]])
for matrix in (np.array([[0, 1.0], [-2, 0]]), np.array([[0, -1.3], [0.2, 0]]), np.asfortranarray(back), loop):
    try:
        ask(matrix, kernel="naive")
    except NegativeCycleError as error:
        print(error)
for matrix, dtype in ((np.ones((2, 3)), None), (np.ones((4, 3, 3)), None),
                      (np.zeros((2, 2)), None), (np.array([[0, -np.inf], [1, 0]]), None),
                      (chain, "int16"), (np.where(chain < np.inf, 9000, np.inf), "int16"), (chain, "int8"), (chain > 0, None),
                      (chain.astype(">f8"), None)):
    try:
        ask(matrix, dtype)
    except Refused as refusal:
        print(refusal)
"""


class OnDevice:
    """As much of an array as is looked at first."""

    __cuda_array_interface__: dict[str, object] = {}


def test_arrays_on_the_device_stay_there() -> None:
    said = in_simulator(RESIDENT).splitlines()
    for line, words in zip(
        said,
        (
            "the graph has a negative cycle: 1 -> 0 -> 1",
            "the graph has a negative cycle: 1 -> 0 -> 1",
            "the graph has a negative cycle: 1 -> 2 -> 0 -> 1",
            "the graph has a negative cycle: 1 -> 1",
            "of shape (2, 3) is not a graph",
            "a stack of shape (4, 3, 3) is solved from host memory only",
            "zeros off the diagonal may mean",
            "-inf is not a weight",
            "leaves no room in int16",
            "this cannot be proved",
            "dtype 'int8' is not one",
            "weights of type bool are not numbers",
            "weights of type >f8 are not numbers that a GPU has",
        ),
        strict=True,
    ):
        assert words in line


def test_arrays_on_the_device_have_no_length_and_no_cpu_kernel(pretend: Pretend) -> None:
    with pytest.raises(Refused, match="runs on the host and the array is on a GPU"):
        fwtui.solve(OnDevice(), kernel="serial")

    def none(index: int) -> None:
        raise RuntimeError("no driver")

    pretend.driver(True, none)
    with pytest.raises(NoGpu, match="GPU 0 cannot be used"):
        fwtui.solve(OnDevice())


def test_an_array_is_looked_at_on_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba.cuda")
    told: list[str] = []

    class Engine:
        elsewhere, target = False, SimpleNamespace(backend="cuda")

        def activate(self) -> None:
            told.append("this GPU, whichever was the last one")

    monkeypatch.setattr(choose, "engine_for", lambda *given, **named: Engine())
    monkeypatch.setattr("fwtui_kernels.compiled.device.cuda.as_cuda_array", lambda array: told.append("array"))
    monkeypatch.setattr("fwtui.solver.device_graph.of_device_array", lambda *given: None)
    monkeypatch.setattr("fwtui.solver.driver.run", lambda *given: told.append("answer"))
    fwtui.solve(OnDevice(), device=1)
    assert told == ["this GPU, whichever was the last one", "array", "answer"]
