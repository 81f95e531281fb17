"""A kernel in one file: `auto` and `solve` choose it, and `solve` uses only the protocol of its program."""

import numpy as np
import pytest
from in_simulator import in_simulator
from path_checks import by_scipy
from plain_kernel import plain
from test_solve import least, random_arcs

from fwtui import solve
from fwtui.experiment.experiment import Experiment
from fwtui.machine.device_choice import settle_here
from fwtui_kernels import registry
from fwtui_kernels.plan import Shape, Target


@pytest.fixture
def ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a kernel that is preferred to all others on a CPU."""
    more = {**registry(), "plain": plain("cpu", 1000)}
    own = ".solver.kernel_choice", ".solver.call", ".experiment.user_kernel_registry", ".machine.device_choice"
    for module in ("_kernels", "_kernels.auto", *own):
        monkeypatch.setattr(f"fwtui{module}.registry", lambda: more, raising=False)


def test_auto_and_solve_pick_it(ladder: None) -> None:
    assert settle_here(Experiment(kernel="auto", n=600)).kernel == "plain"
    n = 300
    rng = np.random.default_rng(1)
    matrix = np.where(rng.random((n, n)) < 0.05, rng.integers(1, 9, (n, n)), np.inf)
    np.fill_diagonal(matrix, 0)
    import numba  # noqa: F401  where it is there, no graph of this size is left to NumPy

    result = solve(matrix, device="cpu", predecessors=True)
    assert result.stats.kernel == "plain" and (result.distances == by_scipy(matrix)).all()


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32", "float64"])
def test_the_least_that_a_program_offers_is_enough(ladder: None, dtype: str) -> None:
    for seed in range(5):
        matrix = least(*random_arcs("directed", seed))
        result = solve(matrix, kernel="plain", dtype=dtype, predecessors=True)
        assert result.stats.kernel == "plain" and (result.distances == by_scipy(matrix)).all()


@pytest.mark.parametrize(("name", "order"), [("serial", 0), ("tiled-cpu", 0), ("tiled-cpu", 1)])
def test_filled_cells_come_back(name: str, order: int) -> None:
    """Without a step, fill() and result() agree with load() and unload() in any order of cells."""
    matrix = np.arange(36, dtype=np.float32).reshape(6, 6)
    np.fill_diagonal(matrix, 0)
    tile, options = (16, (("cores", 1), ("order", order), ("vector", 1))) if name == "tiled-cpu" else (1, ())
    program = registry()[name].build(Shape(6, tile, options=options), Target("cpu"))
    buffers = program.allocate()

    def write(to: np.ndarray) -> None:
        to[...] = np.inf
        np.fill_diagonal(to, 0)
        to[:6, :6] = matrix

    program.fill(write, buffers, None)
    assert (program.result(buffers, None)[:6, :6] == matrix).all()
    assert (program.unload(buffers, None) == matrix).all()


ON_A_DEVICE = """
from plain_kernel import plain
from simulated_solver import *

kernel = plain("cuda", 1000)
matrix = np.array([[0, 3, 9.0], [np.inf, 0, 2], [1, np.inf, 0]])
kernel_choice.registry = call.registry = lambda: {"plain": kernel}
for given in (matrix, np.ma.masked_invalid(matrix)):
    told = driver.answer(graph_of(given), Call(kernel="plain", predecessors=True), engine)
    assert told.distances.tolist() == [[0, 3, 5], [3, 0, 2], [1, 4, 0]] and told.path(0, 2) == [0, 1, 2]
there = answer(cuda.to_device(matrix), Call(kernel="plain", predecessors=True), engine)
assert there.distances.copy_to_host().tolist() == told.distances.tolist() and there.path(0, 2) == [0, 1, 2]
assert (there.predecessors.copy_to_host() == told.predecessors).all()
"""


def test_the_least_that_a_program_offers_is_enough_on_a_gpu() -> None:
    in_simulator(ON_A_DEVICE)
