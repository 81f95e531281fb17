"""R-Kleene: its recursion as a plan, its three multiplies, and its base case with any number of threads."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from in_simulator import all_right

from fwtui.analysis.plan_checks import races
from fwtui_kernels import k71_kleene_base, registry
from fwtui_kernels.k70_kleene import beta
from fwtui_kernels.plan import Shape, Step, Target

KLEENE, BASE = registry()["kleene"], registry()["kleene-base"]


def shape_of(n: int, tile: int, dtype: str = "float32", **options: int) -> Shape:
    return Shape(n, tile, dtype, options=tuple(sorted(options.items())))


@pytest.mark.parametrize(("n", "tile"), [(1, 4), (5, 4), (29, 4), (40, 8), (100, 16)])
def test_a_recursion_over_some_tiles_has_a_base_case_for_each_and_six_multiplies_between(n: int, tile: int) -> None:
    shape = shape_of(n, tile, wide=8)
    plan, tiles = list(KLEENE.plan(shape, False)), shape.padded // tile
    assert [s.op for s in plan].count("base") == tiles and len(plan) == 7 * tiles - 6


def test_the_width_chooses_the_multiply_and_a_larger_beta_makes_one_needless() -> None:
    for tile, wide in ((4, 8), (8, 64), (16, 64), (32, 64), (32, 512)):
        shape = shape_of(1000, tile, wide=wide)
        for step in KLEENE.plan(shape, False):
            if step.op == "base":
                continue
            widest = max(step.args[3:])
            assert step.op == step.phase
            assert step.op == ("sequential" if widest < beta(shape) else "regular" if widest < wide else "volkov")
            # all that the regular and the sequential kernel rely on: whole tiles
            assert all(a % tile == 0 for a in step.args)
            assert step.op != "sequential" or step.args[3:] == (tile, tile, tile)
    assert {s.op for s in KLEENE.plan(shape_of(1000, 16, wide=64), False)} == {"base", "sequential", "regular", "volkov"}
    pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    shape = shape_of(1000, 32, wide=64)
    assert {s.op for s in KLEENE.plan(shape, False)} == {"base", "sequential", "volkov"}
    program: Any = KLEENE.build(shape, Target("cuda", (9, 0)))
    assert set(program.ops) == {"base", "sequential", "volkov"}


def test_the_halves_wait_and_bytes_of_the_base_case_follow_the_two_access_models() -> None:
    """Henriod's first idea puts the second half on a separate device, but it reads what steps of the first half write."""
    plan = list(KLEENE.plan(shape_of(32, 4, wide=64), False))
    assert {s.lane for s in plan} == {0} and races(plan) == []
    second = [all(r.top >= 16 and r.left >= 16 for r in (*s.reads, *s.writes)) for s in plan]
    apart = [replace(s, lane=1) if mine else s for s, mine in zip(plan, second, strict=True)]
    found = races(apart)
    carried = next(i for i, s in enumerate(plan) if s.args == (16, 16, 0, 16, 16, 16))
    assert any(plan[i].op == "base" for i, mine in enumerate(second) if mine)
    assert carried in {i for pair in found for i in pair}, "A22 takes in A21 A12 before it can be closed"

    def base_bytes(steps: Iterable[Step]) -> set[int]:
        return {s.cost.device_bytes for s in steps if s.op == "base"}

    shape = shape_of(64, 8, results=4, keep=0, wide=64)
    # 2 reads and 1 write per cell and step, against one read and one write per cell
    assert base_bytes(KLEENE.plan(shape, False)) == {8 * 8 * 8 * 3 * 4}
    assert base_bytes(BASE.plan(shape, False)) == {8 * 8 * 2 * 4}
    multiplies = [[s for s in k.plan(shape, False) if s.op != "base"] for k in (KLEENE, BASE)]
    assert multiplies[0] == multiplies[1]


def test_more_launches_than_a_run_can_hold_are_refused() -> None:
    for kernel in (KLEENE, BASE):
        assert kernel.refuses(shape_of(65536, 8)) is None
        sentence = kernel.refuses(shape_of(65536, 4))
        assert sentence and "tile 4" in sentence and "65536" in sentence and "larger tile" in sentence


def test_fewer_threads_with_more_results_cover_the_block() -> None:
    pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    for results, tile, keep in product((1, 4, 16), BASE.tiles, (0, 1)):
        program: Any = BASE.build(shape_of(100, tile, results=results, keep=keep), Target("cuda", (9, 0)))
        block = program.ops["base"].block
        assert block[0] * block[1] * results == tile * tile


def test_all_multiplies_are_right_with_unequal_halves_and_several_blocks() -> None:
    cases = [
        {"kernel": "kleene", "n": n, "tile": tile, "dtype": dtype, "kind": kind, "options": {"wide": wide}}
        for n, tile, dtype, kind, wide in (
            *((20, 4, "float32", "negative", 8), (20, 4, "int32", "ring", 64), (19, 4, "int16", "sparse", 8)),
            *((17, 4, "int32", "cycle", 8), (24, 8, "float32", "sparse", 8), (22, 8, "int16", "ring", 64)),
        )
    ]
    assert all_right(cases) == [True] * len(cases)


def base_case(kernel: str, tile: int, results: int, keep: int, graphs: int = 1) -> dict[str, Any]:
    case = {"kernel": kernel, "n": tile, "tile": tile, "dtype": "int32", "kind": "ring", "graphs": graphs}
    return {**case, "options": {"results": results, "keep": keep}}


def test_the_base_case_is_right_with_any_number_of_threads() -> None:
    cases = [
        {**base_case("kleene-base", tile, results, keep), "n": n, "dtype": dtype, "kind": kind}
        for keep in (0, 1)
        for n, tile, dtype, kind, results in (
            *((7, 4, "int16", "ring", 1), (7, 4, "int32", "negative", 4), (7, 4, "float32", "ring", 16)),
            *((8, 8, "int32", "ring", 4), (8, 8, "int16", "sparse", 16), (8, 8, "int32", "cycle", 4)),
        )
    ]
    assert all_right(cases) == [True] * len(cases)


STEPS = "        for k in range(tile):\n            for b in range(across):\n                from_k[b]"
BARRIER = "            cuda.syncthreads()\n"
WRITE_BACK = "        for a in range(across):\n            for b in range(across):\n                distance["
FAULTY = {  # what is replaced, by what, and where the fault lies: the shared-memory variant (0) or the one in registers (1)
    # 32 threads make up one warp, which may keep in step by itself, so nobody notices; several warps do not
    "no barrier after a step": (BARRIER + WRITE_BACK, WRITE_BACK, 0),
    "no barrier before row k and column k are read": (BARRIER + "            for a", "            for a", 1),
    "one copy of row k and column k": ("turn = k & 1", "turn = 0", 1),
    # "simulating a larger number of threads": each result goes through all k on its own
    "all steps of a result before the next result": (
        STEPS,
        "        for c in range(across):\n"
        "            for q in range(tile):\n"
        "                for b in range(across):\n"
        "                    via = number(own[y + c * side, q] + own[q, x + b * side])\n"
        "                    if via < own[y + c * side, x + b * side]:\n"
        "                        own[y + c * side, x + b * side] = via\n"
        "                cuda.syncthreads()\n"
        "        for k in range(0):\n            for b in range(across):\n                from_k[b]",
        0,
    ),
}


def test_a_faulty_base_case_is_wrong_and_ours_is_right(tmp_path: Path) -> None:
    """Starting a step too early gives wrong results with more than a few threads, as Henriod saw without a cause."""
    assert k71_kleene_base.__file__ is not None
    source = Path(k71_kleene_base.__file__).read_text()

    cases, names = [], []
    for number, (name, (old, new, keep)) in enumerate(FAULTY.items()):
        assert source.count(old) == 1, name
        faulty, ours = tmp_path / f"faulty{number}.py", tmp_path / f"ours{number}.py"
        faulty.write_text(source.replace(old, new))
        ours.write_text(source)
        # a race may come out right by luck: ten tries
        names += [(name, "ours"), (name, "many threads")]
        cases += [base_case(str(ours), 8, 4, keep, 2), base_case(str(faulty), 8, 4, keep, 10)]
        if "barrier" in name:
            names.append((name, "one thread"))
            cases.append(base_case(str(faulty), 4, 16, keep, 2))
    told = dict(zip(names, all_right(cases), strict=True))
    assert told == {key: key[1] != "many threads" for key in names}
