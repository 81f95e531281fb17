"""The distributed rungs: plans over several ranks. Ranks that compute: test_register_tiled_code.py, engine/test_ranks.py."""

from dataclasses import replace

import pytest

from fwtui.analysis.plan_checks import find_plan_errors, races
from fwtui_kernels import registry
from fwtui_kernels.parts.distributed import panel_bytes
from fwtui_kernels.plan import EVERY, Shape, Step
from fwtui_kernels.programs.rank_programs import RankRows

GPUS = registry()["distributed"]


def plan(n: int, ranks: int) -> list[Step]:
    return list(GPUS.plan(Shape(n, 4, ranks=ranks), False))


@pytest.mark.parametrize("ranks", [2, 3, 9])
def test_plans_of_several_ranks_are_sound(ranks: int) -> None:
    for n in (1, 13, 29):
        assert find_plan_errors(GPUS, Shape(n, 4, ranks=ranks)) == []


@pytest.mark.parametrize("ranks", [1, 3])
def test_each_after_is_needed(ranks: int) -> None:
    steps = plan(24, ranks)
    assert races(steps) == []
    own = [(step.rank, step.lane) for step in steps]
    waits = {index for index, step in enumerate(steps) for earlier in step.after if own[index] != own[earlier]}
    assert waits and all(races([*steps[:at], replace(steps[at], after=()), *steps[at + 1 :]]) for at in waits)


def test_the_next_panel_travels_while_all_work_on_the_rest() -> None:
    steps = plan(32, 2)
    for p in range(1, 8):
        sent = next(i for i, step in enumerate(steps) if step.op == "broadcast" and step.args[0] == p)
        meanwhile = [i for i, step in enumerate(steps) if step.op == "rest" and step.args[0] == p - 1 and step.lane == 0]
        assert not set(meanwhile) & set(steps[sent].after)
        assert all(i > sent for i in meanwhile), "each rank launches the broadcast first"


@pytest.mark.parametrize("ranks", [2, 3])
def test_each_round_sends_one_panel_to_all_others(ranks: int) -> None:
    shape = Shape(29, 4, ranks=ranks)
    sent = [step for step in GPUS.plan(shape, False) if step.rank == EVERY]
    assert [step.args for step in sent] == [(p, p % ranks) for p in range(8)]
    assert {step.cost.link_bytes for step in sent} == {(ranks - 1) * panel_bytes(shape, shape.word_bytes)}


@pytest.mark.parametrize(("n", "ranks"), [(1, 1), (1, 3), (13, 2), (29, 3), (32, 4), (5, 8)])
def test_every_row_belongs_to_one_rank(n: int, ranks: int) -> None:
    shape, found = Shape(n, 4, ranks=ranks), list[int]()
    for rank in range(ranks):
        rows = RankRows(shape, rank)
        blocks = [(range(n)[own], range(n)[whole]) for own, whole in rows.blocks(3)]
        assert [row for own, _ in blocks for row in own] == list(range(rows.count)) and rows.size[0] <= max(4, shape.rows)
        found += [row for _, whole in blocks for row in whole]
    assert sorted(found) == list(range(n))
