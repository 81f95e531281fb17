"""Kernels for sparse graphs: their order, their plan along the elimination tree, and their distances."""

from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from in_simulator import answers
from path_checks import floyd_warshall
from sparse_graphs import graph, right

from fwtui.analysis.plan_checks import execute
from fwtui.experiment.experiment import KINDS
from fwtui_kernels import registry
from fwtui_kernels.parts.dissection import ordered
from fwtui_kernels.parts.supernodal import elimination, plan
from fwtui_kernels.plan import NO_EDGE, EliminationOrder, Shape, Supernode
from fwtui_kernels.reference import middles

pytest.importorskip("pymetis", reason="pymetis is not installed (pip install 'fwtui[sparse]')")

CPU = registry()["sparse-cpu"]
SPARSE = {"density": 0.01}
SIMULATED = "from in_simulator import tell; from sparse_graphs import right; tell(lambda case: right('sparse', 8, case))"


MORE: list[dict[str, Any]] = [
    {"dtype": "float32", "real": True},
    {"dtype": "float32", "real": True, "negative": 0.3},
    {"dtype": "float32", "connected": True, "low": 0, "high": 2},
    {"dtype": "int16"},
    {"dtype": "int32"},
    {"dtype": "int32", "negative": 0.3},
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
    cases = [{"kind": "grid", "n": 36, "negative": 0.3}, {"kind": "road", "n": 30, "dtype": "int16"}]
    assert answers(SIMULATED, cases) == [True] * len(cases)


@pytest.mark.parametrize("kind", ["grid", "road", "small-world", "power-law"])
def test_a_plan_relaxes_enough_by_what_it_says_it_reads(kind: str) -> None:
    g = graph(kind=kind, n=70)
    shape = ordered(Shape(g.n, 4, "int32"), g.matrix, launch=0)
    assert shape.order is not None and sorted(shape.order.vertices) == list(range(g.n))
    places = np.array(shape.order.places(4))
    matrix = np.full((shape.padded, shape.padded), np.inf)
    np.fill_diagonal(matrix, 0)
    matrix[np.ix_(places, places)] = np.where(g.matrix == NO_EDGE["int32"], np.inf, g.matrix)
    expected = floyd_warshall(matrix)
    steps = list(plan(shape, True))
    for step, done in zip(steps, accumulate((s.cost.relaxations for s in steps), initial=0), strict=False):
        execute(CPU, step, middles(CPU, step, shape.padded, done), matrix)
    np.testing.assert_array_equal(matrix, expected)
    joined = list(plan(shape, False))
    for part in ("relaxations", "device_bytes"):
        assert sum(getattr(s.cost, part) for s in joined) == sum(getattr(s.cost, part) for s in steps)
    assert sum(s.cost.relaxations for s in steps) == elimination(shape).relaxations(4) < g.n**3 and len(joined) < len(steps)


def test_launches_are_of_tiles_that_have_nothing_to_do_with_each_other() -> None:
    found = elimination(ordered(Shape(400, 16, "int32"), graph(kind="grid", n=400).matrix, launch=0))
    assert sorted(p for tiles in found.together for p in tiles) == list(range(len(found.spans)))
    assert max(map(len, found.together)) >= 4
    for tiles in found.together:
        assert not any(set(found.tiles(p)) & set(tiles) for p in tiles)
    nodes = (Supernode(5, 2), Supernode(3, 2), Supernode(2, -1), Supernode(4, -1))
    shape = Shape(14, 4, order=EliminationOrder(nodes))
    assert shape.padded == 20
    found = elimination(shape)
    assert found.spans == (((0, 2), (3, 4)), ((0, 2), (3, 4)), ((2, 4),), ((0, 4),), ((4, 5),))
    assert found.together == ((0, 2, 4), (1,), (3,))
    assert found.relaxations(4) == 64 * (9 + 9 + 4 + 16 + 1) and found.fill() == 3 + 2 + 2 + 1 + 1


@pytest.mark.parametrize("asked", [{"n": 600}, {"n": 20, "kind": "grid"}], ids=["dense", "small"])
def test_a_graph_without_small_separators_keeps_the_dense_plan(asked: dict[str, Any]) -> None:
    g, shape = graph(**asked), Shape(asked["n"], 64, "int32", options=CPU.defaults)
    assert CPU.ordered is not None and CPU.ordered(shape, g.matrix) == shape
    dense = registry()["tiled-cpu"]
    assert [replace(s, args=s.args[:1]) for s in CPU.plan(shape, False)] == list(dense.plan(shape, False))
