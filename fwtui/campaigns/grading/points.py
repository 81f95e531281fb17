"""From what came of a submission to its points: nothing here runs anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from fwtui.campaigns.grading.rubric import Rubric, Timing
from fwtui.common.units import counted, digits
from fwtui.stream.grades import GradedGraph, Judgement


class KindGrade(NamedTuple):
    """Points of one kind; `of` is 0 where none of its graphs could be tried."""

    name: str
    points: float
    of: float
    right: int
    tried: int


class Grade(NamedTuple):
    """A submission's points, out of those that could be had on this device."""

    file: str
    points: float
    of: float
    passed: bool
    verdict: str
    kinds: tuple[KindGrade, ...]
    time_points: float | None  # None: no time could be taken
    seconds: float | None
    rung_seconds: float | None
    share: float | None  # of the rung's time
    backend: str  # that it says it has; empty: not known
    own_seconds: float | None  # by the clock of its own process

    def data(self, against: str) -> dict[str, Any]:
        """All of it as plain values under stable names."""
        fields = self._asdict()
        fields["kinds"] = {kind.name: {name: v for name, v in kind._asdict().items() if name != "name"} for kind in self.kinds}
        return {**fields, "against": against or None}


def timeable(judgement: Judgement) -> bool:
    """Whether a submission is worth the clock: right on every graph, and not simulated."""
    return _fault(judgement) == "" and not judgement.unlike_watch and not judgement.simulated


def grade(rubric: Rubric, file: str, judgement: Judgement, timed: Judgement | None, clock: bool) -> Grade:
    """The points. `timed` is what came of the clock, where it was asked; `clock`: times can be taken on this device."""
    timed = timed or Judgement()
    if rubric.require and judgement.backend not in ("", rubric.require) and not judgement.foul:
        foul = f"its backend is {judgement.backend}, and the rubric requires {rubric.require}"
        judgement = msgspec.structs.replace(judgement, foul=foul)
    nothing = ((),) * len(rubric.kinds)
    results = nothing if judgement.foul or timed.foul else judgement.kinds
    kinds = tuple(
        _of_kind(kind.name, kind.points, len(kind.graphs()), kind_results)
        for kind, kind_results in zip(rubric.kinds, results, strict=True)
    )
    points, of = sum(kind.points for kind in kinds), sum(kind.of for kind in kinds)
    timing, time_points, share = rubric.timing, None, None
    if timing is not None and clock and not judgement.simulated:
        if timed.seconds is not None and timed.rung_seconds is not None and not timed.foul:
            share = timed.seconds / timed.rung_seconds
        time_points = points_for(timing, share)
        points, of = points + time_points, of + timing.points
    uses = [f"it uses {'rungs' if judgement.rungs[1:] else 'the rung'} {', '.join(judgement.rungs)}"] * bool(judgement.rungs)
    return Grade(
        file=file,
        points=round(points, 2),
        of=round(of, 2),
        passed=points >= rubric.needed * of - 1e-9 and of > 0 and not (judgement.unlike_watch and not _fault(judgement)),
        verdict="; ".join([_verdict(judgement, timed, timing, share), *uses]),
        kinds=kinds,
        time_points=time_points,
        seconds=timed.seconds,
        rung_seconds=timed.rung_seconds,
        share=share,
        backend=judgement.backend,
        own_seconds=timed.own_seconds,
    )


def points_for(timing: Timing, share: float | None) -> float:
    """Points for that share of the rung's time; None gets none."""
    if share is None:
        return 0.0
    part = (timing.zero - share) / (timing.zero - timing.full)
    return round(timing.points * min(max(part, 0.0), 1.0), 2)


def _of_kind(name: str, points: float, graphs: int, results: Sequence[GradedGraph]) -> KindGrade:
    judged = [result for result in results if result.right is not None]
    if not results:  # nothing of it counts
        return KindGrade(name, 0.0, points, 0, graphs)
    if not judged:
        return KindGrade(name, 0.0, 0.0, 0, 0)
    right = sum(bool(result.right) for result in judged)
    return KindGrade(name, round(points * right / len(judged), 2), points, right, len(judged))


def _fault(judgement: Judgement) -> str:
    """The first thing that is not right; empty if all that could be tried is."""
    wrong = (result.sentence for kind in judgement.kinds for result in kind if result.right is False)
    return judgement.foul or next(wrong, "")


def _verdict(judgement: Judgement, timed: Judgement, timing: Timing | None, share: float | None) -> str:
    if foul := judgement.foul or timed.foul:
        return foul
    judged = [result.right for kind in judgement.kinds for result in kind if result.right is not None]
    if fault := _fault(judgement):
        return f"right on {sum(map(bool, judged))} of {counted(len(judged), 'graph')}; {fault}"
    if not judged:
        return "nothing could be tried here; it takes a GPU" if judgement.simulated else "nothing could be tried here"
    right = f"right on all {len(judged)} graphs" if len(judged) > 1 else "right on the only graph"
    if judgement.unlike_watch:
        return f"{right} here, and not of `fwtui watch`: {judgement.unlike_watch}"
    if timing is not None and judgement.simulated:
        return f"{right}; the simulator has no time"
    if timing is not None and share is not None:
        return f"{right}; {digits(share)} times the time of {timing.against}"
    if timed.untimed:
        return f"{right}; not timed: {timed.untimed}"
    return right
