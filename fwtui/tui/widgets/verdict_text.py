"""The summary of a run as lines of text, the same on every screen."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from textual.content import Content

from fwtui.analysis.run_summary import LABELS, NEXT, Assessment
from fwtui.common import units
from fwtui.common.text import truncate
from fwtui.tui import charts
from fwtui.tui.widgets.text_panel import MUTED, STRONG, line

LABEL = 14
NAME = 19  # cells of a kernel's name
TIME = 10


def headline(assessment: Assessment) -> Content:
    """Return the comparison with the baseline in one line, and whether the distances are identical."""
    answer = "   identical distances" if assessment.same_answer else ""
    return line((assessment.headline_upper if assessment.times else assessment.headline, STRONG), (answer, "$text-success"))


def bars(assessment: Assessment, width: int) -> list[Content]:
    """Draw the median times of both runs as bars on one scale; empty without a baseline."""
    if assessment.baseline is None:
        return []
    both = (assessment.baseline, assessment.run)
    names = [run.title or run.experiment.kernel for run in both]
    if names[0] == names[1]:
        names = [f"run {run.id}" for run in both]
    room = max(4, width - NAME - TIME)
    drawn_bars = charts.bars([run.seconds for run in both], room)
    return [
        line(
            (f"{truncate(name, NAME - 1):<{NAME}}", STRONG if run is assessment.run else MUTED),
            (bar, "$primary" if run is assessment.run else MUTED),
            f"{units.duration(run.seconds):>{TIME}}",
        )
        for run, name, bar in zip(both, names, drawn_bars, strict=True)
    ]


def explained(
    assessment: Assessment, width: int, fix: str = "", key: str = "", only: Collection[str] = LABELS, sourced: bool = False
) -> list[Content]:
    """Return the reason, the bottleneck and the next rung, each with its label.

    `fix` is the instruction for measuring missing data, `key` runs the next rung, `sourced` adds the origin of the numbers.
    """
    offer = f"{key}: try it" if key and assessment.next is not None else ""
    rows: list[Content] = []
    before = ""
    for label, text in ((label, text) for label, text in assessment.parts(fix, sourced) if label in only):
        rows += _labelled(label if label != before else "", text, width, offer if label == NEXT else "")
        before = label
    return rows


def _labelled(label: str, text: str, width: int, offer: str = "") -> list[Content]:
    """Return a label with its text to the right; the offer follows in the last line or in a separate one."""
    room = max(width - LABEL, 10)
    parts: Sequence[Content] = Content(text).wrap(room)
    if offer:
        last, more = parts[-1], line("  ", (f"[{offer}]", "$text-primary"))
        fits = last.cell_length + more.cell_length <= room
        parts = [*parts[:-1], line(last, more)] if fits else [*parts, more]
    style = "$text-primary" if label == NEXT else MUTED
    return [line((f"{label if place == 0 else '':<{LABEL}}", style), part) for place, part in enumerate(parts)]
