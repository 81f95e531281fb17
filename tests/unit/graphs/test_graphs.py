"""Generated graphs, their bounds, canonical distances, checksums and negative cycles."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from path_checks import floyd_warshall
from pretending import Pretend

from fwtui.common.errors import Refused
from fwtui.engine import generate_cpu
from fwtui.engine.reference_distances import distances_from, unreachable_pairs
from fwtui.experiment.experiment import KINDS as LINKED
from fwtui.experiment.experiment import Experiment, settle
from fwtui.experiment.generate import expected_share, fill_numpy, generate, potential_range, recipe_for
from fwtui.experiment.hashing import PLAIN
from fwtui.graphs.canonical import NO_DISTANCE, NO_PATH, canonical, fletcher64, reachable_pairs
from fwtui.graphs.cycles import cycle_or_potentials, cycle_weight
from fwtui.graphs.graph import GraphInput, graph_of
from fwtui_kernels.plan import NO_EDGE

GOLDEN = (
    (0, 0, 1, 0xA706DD2F4D197E6F, 11),
    (0, 1, 0, 0xF22C643283DA3D1A, 3),
    (0, 32767, 5, 0x0497B1341259ABA3, 10),
    (1, 0, 1, 0x5E41AB087439611E, 3),
    (2**64 - 1, 0, 1, 0x5DC20AA7B2A27137, 4),
)
KINDS: tuple[dict[str, Any], ...] = (
    *({}, {"density": 0.0}, {"density": 1.0}, {"low": 0, "high": 0}, {"low": -5, "high": 5}, {"negative": 0.3}),
    *({"connected": True}, {"exact": True, "density": 0.5}, {"exact": True, "connected": True, "density": 1.0}),
    *({"real": True, "low": 0.5, "high": 2.25}, {"real": True, "negative": 0.4, "connected": True}),
    *({"kind": kind} for kind in LINKED[1:]),
    {"kind": "grid", "negative": 0.3, "connected": True},
)


def graph_from(rows: list[list[float | None]], dtype: str = "int32", integer: bool = True, **more: Any) -> GraphInput:
    """Return a graph from its matrix; None means no edge."""
    matrix = np.array([[NO_EDGE[dtype] if w is None else w for w in row] for row in rows], dtype=dtype)
    return replace(graph_of(matrix, integer), **more)


@pytest.mark.parametrize(("seed", "i", "j", "hashed", "weight"), GOLDEN)
def test_hash_has_golden_values(seed: int, i: int, j: int, hashed: int, weight: int) -> None:
    with np.errstate(over="ignore"):
        h = PLAIN.cell_hash(PLAIN.graph_key(np.uint64(seed)), np.uint64(i), np.uint64(j))
        assert int(h) == hashed
        assert 1 + int(PLAIN.scaled(h, np.uint64(16))) == weight


# each type is compiled for seconds
BYTES = [
    pytest.param(dtype, kind, id=f"{dtype}-{kind}", marks=() if dtype == "float32" else pytest.mark.slow)
    for dtype in ("float32", "int32", "int16")
    for kind in KINDS
    if dtype == "float32" or not kind.get("real")
]


@pytest.mark.parametrize(("dtype", "kind"), BYTES)
def test_numpy_and_compiled_write_the_same_bytes(dtype: str, kind: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_cpu, "MAX_SINGLE_CORE", 128)
    for n in (1, 2, 45, 129):
        recipe = recipe_for(Experiment(n=n, dtype=dtype, **kind))
        by_numpy, by_numba = np.zeros((2, n, n), dtype=dtype)
        fill_numpy(by_numpy, recipe)
        generate_cpu.fill(by_numba, recipe)
        assert by_numpy.tobytes() == by_numba.tobytes(), n
        assert not by_numpy.diagonal().any()


def test_seeds_and_densities_matter_and_a_small_graph_is_the_corner_of_a_larger_one() -> None:
    one, other = generate(Experiment(n=100)), generate(Experiment(n=100, seed=8))
    assert (generate(Experiment(n=40)).matrix == one.matrix[:40, :40]).all()
    assert (one.matrix != other.matrix).any()
    assert abs(one.edges / 9900 - 0.3) < 0.02
    assert (one.low, one.high) == (1, 16)


def degrees(kind: str, n: int) -> np.ndarray:
    """Return the degree of every vertex of an undirected graph."""
    graph = generate(Experiment(n=n, kind=kind, dtype="int32"))
    edge = graph.matrix != graph.no_edge
    assert (edge == edge.T).all() and graph.edges == edge.sum() - n
    return edge.sum(axis=1) - 1


def test_each_kind_has_the_structure_that_its_name_says() -> None:
    grid = degrees("grid", 400)
    assert grid.sum() == 4 * 20 * 19 and sorted(set(grid)) == [2, 3, 4]
    assert degrees("grid", 7).tolist() == [2, 3, 2, 3, 3, 2, 1], "three columns, and one vertex in the last row"
    road = degrees("road", 400)
    assert 0.85 < road.sum() / grid.sum() < 0.95 and road.max() > 4, "a tenth is missing, and junctions have motorways"
    small_world = degrees("small-world", 400)
    assert small_world.min() == 4 and 4.2 < small_world.mean() < 4.6
    power_law = degrees("power-law", 2000)
    assert 6 < power_law.mean() < 9 and power_law[0] > 100 and np.median(power_law) < 8


@pytest.mark.parametrize(("n", "density", "connected"), [(30, 0.5, False), (31, 0.1, True), (2, 1.0, True), (57, 0.033, False)])
def test_exact_count_is_exact(n: int, density: float, connected: bool) -> None:
    graph = generate(Experiment(n=n, density=density, exact=True, connected=connected))
    assert graph.edges == round(density * n * (n - 1))
    if connected:
        assert all(graph.matrix[i, (i + 1) % n] < graph.no_edge for i in range(n))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"kind": "grid", "exact": True}, "an exact number of edges needs a random graph, not grid; omit one of them"),
        ({"n": 10, "density": 0.1, "exact": True, "connected": True}, "9 edges cannot connect 10 vertices strongly"),
        ({"n": 4, "high": 20000, "dtype": "int16"}, "20000 do not fit int16"),
    ],
)
def test_graphs_that_cannot_be_are_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        generate(settle(Experiment(**asked)))


@pytest.mark.parametrize(("reach", "share"), [(16, 0.14), (32, 0.27), (64, 0.37), (256, 0.47)])
def test_share_of_negative_edges_by_potential_range(reach: int, share: float) -> None:
    assert expected_share(reach, 1, 16) == pytest.approx(share, abs=0.006)
    differences = np.subtract.outer(np.arange(reach), np.arange(reach)).ravel()
    counted = np.mean(np.arange(1, 17)[:, None] + differences < 0)
    assert expected_share(reach, 1, 16) == pytest.approx(counted, rel=1e-12)
    assert potential_range(expected_share(reach, 1, 16), 1, 16) == reach and potential_range(0.0, 1, 16) == 0


@pytest.mark.parametrize("real", [False, True])
def test_negative_edges_come_without_negative_cycles(real: bool) -> None:
    graph = generate(Experiment(n=150, negative=0.3, real=real))
    assert graph.negative_share == pytest.approx(0.3, abs=0.04)
    assert graph.potentials is not None and graph.low is not None and graph.low < 0
    reweighted = graph.matrix.astype(np.float64) + graph.potentials[None, :] - graph.potentials[:, None]
    assert (reweighted[graph.matrix != graph.no_edge] >= 0).all()
    assert graph.drift > graph.potentials.max() - graph.potentials.min()
    assert cycle_or_potentials(graph.matrix)[0] == ()
    assert "widen" in graph.note


@pytest.mark.parametrize("kind", [{"negative": 0.4}, {"low": -3, "high": 9}], ids=str)
def test_canonical_catches_values_that_drifted_below_the_sentinel(kind: dict[str, Any]) -> None:
    graph = generate(Experiment(n=60, density=0.02, dtype="int32", **kind))
    exact = generate(Experiment(n=60, density=0.02, dtype="float32", **kind))
    raw = floyd_warshall(graph.matrix)
    assert cycle_or_potentials(graph.matrix)[0] == ()
    assert ((raw > 2**29) & (raw < NO_EDGE["int32"])).any()
    assert (canonical(raw, graph, "int32") == canonical(floyd_warshall(exact.matrix), exact, "float32")).all()


def test_canonical_keeps_real_weights_and_marks_invalid_distances() -> None:
    real = graph_from([[0, 0.5], [None, 0]], "float32", integer=False)
    kept = canonical(np.array([[-0.0, np.nan], [np.inf, -1]], dtype=np.float32), real, "float32")
    assert kept.dtype == np.float32 and not np.signbit(kept[0, 0])
    assert np.isnan(kept[0, 1]) and np.isposinf(kept[1, 0]) and kept[1, 1] == -1
    whole = graph_from([[0, 1], [None, 0]], "float32")
    raw = np.array([[np.nan, 0.5], [np.inf, -np.inf]], dtype=np.float32)
    assert canonical(raw, whole, "float32").tolist() == [[NO_DISTANCE, NO_DISTANCE], [NO_PATH, NO_DISTANCE]]


@pytest.mark.parametrize("size", [1, 65536, 65537, 0])
def test_fletcher64_is_fletchers(size: int) -> None:
    words = np.random.default_rng(size).integers(-(2**31), 2**31, size).astype(np.int32)
    if not size:
        words = np.full(70000, -2, dtype=np.int32)  # 2^32 - 2, the largest
    first = second = 0
    for word in words.tolist():
        first = (first + word % 2**32) % (2**32 - 1)
        second = (second + first) % (2**32 - 1)
    assert fletcher64(words) == fletcher64(words.view(np.float32)) == f"{second * 2**32 + first:016x}"


def test_large_matrices_are_scanned_on_all_cores_with_the_same_result(monkeypatch: pytest.MonkeyPatch, pretend: Pretend) -> None:
    cells = np.random.default_rng(3).integers(-5, 900, (700, 700), dtype=np.int32)
    cells[cells > 600] = NO_EDGE["int32"]

    def scanned() -> tuple[object, ...]:
        graph = graph_of(cells.copy(), True)
        distances = canonical(cells.copy(), graph, "int32")
        facts = graph.edges, graph.low, graph.high, graph.negative_share
        return *facts, distances.tobytes(), fletcher64(distances), reachable_pairs(distances)

    alone = scanned()
    pretend.limits("fwtui.graphs.graph", CELLS_ON_ALL_CORES=0)
    monkeypatch.setattr("fwtui.graphs.graph.usable_cores", lambda: {0, 1, 2})
    assert scanned() == alone


def test_negative_cycle_is_found_in_order() -> None:
    graph = graph_from([[0, 3, None, 1], [None, 0, -2, None], [-2, None, 0, None], [None, None, 5, 0]])
    cycle, _ = cycle_or_potentials(graph.matrix)
    assert cycle in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    assert cycle_or_potentials(graph_from([[0, None], [4, -1]]).matrix)[0] == (1,)
    assert cycle_or_potentials(graph_from([[0, 2], [-2, 0]]).matrix)[0] == ()
    assert cycle_or_potentials(graph_from([[0]]).matrix)[0] == ()


@pytest.mark.parametrize("seed", range(9))
def test_negative_cycles_agree_with_floyd_warshall(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 30
    matrix = np.where(rng.random((n, n)) < 0.15, rng.integers(-2 - seed % 3, 20, (n, n)), NO_EDGE["int32"]).astype(np.int32)
    np.fill_diagonal(matrix, 0)
    wide = np.where(matrix == NO_EDGE["int32"], np.inf, matrix.astype(np.float64))
    has_one = bool((floyd_warshall(wide).diagonal() < 0).any())
    cycle, potentials = cycle_or_potentials(matrix)
    assert bool(cycle) == has_one
    if cycle:
        assert len(set(cycle)) == len(cycle) and cycle_weight(matrix, cycle) < 0
        assert all(matrix[i, j] < NO_EDGE["int32"] for i, j in zip(cycle, (*cycle[1:], cycle[0]), strict=True))
    else:
        assert (wide + potentials[None, :] - potentials[:, None] >= 0).all()


def test_a_cycle_of_weight_zero_ends_in_spite_of_rounding() -> None:
    shift = np.array([0.1, 0.7, 0.3, 1.1], dtype=np.float32)
    matrix = (shift[:, None] - shift[None, :]).astype(np.float32)
    cycle, _ = cycle_or_potentials(matrix)
    assert not cycle or cycle_weight(matrix, cycle) < 0


@pytest.mark.parametrize("kind", [{}, {"negative": 0.3}, {"real": True}], ids=str)
def test_searches_agree_with_floyd_warshall(kind: dict[str, Any]) -> None:
    graph = generate(Experiment(n=50, density=0.05, **kind))
    expected = floyd_warshall(graph.matrix.astype(np.float64))
    everywhere = np.arange(50)
    assert (distances_from(graph.matrix, everywhere, graph.potentials, graph.no_edge) == expected).all()
    backward = None if graph.potentials is None else -graph.potentials
    assert (distances_from(graph.matrix.T, everywhere, backward, graph.no_edge) == expected.T).all()
    assert unreachable_pairs(graph.matrix, graph.no_edge) == np.isinf(expected).sum() > 0
