"""A kernel of one file is picked by auto and by solve, and solve asks nothing of its program that the protocol does not name."""

from __future__ import annotations

import numpy as np
import pytest
from in_simulator import in_simulator
from plain_kernel import plain
from test_solve import by_scipy, least, random_arcs

from fwtui import solve
from fwtui.experiment.experiment import Experiment
from fwtui.machine.auto import settle_here
from fwtui_kernels import registry
from fwtui_kernels.plan import Shape, Target


@pytest.fixture
def ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels, with one more that is preferred to all others on a CPU."""
    more = {**registry(), "plain": plain("cpu", 1000)}
    for module in (
        "fwtui_kernels",
        "fwtui_kernels.auto",
        "fwtui.solver.choose",
        "fwtui.experiment.own_kernels",
        "fwtui.machine.auto",
    ):
        monkeypatch.setattr(f"{module}.registry", lambda: more, raising=False)
    monkeypatch.setattr("fwtui.machine.tuned.load", lambda *given: ())


def test_auto_and_solve_pick_it(ladder: None) -> None:
    assert settle_here(Experiment(kernel="auto", n=600)).kernel == "plain"
    n = 300
    rng = np.random.default_rng(1)
    matrix = np.where(rng.random((n, n)) < 0.05, rng.integers(1, 9, (n, n)), np.inf)
    np.fill_diagonal(matrix, 0)
    import numba  # noqa: F401  where it is there, no graph of this size is left to NumPy

    result = solve(matrix, device="cpu", predecessors=True)
    assert result.stats.kernel == "plain" and (result.distances == by_scipy(matrix)).all()


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32"])
def test_the_least_that_a_program_offers_is_enough(ladder: None, dtype: str) -> None:
    for seed in range(5):
        matrix = least(*random_arcs("directed", seed))
        result = solve(matrix, kernel="plain", dtype=dtype, predecessors=True)
        assert result.stats.kernel == "plain" and (result.distances == by_scipy(matrix)).all()


@pytest.mark.parametrize("name", ["serial", "scipy", "tiled-cpu"])
def test_what_is_filled_in_comes_out(name: str) -> None:
    """Without a step between them fill() and result() agree with load() and unload(), in any order of cells."""
    kernel = registry()[name]
    matrix = np.arange(36, dtype=np.float32).reshape(6, 6)
    np.fill_diagonal(matrix, 0)
    for order in (0, 1) if name == "tiled-cpu" else (0,):
        options = (("cores", 1), ("order", order), ("vector", 1)) if name == "tiled-cpu" else ()
        program = kernel.build(Shape(6, 16 if name == "tiled-cpu" else 1, options=options), Target("cpu"))
        buffers = program.allocate()

        def write(to: np.ndarray) -> None:
            to[...] = np.inf
            np.fill_diagonal(to, 0)
            to[:6, :6] = matrix

        program.fill(write, buffers, None)
        if name == "scipy":
            for step in kernel.plan(program.shape, False):
                program.launch(step, buffers, None)
        expected = by_scipy(matrix) if name == "scipy" else matrix
        assert (program.result(buffers, None)[:6, :6] == expected).all()
        assert (program.unload(buffers, None) == expected).all()


ON_A_DEVICE = """
import numpy as np
from plain_kernel import plain
from fwtui.engine.engine import HostEngine
from fwtui.graphs.library_objects import graph_of
from fwtui.solver import device_graph, driver, choose
from fwtui_kernels.compiled.device import cuda
from fwtui_kernels.plan import Target

engine = HostEngine(Target("simulator"), cuda.stream())
kernel = plain("cuda", 1000)
matrix = np.array([[0, 3, 9.0], [np.inf, 0, 2], [1, np.inf, 0]])
choose.registry = lambda: {"plain": kernel}
for given in (matrix, np.ma.masked_invalid(matrix)):
    told = driver.answer(graph_of(given), kernel="plain", engine=engine, predecessors=True)
    assert told.distances.tolist() == [[0, 3, 5], [3, 0, 2], [1, 4, 0]] and told.path(0, 2) == [0, 1, 2]
there = driver.run(device_graph.of_device_array(cuda.to_device(matrix), engine), kernel, None, True)
assert there.distances.copy_to_host().tolist() == told.distances.tolist() and there.path(0, 2) == [0, 1, 2]
assert (there.predecessors.copy_to_host() == told.predecessors).all()
"""


def test_so_it_is_on_a_gpu() -> None:
    in_simulator(ON_A_DEVICE)
