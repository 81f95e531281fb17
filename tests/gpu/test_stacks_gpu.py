"""Stacks of small graphs on a real GPU against SciPy, by `solve` and as runs; a few compiled variants that show the most:

the three widths of a block, each number type once, with predecessors and without, and negative weights.
"""

from typing import Any

import numpy as np
import pytest
from path_checks import by_scipy, check_paths, random_matrix
from scipy.sparse.csgraph import NegativeCycleError
from small_runs import ran

from fwtui.experiment.experiment import Experiment
from fwtui.solver import choose, stack
from fwtui.solver.call import Call
from fwtui.solver.stack import solve_stack

pytestmark = pytest.mark.gpu
SIZES = (1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 128)  # around the widths of a block


@pytest.fixture(scope="module")
def engine() -> Any:
    return choose.choose_engine(0, 0, needed_by="a test")


def checked(sizes: range | tuple[int, ...], scale: float, negative: bool, dtype: str, density: float, engine: Any) -> None:
    matrices = [random_matrix(n, n, density, negative, scale) for n in sizes]
    given = [np.ma.array(matrix) for matrix in matrices]  # masked nowhere: zeros are edges, also where there is one everywhere
    result: Any = solve_stack(given, Call(predecessors=True), engine)
    assert (result.stats.dtype, result.stats.kernel, result.stats.device) == (dtype, stack.GPU.id, "cuda")
    near = 0 if result.stats.exact else 1e-6
    assert result.stats.exact == (scale != 0.1)
    for matrix, distances, before in zip(matrices, result.distances, result.predecessors, strict=True):
        assert np.allclose(distances, by_scipy(matrix), rtol=near, atol=0), len(matrix)
        check_paths(matrix, distances, before, near=4 * near)


def test_all_widths_with_predecessors(engine: Any) -> None:
    """Three variants: int32 in blocks of 32, 64 and 128."""
    checked(SIZES, 1, True, "int32", 0.3, engine)


@pytest.mark.parametrize(("scale", "dtype"), [(1, "int16"), (0.25, "float32")], ids=["int16", "quarters"])
def test_other_types_with_predecessors(scale: float, dtype: str, engine: Any) -> None:
    """One variant each, in blocks of 64."""
    checked((33, 50, 64), scale, False, dtype, 0.3, engine)


def test_negative_cycles_and_large_graphs(engine: Any) -> None:
    """The variant of runs without predecessors, in blocks of 128 and 32; and one graph after the other."""
    cycle = np.array([[0, 1, np.inf], [np.inf, 0, -3], [1, np.inf, 0.0]])
    with pytest.raises(NegativeCycleError, match="graph 1 has a negative cycle"):
        solve_stack([np.abs(cycle), cycle], Call(dtype="float32"), engine)
    matrices = [random_matrix(n, n) for n in (100, 200, 128, 130)]
    result: Any = solve_stack(matrices, Call(dtype="float32"), engine)
    assert all((d == by_scipy(m)).all() for d, m in zip(result.distances, matrices, strict=True))


@pytest.mark.parametrize(
    ("n", "graphs", "dtype"),
    [(64, 10_000, "float32"), (128, 2000, "float32"), (16, 10_000, "float32"), (128, 2000, "int32"), (64, 10_000, "int16")],
)
def test_runs_of_many_graphs(n: int, graphs: int, dtype: str, engine: Any) -> None:
    """The rung, captured as a graph: verified, with its occupancy; one variant for each width."""
    run = ran(engine, Experiment(kernel="stacked", n=n, graphs=graphs, dtype=dtype, repeats=20)).runs[1]
    assert run.verified and run.relaxations == graphs * n**3, run.verdict or run.done
    (found,) = run.occupancies
    assert found.threads == {16: 64, 64: 256, 128: 1024}[n] and found.blocks >= 1 and found.spill_bytes <= 8
