"""`solve` of stacks with CUDA kernels: in Numba's simulator, and compiled for GPUs that are not here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from in_simulator import in_simulator

SIMULATED = """
import numpy as np
from scipy.sparse.csgraph import NegativeCycleError
from test_solve import by_scipy, check_paths
from test_stack import random_graph
from fwtui.common.errors import Refused
from fwtui.engine.engine import HostEngine
from fwtui.solver.stack import solve_stack
from fwtui_kernels.compiled.device import cuda
from fwtui_kernels.plan import Target

engine = HostEngine(Target("simulator"), cuda.stream())
rng = np.random.default_rng(2)
for scale, low, sizes, dtype in (
    (1, 0, [20, 20], "int16"), (1, 1, [1, 7, 20, 8], "int32"), (0.25, 1, [7, 8], "float32"), (0.1, 1, [8, 8], "float32")
):
    matrices = [random_graph(rng, n, scale, low) for n in sizes]
    given = np.array(matrices) if len(set(sizes)) == 1 else matrices
    result = solve_stack(given, predecessors=True, engine=engine)
    alone = solve_stack(given, engine=engine)
    assert (result.stats.dtype, result.stats.kernel, result.stats.device) == (dtype, "stacked", "simulator"), result.stats
    assert set(result.stats.seconds) >= {"prepare", "copy in", "kernels", "copy out", "paths"}
    for number, matrix in enumerate(matrices):
        distances, expected = result.distances[number], by_scipy(matrix)
        assert (alone.distances[number] == distances).all()
        assert np.allclose(distances, expected, rtol=1e-6) if scale == 0.1 else (distances == expected).all(), (scale, number)
        check_paths(matrix, distances, result.predecessors[number], 1e-4 if scale == 0.1 else 0)
cycle = np.array([[0, 1, np.inf], [np.inf, 0, -3], [1, np.inf, 0.0]])
try:
    solve_stack([np.abs(cycle), cycle], engine=engine)
except NegativeCycleError as error:
    print(error)
engine.free_bytes = lambda: 1 << 20
try:
    solve_stack([cycle], engine=engine)
except Refused as refusal:
    print(refusal)
"""


def test_a_block_for_each_graph_finds_what_scipy_finds() -> None:
    cycle, room = in_simulator(f"import sys\nsys.path.insert(0, 'tests/unit/solver')\n{SIMULATED}").splitlines()
    assert cycle.startswith("graph 1 has a negative cycle: ")
    assert room == "the stack needs 36 B and 1.00 MiB of device memory are free; give fewer graphs at a time, or device cpu"


# the largest block has the fewest registers; the others are made of the same lines
@pytest.mark.parametrize("predecessors", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("tile", [pytest.param(32, marks=pytest.mark.slow), pytest.param(64, marks=pytest.mark.slow), 128])
@pytest.mark.parametrize(
    "dtype", ["int32", pytest.param("float32", marks=pytest.mark.slow), pytest.param("int16", marks=pytest.mark.slow)]
)
@pytest.mark.slow
@pytest.mark.parametrize("cc", [(8, 0), (9, 0)], ids=str)
def test_it_compiles_without_spills(dtype: str, tile: int, predecessors: bool, cc: tuple[int, int]) -> None:
    pytest.importorskip("cuda.core", reason="the CUDA compiler wheels are not installed")
    pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    from compiled_off_gpu import compiled
    from numba import from_dtype
    from numba.core import types

    from fwtui_kernels.parts import stacks

    index, place = types.int32[::1], types.int64[::1]
    kind: Any = from_dtype(np.dtype(dtype))
    function = (stacks.closing_with_predecessors if predecessors else stacks.closing)(dtype, tile)
    signature = (kind[::1], *[index] * predecessors, place, index, index)
    got = compiled(function.py_func, signature, cc, function.targetoptions["launch_bounds"])
    most = 8 if (dtype, tile) == ("float32", 128) else 0  # one register in four k, where 1024 threads have 64 each
    assert max(got.stack, got.spills) <= most
    assert got.registers * (tile // 4) ** 2 <= 65536
