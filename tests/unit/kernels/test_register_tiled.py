"""The register-tiled rungs: plans, forms of a relaxation, and shapes of products."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product as combinations
from random import Random
from typing import Any

import numpy as np
import pytest
from path_checks import floyd_warshall, random_matrix

from fwtui.analysis.plan_checks import legal_order, races
from fwtui_kernels import registry
from fwtui_kernels.forms import AUTO, FORMS, ONE_K, PLAIN, TWO_K, form_of, lacks, lanes_of, refuses
from fwtui_kernels.parts.tuning import BULK, CROSS, GROUP, PANEL, Product, tuning_of
from fwtui_kernels.plan import DTYPES, Shape, Step, Target

TILED, AHEAD = registry()["register-tiled"], registry()["look-ahead"]
POISON = -1e6


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a[:, :, None] + b[None]).min(axis=1)


def execute(step: Step, tile: int, buffers: np.ndarray) -> None:
    """Do what the op does, seeing only what the step says it reads, and keeping only what it says it writes."""
    seen = np.full_like(buffers, POISON)
    for r in step.reads:
        where = (r.buffer, slice(r.top, r.bottom), slice(r.left, r.right))
        seen[where] = buffers[where]
    low = step.args[0] * tile
    own, panel = slice(low, low + tile), PANEL + step.args[0] % 2
    made = seen.copy()
    if step.op == "pivot":
        made[0, own, own] = made[1, :tile, :tile] = floyd_warshall(seen[0, own, own])
    elif step.op == "panels":
        closed = seen[1, :tile, :tile]
        made[0, own], made[0, :, own] = product(closed, seen[0, own]), product(seen[0, :, own], closed)
        made[panel, :tile] = made[0, :, own].T
    else:
        made[0] = np.minimum(seen[0], product(seen[panel, :tile].T, seen[0, own]))
    for w in step.writes:
        where = (w.buffer, slice(w.top, w.bottom), slice(w.left, w.right))
        buffers[where] = made[where]


def run(plan: Sequence[Step], order: Sequence[int], tile: int, matrix: np.ndarray) -> np.ndarray:
    buffers = np.full((4, *matrix.shape), POISON)
    buffers[0] = matrix
    for index in order:
        execute(plan[index], tile, buffers)
    return buffers[0]


@pytest.mark.parametrize("kernel", [TILED, AHEAD], ids=lambda k: k.id)
@pytest.mark.parametrize("tiles", [1, 2, 3, 4, 7])
def test_every_legal_order_of_a_plan_is_floyd_warshall(kernel: Any, tiles: int) -> None:
    plan = list(kernel.plan(Shape(4 * tiles, 4), False))
    matrix = random_matrix(4 * tiles, tiles, density=0.3)
    expected = floyd_warshall(matrix)
    np.testing.assert_array_equal(run(plan, range(len(plan)), 4, matrix), expected)
    orders = {tuple(legal_order(plan, Random(seed))) for seed in range(10)}
    for order in orders:
        np.testing.assert_array_equal(run(plan, order, 4, matrix), expected)
    assert (len(orders) > 1) == (kernel is AHEAD and tiles > 2)
    assert races(plan) == []


def test_the_next_pivot_does_not_wait_for_the_bulk() -> None:
    plan = list(AHEAD.plan(Shape(24, 4), False))
    named = {(step.op, *step.args): (index, step) for index, step in enumerate(plan)}
    for p in range(4):
        bulk, (_, next_pivot) = named["rest", p, BULK], named["pivot", p + 1]
        assert bulk[1].lane != next_pivot.lane and bulk[0] not in next_pivot.after
        assert bulk[0] in named["cross", p + 1, CROSS][1].after


@pytest.mark.parametrize("kernel", [TILED, AHEAD], ids=lambda k: k.id)
def test_grids_have_a_block_for_every_tile_of_their_part(kernel: Any) -> None:
    pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    for dtype in DTYPES:
        shape = Shape(5 * 128, 128, dtype, options=(("form", AUTO),))
        program = kernel.build(shape, Target("cuda", (9, 0), multiprocessors=132))
        cuts = {"rest": tuning_of(shape).rest, "cross": tuning_of(shape).cross}
        for step in kernel.plan(shape, False):
            across, down = program.ops[step.op].grid(step.args)
            cells = sum((w.bottom - w.top) * (w.right - w.left) for w in step.writes if not w.buffer)
            if cut := cuts.get(step.op):
                assert across * down * cut.high * cut.wide * FORMS[PLAIN[dtype]].lanes == cells
            if step.op == "panels":
                assert across * down * tuning_of(shape).panels.wide * 128 == cells


@pytest.mark.parametrize(
    ("dtype", "chosen", "nonnegative", "cc", "name"),
    [
        ("float32", AUTO, True, (9, 0), "float32-two"),
        ("float32", AUTO, False, (9, 0), "float32"),
        ("float32", AUTO, True, (8, 0), "float32"),
        ("float32", ONE_K, True, (9, 0), "float32"),
        ("float32", TWO_K, True, (8, 0), "float32-two"),
        ("float64", AUTO, True, (9, 0), "float64"),
        ("int32", AUTO, False, (9, 0), "int32-mixed"),
        ("int32", AUTO, True, (8, 6), "int32"),
        ("int32", ONE_K, True, (9, 0), "int32"),
        ("int16", AUTO, True, (9, 0), "int16-mixed"),
        ("int16", AUTO, False, (9, 0), "int16"),
    ],
)
def test_the_form_follows_sign_and_gpu(dtype: str, chosen: int, nonnegative: bool, cc: tuple[int, int], name: str) -> None:
    shape = Shape(8, 8, dtype, nonnegative=nonnegative, options=(("form", chosen),))
    assert FORMS[form_of(shape, cc)].key == name


def test_unsupported_forms_are_refused() -> None:
    negative = Shape(8, 8, "float32", nonnegative=False, options=(("form", TWO_K),))
    assert str(refuses(negative)).startswith(
        "form 2 needs non-negative weights for float32, because it compares distances as integers;"
    )
    assert refuses(replace(negative, dtype="int32")) is None and refuses(replace(negative, nonnegative=True)) is None
    assert "is not supported for float64" in str(refuses(replace(negative, dtype="float64")))
    int16 = Shape(8, 8, "int16")
    for shape, cc, needed, choose in ((int16, (8, 6), "9.0", "float32 or int32"), (Shape(8, 8), (7, 5), "8.0", "another kernel")):
        has = "{}.{}".format(*cc)
        told = f"{shape.dtype} needs compute capability {needed}, but this GPU has {has}; choose {choose}"
        assert lacks(shape, Target("cuda", cc)) == told
    assert lacks(int16, Target("cuda", (9, 0))) is lacks(int16, Target("simulator")) is None


def test_threads_divide_their_block_and_blocks_their_tile() -> None:
    good = Product(128, 128, 8, 8, 16)
    assert good.threads == 256 and good.bounds == (256, 2)
    for dtype, tile, n in combinations(DTYPES, (8, 16, 32, 64, 128), (512, 1024, 4096, 8192)):
        shape = Shape(n, tile, dtype)
        tuning, width = tuning_of(shape), tile // lanes_of(dtype)
        cuts = ((tuning.panels, tile, (tile,)), *((cut, width, (cut.high, cut.wide)) for cut in (tuning.rest, tuning.cross)))
        for cut, words, lines in cuts if dtype != "float64" or tile < 128 else ():
            assert tile % cut.high == words % cut.wide == cut.high % cut.rows == cut.wide % cut.columns == 0
            assert cut.rows % GROUP == cut.columns % GROUP == cut.slab % cut.depth == tile % cut.slab == 0
            for line in lines:  # copied as groups of words
                assert cut.threads % (line // GROUP) == cut.slab % (cut.threads // (line // GROUP)) == 0


@pytest.mark.parametrize(("down", "across"), [(16, 16), (8, 8), (32, 8), (8, 16), (2, 2), (2, 4), (4, 8), (16, 4)])
def test_every_thread_has_a_place_of_its_own_and_a_warp_reads_whole_lines(down: int, across: int) -> None:
    pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    from fwtui_kernels.parts.products import place as compiled

    place = compiled.py_func
    places = [tuple(map(int, place(t, down, across))) for t in range(down * across)]
    assert set(places) == {(y, x) for y in range(down) for x in range(across)}
    if down % 4 == across % 8 == 0:
        for first in range(0, len(places), 32):
            warp = places[first : first + 32]
            assert len({y for y, _ in warp}) == 4 and len({x for _, x in warp}) == 8
            # eight lanes that are served together read eight neighbouring pieces of one line
            for lane in range(0, 32, 8):
                eight = warp[lane : lane + 8]
                assert len({y for y, _ in eight}) == 1 and [x for _, x in eight] == list(range(eight[0][1], eight[0][1] + 8))
