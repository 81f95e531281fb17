"""The Sessions screen: the sessions of this machine, to replay, compare, filter and delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import ScreenResume
from textual.widgets import DataTable, Input, Static

from fwtui.common import units
from fwtui.common.text import sanitise
from fwtui.sessions.library import (
    AUTOSAVED,
    ORDERS,
    OWN,
    RIGHT,
    EntryCache,
    LibraryEntry,
    delete,
    entry_cells,
    find,
    matching,
    ordered,
    some,
)
from fwtui.tui.actions import bound, first_reason, look, require
from fwtui.tui.background import in_background
from fwtui.tui.frame import bindings
from fwtui.tui.frame.dialogs import ConfirmScreen
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.loaded_recording import SessionWanted
from fwtui.tui.frame.places import COMPARE
from fwtui.tui.frame.view import View
from fwtui.tui.widgets.run_table import TextTable, room_beside
from fwtui.tui.widgets.text_panel import STRONG, TextPanel, hanging_indent, line, whole_clauses

MAX_ROWS = 1000
NAME_CELLS = 20  # minimum width of the name
WIDE = (("date", 10), ("from", 7), ("machine", 26), ("GPU", 18), ("kernels", 26), ("n", 12), ("best", 14), ("length", 8))
# columns and their widths for a table of at least that width; the name takes the rest
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
_not_marked = require(attrgetter("marked"), "no session is marked")
_stays = first_reason(_not_marked, require(lambda screen: not screen.marked.stays, "{screen.marked.name} {screen.marked.stays}"))
_no_beside = first_reason(_not_marked, require(lambda screen: screen.view.place_named(COMPARE), ""))
_no_filter = require(
    lambda screen: not isinstance(screen.focused, Input), "the filter has the focus already; press Esc to leave it"
)


def columns(width: int) -> tuple[tuple[str, int], ...]:
    """Return names and widths of the columns for a table of `width` cells, scrollbar included."""
    others = next(named for least, named in LAYOUTS if max(width, 0) >= least)
    return (("name", max(room_beside(others, width), NAME_CELLS)), *others)


class SessionsTable(TextTable):
    """The table, rebuilt if sessions, order or width change; the cursor stays on its session."""

    BINDINGS: ClassVar = [OPEN]

    def __init__(self) -> None:
        super().__init__()
        self._shown: object = None
        self._entries: tuple[LibraryEntry, ...] = ()

    @property
    def marked(self) -> LibraryEntry | None:
        """The session under the cursor."""
        return self._entries[self.cursor_row] if 0 <= self.cursor_row < len(self._entries) else None

    def show(self, entries: Sequence[LibraryEntry], by: str, width: int) -> None:
        """Show these sessions; `by` is the column of their order."""
        state = (tuple(entries[:MAX_ROWS]), by, columns(width))
        if state == self._shown:
            return
        marked = self.marked.path if self.marked is not None else None
        row = self.cursor_row
        self._shown = state
        self._entries = state[0]
        self.clear(columns=True)
        for name, cells_wide in state[2]:
            title = f"{name} ▾" if name == by else name
            self.add_column(Text(title, justify="right" if name in RIGHT else "left"), width=cells_wide, key=name)
        for number, entry in enumerate(self._entries):
            texts = entry_cells(entry)
            self.add_row(
                *(_cell(name, whole_clauses(texts[name], cells_wide), entry) for name, cells_wide in state[2]), key=str(number)
            )
        places = [number for number, entry in enumerate(self._entries) if entry.path == marked]
        self.move_cursor(row=places[0] if places else min(row, max(len(self._entries) - 1, 0)), scroll=True)


def _cell(name: str, text: str, entry: LibraryEntry) -> Text:
    style = "" if name not in ("name", "state") or entry.complete else "yellow"
    return Text(text, style=style, justify="right" if name in RIGHT else "left", overflow="ellipsis", no_wrap=True)


class Details(TextPanel["LibraryEntry | None"]):
    """The marked session, with facts that do not fit in the table."""

    NOTHING = (line(""),)

    def draw(self, subject: LibraryEntry, width: int) -> Sequence[Content]:
        created = subject.created.replace("T", " ").replace("+00:00", " UTC")
        found = [line((subject.title or subject.name, STRONG))]
        found += hanging_indent("recorded", INDENT, [*filter(None, (created, subject.machine, subject.gpu))], width, most=2)
        if subject.runs:
            runs = [units.counted(subject.runs, "run"), *(sanitise(kernel) for kernel in subject.kernels)]
            found += hanging_indent("runs", INDENT, [*runs, f"n {some([str(n) for n in subject.sizes])}"], width, most=2)
            best = units.rate(subject.best_rate) if subject.best_rate else "no verified run"
            parts = [best, f"{units.clock(subject.condition.duration)} long", units.memory(subject.size)]
            found += hanging_indent("best", INDENT, parts, width, most=1)
        whole, style = subject.state, "$text-warning"
        if subject.complete:
            whole, style = "complete: closed, no event lost", "$text-success"
        whose = {OWN: "your recording", AUTOSAVED: "saved automatically"}.get(subject.origin, "ships with fwtui")
        return found + hanging_indent("file", INDENT, [whole, whose], width, style=style, most=2)


class SessionsScreen(Frame):
    DEFAULT_CSS = """
    SessionsScreen #library { height: 1fr; padding: 0 1; }
    SessionsScreen #filter { display: none; height: 1; }
    SessionsScreen.-filtering #filter { display: block; }
    SessionsScreen #none { display: none; height: 1fr; content-align: center middle; text-align: center; color: $text-muted; }
    SessionsScreen.-none #none { display: block; }
    SessionsScreen.-none SessionsTable, SessionsScreen.-none Details { display: none; }
    SessionsScreen Details { margin-top: 1; max-height: 8; }
    SessionsScreen.-short Details { margin-top: 0; max-height: 4; }
    SessionsScreen.-flat Details { display: none; }
    """
    AUTO_FOCUS = "SessionsTable"
    PLACE = "sessions"
    STRIP = False
    BINDINGS: ClassVar = [
        look("slash", "filter", "Filter", "only sessions with these words", _no_filter, id="sessions.filter", key_display="/"),
        look("S", "sort", "Sort", "sort by the next of date, name, kernels, n, best, length, state", id="sessions.sort"),
        look("B", "compare", "Side by side", "compare its runs with those of the shown session", _no_beside, "sessions.compare"),
        bound("delete,d", "delete", "Delete", "delete it, after a confirmation", _stays, "sessions.delete", key_display="d"),
        *bindings.SHARED,
    ]
    MOVES = ("Table of sessions", (*bindings.MARKS, OPEN))
    WORDS = (
        ("complete", "closed by its recorder, with every line present and undamaged"),
        ("best", "the highest rate of a verified run"),
        ("shipped", "part of the program; only your own sessions can be deleted"),
    )

    def __init__(self, view: View):
        super().__init__(view)
        self._entry_cache: EntryCache = {}
        self._entries: list[LibraryEntry] | None = None  # None: still being read
        self._order = "date"
        self._query = ""
        self._looks = 0  # number of searches of the folders

    def body(self) -> ComposeResult:
        with Vertical(id="library"):
            yield Input(placeholder="words of a session: kernel, GPU, n, date, name …", compact=True, id="filter")
            yield SessionsTable()
            yield Static(id="none", markup=False)
            yield Details(None)

    def on_screen_resume(self, event: ScreenResume) -> None:
        self.read()

    def state(self) -> object:
        return (self._entries, self._order, self._query)

    def read(self) -> None:
        """Search the folders again, in the background."""
        self._looks += 1
        in_background(self, partial(find, self._entry_cache), partial(self._found, self._looks), "library")

    def _found(self, look: int, entries: list[LibraryEntry]) -> None:
        if look != self._looks:  # a newer search is running
            return
        self._entries = entries
        self.update()

    @property
    def shown(self) -> list[LibraryEntry]:
        """The sessions that match the filter, in the chosen order."""
        return ordered(matching(self._entries or [], self._query), self._order)

    @property
    def marked(self) -> LibraryEntry | None:
        """The session under the cursor."""
        return self.query_one(SessionsTable).marked if self._complete else None

    def show(self) -> None:
        subject = self.shown
        if subject and self.has_class("-none") and self.focused is None:  # a hidden table takes no focus
            self.call_after_refresh(self.query_one(SessionsTable).focus)
        self.set_class(not subject, "-none")
        if not subject:
            self.query_one("#none", Static).update(Content(self._advice()))
        self.query_one(SessionsTable).show(subject, self._order, self.app.size.width - 2)
        self.query_one(Details).show(self.marked)

    def _advice(self) -> str:
        if self._entries is None:
            return "searching for sessions …"
        if self._entries:
            sessions = units.counted(len(self._entries), "session")
            return f"None of {sessions} has all of {sanitise(self._query)!r}.\n{self.key_of('back')} shows all of them."
        run = self.key_of("place.run")
        return f"There are no sessions yet.\n{run} goes to Run. Runs are saved automatically and listed here."

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        self.query_one(Details).show(self.marked)
        self._refresh_keys()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        if self.marked is not None:
            self.post_message(SessionWanted(self.marked.path))

    def on_input_changed(self, event: Input.Changed) -> None:
        self._query = event.value
        self.update()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if self.shown:
            self.query_one(SessionsTable).focus()

    def action_filter(self) -> None:
        self.add_class("-filtering")
        self.query_one("#filter", Input).focus()

    @property
    def way_back(self) -> Callable[[], object] | None:
        return self._stop_filtering if self.has_class("-filtering") else super().way_back

    def _stop_filtering(self) -> None:
        self.query_one("#filter", Input).value = ""
        self.remove_class("-filtering")
        self.query_one(SessionsTable).focus()

    def action_sort(self) -> None:
        names = list(ORDERS)
        self._order = names[(names.index(self._order) + 1) % len(names)]
        self.show_message(f"sorted by {self._order}")  # its column may not fit

    def action_compare(self) -> None:
        if self.marked is not None:
            self.post_message(SessionWanted(self.marked.path, compare=True))

    def action_delete(self) -> None:
        entry = self.marked
        if entry is None:
            return

        def remove(_: str) -> None:
            try:
                delete(entry.path)
                self.show_message(f"{entry.name} was deleted")
            finally:
                self.read()

        runs = units.counted(entry.runs, "run")
        self.open_dialog(
            ConfirmScreen(f"Delete {entry.name}?", f"Its file with {runs} cannot be restored.", "deletes it"), remove
        )
