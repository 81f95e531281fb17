"""Kernels for sparse graphs: their order, their plan along the elimination tree, and their distances."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from in_simulator import answers
from processes import run_python
from scipy.sparse.csgraph import dijkstra
from sparse_graphs import distances, graph, right

from fwtui.experiment.experiment import KINDS
from fwtui.graphs.graph import graph_of
from fwtui_kernels import registry
from fwtui_kernels.compiled.trees import neighbours
from fwtui_kernels.parts.dissection import dissect
from fwtui_kernels.parts.elimination import at_once, in_rounds, relaxations, work
from fwtui_kernels.parts.ordering import ordered
from fwtui_kernels.plan import NO_EDGE, EliminationOrder, Level, Rect, Shape, Supernode, Target

CPU = registry()["sparse-cpu"]
SPARSE = {"density": 0.01}
SIMULATED = "from in_simulator import tell; from sparse_graphs import right; tell(lambda case: right('sparse', 8, case))"


MORE: list[dict[str, Any]] = [
    *({"dtype": "float32", "real": True}, {"dtype": "float32", "real": True, "negative": 0.3}),
    {"dtype": "float32", "connected": True, "low": 0, "high": 2},
    *({"dtype": "int16"}, {"dtype": "int32"}, {"dtype": "int32", "negative": 0.3}),
]


# every kind of graph once, and on one kind other numbers in the type for which there is code already; the others wait for -m slow
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        pytest.param(kind, more, id=f"{kind}-{more}", marks=() if not at or (kind == "road" and at < 3) else pytest.mark.slow)
        for kind in KINDS
        for at, more in enumerate(MORE)
    ],
)
def test_distances_equal_dijkstras(kind: str, more: dict[str, Any]) -> None:
    for n in (1, 2, 40, 333):
        assert right("sparse-cpu", 16, {"kind": kind, "n": n, "seed": n, **SPARSE, **more}), n


def test_a_kernel_for_gpus_is_right_in_the_simulator() -> None:
    cases: list[dict[str, Any]] = [
        {"kind": "grid", "n": 36, "negative": 0.3},
        {"kind": "road", "n": 50, "dtype": "int16"},
        {"n": 50, "density": 0.004, "dtype": "int16"},  # parts of one supernode each
    ]
    assert answers(SIMULATED, cases) == [True] * len(cases)


def undirected(n: int, seed: int, parts: int = 1) -> np.ndarray:
    """Return a planar undirected graph in that many parts."""
    matrix = graph(kind="grid", n=n, seed=seed, dtype="float32").matrix
    least = np.minimum(matrix, matrix.T)
    part = np.arange(n) * parts // n
    least[part[:, None] != part[None, :]] = NO_EDGE["float32"]
    return least


@pytest.mark.parametrize("parts", [1, 3])
def test_undirected_graphs_are_detected_and_half_of_the_work_is_skipped(parts: int) -> None:
    matrix = undirected(500, 7, parts)
    shape = Shape(500, 16, "float32")
    both = ordered(shape, matrix, launch=0, eliminated=at_once)
    assert both.order is not None and not both.order.directed
    orders = [replace(both, order=replace(both.order, directed=directed)) for directed in (False, True)]
    half, whole = (sum(w.cost.relaxations for w in work(one, at_once) if w.op == "sweep") for one in orders)
    assert 1.6 < whole / half <= 2
    expected = dijkstra(np.where(matrix == NO_EDGE["float32"], 0, matrix))
    expected[np.isinf(expected)] = np.iinfo(np.int32).max
    np.testing.assert_array_equal(distances("sparse-cpu", 16, graph_of(matrix, True)), expected)
    one_way = matrix.copy()
    row, column = np.argwhere((matrix != NO_EDGE["float32"]) & (matrix > 0))[0]
    one_way[row, column] += 1
    other = ordered(shape, one_way, launch=0, eliminated=at_once)
    assert other.order is not None and other.order.directed


@pytest.mark.parametrize("where", ["loop", "cycle"])
def test_a_negative_cycle_shows_on_the_diagonal(where: str) -> None:
    matrix = undirected(300, 3)
    if where == "loop":
        matrix[299, 299] = -4
    else:
        row, column = np.argwhere((matrix != NO_EDGE["float32"]) & (matrix > 0))[-1]
        matrix[row, column] = -matrix[row, column] - 3
    kernel = registry()["sparse-cpu"]
    shape = ordered(Shape(300, 16, "float32", nonnegative=False), matrix, launch=0, eliminated=at_once)
    program = kernel.build(shape, Target("cpu"))
    buffers = program.allocate()
    program.load(matrix, buffers, None)
    for step in kernel.plan(shape, False):
        program.launch(step, buffers, None)
    assert program.unload(buffers, None).diagonal().min() < 0


@pytest.mark.parametrize("kind", ["grid", "road", "small-world", "power-law"])
@pytest.mark.parametrize("eliminated", [at_once, in_rounds])
def test_a_plan_reads_finished_cells_and_writes_each_distance_once(kind: str, eliminated: Any) -> None:
    g = graph(kind=kind, n=300)
    shape = ordered(Shape(g.n, 8, "int32"), g.matrix, launch=0, eliminated=eliminated)
    order = shape.order
    assert order is not None and sorted(order.factor.vertices.tolist()) == list(range(g.n))
    kernel = registry()["sparse-cpu" if eliminated is at_once else "sparse"]
    steps = list(kernel.plan(shape, False))
    assert [step.cost for step in steps] == [step.cost for step in work(shape, eliminated)]
    assert sum(step.cost.relaxations for step in steps) == relaxations(shape)
    fronts, done = (np.zeros((shape.padded, shape.padded), int) for _ in range(2))

    def cells(array: np.ndarray, rect: Rect) -> np.ndarray:
        return array[rect.top : rect.bottom, rect.left : rect.right]

    for step in steps:
        for rect in step.writes:
            cells(fronts if step.phase == "eliminate" else done, rect)[...] += 1
        for rect in step.reads if step.phase == "sweep" else ():
            assert cells(done, rect).all() or cells(fronts, rect).all()
    assert (done == 1).all(), "each distance once"
    numbers = np.repeat(np.arange(len(order.supernodes)), [node.size for node in order.supernodes])
    starts = dict(pair for level in order.levels(8, 4) for pair in zip(level.members, level.starts, strict=True))
    ranks = np.arange(g.n) - np.concatenate([[0], np.cumsum([node.size for node in order.supernodes])])[numbers]
    places = np.empty(g.n, int)
    places[order.factor.vertices] = np.array([starts[int(number)] for number in numbers]) + ranks
    rows, columns = np.nonzero(g.matrix != NO_EDGE["int32"])
    assert fronts[places[rows], places[columns]].all(), "each edge is in a front"


def test_a_front_has_the_vertices_above_that_its_subtree_touches() -> None:
    g = graph(kind="road", n=400)
    order = ordered(Shape(g.n, 16, "int32"), g.matrix, launch=0, eliminated=at_once).order
    assert order is not None
    linked = (g.matrix != NO_EDGE["int32"]) | (g.matrix != NO_EDGE["int32"]).T
    firsts = np.concatenate([[0], np.cumsum([node.size for node in order.supernodes])])
    vertices, below = order.factor.vertices, [set[int]() for _ in order.supernodes]
    for number, node in enumerate(order.supernodes):
        below[number] |= set(vertices[firsts[number] : firsts[number + 1]].tolist())
        touched = np.flatnonzero(linked[sorted(below[number])].any(axis=0))
        above = vertices[order.factor.above[order.factor.begins[number] : order.factor.begins[number + 1]]]
        assert set(above.tolist()) == set(touched.tolist()) - below[number] and len(above) == node.above
        if node.parent >= 0:
            below[node.parent] |= below[number]
            assert number < node.parent


def test_supernodes_of_a_height_lie_side_by_side_the_root_first() -> None:
    nodes = (Supernode(5, 2, 3), Supernode(3, 2, 2), Supernode(2, -1, 0), Supernode(4, -1, 0))
    shape = Shape(14, 8, "int32", order=EliminationOrder(nodes))
    assert shape.order is not None and shape.padded == 24
    assert shape.order.levels(8, 4) == (Level(0, 8, (2,), (0,)), Level(8, 24, (0, 1, 3), (8, 16, 20)))
    assert shape.order.levels(8, 2)[1].starts == (8, 16, 24), "four words of two cells each"


@pytest.mark.parametrize("asked", [{"n": 600}, {"n": 20, "kind": "grid"}], ids=["dense", "small"])
def test_a_graph_without_small_separators_keeps_the_dense_plan(asked: dict[str, Any]) -> None:
    g, shape = graph(**asked), Shape(asked["n"], 64, "int32", options=CPU.defaults)
    assert CPU.ordered is not None and CPU.ordered(shape, g.matrix) == shape
    dense = registry()["tiled-cpu"].plan(shape, False)
    assert list(CPU.plan(shape, False)) == [replace(step, phase="eliminate") for step in dense]


def arcs_between(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    both = np.concatenate([pairs, pairs[:, ::-1]])
    return both[:, 0], both[:, 1], np.ones(len(both), np.int32)


LEAVES = np.arange(1, 300)
RIM = np.stack([LEAVES, np.roll(LEAVES, 1)], 1)
STAR = np.stack([np.zeros_like(LEAVES), LEAVES], 1)


@pytest.mark.parametrize(
    "pairs",
    [STAR, np.concatenate([STAR, RIM]), np.stack([LEAVES // 3, LEAVES], 1), np.argwhere(np.triu(np.ones((99, 99)), 1)), RIM[:0]],
    ids=["star", "wheel", "tree", "clique", "no edge"],
)
def test_a_dissection_separates_what_is_beside_it(pairs: np.ndarray) -> None:
    n = 300
    vertices, firsts, parents = dissect(*neighbours(n, *arcs_between(pairs), "int32")[:2], 8)
    assert sorted(vertices.tolist()) == list(range(n)) and firsts[-1] == n
    node_of = np.empty(n, int)
    node_of[vertices] = np.repeat(np.arange(len(parents)), np.diff(firsts))
    for low, high in np.sort(node_of[pairs], axis=1).tolist():
        while low != high:
            assert low < parents[low] <= high, "an edge joins a supernode only to itself and to those above it"
            low = int(parents[low])


DISSECTED = """import numpy as np
from fwtui_kernels.parts.dissection import dissect
v = np.arange(300)  # a ring
print(len(dissect(2 * np.arange(301), (np.stack([v - 1, v + 1], 1).ravel() % 300).astype(np.int32), 8).parents))"""


def test_code_from_the_cache_starts_the_threads_that_it_needs() -> None:
    compiled, loaded = run_python(DISSECTED), run_python(DISSECTED)
    assert int(compiled) > 8 and loaded == compiled


def test_separators_of_a_road_map_are_refined() -> None:
    tree = ordered(Shape(2025, 16, "int32"), graph(kind="road", n=2025, seed=1).matrix, launch=0, eliminated=at_once)
    assert relaxations(tree) < 37 * 2025**2, "level sets need 42, as motorways make them jagged, and a multilevel method finds 28"


def test_a_tree_with_hubs_is_cut_at_its_hubs() -> None:
    n, rng, ends = 2000, np.random.default_rng(1), [0]
    for vertex in range(1, n):  # preferential attachment
        ends += [int(rng.choice(ends)), vertex]
    arcs, shape = arcs_between(np.reshape(ends[1:], (-1, 2))), Shape(n, 16, "int32")
    for parallel in (1, 80):  # only distinct arcs count as the degree of a vertex
        several = tuple(np.tile(part, parallel) for part in arcs)
        tree = ordered(shape, several, launch=0, eliminated=at_once)
        assert relaxations(tree) < 14 * n**2, "level sets alone need 40"
