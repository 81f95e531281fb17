"""The table of runs, newest first."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from fwtui.analysis.columns import FULL, HISTORY, WIDE, WIDEST, Column, Row, columns_of
from fwtui.common import units
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.widgets import wording
from fwtui.tui.widgets.run_table import RunTable, Widths, cell, room_beside

MAX_ROWS = 100
LONGEST = 23  # cells of a kernel's name
NARROW_TOTAL = 10


AGAINST = Column("vs base", "vs base", lambda r: wording.against(r.model, r.run, r.baseline)[0], {HISTORY: WIDE}, right=True)
VERDICT = Column("verdict", "verdict", lambda r: wording.against(r.model, r.run, r.baseline)[1], {HISTORY: WIDEST})
RESULT = Column("result", "result", lambda r: wording.outcome(r.run, r.model), {HISTORY: 0}, cells=33)
COLUMNS = (*columns_of(HISTORY, FULL), AGAINST, VERDICT, RESULT)


def columns(width: int) -> Widths:
    """Columns and their cells for a table of `width` cells with its scrollbar.

    The last one gives way where there is no room, and kernels take what it leaves, so that no name is cut there.
    """
    fixed = [(c, c.cells) for c in COLUMNS if c is not RESULT and max(width, 0) >= c.tables[HISTORY]]
    if width < WIDE:
        fixed = [(c, NARROW_TOTAL if c.key == "total" else cells) for c, cells in fixed]
    room = room_beside(fixed, width)
    spare = max(0, room - RESULT.cells)
    fixed = [(c, min(cells + spare, LONGEST) if c.key == "kernel" else cells) for c, cells in fixed]
    return (*fixed, (RESULT, max(8, min(RESULT.cells, room))))


def cells(run: Run, model: Model, baseline: Run | None) -> dict[str, Text]:
    """What the table says of a run."""
    row = Row(model, run, baseline)
    texts = {column.key: cell(column, row) for column in COLUMNS}
    for text in texts.values():
        if text.plain == units.ABSENT:
            text.plain = ""  # a wall of them says nothing
    return texts


class HistoryTable(RunTable):
    @property
    def marked(self) -> int | None:
        return int(self.key) if self.key else None

    def show(self, model: Model, baseline_of: Callable[[Run], Run | None], width: int) -> None:
        newest = [model.runs[number] for number in sorted(model.runs, reverse=True)[:MAX_ROWS]]
        rows = {str(run.id): (run, baseline_of(run), model.state.devices, model.state.measured) for run in newest}
        self.agree(columns(width), rows, lambda row: cells(row[0], model, row[1]))
