"""Which launch of an operation stands for all of them."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.plan import Step


def representatives(plan: Sequence[Step]) -> dict[int, str]:
    """Index in the plan -> op: of the launches of each op that do the most relaxations, the middle one."""
    most: dict[str, int] = {}
    for step in plan:
        most[step.op] = max(most.get(step.op, 0), step.cost.relaxations)
    largest: dict[str, list[int]] = {op: [] for op in most}
    for index, step in enumerate(plan):
        if step.cost.relaxations == most[step.op]:
            largest[step.op].append(index)
    return {indices[len(indices) // 2]: op for op, indices in largest.items()}
