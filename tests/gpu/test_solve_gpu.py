"""`solve` on a GPU: against SciPy, with arrays that are there already, and under a cap of its memory. Run: pytest -m gpu."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from fwtui import solve
from fwtui.graphs.adjacency import Adjacency, Weights
from fwtui.graphs.objects import accept
from fwtui.graphs.vertices import Vertices
from fwtui.solving import device
from fwtui.solving.paths import Paths
from fwtui.solving.solver import answer

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def engine() -> Any:
    return device._cuda_engine(0)


def random_matrix(n: int, seed: int, density: float = 0.3, negative: bool = False, scale: float = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    matrix = np.where(rng.random((n, n)) < density, rng.integers(0, 60, (n, n)) * scale, np.inf)
    lift = rng.integers(0, 40, n) * negative
    matrix += lift[:, None] - lift[None, :]
    np.fill_diagonal(matrix, 0)
    return matrix


def by_scipy(matrix: np.ndarray) -> np.ndarray:
    present = np.isfinite(matrix)
    graph = csr_array((matrix[present], np.nonzero(present)), shape=matrix.shape)
    return shortest_path(graph, method="FW" if (matrix[present] < 0).any() else "D")


def test_five_hundred_random_graphs(engine: Any) -> None:
    rng = np.random.default_rng(1)
    for seed in range(500):
        n = int(rng.integers(1, 200))
        density = float(rng.choice([0.01, 0.1, 0.5]))
        matrix = random_matrix(n, seed, density, negative=seed % 4 == 0, scale=float(rng.choice([1, 200, 0.25])))
        result = answer(accept(matrix), engine=engine, predecessors=seed % 10 == 0)
        assert (result.distances == by_scipy(matrix)).all(), seed
        assert result.stats.device == "cuda" and result.stats.exact


def test_arrays_on_the_gpu(engine: Any) -> None:
    from numba import cuda

    for seed, negative in ((1, False), (2, True)):
        matrix = random_matrix(1000, seed, negative=negative)
        for given in (matrix, matrix.astype(np.float32), np.asfortranarray(matrix)):
            result = solve(cuda.to_device(given))
            assert hasattr(result.distances, "__cuda_array_interface__")
            assert (result.distances.copy_to_host() == by_scipy(matrix)).all()


def test_large_ones_by_themselves() -> None:
    result = solve(random_matrix(2100, 3))
    assert result.stats.device == "cuda" and (result.distances == by_scipy(random_matrix(2100, 3))).all()


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32"])
def test_under_a_cap_of_memory(engine: Any, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = random_matrix(3000, 5)
    monkeypatch.setattr(engine, "free_bytes", lambda: device.SPARE + (8 << 20))
    result = answer(accept(matrix), dtype=dtype, engine=engine)
    assert result.stats.kernel == "out-of-core" and (result.distances == by_scipy(matrix)).all()


def check_paths(matrix: np.ndarray, distances: np.ndarray, before: np.ndarray, sources: np.ndarray) -> None:
    """Every path from those sources ends and is as long as its distance, and there is one wherever there is a distance."""
    for i in sources:
        row, found = distances[i].astype(float), np.nonzero(before[i] >= 0)[0]
        expected = np.isfinite(row)
        expected[i] = False
        assert (np.nonzero(expected)[0] == found).all() and (before[i][~expected] == -9999).all(), i
        last = before[i][found]
        assert (row[last] + matrix[last, found] == row[found]).all(), i
        above = np.arange(len(row))
        above[found] = last
        for _ in range(len(row).bit_length()):
            above = above[above]
        assert (above[found] == i).all(), i


@pytest.fixture
def on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Paths, "predecessors", lambda *given: pytest.fail("they were found on the host"))


def test_all_paths_of_random_graphs(engine: Any, on_the_gpu: None) -> None:
    """Zero-weight edges, ties, negative weights, every type; sizes around those of blocks."""
    rng = np.random.default_rng(2)
    for seed, n in enumerate((1, 2, 127, 128, 129, 300, 511, 640, 700, 1000, *rng.integers(2, 400, 50).tolist())):
        density = float(rng.choice([2 / n, 0.1, 0.5, 1]))
        low, high, scale = ((0, 3, 1), (0, 60, 1), (1, 2000, 100), (0, 9, 0.25))[seed % 4]
        matrix = np.where(rng.random((n, n)) < density, rng.integers(low, high, (n, n)) * scale, np.inf)
        lift = rng.integers(0, 40, n) * (seed % 3 == 0)
        matrix += lift[:, None] - lift[None, :]
        np.fill_diagonal(matrix, 0)
        # masked nowhere: zeros are edges, also where there is one everywhere
        result = answer(accept(np.ma.array(matrix)), engine=engine, predecessors=True)
        assert result.predecessors is not None
        check_paths(matrix, result.distances, result.predecessors, np.arange(n))


@pytest.mark.parametrize("scale", [1, 5000, 0.25], ids=["int16", "int32", "float32"])
@pytest.mark.parametrize("high", [3, 200])
def test_paths_of_arrays_on_the_gpu_stay_there(scale: float, high: int, on_the_gpu: None) -> None:
    from numba import cuda

    rng = np.random.default_rng(high)
    n = 3001
    matrix = np.where(rng.random((n, n)) < 0.3, rng.integers(0, high, (n, n)) * scale, np.inf)
    np.fill_diagonal(matrix, 0)
    result = solve(cuda.to_device(matrix), predecessors=True)
    assert result.predecessors is not None and hasattr(result.predecessors, "__cuda_array_interface__")
    check_paths(matrix, result.distances.copy_to_host(), result.predecessors.copy_to_host(), rng.integers(0, n, 100))
    path = result.path(0, n - 1)
    assert path[0] == 0 and path[-1] == n - 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "high", "times"),
    [("int32", 100, 1), ("int32", 100, 1000), ("int32", 1000, 1), ("float32", 100, 256), ("int16", 100, 1), ("int16", 100, 20)],
)
def test_what_paths_cost(dtype: str, high: int, times: int, capsys: pytest.CaptureFixture[str]) -> None:
    """n = 16384, dense, weights from 1 up to `high` times a factor, which decides whether two searches share a word.

    Printed: seconds for distances and for predecessors, and their ratio.
    """
    n = 16384
    weights = np.random.default_rng(1).integers(1, high + 1, (n, n)).astype(np.int32) * np.int32(times)
    np.fill_diagonal(weights, 0)
    spent: dict[str, float] = {}
    result: Any = None
    for _ in range(2):  # the first one compiles
        result = None
        result = solve(weights, predecessors=True, dtype=dtype)
        spent = dict(result.stats.seconds)
    with capsys.disabled():
        ratio = 1 + spent["paths"] / spent["kernels"]
        stages = ", ".join(f"{name} {seconds:.3f}" for name, seconds in spent.items())
        print(f"\n{dtype} 1..{high} x {times} {result.stats.kernel}: {stages}; with predecessors {ratio:.2f} times")
    rows = np.random.default_rng(2).integers(0, n, 20)
    check_paths(weights, result.distances, result.predecessors, rows)


@pytest.mark.parametrize("density", [0.01, 1])
def test_paths_of_rounded_weights(density: float, on_the_gpu: None) -> None:
    from numba import cuda

    rng = np.random.default_rng(4)
    n = 2500
    matrix = np.where(rng.random((n, n)) < density, (1 - rng.random((n, n))) ** 3, np.inf).astype(np.float32)
    np.fill_diagonal(matrix, 0)
    result = solve(cuda.to_device(matrix), predecessors=True)
    assert not result.stats.exact and result.predecessors is not None
    distances, before = result.distances.copy_to_host().astype(float), result.predecessors.copy_to_host()
    for i in rng.integers(0, n, 100):
        found = np.nonzero(before[i] >= 0)[0]
        assert len(found) == np.isfinite(distances[i]).sum() - 1
        last = before[i][found]
        assert np.allclose(distances[i][last] + matrix[last, found], distances[i][found], 2e-6, 0)
        above = np.arange(n)
        above[found] = last
        for _ in range(n.bit_length()):
            above = above[above]
        assert (above[found] == i).all()


@pytest.mark.slow
def test_what_paths_of_rounded_weights_cost(capsys: pytest.CaptureFixture[str]) -> None:
    """n = 16384, dense, real weights; printed: seconds for distances and for predecessors, and their ratio."""
    from numba import cuda

    weights = cuda.to_device(1 - np.random.default_rng(1).random((16384, 16384), np.float32))
    result: Any = None
    for _ in range(2):  # the first one compiles
        result = None
        result = solve(weights, predecessors=True)
    spent = result.stats.seconds
    with capsys.disabled():
        stages = ", ".join(f"{name} {seconds:.3f}" for name, seconds in spent.items())
        print(f"\nrounded {result.stats.kernel}: {stages}; with predecessors {1 + spent['paths'] / spent['kernels']:.2f} times")


@pytest.mark.slow
@pytest.mark.parametrize(("n", "cap"), [(32768, 3 << 30), (98304, 16 << 30)])
def test_what_streaming_costs(
    engine: Any, n: int, cap: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """int32 with so many bytes of device memory against in core; printed: seconds of each stage."""
    # as many different rows as fill a block, each turned differently: random numbers alone would take minutes
    some = np.random.default_rng(1).integers(1, 1000, (1024, n), dtype=np.int32)
    matrix = np.empty((n, n), np.int32)
    for i in range(n):
        matrix[i] = np.roll(some[i % 1024], 7 * i)
    graph = Adjacency(n, Vertices(range(n)), dense=matrix)
    # nor is the matrix looked through for what is known of it
    graph.__dict__["weights"] = Weights(n * (n - 1), 1.0, 999.0, True, True)
    first_rows = []
    for free in (None, cap):
        if free is not None:
            monkeypatch.setattr(engine, "free_bytes", lambda: cap)
        begin = time.perf_counter()
        solved = device.run(graph, "int32", None, engine, lambda share: None)
        with capsys.disabled():
            stages = ", ".join(f"{name} {seconds:.2f}" for name, seconds in solved.seconds.items())
            print(f"\nn = {n} {solved.kernel} (tile {solved.tile}): {stages}; in all {time.perf_counter() - begin:.1f}")
        assert (solved.kernel == "out-of-core") == (free is not None)
        first_rows.append(solved.raw[:: n // 16].copy())
        del solved
    assert (first_rows[0] == first_rows[1]).all()
