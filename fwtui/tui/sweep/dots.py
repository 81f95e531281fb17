"""Runs that differ in something that is no amount, one under the other: a dot for each on one scale, and its number."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import NamedTuple

from textual.content import Content
from textual.geometry import Size

from fwtui.campaigns.sweep.findings import counts
from fwtui.campaigns.sweep.squares import Squares
from fwtui.common import units
from fwtui.tui.sweep.heat_map import cut, measured, number
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, line

NAME, NUMBER, STEP = 24, 9, 11  # cells of a name, of a number, and of how often as fast as the one before of its type it is
LEAST = 8  # cells of the scale
LEAST_MARKED = 3  # lines from which on the row of the cursor is neither the first nor the last where there are more
DOT, WAY = "●", "·"


class Ranked(NamedTuple):
    """One row of a map, and the marked column."""

    squares: Squares | None
    measure: str
    row: int
    column: int
    height: int


class DotPlot(Drawn[Ranked]):
    """On a logarithmic scale, as the fastest may be thousands of times the slowest; no line joins what has no order."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    DotPlot { height: 1fr; margin-top: 1; }
    """

    def __init__(self, *, id: str | None = None):
        super().__init__(Ranked(None, "", 0, 0, 0), id=id)

    def take(self, squares: Squares | None, measure: str, cursor: tuple[int, int]) -> None:
        self.show(Ranked(squares, measure, *cursor, self.size.height))

    def on_resize(self) -> None:
        self.show(self.subject._replace(height=self.size.height))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return container.height

    def draw(self, subject: Ranked, width: int) -> Sequence[Content]:
        squares, room = subject.squares, width - NAME - NUMBER - STEP
        if squares is None or not squares.rows or room < LEAST or subject.height < 2:
            return []
        best, row = squares.best_rate, squares.rows[min(max(subject.row, 0), len(squares.rows) - 1)]
        runs = [square.run if square.run is not None and counts(square.run) else None for square in row.squares]
        amounts = [number(run, subject.measure, best) if run is not None else None for run in runs]
        told = [amount for amount in amounts if amount]
        if not told:
            return [line(("dots appear with the first verified results", MUTED))]
        low, high = min(told), max(told)
        before: dict[str, float] = {}  # by number type: half the bytes are another problem
        lines = []
        for place, (name, run, amount) in enumerate(zip(squares.across.values, runs, amounts, strict=True)):
            here = place == subject.column
            label = f"{cut(name, NAME - 1):<{NAME - 1}} "
            if run is None or amount is None:
                lines.append(line((label, MUTED), f"{'':{room}}", (f"{units.ABSENT:>{NUMBER}}", MUTED)))
                continue
            at = round((room - 1) * log10(amount / low) / log10(high / low)) if high > low else room - 1
            last = before.get(run.experiment.dtype)
            gain = 0.0 if last is None else last / amount if subject.measure == "time" else amount / last
            step = units.times(gain) if gain else ""
            lines.append(
                line(
                    (label, STRONG if here else ""),
                    (WAY * at, MUTED),
                    (DOT, "$accent" if here else "$primary"),
                    " " * (room - 1 - at),
                    (f"{measured(run, subject.measure, best):>{NUMBER}}", STRONG if here else ""),
                    (f"{step:>{STEP}}", MUTED),
                )
            )
            before[run.experiment.dtype] = amount
        head = f"{'rate in relax/s' if subject.measure == 'rate' else subject.measure}, logarithmic"
        title = line((f"{squares.across.name:<{NAME}}{head:<{room}}{'':{NUMBER}}{'to before':>{STEP}}", MUTED))
        return [title, *_window(lines, subject.column, subject.height - 1)]


def _window(lines: Sequence[Content], here: int, most: int) -> Sequence[Content]:
    """At most so many lines around one of them, the first and the last of which say how many more there are."""
    first = max(0, min(here - most // 2, len(lines) - most))
    shown, below = list(lines[first : first + most]), len(lines) - first - most
    if most < LEAST_MARKED:
        return shown
    if first:
        shown[0] = line((f"… {first + 1} more above", MUTED))
    if below > 0:
        shown[-1] = line((f"… {below + 1} more below", MUTED))
    return shown
