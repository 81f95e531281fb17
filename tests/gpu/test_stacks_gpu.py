"""Stacks of small graphs on a real GPU against SciPy; the last test prints what they take."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import NegativeCycleError

from fwtui.solver import picking, stack
from fwtui.solver.solve import answer_stack

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "solver"))
from test_solve import by_scipy, check_paths
from test_stack import random_graph

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def engine() -> Any:
    return picking.engine_for(0, 0, needed=True)


@pytest.mark.parametrize(
    ("scale", "low", "dtype"),
    [(1, 0, "int16"), (1, 1, "int32"), (0.25, 1, "float32"), (0.1, 1, "float32")],
    ids=["whole", "negative", "quarters", "real"],
)
def test_all_sizes_and_types(scale: float, low: int, dtype: str, engine: Any) -> None:
    rng = np.random.default_rng(11)
    # only odd sizes have negative weights, and only lists without -0 edges may be complete
    sizes = [n for n in range(1, 129) if dtype != "int16" or (n % 2 == 0 and n > 8)]
    matrices = [random_graph(rng, n, scale, low) for n in sizes]
    result: Any = answer_stack(matrices, predecessors=True, engine=engine)
    alone: Any = answer_stack(matrices, engine=engine)
    assert (result.stats.dtype, result.stats.kernel, result.stats.device) == (dtype, "stack", "cuda")
    for number, matrix in enumerate(matrices):
        distances, expected = result.distances[number], by_scipy(matrix)
        assert (alone.distances[number] == distances).all()
        assert np.allclose(distances, expected, rtol=1e-6) if scale == 0.1 else (distances == expected).all(), len(matrix)
        check_paths(matrix, distances, result.predecessors[number], 1e-3 if scale == 0.1 else 0)


def test_negative_cycles_and_large_graphs(engine: Any) -> None:
    cycle = np.array([[0, 1, np.inf], [np.inf, 0, -3], [1, np.inf, 0.0]])
    with pytest.raises(NegativeCycleError, match="graph 1 has a negative cycle"):
        answer_stack([np.abs(cycle), cycle], engine=engine)
    matrices = [random_graph(np.random.default_rng(1), n) for n in (100, 200, 128, 130)]
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
    assert (result.stats.kernel, on_cpu.stats.kernel) == (stack.GPU, stack.HOST)
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
