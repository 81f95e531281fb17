"""Broken plans: one sentence names the step and its cells."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import pytest

from fwtui.analysis.plan_checks import MAX_STEPS, check_plan, describe_rect, find_plan_errors
from fwtui_kernels import registry
from fwtui_kernels.plan import Cost, Kernel, Rect, Shape, Step

BLOCKED, NAIVE, AHEAD = (registry()[name] for name in ("katz-kider", "naive", "look-ahead"))
SHAPE = Shape(12, 4)
Change = Callable[[list[Step]], list[Step]]


def broken(kernel: Kernel, change: Change) -> Kernel:
    """Return the kernel with a changed plan."""

    def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
        yield from change(list(kernel.plan(shape, stepwise)))

    return replace(kernel, plan=plan)


def at(index: int, **changes: object) -> Change:
    """Return a change of the step in that place."""
    return lambda plan: [replace(step, **changes) if place == index else step for place, step in enumerate(plan)]  # type: ignore[arg-type]


def without(index: int) -> Change:
    return lambda plan: [step for place, step in enumerate(plan) if place != index]


def swapped(one: int, other: int) -> Change:
    def change(plan: list[Step]) -> list[Step]:
        if len(plan) > other:
            plan[one], plan[other] = plan[other], plan[one]
        return plan

    return change


WRONG: dict[str, tuple[Change, str]] = {
    "no steps": (lambda plan: [], "the plan has no step"),
    "an unknown phase": (at(1, phase="panel"), "step 1 is of the phase 'panel', which is not in the phases of the kernel"),
    "nothing written": (at(1, writes=()), "panels of round 1 writes nothing"),
    "beyond the matrix": (at(1, reads=(Rect(0, 0, 4, 16),)), "panels of round 1 names rows 0-3, columns 0-15, which is outside"),
    "written twice": (at(1, writes=(Rect(0, 4, 4, 12), Rect(0, 8, 4, 12))), "panels of round 1 writes rows 0-3, columns"),
    "waits for itself": (at(2, after=(2,)), "remainder of round 1 (step 2) waits for step 2, which is not before it"),
    "a race": (  # on two lanes
        lambda plan: [replace(step, lane=1) if step.phase == "rest" else step for step in plan],
        "panels of round 1 writes rows 0-3, columns 4-11, which remainder of round 1 reads at the same",
    ),
    "a step too few": (without(2), "256 of 1,728 relaxations are never done, the first of them row 4, column 4 over k ="),
    "a panel twice": (lambda plan: [*plan, plan[1]], "rows 0-3, columns 4-11 are relaxed over k = 0 twice, by panels of"),
    "an unclear k": (at(2, cost=Cost(100, 0)), "remainder of round 1 claims 100 relaxations of 64 cells, but its rectangles do"),
    "rest before its panels": (swapped(1, 2), "remainder of round 1 uses row 4, column 1 before panels of round 1 has"),
    "the next pivot before this rest": (swapped(2, 3), "pivot of round 2 uses row 4, column 5 before remainder of round 2 has"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_broken_plan_is_reported_in_one_sentence(name: str) -> None:
    change, sentence = WRONG[name]
    told = find_plan_errors(broken(BLOCKED, change), SHAPE)[0]
    assert told.startswith(sentence), told


def test_every_forgotten_wait_of_look_ahead_is_a_race() -> None:
    shape = Shape(20, 4, options=AHEAD.defaults)
    waiting = [index for index, step in enumerate(AHEAD.plan(shape, False)) if step.after]
    assert waiting
    for index in waiting:
        found = find_plan_errors(broken(AHEAD, at(index, after=())), shape)
        assert found, index
        race = r".+ of round \d+ writes rows? .+, columns? .+, which .+ (reads|writes) at the same time"
        assert all(re.fullmatch(race, sentence) for sentence in found)


def test_undeclared_reads_are_found_in_the_smallest_graph() -> None:
    forgotten = broken(NAIVE, lambda plan: [replace(step, reads=step.reads[:1]) for step in plan])
    (told,) = find_plan_errors(forgotten, Shape(5))
    assert "depends on cells that its step does not list in `reads`" in told
    step = next(iter(NAIVE.plan(Shape(4), False)))
    endless = replace(NAIVE, plan=lambda shape, stepwise: (step for _ in count()))
    (told,) = find_plan_errors(endless, Shape(4))
    assert f"more than {MAX_STEPS:,} steps" in told
    (told,) = check_plan(broken(BLOCKED, without(2)))
    assert told.endswith("(n = 5, tile 4)") and check_plan(BLOCKED) == []
    assert describe_rect(Rect(0, 32, 32, 64)) == "rows 0-31, columns 32-63"
    assert describe_rect(Rect(5, 7, 6, 8)) == "row 5, column 7"
