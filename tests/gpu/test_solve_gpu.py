"""`solve` on a GPU: against SciPy, with arrays that are there already, and under a cap of its memory. Run: pytest -m gpu."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from fwtui import solve
from fwtui.graphs.objects import accept
from fwtui.solving import device
from fwtui.solving.solver import answer
from kernels import registry

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


@pytest.mark.slow
def test_what_streaming_costs(engine: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """n = 98304 int32 with 16 GiB of device memory against in core; both times are printed."""
    n = 98304
    matrix = np.random.default_rng(1).integers(1, 1000, (n, n), dtype=np.int32)
    seconds, first_rows = [], []
    for cap in (None, 16 << 30):
        if cap is not None:
            monkeypatch.setattr(engine, "free_bytes", lambda: 16 << 30)
        begin = time.perf_counter()
        result = answer(accept(matrix), dtype="int32", engine=engine)
        seconds.append((result.stats.kernel, result.stats.seconds["kernels"], time.perf_counter() - begin))
        first_rows.append(result.distances[0].copy())
        del result
    with capsys.disabled():
        print(seconds)
    assert (first_rows[0] == first_rows[1]).all()
    assert seconds[1][0] == "out-of-core" and seconds[0][0] in registry()
