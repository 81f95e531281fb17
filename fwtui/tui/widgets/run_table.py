"""Tables of the screens, and the common parts of tables of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Any, TypeVar

from rich.text import Text
from textual.events import Click
from textual.widgets import DataTable

from fwtui.analysis.columns import COLUMNS, HISTORY, WIDE, Column, TableRow, columns_of
from fwtui.analysis.compare import ComparedRun, compare, speedup
from fwtui.common import units
from fwtui.experiment.experiment import Experiment, identity
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.widgets import run_labels
from fwtui.tui.widgets.text_panel import whole_clauses

SENTENCES = ("result", "because")  # columns of them
Widths = Sequence[tuple[Column, int]]
Subject = TypeVar("Subject")
MAX_ROWS = 100
MAX_SEARCHED = 1000  # cells of a run's settings that a filter searches
LONGEST = 23  # cells of a kernel's name
NARROW_TOTAL = 11  # cells of the median time


def cell(column: Column, row: TableRow, style: str = "") -> Text:
    """Return the cell of a run; a measured value of an unreliable run is struck through."""
    text = column.text(row)
    if column.measured and text != units.ABSENT and row.run.seconds is not None and run_labels.is_unreliable(row.run):
        style = "strike"
    return Text(text, style=style, justify="right" if column.right else "left", overflow="ellipsis", no_wrap=True)


def room_beside(fixed: Sequence[tuple[object, int]], width: int) -> int:
    """Return the cells for one more column in a table of `width` cells with its scrollbar."""
    return width - 1 - sum(cells + 2 for _, cells in fixed) - 2


def size_cells(runs: Iterable[Run]) -> int:
    """Return the width of the column of n, at least five digits."""
    return max([COLUMNS["n"].cells, *(len(str(run.n)) for run in runs)])


def _whole(texts: Mapping[str, Text], columns: Widths) -> Mapping[str, Text]:
    """Return the texts, with sentences shortened to the clauses that fit."""
    for column, width in columns:
        if column.key in SENTENCES:
            texts[column.key].plain = whole_clauses(texts[column.key].plain, width)
    return texts


class TextTable(DataTable[Text]):
    """A table in the style of the program."""

    DEFAULT_CSS = """
    TextTable { height: 1fr; background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    TextTable:focus { background-tint: $background 0%; }
    TextTable:focus > .datatable--header { background-tint: $background 0%; color: $primary; text-style: bold underline; }
    TextTable > .datatable--header { background: $panel; color: $text-muted; text-style: none; }
    TextTable > .datatable--cursor { color: auto; }
    TextTable:ansi > .datatable--cursor { color: $foreground; text-style: reverse; }
    TextTable:focus > .datatable--cursor { background: $background; color: $text-primary; text-style: bold reverse; }
    """

    def __init__(self) -> None:
        super().__init__(cursor_type="row", cell_padding=1)

    def on_click(self, event: Click) -> None:
        """Ignore a click on a row or a column that was removed since it was drawn."""
        row, column = event.style.meta.get("row", 0), event.style.meta.get("column", 0)
        if not (self.is_valid_column_index(column) if row == -1 else self.is_valid_row_index(row)):
            event.prevent_default()


class RunTable(TextTable):
    """A table of runs that writes only changed cells, and whose widths do not change."""

    def __init__(self) -> None:
        super().__init__()
        self._columns_shown: Widths = ()
        self._shown: dict[str, tuple[object, Mapping[str, Text]]] = {}  # row key -> subject and cell texts of the row

    @property
    def key(self) -> str | None:
        """The key of the row under the cursor."""
        return self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value if self.row_count else None

    def agree(self, columns: Widths, rows: Mapping[str, Subject], cells: Callable[[Subject], Mapping[str, Text]]) -> None:
        """Show these rows in this order; `cells` returns the texts of a changed row by the keys of the columns.

        The cursor stays on its row; at the top it stays at the top.
        """
        same_columns, keys, marked, at = columns == self._columns_shown, list(rows), self.key, self.cursor_row
        before, top = self._shown if same_columns else {}, self.scroll_y
        if others := not same_columns or keys != list(before):
            self.clear(columns=not same_columns)
        for column, width in () if same_columns else columns:
            self.add_column(Text(column.title, justify="right" if column.right else "left"), width=width, key=column.key)
        self._columns_shown, self._shown = columns, {}
        for key, subject in rows.items():
            old_subject, texts = before.get(key, (None, {}))
            now = texts if key in before and old_subject == subject else _whole(cells(subject), columns)
            self._shown[key] = subject, now
            if others:
                self.add_row(*(now[column.key] for column, _ in columns), key=key)
                continue
            for column, _ in columns:
                old, new = texts[column.key], now[column.key]
                if new is not old and (new.plain, str(new.style)) != (old.plain, str(old.style)):
                    self.update_cell(key, column.key, new)
        if others and keys and at:
            places = {key: row for row, key in enumerate(keys)}
            self.move_cursor(row=places.get(marked or "", min(at, len(keys) - 1)), scroll=False)
            self.call_after_refresh(self.scroll_to, y=top, animate=False)


def history_columns(width: int, runs: Sequence[Run] = ()) -> Widths:
    """Return the columns and their widths for a table of these runs, `width` cells wide with its scrollbar.

    In a narrow table the column `result` shrinks first; in a wide one the kernel names take the remaining cells.
    """
    shown_columns, overrides = columns_of(HISTORY, max(width, 0), runs), {"total": NARROW_TOTAL} if width < WIDE else {}
    overrides |= {"n": size_cells(runs)}
    room = room_beside([(c, overrides.get(c.key, c.cells)) for c in shown_columns if c.key != "result"], width)
    kernel, result = COLUMNS["kernel"].cells, COLUMNS["result"].cells
    overrides |= {"kernel": min(kernel + max(0, room - result), LONGEST), "result": max(8, min(result, room))}
    return [(c, overrides.get(c.key, c.cells)) for c in shown_columns]


def distinctions(runs: Iterable[Run]) -> dict[int, str]:
    """Map each run to its settings that have no column and distinguish it from runs with equal columns: negative 0.2.

    Values of the default experiment are omitted.
    """
    alike: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        e = run.experiment
        alike.setdefault((e.kernel, run.n, e.tile, e.dtype, e.devices), []).append(run)
    different = [group for group in alike.values() if len({identity(run.experiment) for run in group}) > 1]
    found: dict[int, str] = {}
    if not different:
        return found
    from fwtui.campaigns.sweep.axis import named, value, varied  # the first frame has no runs to distinguish

    for group in different:
        names = [axis.name for axis in varied(run.experiment for run in group)]
        for run in group:
            texts = [(name, value(run.experiment, name)) for name in names]
            found[run.id] = " · ".join(named(name, text) for name, text in texts if text and text != value(Experiment(), name))
    return found


def history_cells(run: Run, model: Model, baseline: Run | None, distinction: str = "") -> dict[str, Text]:
    """Return the texts of a run by column; the outcome is followed by the run's distinction."""
    found = None
    if baseline is not None and baseline.id != run.id and speedup(run, baseline) is not None:
        found = compare(ComparedRun(model, run), ComparedRun(model, baseline))
    ended, *more = run_labels.outcome(run, model).split(" · ", 1)
    row = TableRow(model, run, baseline, found, ended=" · ".join([ended, *filter(None, [distinction]), *more]))
    texts = {column.key: cell(column, row) for column in columns_of(HISTORY, inf)}
    for text in texts.values():
        if text.plain == units.ABSENT:
            text.plain = ""
    return texts


def matches(run: Run, query: str) -> bool:
    """Return True if the run's kernel, settings and outcome contain every word of the query."""
    text = f"{run.experiment.kernel} {run_labels.describe_kernel(run, MAX_SEARCHED)} {run_labels.outcome(run)}".lower()
    return all(word in text for word in query.lower().split())


NEWEST = "newest"
ORDERS: Mapping[str, Callable[[Run], Any]] = {  # sort keys by the name of the order
    NEWEST: lambda run: -run.id,
    "median time": lambda run: inf if run.seconds is None else run.seconds,
    "relax/s": lambda run: -(run.rate or 0.0),
    "n": lambda run: -run.n,
    "kernel": lambda run: run.experiment.kernel,
}


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

    def show(
        self,
        model: Model,
        baseline_of: Callable[[Run], Run | None],
        width: int,
        order: str = NEWEST,
        query: str = "",
        details: bool = False,
    ) -> int:
        """Show at most MAX_ROWS runs in that order, only those that match the query; return the number of matches.

        A refused run has no numbers: it is shown only while it is the newest one, or with `details`.
        """
        listed = (run for run in model.runs.values() if details or run.state != "refused" or run.id == model.current)
        found = sorted((run for run in listed if matches(run, query)), key=lambda run: (ORDERS[order](run), -run.id))
        shown = found[:MAX_ROWS]
        told = distinctions(shown)
        rows = {str(run.id): (run, baseline_of(run), model.devices, model.measured, told.get(run.id, "")) for run in shown}
        self.agree(history_columns(width, shown), rows, lambda row: history_cells(row[0], model, row[1], row[-1]))
        return len(found)
