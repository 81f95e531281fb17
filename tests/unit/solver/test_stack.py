"""`solve` of stacks of small graphs against SciPy, graph by graph; also with CUDA kernels, simulated and compiled."""

import subprocess
import sys
from typing import Any, cast

import networkx
import numba  # noqa: F401 where it is loaded, no stack is too small for compiled code
import numpy as np
import pytest
from in_simulator import in_simulator
from path_checks import by_scipy, check_paths
from pretending import Pretend
from scipy.sparse import csr_array
from scipy.sparse.csgraph import NegativeCycleError

from fwtui import Refused, solve
from fwtui.engine.engine import Engine
from fwtui.solver import stack
from fwtui.solver.call import Call


def random_graph(rng: np.random.Generator, n: int, scale: float = 1, low: int = 1) -> np.ndarray:
    """Sparse, with potentials on every second size: negative weights, and no negative cycle."""
    matrix = np.where(rng.random((n, n)) < 3 / n, rng.integers(low, 40, (n, n)) * scale, np.inf)
    if n % 2 and scale != 0.1:
        lift = rng.integers(0, 30, n) * scale
        matrix += np.subtract.outer(lift, lift)
    np.fill_diagonal(matrix, 0)
    return matrix


def check(given: Any, matrices: list[np.ndarray], dtype: str, engine: Engine | None = None) -> None:
    result, alone = (cast("Any", stack.solve_stack(given, Call(predecessors=paths), engine)) for paths in (True, False))
    assert (result.stats.dtype, result.stats.graphs) == (dtype, len(matrices))
    assert result.stats.kernel == ("stacked" if engine else stack.HOST.id)
    assert result.stats.relaxations == sum(len(m) ** 3 for m in matrices)
    assert result.stats.edges == sum(np.isfinite(m).sum() - len(m) for m in matrices)
    for number, matrix in enumerate(matrices):
        distances, expected = result.distances[number], by_scipy(matrix)
        assert (alone.distances[number] == distances).all()
        if result.stats.exact:
            assert (distances == expected).all()
        else:
            assert np.allclose(distances, expected, rtol=1e-6)
        check_paths(matrix, distances, result.predecessors[number], apart=1e-4 * (not result.stats.exact))
        far = int(np.where(np.isfinite(expected[0]), expected[0], -1).argmax())
        for some in (result, alone):
            path = some.path(number, 0, far)
            assert path[0] == 0 and path[-1] == far


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("scale", "low", "even", "dtype"),
    [
        *((1, 1, False, "int32"), (0.1, 1, True, "float32")),
        *(pytest.param(*more, marks=SLOW) for more in ((1, 0, True, "int16"), (0.25, 1, False, "float32"))),
    ],
)
def test_all_sizes_and_types(scale: float, low: int, even: bool, dtype: str) -> None:
    rng = np.random.default_rng(7)
    sizes = [20] * 30 if even else [1, 2, 7, 8, 64, 3, 130, 33, *range(1, 20)]
    matrices = [random_graph(rng, n, scale, low) for n in sizes]
    check(np.array(matrices) if even else matrices, matrices, dtype)


def test_a_list_may_mix_kinds_of_graphs() -> None:
    rng = np.random.default_rng(3)
    matrices = [random_graph(rng, n) for n in (6, 9, 4, 4)]
    sparse, masked = (csr_array(np.where(np.isfinite(m), m, 0)) for m in matrices[:1]), np.ma.masked_invalid(matrices[1])
    graph = networkx.from_numpy_array(np.where(np.isfinite(matrices[2]), matrices[2], 0), create_using=networkx.DiGraph)
    check([*sparse, masked, graph, matrices[3].tolist()], matrices, "int32")


def test_long_distances_are_float64_and_no_room_is_refused(pretend: Pretend) -> None:
    path = np.full((2, 5, 5), np.inf)
    path[1, np.arange(4), np.arange(1, 5)] = 2.0**24 + 1
    result = solve(path)
    assert result.stats.dtype == "int32" and result.distances.dtype == np.float64
    assert result.distances[1, 0, 4] == 4 * (2**24 + 1) and result.distances[0, 0, 4] == np.inf
    pretend.free_memory(stack.KEPT_FREE + 8 * path.size - 1)
    with pytest.raises(Refused, match=r"from 2\^24 on need 64 bits, 400 B more"):
        solve(path)
    pretend.limits(stack, KEPT_FREE=1 << 60)
    with pytest.raises(Refused, match=r"distances and predecessors of 2 graphs in int16 need 200 B .* fewer graphs at a time"):
        solve([np.ones((4, 4)), np.ones((2, 2))], predecessors=True)


def test_what_cannot_be_proved_or_is_large_is_solved_alone() -> None:
    rng = np.random.default_rng(5)
    matrices = [random_graph(rng, n) for n in (12, stack.MOST + 4, 6, stack.MOST + 1)]
    result: Any = solve(matrices, predecessors=True)
    assert result.stats.kernel.startswith(f"{stack.HOST.id}, ") and result.stats.graphs == 4
    for matrix, distances, before in zip(matrices, result.distances, result.predecessors, strict=True):
        assert (distances == by_scipy(matrix)).all()
        check_paths(matrix, distances, before)
    named: Any = solve(np.array([matrices[0]] * 2), kernel="serial")
    assert named.stats.kernel == "serial" and (named.distances[1] == by_scipy(matrices[0])).all()
    assert named.predecessors is None
    # each edge takes half of the room: only a search shows that no path has two
    far = np.full((3, 3, 3), np.inf)
    far[:, 0, 1:] = 2.0**29
    assert solve(far).stats.dtype == "int32" and not solve(far).stats.kernel.startswith(stack.HOST.id)
    with pytest.raises(Refused, match="graph 0: some distances are beyond what int16 can hold"):
        solve(np.array([[[0, 9000, np.inf], [np.inf, 0, 9000], [np.inf, np.inf, 0]]]), dtype="int16")


@pytest.fixture(params=[False, True], ids=["compiled", "quick"])
def by_either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack, "_is_quick", lambda stack: request.param)


def test_a_negative_cycle_names_its_graph() -> None:
    cycle = np.array([[0, 1, np.inf], [np.inf, 0, -3], [1, np.inf, 0.0]])
    good = np.abs(cycle)
    for given in ([good, good, cycle], np.array([good, good, cycle])):
        with pytest.raises(NegativeCycleError, match=r"^graph 2 has a negative cycle: (\d) -> \d -> \d -> \1$"):
            solve(given)
        with pytest.raises(NegativeCycleError, match=r"^graph 2 has a negative cycle: "):
            solve(given, kernel="numpy")
    rounded = np.array([[0, 0.1, np.inf], [np.inf, 0, 0.7], [-0.8, np.inf, 0]])
    result: Any = solve([good, rounded], predecessors=True)
    assert (result.distances[1].diagonal() == 0).all() and result.path(1, 0, 2) == [0, 1, 2]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.zeros((2, 3, 4)), r"shape \(2, 3, 4\) is not a stack of graphs"),
        (np.zeros((0, 3, 3)), "holds no graph"),
        (np.ones((2, 3, 3), bool), "True and False are not weights"),
        ([np.eye(3), np.zeros((2, 3))], r"graph 1: an array of shape \(2, 3\) is not a graph"),
        ([np.full((2, 2), np.inf), np.zeros((2, 2))], "zeros off the diagonal of graph 1 may mean"),
        ([np.ones((2, 2)), np.full((2, 2), -np.inf)], "-inf is not a weight, and graph 1 has it"),
    ],
)
def test_what_is_no_stack_is_refused(by_either_way: None, given: Any, words: str) -> None:
    with pytest.raises(Refused, match=words):
        solve(given)


def test_where_a_stack_says_what_no_edge_is_zeros_are_edges(by_either_way: None) -> None:
    given = np.array([[[0, 0.0], [0, 0]], [[0, np.inf], [5, 0]]])
    assert (solve(given).distances[0] == 0).all()
    assert (solve(list(np.ma.array(given))).distances[0] == 0).all()


def test_rounding_that_hides_a_path_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    from fwtui_kernels.compiled import cpu_stacks

    close = cpu_stacks.close_all_with_predecessors.py_func

    def spoilt(begin: int, end: int, first: Any, sizes: Any, cells: Any, before: Any, no_edge: Any) -> None:
        close(begin, end, first, sizes, cells, before, no_edge)
        if end:
            before[first[1] + 1], before[first[1] + 2] = 2, 1  # 0 -> 2 -> 1 -> 2 -> ...

    spoilt.overloads = {}  # type: ignore[attr-defined]
    monkeypatch.setattr(cpu_stacks, "close_all_with_predecessors", spoilt)
    matrices = [random_graph(np.random.default_rng(1), 4, 0.1), np.array([[0, 0.1, np.inf], [np.inf, 0, 0.3], [np.inf, 0.7, 0]])]
    result: Any = solve(matrices, predecessors=True)
    check_paths(matrices[1], result.distances[1], result.predecessors[1], apart=1e-6)


def test_small_stacks_do_without_compiled_code() -> None:
    program = """
import sys
import numpy as np
from fwtui import solve
result = solve(np.full((3, 4, 4), 7.0), predecessors=True)
assert result.distances[2, 0, 3] == 7 and result.path(2, 0, 3) == [0, 3] and result.stats.graphs == 3
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


SIMULATED = """
from simulated_solver import *
from test_stack import check, random_graph
from fwtui.solver.stack import solve_stack

for scale, low, sizes, dtype in (
    (1, 0, [20, 20], "int16"), (1, 1, [1, 7, 20, 8], "int32"), (0.25, 1, [7, 8], "float32"), (0.1, 1, [8, 8], "float32")
):
    matrices = [random_graph(rng, n, scale, low) for n in sizes]
    check(np.array(matrices) if len(set(sizes)) == 1 else matrices, matrices, dtype, engine=engine)
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
    cycle, room = in_simulator(SIMULATED).splitlines()
    assert cycle.startswith("graph 1 has a negative cycle: ")
    assert room == "the stack needs 36 B and 1.00 MiB of device memory are free; give fewer graphs at a time, or device cpu"


# the largest block has the fewest registers; test_off_gpu.py compiles it without predecessors
@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "tile"), [("int32", 128), ("float32", 128), ("int16", 64), ("int32", 32)])
def test_it_compiles_without_spills(dtype: str, tile: int) -> None:
    from compiled_off_gpu import compiled
    from numba import from_dtype, int32, int64

    from fwtui_kernels.parts import stacks

    function = stacks.closing_with_predecessors(dtype, tile)
    signature = (from_dtype(np.dtype(dtype))[::1], int32[::1], int64[::1], int32[::1], int32[::1])  # type: ignore[index]
    got = compiled(function.py_func, signature, (9, 0), function.targetoptions["launch_bounds"])
    most = 24 if (dtype, tile) == ("float32", 128) else 0  # two registers, where 1024 threads have 64 each
    assert max(got.stack, got.spills) <= most
    assert got.registers * (tile // 4) ** 2 <= 65536
