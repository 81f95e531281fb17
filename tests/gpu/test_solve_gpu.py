"""`solve` on a GPU: against SciPy, with arrays that are there already, and under a cap of its memory. Run: pytest -m gpu."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from path_checks import by_scipy, check_paths, random_matrix, sparse
from scipy.sparse import csr_array
from scipy.sparse.csgraph import johnson

from fwtui import solve
from fwtui.common.errors import Refused
from fwtui.experiment.device import FIRST_GPU
from fwtui.experiment.experiment import KINDS, Experiment
from fwtui.experiment.generate import generate
from fwtui.graphs.adjacency import Adjacency, Arcs
from fwtui.graphs.library_objects import lazy_of_object, of_object
from fwtui.solver import costs, device_graph, engine_choice
from fwtui.solver.call import Call
from fwtui.solver.driver import answer
from fwtui.solver.host_graph import HostGraph
from fwtui.solver.paths import Paths
from fwtui_kernels.plan import ITEMSIZE

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def engine() -> Any:
    return engine_choice.cuda_engine(FIRST_GPU)


SIGNS: list[dict[str, Any]] = [{}, {"negative": 0.3}, {"low": 0, "high": 2}, {"high": 65536}, {"real": True}]


@pytest.mark.parametrize("more", SIGNS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_random_graphs_of_every_kind_number_type_and_sign(kind: str, more: dict[str, Any], engine: Any) -> None:
    for seed, n in enumerate((1, 5, 33, 64, 150, 400, 700)):
        made = generate(Experiment(n=n, kind=kind, density=min(1.0, 4 / n), seed=seed, dtype="float32", **more))
        graph = sparse(np.where(made.matrix == made.no_edge, np.inf, made.matrix.astype(float)))
        for kernel in ("auto", "sparse"):
            result = answer(of_object(graph), Call(kernel=kernel, predecessors=seed % 3 == 0), engine)
            assert np.array_equal(result.distances, johnson(graph)), (kernel, n)
            assert result.stats.device == "cuda" and result.stats.exact


def test_arrays_on_the_gpu(engine: Any) -> None:
    from numba import cuda

    for seed, negative in ((1, False), (2, True)):
        matrix = random_matrix(1000, seed, negative=negative)
        for given in (matrix, matrix.astype(np.float32), np.asfortranarray(matrix)):
            result = solve(cuda.to_device(given))
            assert hasattr(result.distances, "__cuda_array_interface__")
            assert (result.distances.copy_to_host() == by_scipy(matrix)).all()


@pytest.mark.parametrize(("scale", "negative"), [(1, False), (2000, False), (1, True), (0.25, False), (1e-3, False)])
@pytest.mark.parametrize("n", [129, 1000, 2050])
def test_layout_on_device_and_host_agree(
    engine: Any, monkeypatch: pytest.MonkeyPatch, n: int, scale: float, negative: bool
) -> None:
    """Matrices of each order and type, rows and arcs give the same bits as a layout on the host."""
    matrix = random_matrix(n, n, 0.3, negative=negative, scale=scale)
    present = np.isfinite(matrix)
    ends = np.nonzero(present)
    more = np.random.default_rng(n).integers(0, len(ends[0]), 5000)  # parallel arcs, longer ones among them
    apart = ends[0][more] != ends[1][more]
    longer = matrix[present][more] + np.where(apart, np.arange(5000) % 3 * scale, 0)
    sources, targets = (np.concatenate([e, e[more]]) for e in ends)
    arcs = Arcs(sources, targets, np.concatenate([matrix[present], longer]))
    given: list[Any] = [
        *(lazy_of_object(form) for form in (matrix, np.asfortranarray(matrix), matrix.astype(np.float32))),
        lazy_of_object(csr_array((matrix[present], ends), shape=(n, n))),
        Adjacency(n, arcs=arcs),
    ]
    for graph in given:
        there = answer(graph, engine=engine)
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(device_graph, "to_device", lambda *given: None)
            here = answer(graph.adjacency, engine=engine)
        assert there.distances.dtype == here.distances.dtype and there.stats.edges == here.stats.edges
        assert there.distances.tobytes() == here.distances.tobytes()


def test_distances_beyond_16_bits_are_detected_on_the_device(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostGraph, "escaped", lambda *given: pytest.fail("the host looked for it"))
    for length, dtype in ((5, "int16"), (2000, "int32")):
        n = 2100  # a chain, and vertices beside it
        chain = csr_array((np.full(length, 90.0), (np.arange(length), np.arange(1, length + 1))), shape=(n, n))
        dense = np.where(chain.toarray() > 0, chain.toarray(), np.inf)
        # the distances of arcs that int32 holds by its bound are never computed in int16 without a request
        for graph, given, chosen in ((dense, None, dtype), (chain, None, "int32"), (chain, "int16", dtype)):
            call = Call(dtype=given)
            with pytest.raises(Refused, match="overflow int16") if given not in (None, dtype) else nullcontext():
                result = answer(lazy_of_object(graph) or of_object(graph), call, engine)
                assert result.stats.dtype == chosen and result.distances[0, length] == 90 * length


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32", "float64"])
def test_under_a_cap_of_memory(engine: Any, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = random_matrix(3000, 5)
    monkeypatch.setattr(engine, "free_bytes", lambda: costs.RESERVED_MEMORY + (max(8, 2 * ITEMSIZE[dtype]) << 20))
    result = answer(of_object(matrix), Call(dtype=dtype), engine)
    assert result.stats.kernel == "out-of-core" and (result.distances == by_scipy(matrix)).all()


@pytest.fixture
def on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Paths, "predecessors", lambda *given: pytest.fail("they were found on the host"))


def test_all_paths_of_random_graphs(engine: Any, on_the_gpu: None) -> None:
    """The graphs have zero weights, ties and negative weights, of every type, with sizes around multiples of a block."""
    rng = np.random.default_rng(2)
    for seed, n in enumerate((1, 2, 127, 128, 129, 300, 511, 640, 700, 1000, *rng.integers(2, 400, 50).tolist())):
        density = float(rng.choice([2 / n, 0.1, 0.5, 1]))
        low, high, scale = ((0, 3, 1), (0, 60, 1), (1, 2000, 100), (0, 9, 0.25))[seed % 4]
        matrix = np.where(rng.random((n, n)) < density, rng.integers(low, high, (n, n)) * scale, np.inf)
        lift = rng.integers(0, 40, n) * (seed % 3 == 0)
        matrix += lift[:, None] - lift[None, :]
        np.fill_diagonal(matrix, 0)
        # masked nowhere: zeros are edges, also where there is one everywhere
        result = answer(of_object(np.ma.array(matrix)), Call(predecessors=True), engine)
        assert result.predecessors is not None
        check_paths(matrix, result.distances, result.predecessors)


@pytest.mark.parametrize("scale", [1, 5000, 0.25], ids=["int16", "int32", "float32"])
@pytest.mark.parametrize("high", [3, 200])
def test_paths_of_arrays_on_the_gpu_stay_there(scale: float, high: int, on_the_gpu: None) -> None:
    from numba import cuda

    rng = np.random.default_rng(high)
    n = 3001
    matrix = np.where(rng.random((n, n)) < 0.3, rng.integers(0, high, (n, n)) * scale, np.inf)
    np.fill_diagonal(matrix, 0)
    result = solve(cuda.to_device(matrix), predecessors=True)
    assert result.predecessors is not None and hasattr(result.predecessors, "__cuda_array_interface__")
    check_paths(matrix, result.distances.copy_to_host(), result.predecessors.copy_to_host(), rng.integers(0, n, 100))
    path = result.path(0, n - 1)
    assert path[0] == 0 and path[-1] == n - 1


@pytest.mark.parametrize("power", [1, 3, 12])
@pytest.mark.parametrize("density", [0.01, 1])
def test_paths_of_rounded_weights(density: float, power: int, on_the_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from numba import cuda

    again: list[int] = []  # sources whose paths were searched a second time, on the CPU
    mend = Paths.by_dijkstra
    monkeypatch.setattr(Paths, "by_dijkstra", lambda self, sources: again.extend(sources.tolist()) or mend(self, sources))
    rng = np.random.default_rng(4)
    n = 2500
    # none so small that it rounds to zero, which would be no weight to tell from no edge
    weights = np.maximum((1 - rng.random((n, n))) ** power, 1e-30)
    matrix = np.where(rng.random((n, n)) < density, weights, np.inf).astype(np.float32)
    np.fill_diagonal(matrix, 0)
    result = solve(cuda.to_device(matrix), predecessors=True)
    assert not result.stats.exact and result.predecessors is not None
    distances, before = result.distances.copy_to_host(), result.predecessors.copy_to_host()
    check_paths(matrix, distances, before, {*rng.integers(0, n, 100).tolist(), *again}, 4e-6)
    assert len(again) < n // 2, "the GPU found most of them"
