"""The CPU kernels against plain NumPy and SciPy (CUDA kernels: test_simulator.py)."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from path_checks import floyd_warshall

from fwtui.engine.verify import Verifier, scipy_distances
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.generate import generate
from fwtui.graphs.canonical import NO_PATH, canonical
from fwtui.graphs.graph import GraphInput
from fwtui_kernels import registry
from fwtui_kernels.plan import NO_EDGE, Buffers, Kernel, Program, Shape, Target

CPU = [k for k in registry().values() if k.backend == "cpu"]
SMALL_TILE = 16


def sizes(kernel: Kernel, tile: int) -> tuple[int, ...]:
    return (1, tile - 1, tile, tile + 1, 65, 100) if kernel.tiles else (1, 2, 65, 100)


def tiles(kernel: Kernel) -> tuple[int, ...]:
    return (SMALL_TILE, kernel.default_tile) if kernel.tiles else (1,)


# each is compiled for seconds, as it is for the other types
SLOWLY_COMPILED = {("sparse-cpu", "int32"), ("sparse-cpu", "int16"), ("distributed-cpu", "int16")}
# in tiles of the usual size only one size that has several; the others wait for -m slow
CASES = [
    pytest.param(
        *(k, tile, n, dtype),
        id=f"{k.id}-tile{tile}-n{n}-{dtype}",
        marks=() if (tile in (1, SMALL_TILE) or n == tile + 1) and (k.id, dtype) not in SLOWLY_COMPILED else pytest.mark.slow,
    )
    for k in CPU
    for tile, dtype in product(tiles(k), k.dtypes)
    for n in sizes(k, tile)
]
KINDS: tuple[dict[str, Any], ...] = (
    {},
    *({"density": 0.02}, {"density": 1e-9}),  # and without an edge
    {"low": 0, "high": 2, "density": 0.1},
    {"negative": 0.3},
    {"negative": 0.3, "density": 0.03},
    {"real": True, "density": 0.1},
    {"real": True, "negative": 0.3, "density": 0.03},
)


def loaded(kernel: Kernel, matrix: np.ndarray, tile: int) -> tuple[Shape, Program, Buffers]:
    options = tuple(sorted((o.name, o.default) for o in kernel.options))
    shape = Shape(len(matrix), tile, matrix.dtype.name, options=options)
    program = kernel.build(shape, Target(kernel.backend))
    buffers = program.allocate()
    program.load(matrix, buffers, None)
    return shape, program, buffers


def solve(kernel: Kernel, shape: Shape, program: Program, buffers: Buffers) -> np.ndarray:
    for step in kernel.plan(shape, False):
        program.launch(step, buffers, None)
    return program.unload(buffers, None)


def plain(graph: GraphInput) -> np.ndarray:
    """Return canonical distances in float64, where no sum of these graphs is rounded."""
    d = floyd_warshall(np.where(graph.matrix == graph.no_edge, np.inf, graph.matrix.astype(np.float64)))
    return np.where(np.isinf(d), NO_PATH, d).astype(np.int32) if graph.integer else d.astype(np.float32)


@pytest.mark.parametrize(("kernel", "tile", "n", "dtype"), CASES)
def test_distances_equal_those_of_numpy_and_scipy(kernel: Kernel, tile: int, n: int, dtype: str) -> None:
    for kind in KINDS:
        if (dtype != "float32" and "real" in kind) or (dtype == "int16" and "negative" in kind):
            continue
        graph = generate(Experiment(n=n, dtype=dtype, **kind))
        before = graph.matrix.copy()
        expected = plain(graph)
        raw = solve(kernel, *loaded(kernel, graph.matrix, tile))
        assert raw.dtype == dtype and raw.shape == (n, n)
        np.testing.assert_array_equal(graph.matrix, before, "the input is not the kernel's to change")
        got = canonical(raw, graph, dtype)
        np.testing.assert_array_equal(got, expected, str(kind))
        np.testing.assert_array_equal(got, scipy_distances(graph, graph.potentials), str(kind))


@pytest.mark.parametrize("kernel", CPU, ids=lambda k: k.id)
@pytest.mark.parametrize("dtype", ["float32", pytest.param("int32", marks=pytest.mark.slow)])
def test_a_negative_cycle_and_a_negative_loop_show_on_the_diagonal(kernel: Kernel, dtype: str) -> None:
    graph = generate(Experiment(n=65, dtype=dtype, low=-1, high=30))
    assert graph.may_have_negative_cycles
    raw = solve(kernel, *loaded(kernel, graph.matrix, tiles(kernel)[0]))
    distances = canonical(raw, graph, dtype)
    finding = Verifier().check(graph, "key", distances, "full", 512, kernel.id)
    assert finding.verdict == "negative cycle" and finding.cycle
    matrix = generate(Experiment(n=20, dtype=dtype)).matrix.copy()
    matrix[7, 7] = -3
    assert solve(kernel, *loaded(kernel, matrix, tiles(kernel)[0]))[7, 7] < 0


@pytest.mark.parametrize("kernel", CPU, ids=lambda k: k.id)
@pytest.mark.parametrize("n", [33, SMALL_TILE], ids=lambda n: f"n{n}")  # some tiles, and exactly one
def test_restore_gives_the_input_again_and_a_result_outlives_it(kernel: Kernel, n: int) -> None:
    graph, other = (generate(Experiment(n=n, density=0.1, seed=seed)).matrix for seed in (7, 8))
    shape, program, buffers = loaded(kernel, graph, tiles(kernel)[0])
    first = solve(kernel, shape, program, buffers)
    kept = first.copy()
    assert (first != graph).any()
    first[:] = -5
    again = program.unload(buffers, None)
    np.testing.assert_array_equal(again, kept, "it is a copy")
    program.restore(buffers, None)
    if kernel.id != "scipy":  # which writes its result elsewhere
        np.testing.assert_array_equal(program.unload(buffers, None), graph)
    np.testing.assert_array_equal(solve(kernel, shape, program, buffers), kept)
    program.load(other, buffers, None)
    solve(kernel, shape, program, buffers)
    np.testing.assert_array_equal(again, kept)


@pytest.mark.parametrize("kernel", [k for k in CPU if k.tiles], ids=lambda k: k.id)
def test_padding_is_vertices_without_edges(kernel: Kernel) -> None:
    for dtype in kernel.dtypes:  # loading compiles nothing
        matrix = generate(Experiment(n=17, dtype=dtype)).matrix
        _, _, buffers = loaded(kernel, matrix, SMALL_TILE)
        expected = np.full((32, 32), NO_EDGE[dtype], dtype)
        np.fill_diagonal(expected, 0)
        expected[:17, :17] = matrix
        # some keep their tiles in another order: the same cells, wherever they are
        np.testing.assert_array_equal(np.sort(buffers[0], axis=None), np.sort(expected, axis=None))
