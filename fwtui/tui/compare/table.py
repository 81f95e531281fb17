"""The runs that are compared, each with its verdict against the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text
from textual.events import Resize

from fwtui.analysis.columns import COMPARISON, NARROW, WIDE, WIDEST, TableRow, columns_of
from fwtui.analysis.compare import FASTER, NOT_COMPARED, SLOWER, ComparedRun, Comparison
from fwtui.stream.run import Run
from fwtui.tui.widgets.run_table import RunTable, Widths, cell, room_beside, size_cells

MOST_ROWS = 100
# from that many cells on: those of run, kernel and verdict, the longest of which is cut where there is no room
OWN = ((WIDEST, 19, 23, 12), (WIDE, 19, 16, 12), (NARROW + 4, 14, 14, 12), (0, 8, 12, 8))
LEAST_BECAUSE = 30


class CompareRow(NamedTuple):
    """A run and its comparison; the baseline's own line has none."""

    entrant: ComparedRun
    found: Comparison | None
    pinned: bool = False


def columns(width: int, runs: Sequence[Run] = ()) -> Widths:
    """Columns and their widths for a table of these runs of that many cells; the room left over says why."""
    run, kernel, verdict = next(cells for least, *cells in OWN if width >= least)
    own = {"run": run, "kernel": kernel, "verdict": verdict, "n": size_cells(runs)}
    shown = columns_of(COMPARISON, width, runs)
    fixed = [(c, own.get(c.key, c.cells)) for c in shown if c.key != "because"]
    own["because"] = room_beside(fixed, width)
    return fixed if own["because"] < LEAST_BECAUSE else [(c, own.get(c.key, c.cells)) for c in shown]


def cells(line: CompareRow, label_width: int) -> dict[str, Text]:
    """What the table says of one run; of a label that is too long the session's name is cut, not the run's number.

    One that cannot be compared is grey; why not is said below the table, once it is marked.
    """
    (model, run, _), found = line.entrant, line.found
    row = TableRow(model, run, run if line.pinned else None, found, short_label(line.entrant.label, label_width))
    told = found is not None and found.verdict in (FASTER, SLOWER)
    styles = {"run": "bold" if found is None else "", "vs base": "" if told or found is None else "dim"}
    styles |= {"verdict": "bold" if told else "", "because": "dim"}
    usual = ""
    if found is not None and found.verdict == NOT_COMPARED:
        row, styles, usual = row._replace(found=found._replace(why="")), {}, "dim"
    return {column.key: cell(column, row, styles.get(column.key, usual)) for column in columns_of(COMPARISON, WIDEST)}


def short_label(label: str, width: int) -> str:
    """The label in that many cells: h200-n4096-na…:8."""
    name, colon, number = label.rpartition(":")
    room = width - len(colon) - len(number) - 1
    return label if len(label) <= width or room < 1 else f"{name[:room]}…{colon}{number}"


class CompareTable(RunTable):
    """The runs in the order in which they are given; its keys are their labels."""

    def on_resize(self, event: Resize) -> None:
        """Textual scrolls to the cursor before the table has its height: no further than is needed then."""
        above = max(0, self.cursor_row + 2 - event.size.height)
        self.call_after_refresh(lambda: self.scroll_to(y=min(self.scroll_y, above), animate=False))

    def show(self, lines: Sequence[CompareRow], width: int) -> None:
        shown = columns(max(0, width), [line.entrant.run for line in lines])
        self.agree(shown, {line.entrant.label: line for line in lines}, lambda line: cells(line, shown[0][1]))
