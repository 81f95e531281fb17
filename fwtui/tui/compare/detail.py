"""The table of compared runs; verdict and per-phase times of one run and its baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text
from textual.content import Content
from textual.events import Resize

from fwtui.analysis.columns import COMPARISON, NARROW, WIDE, WIDEST, TableRow, columns_of
from fwtui.analysis.compare import FASTER, NOT_COMPARED, SAME, SLOWER, UNCLEAR, ComparedRun, Comparison, Delta
from fwtui.analysis.disturbances import phase_times_warning
from fwtui.analysis.rank_timing import rank_times
from fwtui.analysis.run_summary import Assessment
from fwtui.common import units
from fwtui.common.text import truncate
from fwtui.stream.run import Run
from fwtui.tui import charts
from fwtui.tui.widgets.run_table import RunTable, Widths, cell, room_beside, size_cells
from fwtui.tui.widgets.run_text import rank_lines
from fwtui.tui.widgets.text_panel import MUTED, STRONG, Piece, TextPanel, hanging_indent, line
from fwtui.tui.widgets.verdict_text import explained, headline

LABEL = 16
MIN_NAMES = 70  # cells from which the line of both names has room
NUMBER = 10
STYLES = {FASTER: "$text-success", SLOWER: "$text-error", SAME: "", UNCLEAR: "$text-warning", NOT_COMPARED: MUTED}
MAX_ROWS = 100
# minimum width of the table, and the widths of the columns run, kernel and verdict from that width on
CELLS = ((WIDEST, 19, 23, 12), (WIDE, 19, 16, 12), (NARROW + 6, 14, 14, 12), (0, 8, 12, 8))
MIN_BECAUSE = 30


class Pair(NamedTuple):
    """A run, the baseline, and their comparison."""

    entrant: ComparedRun
    baseline: ComparedRun
    comparison: Comparison
    assessment: Assessment
    details: bool = False  # show the origin of the numbers


class CompareVerdict(TextPanel[Pair | str]):
    """Both names with the verdict, its explanation, and other differences; a hint if there are no two runs."""

    def draw(self, subject: Pair | str, width: int) -> Sequence[Content]:
        if isinstance(subject, str):
            return line((subject, MUTED)).wrap(width)
        found, assessment, compared = subject.comparison, subject.assessment, subject.assessment.comparison is not None
        sure = found.verdict in (FASTER, SLOWER)
        pieces: list[Piece] = [(subject.entrant.label, STRONG), (" against ", MUTED), (subject.baseline.label, STRONG), "  "]
        pieces.append((found.verdict, f"{STRONG} {STYLES[found.verdict]}".strip()))
        noisy = found.why.removeprefix(f"{found.ratio.text}: ") if found.ratio is not None and found.disturbed and sure else ""
        if sure and not noisy:
            pieces.append((f"  {found.why}", MUTED))
        details = subject.details
        why = explained(assessment, width, sourced=details) if compared else hanging_indent("reason", LABEL, [found.why], width)
        return [
            *([headline(assessment)] if compared else []),
            *(line(*pieces).wrap(width) if width >= MIN_NAMES or not sure else []),  # the table and the headline show it too
            *why,
            *hanging_indent("differs in", LABEL, found.differs or ("only the times",), width, most=2),
            *(hanging_indent("noise", LABEL, [noisy], width, MUTED, most=8) if noisy else []),
        ]


class Deltas(TextPanel[Pair | None]):
    """Median time, per-phase times and untimed stages: bars on one scale, times and changes; then the ranks."""

    def draw(self, subject: Pair, width: int) -> Sequence[Content]:
        found = subject.comparison
        lines = [line((f"{'':<{LABEL}}{'':<{_room(width)}}{'baseline':>{NUMBER}}{'run':>{NUMBER}}{'change':>{NUMBER}}", MUTED))]
        lines += _bars((found.total, *found.phases), width)
        if found.stages:
            both = [d for d in found.stages if d.baseline is not None and d.seconds is not None]  # a cached graph takes no time
            changes = [f"{d.title} {units.duration(d.baseline)} → {units.duration(d.seconds)}" for d in both]
            lines += hanging_indent("not timed", LABEL, changes, width, most=6)
        if ranks := rank_times(subject.entrant.run):
            lines += [line(""), *rank_lines(subject.entrant.run, ranks, width)]
        for entrant in (subject.entrant, subject.baseline):
            if warning := phase_times_warning(entrant.run):
                lines += hanging_indent(truncate(entrant.label, LABEL - 1), LABEL, [warning], width)
        return lines


def share_changed(share: float | None) -> str:
    """Format a change as +3.1 %; a large one as a factor."""
    if share is None:
        return ""
    return units.gain(1 + share) if share >= 9.995 else f"{100 * share:+.1f} %"


def _room(width: int) -> int:
    return max(4, width - LABEL - 3 * NUMBER)


def _bars(parts: Sequence[Delta], width: int) -> list[Content]:
    room = _room(width) - 1
    drawn_bars = charts.bars([s for part in parts for s in (part.baseline, part.seconds)], max(1, room))
    lines: list[Content] = []
    for place, part in enumerate(parts):
        title = (f"{truncate(part.title, LABEL - 1):<{LABEL}}", MUTED)
        if part.baseline is not None:
            lines.append(line(title, (drawn_bars[2 * place], MUTED), (f" {units.duration(part.baseline):>{NUMBER}}", MUTED)))
            title = (" " * LABEL, "")
        if part.seconds is not None:
            change = share_changed(part.change)
            bar, took = (drawn_bars[2 * place + 1], "$primary"), f" {'':>{NUMBER}}{units.duration(part.seconds):>{NUMBER}}"
            lines.append(line(title, bar, took, (f"{change:>{NUMBER}}", STRONG)))
    return lines


class CompareRow(NamedTuple):
    """A run and its comparison; None for the baseline."""

    entrant: ComparedRun
    comparison: Comparison | None
    pinned: bool = False


def columns(width: int, runs: Sequence[Run] = ()) -> Widths:
    """Return the columns of a table of `width` cells with their widths; the reason gets the remaining cells."""
    run, kernel, verdict = next(row_cells for least, *row_cells in CELLS if width >= least)
    overrides = {"run": run, "kernel": kernel, "verdict": verdict, "n": size_cells(runs)}
    shown_columns = columns_of(COMPARISON, width, runs)
    fixed = [(c, overrides.get(c.key, c.cells)) for c in shown_columns if c.key != "because"]
    overrides["because"] = room_beside(fixed, width)
    return fixed if overrides["because"] < MIN_BECAUSE else [(c, overrides.get(c.key, c.cells)) for c in shown_columns]


def row_cells(line: CompareRow, label_width: int) -> dict[str, Text]:
    """Return the cells of one run; a run that cannot be compared is grey, and its reason is below the table."""
    (model, run, _), found = line.entrant, line.comparison
    row = TableRow(model, run, run if line.pinned else None, found, short_label(line.entrant.label, label_width))
    decided = found is not None and found.verdict in (FASTER, SLOWER)
    styles = {"run": "bold" if found is None else "", "vs base": "" if decided or found is None else "dim"}
    styles |= {"verdict": "bold" if decided else "", "because": "dim"}
    default = ""
    if found is not None and found.verdict == NOT_COMPARED:
        row, styles, default = row._replace(comparison=found._replace(why="")), {}, "dim"
    return {column.key: cell(column, row, styles.get(column.key, default)) for column in columns_of(COMPARISON, WIDEST)}


def short_label(label: str, width: int) -> str:
    """Shorten the session's name in a label, not the run's number: h200-n4096-na…:8."""
    name, colon, number = label.rpartition(":")
    room = width - len(colon) - len(number) - 1
    return label if len(label) <= width or room < 1 else f"{name[:room]}…{colon}{number}"


class CompareTable(RunTable):
    """The compared runs in their given order; their labels are its keys."""

    def on_resize(self, event: Resize) -> None:
        """Scroll no further than the cursor needs: Textual scrolls before the table has its height."""
        above = max(0, self.cursor_row + 2 - event.size.height)
        self.call_after_refresh(lambda: self.scroll_to(y=min(self.scroll_y, above), animate=False))

    def show(self, lines: Sequence[CompareRow], width: int) -> None:
        shown_columns = columns(max(0, width), [line.entrant.run for line in lines])
        self.agree(shown_columns, {line.entrant.label: line for line in lines}, lambda line: row_cells(line, shown_columns[0][1]))
