"""The blocked rungs: their changes, shared-memory banks per thread, and the layout of a tile."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from in_simulator import all_right, mutant

from fwtui_kernels import k62_staged_row_major, k63_staged_natural, registry
from fwtui_kernels.k43_blocked_many_launches import plan as many_launches
from fwtui_kernels.k46_blocked_vector import threads_of
from fwtui_kernels.parts import blocked
from fwtui_kernels.parts.blocked import place, shares
from fwtui_kernels.plan import Rect, Shape, Step, Target

TILE, THREADS, HALF_WARP, BANKS = 32, 64, 16, 16


def turns(words: list[int]) -> int:
    """Return the number of serial accesses to 16 banks, each of which can broadcast one word."""
    return 1 if len(set(words)) == 1 else max(Counter(word % BANKS for word in words).values())


# what Numba compiles, in Python
ROW_MAJOR, NATURAL = (
    SimpleNamespace(**{name: getattr(rung, name).py_func for name in ("first_cell", "to_word", "middle_word")})
    for rung in (k62_staged_row_major, k63_staged_natural)
)
_, _, DOWN, ACROSS = shares(TILE)
Words = Callable[[int, int, int, int], tuple[int, int]]


def row_major(t: int, r: int, c: int, turn: int) -> tuple[int, int]:
    """Return the words of both slices that thread t reads for its result (r, c)."""
    i, j = ROW_MAJOR.first_cell(t, ACROSS)
    return ROW_MAJOR.to_word(i + r * DOWN, turn), ROW_MAJOR.middle_word(turn, j + c * ACROSS, TILE)


def natural(t: int, r: int, c: int, turn: int, cyclic: bool = False) -> tuple[int, int]:
    i, j = NATURAL.first_cell(t)
    k = (turn + (i + j) * cyclic) & 3
    return NATURAL.to_word(i + r * DOWN, k), NATURAL.middle_word(k, j + c * ACROSS)


@pytest.mark.parametrize(
    ("words", "expected"),
    [(row_major, 1), (natural, 4), (partial(natural, cyclic=True), 1)],
    ids=["row-major", "natural", "cyclic"],
)
def test_turns_of_a_half_warp_at_the_banks_of_shared_memory(words: Words, expected: int) -> None:
    rows, columns, _, _ = shares(TILE)
    for first in range(0, THREADS, HALF_WARP):
        for r, c, turn in product(range(rows), range(columns), range(4)):
            to, middle = map(list, zip(*(words(t, r, c, turn) for t in range(first, first + HALF_WARP)), strict=True))
            assert (turns(to), turns(middle)) == (expected, expected)
            assert all(0 <= word < 4 * TILE for word in (*to, *middle))


@pytest.mark.parametrize("tile", [4, 8, 16, 32])
def test_sixteen_results_of_each_thread_cover_a_tile(tile: int) -> None:
    rows, columns, down, across = shares(tile)
    for first_cell in (lambda t: ROW_MAJOR.first_cell(t, across), NATURAL.first_cell):
        cells = product(map(first_cell, range(tile * tile // 16)), range(rows), range(columns))
        seen = sorted((i + r * down, j + c * across) for (i, j), r, c in cells)
        assert seen == [*product(range(tile), range(tile))]


@pytest.mark.parametrize("tile", [4, 8, 32])
def test_the_order_in_a_tile_has_four_rows_and_four_columns_in_whole_pieces(tile: int) -> None:
    at = [place(q, tile) for q in range(tile * tile)]
    assert sorted(at) == list(range(tile * tile))
    for block in range(tile * tile // 16):
        cells = [divmod(at[block * 16 + q], tile) for q in range(16)]
        top, left = cells[0]
        assert cells == [(top + q // 4, left + q % 4) for q in range(16)] and top % 4 == left % 4 == 0
    assert [place(16 * block, tile) for block in range(tile // 4)] == list(range(0, tile, 4)), "blocks go along the row first"


def test_many_launches_cut_each_phase_at_the_pivot_and_their_grids_are_rectangles() -> None:
    shape = Shape(20, 4)
    plan = list(many_launches(shape, False))
    rounds = {p: [s for s in plan if s.args[0] == p] for p in range(5)}
    assert [len(steps) for steps in rounds.values()] == [1 + 2 + 1, 9, 9, 9, 1 + 2 + 1]
    assert [s.args for s in rounds[0][1:]] == [(0, 1), (0, 3), (0, 3)]
    assert [s.args for s in rounds[4][1:]] == [(4, 0), (4, 2), (4, 0)]
    for whole in blocked.plan(shape, False):
        parts = [s for s in rounds[whole.args[0]] if s.op == whole.op]
        assert sorted(w for s in parts for w in s.writes) == sorted(whole.writes)
        assert tuple(map(sum, zip(*(s.cost for s in parts), strict=True))) == whole.cost
    assert list(many_launches(Shape(3, 4), False)) == list(blocked.plan(Shape(3, 4), False))
    pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    kernel = registry()["blocked-many-launches"]
    shape = Shape(20, 4, options=(("threads", 256),))
    program: Any = kernel.build(shape, Target("cuda", (9, 0), multiprocessors=1))

    def tiles(rect: Rect) -> tuple[int, int]:
        return (rect.right - rect.left) // 4, (rect.bottom - rect.top) // 4

    for step in kernel.plan(shape, False):
        across, down = program.ops[step.op].grid(step.args)
        wide, high = tiles(step.writes[0])
        assert (across, down) == ((wide, high) if step.op != "panels" else (wide * high, 1)), step


def test_the_tile_in_global_memory_is_paid_for_at_every_k() -> None:
    shape = Shape(64, 16, "int16")

    def of_rest(plan: Any) -> list[Step]:
        return [s for s in plan if s.op == "rest"]

    shared, in_global = of_rest(blocked.plan(shape, False)), of_rest(registry()["blocked-global"].plan(shape, False))
    per_tile = 16 * 16 * 2
    assert {s.cost.device_bytes for s in shared} == {9 * 4 * per_tile}
    assert {s.cost.device_bytes for s in in_global} == {9 * (2 + 2 * 16) * per_tile}
    assert [s.cost.relaxations for s in shared] == [s.cost.relaxations for s in in_global]


@pytest.mark.parametrize(
    ("tile", "asked", "threads"), [(4, 256, 4), (8, 64, 16), (32, 64, 64), (32, 1024, 256), (64, 1024, 1024)]
)
def test_a_vector_thread_has_at_least_four_cells(tile: int, asked: int, threads: int) -> None:
    shape = Shape(100, tile, "int16", options=(("threads", asked),))
    assert threads_of(shape) == threads and threads % (tile // 4) == 0


def test_fewer_threads_than_cells() -> None:
    """Fewer threads than the options allow give a thread several cells, as on a GPU."""
    scalar = ("katz-kider", "blocked-global", "blocked-branch", "blocked-many-launches", "blocked-one-dimensional")
    cuts = [*((name, *cut) for cut in ((11, 4, "int32", 8), (9, 8, "float32", 16)) for name in scalar)]
    cuts += [("blocked-vector", 13, 8, "int16", threads) for threads in (2, 8)]
    cases = [
        {"kernel": name, "n": n, "tile": tile, "dtype": dtype, "options": {"threads": threads}}
        for name, n, tile, dtype, threads in cuts
    ]
    assert not [cut for cut, right in zip(cuts, all_right(cases), strict=True) if not right]


MUTANTS: dict[str, tuple[Any, str, str, int]] = {  # module, what is replaced, by what, which of its occurrences
    "no barrier after a slice is loaded": (k62_staged_row_major, "            cuda.syncthreads()\n", "", 0),
    "no barrier before the next slice": (k62_staged_row_major, "            cuda.syncthreads()\n", "", 1),
    "a slice too few": (k62_staged_row_major, "while low < tile:", "while low + SLICE < tile:", 0),
    "a k too few": (k63_staged_natural, "while turn < SLICE:", "while turn + 1 < SLICE:", 0),
    "no way round": (k63_staged_natural, "k = (first + turn) & 3", "k = min(first + turn, 3)", 0),
    "the slice of another block": (k63_staged_natural, "+ low * 4 +", "+ low * 8 % (4 * tile) +", 0),
}


def test_broken_staged_kernels_are_caught(tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = []
    for number, (broken, old, new, occurrence) in enumerate(MUTANTS.values()):
        # the natural order is built as the cyclic one, so that both are under test
        source = Path(broken.__file__).read_text().replace("cyclic=False", "cyclic=True")
        path = tmp_path / f"mutant{number}.py"
        path.write_text(mutant(source, old, new, occurrence))
        cases.append({"kernel": str(path), "n": 16, "tile": 8, "dtype": "int32", "graphs": 5})
    unchanged = [{**cases[0], "kernel": name} for name in ("staged-row-major", "staged-natural", "staged-load")]
    told = all_right([*unchanged, *cases])
    assert told[:3] == [True] * 3
    assert not [name for name, right in zip(MUTANTS, told[3:], strict=True) if right]
