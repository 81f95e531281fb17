"""`solve(sources=)` and sparse graphs: only the requested rows, by the fastest method."""

import warnings
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from path_checks import check_paths
from pretending import Pretend
from scipy.sparse.csgraph import NegativeCycleError, johnson

from fwtui import shortest_path, solve
from fwtui.__main__ import main
from fwtui.common.errors import Failed, Refused
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.generate import generate
from fwtui.graphs.library_objects import graph_of
from fwtui.solver import costs, kernel_choice, method, parallel_dijkstra
from fwtui.solver.costs import MIN_SPARSE, shape_of
from fwtui_kernels import registry
from fwtui_kernels.parts import row_factor
from fwtui_kernels.plan import Target


def matrix(n: int, **asked: Any) -> np.ndarray:
    """Return a generated graph, +inf for no edge."""
    graph = generate(Experiment(n=n, **asked))
    return np.where(graph.matrix == graph.no_edge, np.inf, graph.matrix)


ASKED = [
    *({"kind": "road"}, {"kind": "grid", "negative": 0.3}, {"low": 0, "high": 1}),
    pytest.param({"kind": "power-law", "real": True}, marks=pytest.mark.slow),  # compiles for another type
]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_rows_are_those_of_all_distances_by_either_way(asked: dict[str, Any]) -> None:
    graph, wanted = matrix(150, **asked), [7, 149, 0, 7]
    whole = solve(graph)
    for kernel in ("auto", "scipy"):
        found = solve(graph, sources=wanted, predecessors=True, kernel=kernel)
        assert found.stats.kernel == ("dijkstra" if kernel == "auto" else kernel)
        assert found.rows is not None and found.rows.tolist() == wanted and found.distances.dtype == whole.distances.dtype
        np.testing.assert_array_equal(found.distances, whole.distances[wanted])
        for target in (3, 140):
            path = found.path(149, target)
            length = sum(graph[i, j] for i, j in pairwise(path))
            assert length == whole.distances[149, target] if path else np.isinf(whole.distances[149, target])
        with pytest.raises(IndexError, match="row of vertex 5 is not in this result"):
            found.path(5, 0)


@pytest.mark.parametrize(("sources", "targets"), [(None, [3, 149, 3]), ([7, 0, 9, 140], [3, 5]), ([7, 0], [3, 5, 99])], ids=str)
@pytest.mark.parametrize("asked", [{"kind": "road"}, {"kind": "grid", "negative": 0.3}, {"density": 0.02}], ids=str)
def test_targets_select_columns_of_all_distances(asked: dict[str, Any], sources: list[int] | None, targets: list[int]) -> None:
    graph = matrix(150, **asked)
    graph += 0.01 * np.arange(150)[:, None] - 0.01 * np.arange(150)[None, :]  # a way and its return differ
    whole = solve(graph).distances[sources or slice(None)][:, targets]
    for kernel in ("auto", "scipy"):
        found = solve(graph, sources=sources, targets=targets, kernel=kernel)
        assert found.stats.kernel == ("dijkstra" if kernel == "auto" else kernel)
        np.testing.assert_allclose(found.distances, whole, rtol=1e-5, atol=1e-3)
        assert found.columns is not None and found.columns.tolist() == targets


def test_many_rows_of_a_dense_graph_are_taken_from_all_distances() -> None:
    graph = matrix(300, density=0.9)
    found = solve(graph, sources=range(250))
    assert found.stats.kernel != "dijkstra" and found.stats.reason
    np.testing.assert_array_equal(found.distances, solve(graph).distances[:250])


def test_far_distances_named_kernels_and_graphs_whose_matrix_would_fit_no_memory() -> None:
    far = 2**24 + 1
    line = scipy.sparse.csr_array(([far, 1.0], ([0, 1], [1, 2])), shape=(3, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # rows that are not filled yet are not converted
        assert solve(line, sources=[1, 0]).distances.tolist() == [[np.inf, 0, 1], [0, far, far + 1]]
    found = solve(matrix(40, kind="grid"), sources=[1], kernel="scipy")
    assert (found.stats.kernel, found.stats.reason) == ("scipy", "")
    assert solve(matrix(40, kind="grid"), sources=[1], dtype="int32").stats.dtype == "int32"
    n = 300_000
    ring = scipy.sparse.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    found = solve(ring, sources=[n - 2, 5])
    assert found.distances.shape == (2, n) and found.distances[0, 3] == 5 and found.distances[1, 4] == n - 1
    assert found.distances.dtype == np.float32


@pytest.mark.parametrize("asked", [{"negative": 0.2, "connected": True}, pytest.param({}, marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize("predecessors", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_without_separators_all_cores_search(asked: dict[str, Any], predecessors: bool, pretend: Pretend) -> None:
    pretend.limits(costs, SECONDS_PER_STEP=1e-9, SECONDS_PER_PROCESS=1e-4, MIN_SPARSE=400)
    pretend.limits(method, _PROCESS_STARTS=0.0, MIN_SPARSE=400)
    graph = matrix(400, density=0.05, **asked)
    found = solve(graph, predecessors=predecessors)
    assert found.stats.kernel == "dijkstra" and found.rows is None and "from all vertices" in found.stats.reason
    np.testing.assert_array_equal(found.distances, solve(graph, kernel="scipy").distances)
    path = found.path(5, 300)
    assert sum(graph[i, j] for i, j in pairwise(path)) == found.distances[5, 300]


def test_a_silent_search_process_is_an_error() -> None:
    graph = scipy.sparse.csr_array(np.where(np.isinf(found := matrix(300)), 0, found))
    with pytest.raises(Failed, match="a Dijkstra search process returned nothing for -1 s"):
        list(parallel_dijkstra.run_searches(graph, np.arange(300), False, 2, patience=-1.0))


def test_searches_report_negative_cycles() -> None:
    graph = matrix(50, kind="grid")
    graph[0, 1], graph[1, 0] = -3, 2
    with pytest.raises(NegativeCycleError, match=r"negative cycle: (0 -> 1 -> 0|1 -> 0 -> 1)"):
        solve(scipy.sparse.csr_array(np.where(np.isinf(graph), 0, graph)), sources=[40])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sources": []}, "sources is empty"),
        ({"sources": [0, 9]}, "source 9 is outside 0 to 8; choose"),
        ({"targets": ["1"]}, "'1' is text, but the vertices are numbers, 0 to 8; pass one without quotes"),
        ({"sources": 3}, "sources is not a list of vertices"),
        ({"targets": np.arange(9) == 3}, "targets is not a list of vertices; pass one like"),
        ({"sources": [True, False]}, "sources is not a list of vertices; pass one like"),
        ({"sources": [[0]]}, r"there is no vertex '\[0\]'; the first one is '0', the last '8'"),
        ({"targets": [9]}, "target 9 is outside 0 to 8; choose"),
        ({"targets": [0], "predecessors": True}, "omit targets or predecessors"),
    ],
)
def test_invalid_sources_and_targets_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(Refused, match=says):
        solve(matrix(9, kind="grid"), **options)


def test_the_command_writes_the_rows_of_a_file(towns: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("source\nHamburg\nBerlin\n")
    assert main(["solve", towns, "--sources", str(wanted), "-o", str(tmp_path / "out.csv"), "--paths"]) == 0
    reason = "on so small a graph searches take less than a millisecond"
    assert f"dijkstra, float64, sums in 64 bits; {reason}" in capfd.readouterr().err
    assert (tmp_path / "out.csv").read_text().splitlines()[:3] == [
        "source,target,distance,before",
        "Hamburg,Munich,1005,Cologne",
        "Hamburg,Cologne,430,Hamburg",
    ]
    assert main(["solve", towns, "--sources", str(wanted), "-o", str(tmp_path / "out.npz")]) == 0
    saved = np.load(tmp_path / "out.npz")
    assert saved["vertices"][saved["sources"]].tolist() == ["Hamburg", "Berlin"] and saved["distances"].shape == (2, 4)
    wanted.write_text("target\nHamburg\nBerlin\n")
    for suffix in (".csv", ".npz"):
        out = tmp_path / f"columns{suffix}"
        assert main(["solve", towns, "--targets", str(wanted), "-o", str(out)]) == 0
    assert (tmp_path / "columns.csv").read_text().splitlines() == ["source,target,distance", "Berlin,Hamburg,289"]
    saved = np.load(tmp_path / "columns.npz")
    assert saved["vertices"][saved["targets"]].tolist() == ["Hamburg", "Berlin"] and saved["distances"].shape == (4, 2)
    capfd.readouterr()
    wanted.write_text("Berlin\nHamburg\nBerlin\n")
    assert main(["solve", towns, "--sources", str(wanted), "-o", str(tmp_path / "new.npz")]) == 2
    assert "wanted.txt, line 3: 'Berlin' occurs twice; list each vertex once" in capfd.readouterr().err
    wanted.write_text("Bonn\n")
    assert main(["solve", towns, "--sources", str(wanted), "-o", str(tmp_path / "new.npz")]) == 2
    assert "wanted.txt, line 1: there is no vertex 'Bonn'" in capfd.readouterr().err
    assert main(["solve", towns, "--sources", str(wanted)]) == 2
    assert "--sources needs an output file; pass -o OUT too" in capfd.readouterr().err


@pytest.fixture
def eliminates(pretend: Pretend) -> None:
    """Searches that are estimated to take forever, of graphs that are small enough for a test."""
    pretend.limits(costs, SECONDS_PER_STEP=1.0, MIN_SPARSE=100)


@pytest.mark.usefixtures("eliminates")
@pytest.mark.parametrize(
    ("asked", "dtype"),
    [
        ({"kind": "road"}, None),
        *(
            pytest.param(asked, dtype, marks=pytest.mark.slow)
            for asked in ({"kind": "road"}, {"kind": "grid", "negative": 0.3}, {"kind": "grid", "real": True}, {"density": 0.003})
            for dtype in (None, "int16", "int32", "float32", "float64")
            if dtype != "int16" or not asked.get("negative")
        ),
    ],
    ids=str,
)
def test_rows_and_columns_by_one_elimination(asked: dict[str, Any], dtype: str | None, pretend: Pretend) -> None:
    graph = arcs(700, **asked)  # the last one has many components
    rounds = "real" in asked and not (dtype or "").startswith("int")
    if rounds:
        graph.data *= np.pi
    elif "real" in asked:
        graph.data = np.ceil(graph.data)
    exact = johnson(graph)
    rows, columns = list(range(0, 700, 9)), [699, 3, 3]
    found = solve(graph, sources=rows, dtype=dtype)
    assert found.stats.kernel == "elimination" and found.stats.dtype == (dtype or ("float64" if rounds else "int32"))
    assert "an elimination and 78 sweeps take about" in found.stats.reason and found.stats.exact == (not rounds)
    assert found.rows is not None and found.rows.tolist() == rows
    tolerance = 1e-5 if rounds and dtype == "float32" else 1e-12 * rounds
    compare = partial(np.testing.assert_allclose, rtol=tolerance)
    compare(found.distances, exact[rows])
    compare(solve(graph, targets=columns, dtype=dtype).distances, exact[:, columns])
    compare(solve(graph, sources=rows, targets=columns, dtype=dtype).distances, exact[rows][:, columns])
    assert (found.distances.dtype == np.float64) == (dtype == "float64" or (rounds and dtype is None))
    pretend.limits(row_factor, MAX_ROWS=2)  # the rows need several rounds of all cores
    compare(solve(graph, sources=rows[::-1], dtype=dtype).distances, exact[rows[::-1]])


@pytest.mark.slow
@pytest.mark.usefixtures("eliminates")
def test_an_elimination_widens_types_and_finds_negative_cycles() -> None:
    n = 300
    line = np.arange(n - 1)
    for weight, dtype, kind in ((100_000, "int32", np.float64), (10_000_000, "float64", np.float64), (3, "int32", np.float32)):
        graph = scipy.sparse.csr_array((np.full(n - 1, float(weight)), (line, line + 1)), shape=(n, n))
        found = solve(graph, sources=[1, 0, 298])
        assert (found.stats.kernel, found.stats.dtype, found.distances.dtype) == ("elimination", dtype, kind)
        np.testing.assert_array_equal(found.distances[1], weight * np.arange(n))
        assert found.distances[2].tolist() == [np.inf] * 298 + [0, weight]
    with pytest.raises(Refused, match="some distances overflow int16"):
        solve(scipy.sparse.csr_array((np.full(n - 1, 100.0), (line, line + 1)), shape=(n, n)), sources=[0], dtype="int16")
    for pair, cycle in (((0, 1), r"(0 -> 1 -> 0|1 -> 0 -> 1)"), ((7, 7), "7 -> 7")):
        graph = arcs(150, kind="grid").tolil()
        graph[pair[::-1]], graph[pair] = 2, -3
        with pytest.raises(NegativeCycleError, match=f"negative cycle: {cycle}"):
            solve(graph.tocsr(), sources=[140])


def arcs(n: int, **asked: Any) -> scipy.sparse.csr_array:
    graph = matrix(n, **asked)
    return scipy.sparse.csr_array(np.where(np.isinf(graph), 0, graph))


GRIDS = [({"kind": "grid"}, False), ({"kind": "grid", "negative": 0.3}, True)]


@pytest.mark.parametrize(
    ("asked", "directed"), [({"kind": "road"}, True), *(pytest.param(*grid, marks=pytest.mark.slow) for grid in GRIDS)], ids=str
)
def test_a_graph_with_small_separators_is_ordered(asked: dict[str, Any], directed: bool) -> None:
    weights = matrix(MIN_SPARSE, **asked)
    weights = weights if directed else np.minimum(weights, weights.T)
    graph = scipy.sparse.csr_array(np.where(np.isinf(weights), 0, weights))
    found = solve(graph, predecessors=True, dtype="float32")  # in which its kernel is compiled for other tests
    assert found.stats.kernel == "sparse-cpu" and "fewer relaxations than a dense graph" in found.stats.reason
    assert found.stats.relaxations < MIN_SPARSE**3 / 4
    some = range(0, MIN_SPARSE, 20)
    np.testing.assert_array_equal(found.distances[some], johnson(graph, indices=some).astype(found.distances.dtype))
    assert found.predecessors is not None
    check_paths(weights, found.distances, found.predecessors, some)
    if asked["kind"] == "grid":
        distances, before = shortest_path(graph, return_predecessors=True)
        check_paths(weights, distances, before, some)


def test_without_small_separators_and_where_a_kernel_is_named_the_plan_is_dense() -> None:
    graph = arcs(MIN_SPARSE, density=24 / MIN_SPARSE)
    found = solve(graph)
    assert (found.stats.kernel, found.stats.reason) == ("tiled-cpu", "no small separators: the dense plan")
    assert solve(arcs(MIN_SPARSE, kind="grid"), kernel="tiled-cpu").stats.reason == ""


@pytest.mark.parametrize(
    ("order", "free", "kernel"), [(1e-9, 8 * 2**30, "sparse"), (1e-9, 2**20, "dense"), (1.0, 8 * 2**30, "dense")]
)
def test_a_gpu_graph_is_ordered_if_that_is_faster_and_fits(order: float, free: int, kernel: str, pretend: Pretend) -> None:
    pretend.limits(costs, _SECONDS_OF_ORDER=order, _SECONDS_OF_EDGE=order)
    graph, dense = graph_of(arcs(MIN_SPARSE, kind="grid")).adjacency, registry()["look-ahead"]
    shape = shape_of(dense, MIN_SPARSE, "int32")
    gpu: Any = SimpleNamespace(target=Target("cuda"), ranks=(), free_bytes=lambda: free)
    chosen, ordered, reason = kernel_choice.sparser(None, graph, graph.facts, dense, shape, gpu)
    assert (chosen.id == "sparse") == (kernel == "sparse") == (ordered.order is not None) == bool(reason)
    if free == 2**20:
        with pytest.raises(Refused, match=r"need 3\d.* MiB of device memory, but only .* omit the kernel, or choose a smaller"):
            kernel_choice.sparser(
                named := registry()["sparse"], graph, graph.facts, named, shape_of(named, MIN_SPARSE, "int32"), gpu
            )


def test_a_named_kernel_for_sparse_graphs_takes_any() -> None:
    for n in (1, 30, 300):
        graph = arcs(n, kind="grid")
        found = solve(graph, kernel="sparse-cpu", dtype="float32")
        assert found.stats.kernel == "sparse-cpu" and found.stats.reason
        np.testing.assert_array_equal(found.distances, johnson(graph))
    graph[0, 1], graph[1, 0] = -3, 2
    with pytest.raises(NegativeCycleError, match=r"has a negative cycle: [01] -> "):
        solve(graph, kernel="sparse-cpu", dtype="float32")
