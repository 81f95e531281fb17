"""The table of runs, newest first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from rich.text import Text

from fwtui.analysis.columns import COLUMNS, HISTORY, WIDE, TableRow, columns_of
from fwtui.analysis.compare import ComparedRun, compare, speedup
from fwtui.common import units
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.widgets import wording
from fwtui.tui.widgets.run_table import RunTable, Widths, cell, room_beside, size_cells

MAX_ROWS = 100
LONGEST = 23  # cells of a kernel's name
NARROW_TOTAL = 10


def columns(width: int, runs: Sequence[Run] = ()) -> Widths:
    """Columns and their cells for a table of these runs, `width` cells wide with its scrollbar.

    The result gives way where there is no room, and kernels take what it leaves, so that no name is cut there.
    """
    shown, own = columns_of(HISTORY, max(width, 0), runs), {"total": NARROW_TOTAL} if width < WIDE else {}
    own |= {"n": size_cells(runs)}
    room = room_beside([(c, own.get(c.key, c.cells)) for c in shown if c.key != "result"], width)
    kernel, result = COLUMNS["kernel"].cells, COLUMNS["result"].cells
    own |= {"kernel": min(kernel + max(0, room - result), LONGEST), "result": max(8, min(result, room))}
    return [(c, own.get(c.key, c.cells)) for c in shown]


def cells(run: Run, model: Model, baseline: Run | None) -> dict[str, Text]:
    """What the table says of a run."""
    found = None
    if baseline is not None and baseline.id != run.id and speedup(run, baseline) is not None:
        found = compare(ComparedRun(model, run), ComparedRun(model, baseline))
    row = TableRow(model, run, baseline, found, ended=wording.outcome(run, model))
    texts = {column.key: cell(column, row) for column in columns_of(HISTORY, inf)}
    for text in texts.values():
        if text.plain == units.ABSENT:
            text.plain = ""  # a wall of them says nothing
    return texts


class HistoryTable(RunTable):
    def __init__(self, entered: Callable[[], None]) -> None:
        """`entered` is called when the user presses Enter at the marked run; a click only shows it."""
        super().__init__()
        self._entered = entered

    def action_select_cursor(self) -> None:
        self._entered()

    @property
    def marked(self) -> int | None:
        return int(self.key) if self.key else None

    def show(self, model: Model, baseline_of: Callable[[Run], Run | None], width: int) -> None:
        newest = [model.runs[number] for number in sorted(model.runs, reverse=True)[:MAX_ROWS]]
        rows = {str(run.id): (run, baseline_of(run), model.devices, model.measured) for run in newest}
        self.agree(columns(width, newest), rows, lambda row: cells(row[0], model, row[1]))
