"""Condenses a plan: the seconds of its stretches by phase and by round, and one launch of each operation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from fwtui.engine.engine import Stretch
from fwtui.stream.events import Part
from fwtui_kernels.plan import Cost, Step

MOST_ROUNDS = 64  # kept of one run


def parts_of(parts: Sequence[Stretch], seconds: Sequence[float], phases: Sequence[str]) -> tuple[Part, ...]:
    """One Part for each phase that occurs, in the kernel's order."""
    told = (
        Part(
            phase=phase,
            seconds=sum(s for p, s in zip(parts, seconds, strict=True) if p.phase == phase),
            launches=sum(len(p.steps) for p in parts if p.phase == phase),
            **Cost.total(p.cost for p in parts if p.phase == phase)._asdict(),
        )
        for phase in phases
        if any(p.phase == phase for p in parts)
    )
    return tuple(part for part in told if part.launches or part.seconds)


def rounds_of(
    parts: Sequence[Stretch], seconds: Sequence[float], phases: Sequence[str]
) -> list[tuple[int, int, tuple[float, ...]]]:
    """At most 64 evenly chosen rounds: (index, relaxations before it, seconds per phase). A round begins at the first phase.

    Empty if the plan has only one round, which would equal the sum.
    """
    starts = [i for i, p in enumerate(parts) if p.phase == phases[0]]
    if len(starts) < 2:
        return []
    before = list(accumulate((part.cost.relaxations for part in parts), initial=0))
    every = -(-len(starts) // MOST_ROUNDS)
    rounds = list(enumerate(pairwise([*starts, len(parts)])))[::every]
    return [
        (index, before[begin], tuple(sum(seconds[i] for i in range(begin, end) if parts[i].phase == phase) for phase in phases))
        for index, (begin, end) in rounds
    ]


def representatives(plan: Sequence[Step]) -> dict[int, str]:
    """Index in the plan -> op: the middle one of each op's launches with the most relaxations."""
    most: dict[str, int] = {}
    for step in plan:
        most[step.op] = max(most.get(step.op, 0), step.cost.relaxations)
    largest: dict[str, list[int]] = {op: [] for op in most}
    for index, step in enumerate(plan):
        if step.cost.relaxations == most[step.op]:
            largest[step.op].append(index)
    return {indices[len(indices) // 2]: op for op, indices in largest.items()}
