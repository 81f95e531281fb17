"""Stacks of small graphs on a real GPU against SciPy, by `solve` and as runs; a few compiled variants that show the most.

Without -m slow: the three widths of a block, each number type once, with predecessors and without, and negative weights.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from path_checks import by_scipy, check_paths, random_matrix
from scipy.sparse.csgraph import NegativeCycleError

from fwtui.experiment.experiment import Experiment, settle
from fwtui.measure.runner import Runner
from fwtui.solver import choose, stack
from fwtui.solver.stack import solve_stack
from fwtui.stream.model import Model
from fwtui.stream.run import Run

pytestmark = pytest.mark.gpu
SIZES = (1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 128)  # around the widths of a block
SLOW = pytest.mark.slow


@pytest.fixture(scope="module")
def engine() -> Any:
    return choose.engine_for(0, 0, needed=True)


def checked(sizes: range | tuple[int, ...], scale: float, negative: bool, dtype: str, density: float, engine: Any) -> None:
    matrices = [random_matrix(n, n, density, negative, scale) for n in sizes]
    given = [np.ma.array(matrix) for matrix in matrices]  # masked nowhere: zeros are edges, also where there is one everywhere
    result: Any = solve_stack(given, predecessors=True, engine=engine)
    assert (result.stats.dtype, result.stats.kernel, result.stats.device) == (dtype, stack.GPU.id, "cuda")
    near = 0 if result.stats.exact else 1e-6
    assert result.stats.exact == (scale != 0.1)
    for matrix, distances, before in zip(matrices, result.distances, result.predecessors, strict=True):
        assert np.allclose(distances, by_scipy(matrix), rtol=near, atol=0), len(matrix)
        check_paths(matrix, distances, before, np.arange(len(matrix)), 4 * near)


def test_all_widths_with_predecessors(engine: Any) -> None:
    """Three variants: int32 in blocks of 32, 64 and 128."""
    checked(SIZES, 1, True, "int32", 0.3, engine)


@pytest.mark.parametrize(("scale", "dtype"), [(1, "int16"), (0.25, "float32")], ids=["int16", "quarters"])
def test_other_types_with_predecessors(scale: float, dtype: str, engine: Any) -> None:
    """One variant each, in blocks of 64."""
    checked((33, 50, 64), scale, False, dtype, 0.3, engine)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scale", "negative", "dtype"),
    [(1, False, "int16"), (5000, False, "int32"), (1, True, "int32"), (0.25, False, "float32"), (0.1, False, "float32")],
    ids=["int16", "int32", "negative", "quarters", "real"],
)
@pytest.mark.parametrize("density", [0.05, 0.5])
def test_all_sizes_and_types(scale: float, negative: bool, dtype: str, density: float, engine: Any) -> None:
    checked(range(1, 129), scale, negative, dtype, density, engine)


def test_negative_cycles_and_large_graphs(engine: Any) -> None:
    """The variant of runs without predecessors, in blocks of 128 and 32; and one graph after the other."""
    cycle = np.array([[0, 1, np.inf], [np.inf, 0, -3], [1, np.inf, 0.0]])
    with pytest.raises(NegativeCycleError, match="graph 1 has a negative cycle"):
        solve_stack([np.abs(cycle), cycle], dtype="float32", engine=engine)
    matrices = [random_matrix(n, n) for n in (100, 200, 128, 130)]
    result: Any = solve_stack(matrices, dtype="float32", engine=engine)
    assert all((d == by_scipy(m)).all() for d, m in zip(result.distances, matrices, strict=True))


@pytest.mark.parametrize(
    ("n", "graphs", "dtype"),
    [
        (64, 10_000, "float32"),
        (128, 2000, "float32"),
        (16, 10_000, "float32"),
        pytest.param(128, 2000, "int32", marks=SLOW),
        pytest.param(64, 10_000, "int16", marks=SLOW),
    ],
)
def test_runs_of_many_graphs(n: int, graphs: int, dtype: str, engine: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The rung, captured as a graph: verified, with its occupancy; one variant for each width."""
    model = Model()
    begin = time.monotonic()
    runner = Runner(model.apply, lambda: time.monotonic() - begin)
    asked = settle(Experiment(kernel="stacked", n=n, graphs=graphs, dtype=dtype, repeats=20))
    runner.run(1, asked, engine, lambda: None)
    run: Run = model.runs[1]
    assert run.verified and run.relaxations == graphs * n**3, run.verdict or run.done
    (found,) = run.occupancies
    assert found.threads == {16: 64, 64: 256, 128: 1024}[n] and found.blocks >= 1 and found.spill_bytes <= 8
    with capsys.disabled():
        from fwtui.analysis.stack import in_words

        print("\n" + "; ".join(in_words(run)))


@pytest.mark.slow
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
        result = solve_stack(weights, dtype=dtype, predecessors=predecessors, engine=engine)
        told = {**result.stats.seconds, "everything": time.perf_counter() - begin}
        best = {stage: min(seconds, best.get(stage, np.inf)) for stage, seconds in told.items()}
    on_cpu: Any = solve_stack(weights, dtype=dtype, predecessors=predecessors, engine=choose.CPU)
    assert (result.stats.kernel, on_cpu.stats.kernel) == (stack.GPU.id, stack.HOST.id)
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
