"""Seconds of stretches, summed by phase and cut into rounds."""

from __future__ import annotations

from collections.abc import Sequence

from fwtui.engine.engine import Stretch
from fwtui.stream.events import Part
from kernels.plan import Cost

MOST_ROUNDS = 64  # kept of one run


def parts_of(parts: Sequence[Stretch], seconds: Sequence[float], phases: Sequence[str]) -> tuple[Part, ...]:
    """One Part for each phase that occurs, in the kernel's order."""
    return tuple(
        Part(
            phase=phase,
            seconds=sum(s for p, s in zip(parts, seconds, strict=True) if p.phase == phase),
            launches=sum(len(p.steps) for p in parts if p.phase == phase),
            **Cost.total(p.cost for p in parts if p.phase == phase)._asdict(),
        )
        for phase in phases
        if any(p.phase == phase for p in parts)
    )


def rounds_of(
    parts: Sequence[Stretch], seconds: Sequence[float], phases: Sequence[str]
) -> list[tuple[int, int, tuple[float, ...]]]:
    """At most 64 evenly chosen rounds: (index, relaxations before it, seconds per phase). A round begins at the first phase.

    Empty where the plan has one round only: it would say nothing that the sum does not.
    """
    starts = [i for i, p in enumerate(parts) if p.phase == phases[0]]
    if len(starts) < 2:
        return []
    before = [0]
    for part in parts:
        before.append(before[-1] + part.cost.relaxations)
    ends = [*starts[1:], len(parts)]
    every = -(-len(starts) // MOST_ROUNDS)
    return [
        (
            index,
            before[starts[index]],
            tuple(sum(seconds[i] for i in range(starts[index], ends[index]) if parts[i].phase == phase) for phase in phases),
        )
        for index in range(0, len(starts), every)
    ]
