"""Stacks of small graphs on a real GPU against SciPy; the last test prints what they take."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from path_checks import by_scipy, check_paths, random_matrix
from scipy.sparse.csgraph import NegativeCycleError

from fwtui.solver import picking, stack_driver
from fwtui.solver.solve import answer_stack

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def engine() -> Any:
    return picking.engine_for(0, 0, needed=True)


@pytest.mark.parametrize(
    ("scale", "negative", "dtype"),
    [(1, False, "int16"), (5000, False, "int32"), (1, True, "int32"), (0.25, False, "float32"), (0.1, False, "float32")],
    ids=["int16", "int32", "negative", "quarters", "real"],
)
@pytest.mark.parametrize("density", [0.05, 0.5])
def test_all_sizes_and_types(scale: float, negative: bool, dtype: str, density: float, engine: Any) -> None:
    matrices = [random_matrix(n, n, density, negative, scale) for n in range(1, 129)]
    given = [np.ma.array(matrix) for matrix in matrices]  # masked nowhere: zeros are edges, also where there is one everywhere
    result: Any = answer_stack(given, predecessors=True, engine=engine)
    alone: Any = answer_stack(given, engine=engine)
    assert (result.stats.dtype, result.stats.kernel, result.stats.device) == (dtype, stack_driver.GPU, "cuda")
    near = 0 if result.stats.exact else 1e-6
    assert result.stats.exact == (scale != 0.1)
    for matrix, distances, before, again in zip(matrices, result.distances, result.predecessors, alone.distances, strict=True):
        assert (distances == again).all() and np.allclose(distances, by_scipy(matrix), rtol=near, atol=0), len(matrix)
        check_paths(matrix, distances, before, np.arange(len(matrix)), 4 * near)


def test_negative_cycles_and_large_graphs(engine: Any) -> None:
    cycle = np.array([[0, 1, np.inf], [np.inf, 0, -3], [1, np.inf, 0.0]])
    with pytest.raises(NegativeCycleError, match="graph 1 has a negative cycle"):
        answer_stack([np.abs(cycle), cycle], engine=engine)
    matrices = [random_matrix(n, n) for n in (100, 200, 128, 130)]
    result: Any = answer_stack(matrices, engine=engine)
    assert all((d == by_scipy(m)).all() for d, m in zip(result.distances, matrices, strict=True))


@pytest.mark.parametrize("n", [16, 32, 64, 128])
@pytest.mark.parametrize("dtype", ["int32", "int16", "float32"])
@pytest.mark.parametrize("predecessors", [False, True])
def test_ten_thousand_graphs(n: int, dtype: str, predecessors: bool, engine: Any, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(n)
    weights = rng.integers(1, 101, (10_000, n, n), dtype=np.int32)
    weights[:, np.arange(n), np.arange(n)] = 0
    best: dict[str, float] = {}
    result: Any = None
    for _ in range(3):
        begin = time.perf_counter()
        result = answer_stack(weights, dtype=dtype, predecessors=predecessors, engine=engine)
        told = {**result.stats.seconds, "everything": time.perf_counter() - begin}
        best = {stage: min(seconds, best.get(stage, np.inf)) for stage, seconds in told.items()}
    on_cpu: Any = answer_stack(weights, dtype=dtype, predecessors=predecessors, engine=picking.CPU)
    assert (result.stats.kernel, on_cpu.stats.kernel) == (stack_driver.GPU, stack_driver.HOST)
    assert (result.distances == on_cpu.distances).all()
    if predecessors:
        assert (result.predecessors == on_cpu.predecessors).all()
    for number in rng.integers(0, len(weights), 100).tolist():
        assert (result.distances[number] == by_scipy(weights[number].astype(float))).all()
    with capsys.disabled():
        spent = ", ".join(f"{stage} {1000 * seconds:.2f} ms" for stage, seconds in best.items() if seconds > 5e-6)
        print(f"\n10,000 graphs, n = {n}, {dtype}{', predecessors' * predecessors}: {spent}")
        told = on_cpu.stats.seconds
        print(f"    on the CPU: kernels {1000 * told['kernels']:.0f} ms of {1000 * on_cpu.stats.total:.0f} ms")
