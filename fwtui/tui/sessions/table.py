"""The library on a screen: a table of sessions, and everything that is known of the marked one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.content import Content

from fwtui.common import units
from fwtui.common.text import clean
from fwtui.sessions.library import KEPT, OWN, LibraryEntry, some
from fwtui.sessions.library_table import RIGHT, cells
from fwtui.tui.actions import look
from fwtui.tui.widgets.drawn import STRONG, Drawn, hanging, kept, line
from fwtui.tui.widgets.run_table import TextTable, room_beside

MOST_ROWS = 1000
NAME_CELLS = 20  # at least
WIDE = (("date", 10), ("from", 7), ("machine", 26), ("GPU", 18), ("kernels", 26), ("n", 12), ("best", 14), ("length", 8))
# columns and their widths for a table of at least that many cells; the name takes what is left
LAYOUTS = (
    (190, (*WIDE, ("state", 20))),
    (140, (("date", 10), ("GPU", 11), ("kernels", 30), ("n", 12), ("best", 13), ("length", 8), ("state", 10))),
    (117, (("date", 10), ("kernels", 24), ("n", 12), ("best", 13), ("length", 8), ("state", 10))),
    (75, (("date", 10), ("n", 12), ("best", 13))),
    (0, (("n", 12), ("best", 13))),
)
INDENT = 10
OPEN = look(
    "enter", "select_cursor", "Replay", "replay the marked session; it is only read", id="sessions.open", key_display="enter"
)


def columns(width: int) -> tuple[tuple[str, int], ...]:
    """Names and widths for a table of `width` cells with its scrollbar."""
    others = next(named for least, named in LAYOUTS if max(width, 0) >= least)
    return (("name", max(room_beside(others, width), NAME_CELLS)), *others)


class SessionsTable(TextTable):
    """Made again when its sessions, their order or the width change; the mark stays on its session."""

    BINDINGS: ClassVar = [OPEN]

    def __init__(self) -> None:
        super().__init__()
        self._shown: object = None
        self._entries: tuple[LibraryEntry, ...] = ()

    @property
    def marked(self) -> LibraryEntry | None:
        """The session under the cursor."""
        return self._entries[self.cursor_row] if 0 <= self.cursor_row < len(self._entries) else None

    def show(self, entries: Sequence[LibraryEntry], by: str, width: int, mark: Path | None) -> None:
        """These sessions in this order; `by` is the column that they are ordered by, `mark` what is to be marked."""
        shown = (tuple(entries[:MOST_ROWS]), by, columns(width), mark)
        if shown == self._shown:
            return
        marked = mark or (self.marked.path if self.marked is not None else None)
        row = self.cursor_row
        self._shown = shown
        self._entries = shown[0]
        self.clear(columns=True)
        for name, cells_wide in shown[2]:
            title = f"{name} ▾" if name == by else name
            self.add_column(Text(title, justify="right" if name in RIGHT else "left"), width=cells_wide, key=name)
        for number, entry in enumerate(self._entries):
            texts = cells(entry)
            self.add_row(*(_cell(name, kept(texts[name], cells_wide), entry) for name, cells_wide in shown[2]), key=str(number))
        places = [number for number, entry in enumerate(self._entries) if entry.path == marked]
        self.move_cursor(row=places[0] if places else min(row, max(len(self._entries) - 1, 0)), scroll=True)


def _cell(name: str, text: str, entry: LibraryEntry) -> Text:
    style = "" if name not in ("name", "state") or entry.complete else "yellow"
    return Text(text, style=style, justify="right" if name in RIGHT else "left", overflow="ellipsis", no_wrap=True)


class Details(Drawn["LibraryEntry | None"]):
    """The marked session, with what has no room in the table."""

    NOTHING = (line(""),)

    def draw(self, subject: LibraryEntry, width: int) -> Sequence[Content]:
        created = subject.created.replace("T", " ").replace("+00:00", " UTC")
        found = [line((subject.title or subject.name, STRONG))]
        found += hanging("recorded", INDENT, [*filter(None, (created, subject.machine, subject.gpu))], width, most=2)
        if subject.runs:
            runs = [f"{subject.runs} run{'s' * (subject.runs != 1)}", *(clean(kernel) for kernel in subject.kernels)]
            found += hanging("runs", INDENT, [*runs, f"n {some([str(n) for n in subject.sizes])}"], width, most=2)
            best = units.rate(subject.best_rate) if subject.best_rate else "no verified run"
            parts = [best, f"{units.clock(subject.condition.duration)} long", units.memory(subject.size)]
            found += hanging("best", INDENT, parts, width, most=1)
        whole, style = subject.state, "$text-warning"
        if subject.complete:
            whole, style = "complete: closed, and nothing was lost", "$text-success"
        whose = {OWN: "your own", KEPT: "kept automatically"}.get(subject.origin, "ships with fwtui")
        return found + hanging("file", INDENT, [whole, whose], width, style=style, most=2)
