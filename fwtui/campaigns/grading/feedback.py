"""A page for each submission: its points, and what came of every graph, in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from fwtui.campaigns.grading.points import Grade
from fwtui.campaigns.grading.rubric import Rubric
from fwtui.campaigns.grading.running import Submission
from fwtui.common.atomic_file import whole_file
from fwtui.common.errors import Refused, why
from fwtui.common.text import clean, shown
from fwtui.common.units import duration


def write_pages(folder: Path, rubric: Rubric, graded: Sequence[tuple[Submission, Grade]]) -> None:
    """Write them all; a page of an earlier grading is replaced. Raises Refused."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"no page can be written in {shown(str(folder))}: {why(error)}; choose another folder") from None
    for submission, grade in graded:
        with whole_file(folder / page_name(submission)) as file:
            file.write("\n".join([*page(rubric, submission, grade), ""]).encode("utf-8", "replace"))


def page_name(submission: Submission) -> str:
    """The submission's path as it was given, as one name: hw-ada.md."""
    return re.sub(r"[^\w.-]+", "-", clean(submission.shown).removesuffix(".py")).strip("-.") + ".md"


def page(rubric: Rubric, submission: Submission, grade: Grade) -> Iterator[str]:
    yield from (f"# {submission.shown}", "", f"{grade.points:g} of {grade.of:g} points: {grade.verdict}.")
    judgement = submission.judgement
    for kind, found in zip(grade.kinds, judgement.kinds if judgement is not None else (), strict=False):
        yield from ("", f"## {kind.name}: {kind.points:g} of {kind.of:g}", "")
        yield from (f"- {clean(graph.sentence)}" for graph in found)
    if rubric.timing is not None and grade.time_points is not None:
        yield from ("", f"## Time: {grade.time_points:g} of {rubric.timing.points:g}", "")
        if grade.seconds is not None and grade.rung_seconds is not None:
            own = f" ({duration(grade.own_seconds)} by its own clock)" if grade.own_seconds is not None else ""
            rung = f"{rubric.timing.against} takes {duration(grade.rung_seconds)}"
            yield f"- A pass of n = {rubric.timing.n} takes {duration(grade.seconds)}{own}; {rung}."
