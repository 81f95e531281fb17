"""`solve` with CUDA kernels: in Numba's simulator, in a process of its own, as numba chooses it when it is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fwtui
from fwtui.errors import NoGpu, Refused
from fwtui.solving import device
from kernels import registry

ROOT = Path(__file__).resolve().parents[2]

SIMULATED = """
import sys
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import NegativeCycleError, shortest_path
from fwtui.graphs.objects import accept
from fwtui.measure.host_engine import HostEngine
from fwtui.solving import device, launching, paths
from fwtui.solving.solver import answer
from kernels.cuda_program import CudaProgram
from kernels.device import SIM, cuda
from kernels.plan import Target
from kernels.predecessors import BLOCK, device_bytes
assert SIM
launching.THREADS = 4
engine = HostEngine(Target("simulator"), cuda.stream())
rng = np.random.default_rng(4)
CudaProgram._pad = lambda *given: sys.exit("there was a second, padded copy on the host")
on_the_host = paths.Paths.predecessors
found = []
paths.Paths.predecessors = lambda self: found.append(self.adjacency.n) or on_the_host(self)
for n, low, kernel, scale in (
    (5, 0, "auto", 1), (9, 0, "katz-kider", 1), (9, -2, "staged-load", 1), (9, -1, "naive", 1), (1, 1, "naive", 1),
    *((n, 0, "naive", 1e-5 * np.pi) for n in (7, 9, 13)),  # rounded
    (13, 0, "naive", 0),  # and with weights that are nothing beside others
):
    matrix = np.where(rng.random((n, n)) < 0.5, rng.integers(max(low, 0), 30, (n, n)) * scale, np.inf)
    if scale == 0:
        matrix = np.where(matrix < np.inf, 10.0 ** rng.uniform(-8, 0, (n, n)), np.inf).astype(np.float32).astype(float)
    lift = rng.integers(0, 20, n) * (low < 0)
    matrix += lift[:, None] - lift[None, :]
    np.fill_diagonal(matrix, 0)
    told = []
    result = answer(accept(matrix), kernel=kernel, predecessors=True, engine=engine, tell=told.append)
    present = np.isfinite(matrix)
    explicit = csr_array((matrix[present], np.nonzero(present)), shape=(n, n))  # which keeps edges of weight 0
    expected, before = shortest_path(explicit, return_predecessors=True, method="FW")
    near = 1e-5 * (scale != 1)
    assert np.allclose(result.distances, expected, near, 0) and ((result.predecessors >= 0) == (before >= 0)).all()
    for i, j in zip(*np.nonzero(result.predecessors >= 0)):
        path = result.path(i, j)
        assert path[0] == i and path[-1] == j
        assert np.isclose(sum(matrix[u, v] for u, v in zip(path, path[1:])), expected[i, j], near, 0)
    stats = result.stats
    assert stats.device == "simulator" and (kernel == "auto" or stats.kernel == kernel)
    dtype = "float32" if scale != 1 else "int32" if low < 0 else "int16"
    assert stats.dtype == dtype and {"compile", "copy in", "kernels"} <= set(stats.seconds)
    assert told and told == sorted(told)
assert found == [9], "the kernel with its own order of tiles alone"
# arcs of length 0 are listed one by one, where there is room
n = 12
zeros = np.ma.array(np.zeros((n, n)))
arcs = 4 * n * (n - 1)
for free, sources in ((arcs, 128), (arcs - 1, None)):
    engine.free_bytes = lambda: device.SPARE + device_bytes(n, BLOCK) + free
    found.clear()
    result = answer(accept(zeros), kernel="naive", predecessors=True, engine=engine)
    assert found == ([] if sources else [n]), found
    assert ((result.predecessors >= 0) == ~np.eye(n, dtype=bool)).all()
del engine.free_bytes
try:
    answer(accept(np.array([[0, 1.0], [-2, 0]])), engine=engine)
except NegativeCycleError as error:
    print("cycle", error)
"""


# as above, for arrays that are on the device; the file's own module global `cuda` is what the simulator swaps
RESIDENT = """
import sys
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import NegativeCycleError, shortest_path
from fwtui.errors import Refused
from fwtui.measure.host_engine import HostEngine
from fwtui.solving import launching, resident
from kernels import registry
from kernels.device import cuda
from kernels.plan import Target
launching.THREADS = 4
engine = HostEngine(Target("simulator"), cuda.stream())

def ask(matrix, dtype=None, kernel=None):
    return resident.answer(cuda.to_device(matrix), dtype, registry()[kernel] if kernel else None, engine, True)

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
from fwtui.solving import paths
matrix = np.where(rng.random((9, 9)) < 0.5, rng.random((9, 9)), np.inf)
np.fill_diagonal(matrix, 0)
expected = shortest_path(csr_array(np.where(np.isfinite(matrix), matrix, 0)), method="FW")
whole, mend, asked = resident.on_device, paths.Paths.by_dijkstra, []

def spoilt(search, *given):
    found = whole(search, *given)
    for source in (2, 7):
        found[source] = -5
    search.unfound = lambda: np.array([2, 7])
    return found

resident.on_device = spoilt
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
resident.on_device, paths.Paths.predecessors, paths.Paths.by_dijkstra = whole, every, mend
far = ask(chain)
assert far.distances.copy_to_host()[0, 4] == 4 * (2**24 + 1) and far.stats.dtype == "int32"
# what is no edge on the diagonal says that a zero is one
none = ask(np.where(np.eye(3) > 0, np.inf, 0.0))
assert none.stats.edges == 6 and (none.distances.copy_to_host() == 0).all()
try:
    ask(np.array([[0, 1.0], [-2, 0]]))
except NegativeCycleError as error:
    print(error)
for matrix, dtype in ((np.ones((2, 3)), None), (np.zeros((2, 2)), None), (np.array([[0, -np.inf], [1, 0]]), None),
                      (chain, "int16"), (np.where(chain < np.inf, 9000, np.inf), "int16"), (chain, "int8"), (chain > 0, None), (chain.astype(">f8"), None)):
    try:
        ask(matrix, dtype)
    except Refused as refusal:
        print(refusal)
"""


class OnDevice:
    """As much of an array as is looked at first."""

    __cuda_array_interface__: dict[str, object] = {}


def test_arrays_on_the_device_stay_there() -> None:
    said = simulated(RESIDENT).splitlines()
    for line, words in zip(
        said,
        (
            "the graph has a negative cycle",
            "of shape (2, 3) is no graph",
            "zeros off the diagonal may mean",
            "-inf is no weight",
            "leaves no room in int16",
            "nothing proves that they do",
            "dtype 'int8' is not one",
            "weights of type bool are no numbers",
            "weights of type >f8 are no numbers that a GPU has",
        ),
        strict=True,
    ):
        assert words in line


def test_what_arrays_on_the_device_cannot_have() -> None:
    with pytest.raises(Refused, match="runs on the host and the array is on a GPU"):
        fwtui.solve(OnDevice(), kernel="serial")


def test_arrays_on_the_device_need_no_length(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(index: int) -> None:
        raise RuntimeError("no driver")

    monkeypatch.setattr(device, "_cuda_engine", none)
    with pytest.raises(NoGpu, match="GPU 0 cannot be used"):
        fwtui.solve(OnDevice())


def test_an_array_is_looked_at_on_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba.cuda")
    told: list[str] = []

    class Engine:
        def activate(self) -> None:
            told.append("this GPU, whichever was the last one")

    monkeypatch.setattr(device, "engine_for", lambda *given, **named: Engine())
    monkeypatch.setattr("numba.cuda.as_cuda_array", lambda array: told.append("array"))
    monkeypatch.setattr("fwtui.solving.resident.answer", lambda *given: told.append("answer"))
    fwtui.solve(OnDevice(), device=1)
    assert told == ["this GPU, whichever was the last one", "array", "answer"]


def test_cuda_kernels_answer_too() -> None:
    assert "the graph has a negative cycle" in simulated(SIMULATED)


def simulated(code: str) -> str:
    """What the program says that runs with the simulator."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class TestChoice:
    def test_no_gpu_is_no_reason_to_fail_unless_one_is_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def none(index: int) -> None:
            raise RuntimeError("no driver\nin many lines")

        monkeypatch.setattr(device, "_cuda_engine", none)
        monkeypatch.setattr("fwtui.hardware.driver_present", lambda: True)
        assert device.engine_for(None, 5000, needed=False) is None
        assert device.engine_for("cpu", 5000, needed=False) is None
        for asked, needed in ((0, False), ("1", False), (None, True)):
            with pytest.raises(NoGpu, match=r"cannot be used \(no driver\); run `fwtui doctor`"):
                device.engine_for(asked, 5, needed)
        with pytest.raises(Refused, match="'cpu' is not the one"):
            device.engine_for("cpu", 5, needed=True)

    def test_small_graphs_stay_here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(device, "_cuda_engine", lambda index: pytest.fail("it was started"))
        monkeypatch.setattr("fwtui.hardware.driver_present", lambda: True)
        assert device.engine_for(None, device.WORTH - 1, needed=False) is None
        monkeypatch.setattr("fwtui.hardware.driver_present", lambda: False)
        assert device.engine_for(None, device.WORTH, needed=False) is None

    def test_every_type_has_a_kernel(self) -> None:
        from fwtui.measure.host_engine import HostEngine
        from kernels.plan import Target

        engine = HostEngine(Target("cuda", (9, 0), multiprocessors=132))
        for dtype in ("int16", "int32", "float32"):
            for n in (1, 500, 5000, 50000):
                kernel, shape = device.suited(None, n, dtype, True, engine)
                assert dtype in kernel.dtypes and kernel.refuses(shape) is None
        naive = registry()["naive"]
        assert device.suited(naive, 50, "int32", True, engine)[0] is naive

    def test_refusals_of_the_library(self) -> None:
        import numpy as np

        with pytest.raises(Refused, match="'fastest one' is not the one for it"):
            fwtui.solve(np.ones((2, 2)), device="fastest one")


@pytest.mark.skipif(os.environ.get("NUMBA_ENABLE_CUDASIM") == "1", reason="the simulator compiles nothing")
def test_what_runs_beside_the_kernels_compiles_for_real_gpus() -> None:
    pytest.importorskip("numba.cuda")
    from numba import float32, float64, int16, int32, int64, uint32

    from fwtui.solving import arc_cells, cells

    do, list_of = cells.functions(), arc_cells.functions()
    found, words = float64[::1], (int16, int32, float32)
    cases = []
    for given in (float64[:, ::1], float32[::1, :], int64[:, :]):
        cases += [(function, (given, int32, found)) for function in (do.survey, do.outward, do.inward)]
    cases += [(do.enter, (float64[:, ::1], to[:, ::1], int32, float64)) for to in words]
    for vertex, weight in ((int32[::1], float32[::1]), (int64[::1], float64[::1])):
        arcs = (vertex, vertex, weight)
        cases += [
            (list_of.survey, (*arcs, int32, found)),
            (list_of.relax, (*arcs, found)),
            (list_of.rows_of, (vertex, int32, int32[::1])),
        ]
        cases += [
            (function, (*arcs, to[:, ::1]))
            for function, to in ((list_of.lower, int32), (list_of.lower, float32), (list_of.lower_pairs, int32))
        ]
    for raw in words:
        cases += [(list_of.clear, (raw[:, ::1], float64)), (do.diagonal, (raw[:, ::1], int32, found))]
        cases += [(do.leave, (raw[:, ::1], to[:, ::1], int32, int32, float64)) for to in (float32, float64)]
        cases.append((do.look, (raw[:, ::1], int32, float64, found)))
        cases.append((do.reached, (raw[:, ::1], int32, float64, uint32[:, ::1])))
    cases.append((do.escaped, (float64[:, ::1], int32, uint32[:, ::1], found)))
    cases.append((list_of.escaped, (int32[::1], int32[::1], float64[::1], uint32[:, ::1], found)))
    for function, signature in cases:
        code, _ = cells.cuda.compile(function.py_func, signature, cc=(9, 0), device=False, abi="numba", output="ltoir")
        assert code
