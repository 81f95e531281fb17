"""What the lanes and `after` of a plan promise: which steps are ordered, and which pairs race."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from kernels.plan import Step


def ancestors(plan: Sequence[Step]) -> list[int]:
    """For each step, the set of steps that must have finished before it starts, as a bit set of indices.

    A lane runs its steps in order; `after` orders steps of different lanes. Raises ValueError for an `after` that
    does not point backwards.
    """
    last: dict[int, int] = {}
    before: list[int] = []
    for index, step in enumerate(plan):
        mine = 0
        for earlier in (*([last[step.lane]] if step.lane in last else []), *step.after):
            if not 0 <= earlier < index:
                raise ValueError(f"step {index} ({step.op}) waits for step {earlier}, which is not before it")
            mine |= before[earlier] | 1 << earlier
        before.append(mine)
        last[step.lane] = index
    return before


def races(plan: Sequence[Step]) -> list[tuple[int, int]]:
    """Pairs of steps that touch the same cells, at least one writing, and that nothing orders."""
    before = ancestors(plan)
    lanes = {step.lane for step in plan}
    if len(lanes) < 2:
        return []
    return [
        (i, j)
        for j, late in enumerate(plan)
        for i, early in enumerate(plan[:j])
        if early.lane != late.lane and not before[j] >> i & 1 and _conflict(early, late)
    ]


def legal_order(plan: Sequence[Step], random: Random) -> Iterator[int]:
    """Indices of the plan in one random order that its lanes and `after` allow."""
    before = ancestors(plan)
    done = 0
    left = set(range(len(plan)))
    while left:
        index = random.choice(sorted(i for i in left if not before[i] & ~done))
        yield index
        done |= 1 << index
        left.discard(index)


def _conflict(a: Step, b: Step) -> bool:
    return any(w.overlaps(x) for w in a.writes for x in (*b.writes, *b.reads)) or any(
        w.overlaps(x) for w in b.writes for x in a.reads
    )
