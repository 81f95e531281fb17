"""The library on a screen: a table of sessions, and everything that is known of the marked one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text
from textual.content import Content
from textual.widgets import DataTable

from fwtui.common import units
from fwtui.common.text import clean
from fwtui.sessions.library import Entry, some
from fwtui.sessions.listing import RIGHT, cells
from fwtui.tui.widgets.drawn import STRONG, Drawn, hanging, line

MOST_ROWS = 1000
NAME_CELLS = 20  # at least
# columns and their widths; the name takes what is left
NARROW = (("date", 10), ("n", 11), ("best", 13), ("state", 10))
TIGHT = (("n", 11), ("best", 13))
USUAL = (("date", 10), ("GPU", 11), ("kernels", 17), ("n", 11), ("best", 13), ("length", 8), ("state", 10))
WIDE = (
    *(("date", 10), ("from", 7), ("machine", 26), ("GPU", 18), ("kernels", 26)),
    *(("n", 11), ("best", 14), ("length", 8), ("state", 20)),
)
WIDE_CELLS, USUAL_CELLS, NARROW_CELLS = 190, 117, 75
INDENT = 10


def columns(width: int) -> tuple[tuple[str, int], ...]:
    """Names and widths for a table of `width` cells with its scrollbar."""
    fits = ((WIDE, WIDE_CELLS), (USUAL, USUAL_CELLS), (NARROW, NARROW_CELLS), (TIGHT, 0))
    others = next(named for named, least in fits if width >= least)
    room = width - 1 - sum(cells + 2 for _, cells in others) - 2
    return (("name", max(room, NAME_CELLS)), *others)


class SessionsTable(DataTable[Text]):
    """Made again when its sessions, their order or the width change; the mark stays on its session."""

    DEFAULT_CSS = """
    SessionsTable { height: 1fr; background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    SessionsTable:focus { background-tint: $background 0%; }
    SessionsTable > .datatable--header { background: $panel; color: $text-muted; text-style: none; }
    """

    def __init__(self) -> None:
        super().__init__(cursor_type="row", zebra_stripes=False, cell_padding=1)
        self._shown: object = None
        self._entries: tuple[Entry, ...] = ()

    @property
    def marked(self) -> Entry | None:
        """The session under the cursor."""
        return self._entries[self.cursor_row] if 0 <= self.cursor_row < len(self._entries) else None

    def show(self, entries: Sequence[Entry], by: str, width: int, mark: Path | None) -> None:
        """These sessions in this order; `by` is the column that they are ordered by, `mark` what is to be marked."""
        shown = (tuple(entries[:MOST_ROWS]), by, columns(width), mark)
        if shown == self._shown:
            return
        kept = mark or (self.marked.path if self.marked is not None else None)
        row = self.cursor_row
        self._shown = shown
        self._entries = shown[0]
        self.clear(columns=True)
        for name, cells_wide in shown[2]:
            title = f"{name} ▾" if name == by else name
            self.add_column(Text(title, justify="right" if name in RIGHT else "left"), width=cells_wide, key=name)
        for number, entry in enumerate(self._entries):
            texts = cells(entry)
            self.add_row(*(_cell(name, texts[name], entry) for name, _ in shown[2]), key=str(number))
        places = [number for number, entry in enumerate(self._entries) if entry.path == kept]
        self.move_cursor(row=places[0] if places else min(row, max(len(self._entries) - 1, 0)), scroll=True)


def _cell(name: str, text: str, entry: Entry) -> Text:
    style = "" if name != "state" or entry.complete else "yellow"
    return Text(text, style=style, justify="right" if name in RIGHT else "left", overflow="ellipsis", no_wrap=True)


class Details(Drawn["Entry | None"]):
    """The marked session, with what has no room in the table."""

    def draw(self, subject: Entry | None, width: int) -> Sequence[Content]:
        if subject is None:
            return [line("")]
        entry = subject
        recorded = [
            part for part in (entry.created.replace("T", " ").replace("+00:00", " UTC"), entry.machine, entry.gpu) if part
        ]
        found = [line((entry.title or entry.name, STRONG))]
        if recorded:
            found += hanging("recorded", INDENT, recorded, width, most=2)
        if entry.runs:
            runs = [f"{entry.runs} run{'s' * (entry.runs != 1)}", *(clean(kernel) for kernel in entry.kernels)]
            found += hanging("runs", INDENT, [*runs, f"n {some([str(n) for n in entry.sizes])}"], width, most=2)
            best = units.rate(entry.best_rate) if entry.best_rate else "no verified run"
            found += hanging(
                "best", INDENT, [best, f"{units.clock(entry.condition.duration)} long", units.memory(entry.size)], width, most=1
            )
        whole = "complete: closed, and nothing was lost" if entry.complete else entry.state
        style = "$text-success" if entry.complete else "$text-warning"
        found += hanging("file", INDENT, [whole, "ships with fwtui" if not entry.own else "your own"], width, style=style, most=2)
        return found
