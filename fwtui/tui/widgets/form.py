"""The form: a row for each setting of a draft, the most important ones first; below them an error, or help for one row."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Key
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button, Input, Label, OptionList, Select, Static

from fwtui.tui.widgets.draft import OWN, Draft, FormRow

DECIDING = ("kernel", "device", "n")  # rows that decide about the choices of other rows
SEARCH_SECONDS = 0.7  # between two letters of one search in an open list
REST_HELP = "all other settings: the graph's weights and seed, kernel options, timing and verification"


class FieldSelect(Select[str]):
    """The choices of a row; in the open list lower-case letters search, digits and capitals close it and act on the screen."""

    def __init__(self, row: FormRow):
        name = f"field-{row.key}"
        # Textual's search takes every printable key
        super().__init__(_options(row), value=row.text, allow_blank=False, compact=True, type_to_search=False, id=name)
        self._offered = row.choices, row.names
        self._search, self._search_at = "", 0.0  # the letters typed in the open list, and when the last one came
        self.offer(row)

    def offer(self, row: FormRow) -> None:
        """Replace the row's choices."""
        if (row.choices, row.names) != self._offered:
            self._offered = row.choices, row.names
            self.set_options(_options(row))
        self.disabled = len(row.choices or ()) < 2

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Return True for the letters that search the open list, so that the footer does not show their actions."""
        return self.expanded and character is not None and character.isalpha() and character.islower()

    def on_key(self, event: Key) -> None:
        if not self.expanded or event.character is None or not event.character.isalnum():
            return
        if not event.character.islower():
            self.expanded = False
            self.focus()
            return
        event.stop()
        self._search = (self._search if event.time < self._search_at + SEARCH_SECONDS else "") + event.character
        self._search_at = event.time
        choices = self.query_one(OptionList)
        starts = [str(option.prompt).find(self._search) for option in choices.options]
        if found := [number for number, start in enumerate(starts) if start >= 0]:
            choices.highlighted = min(found, key=lambda number: starts[number])


def _options(row: FormRow) -> list[tuple[Text, str]]:
    # rich Text, because a str would be read as markup and typing to search does not know Content
    return [(Text(row.names.get(choice, choice)), choice) for choice in row.choices or ()] or [(Text("none"), "")]


class ExperimentForm(VerticalScroll, can_focus=False):
    """The form of a draft; it applies the user's changes to the draft."""

    DEFAULT_CSS = """
    ExperimentForm { scrollbar-size-vertical: 1; }
    ExperimentForm Vertical { height: auto; }
    ExperimentForm .row { height: 1; }
    ExperimentForm Label { width: 13; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
    ExperimentForm Input { width: 1fr; min-width: 8; background: $surface; padding: 0 1; }
    ExperimentForm Input:focus { background: $boost; background-tint: $foreground 8%; }
    ExperimentForm Select { width: 1fr; min-width: 8; }
    ExperimentForm SelectCurrent { background: $surface; padding: 0 1; }
    ExperimentForm Select:focus > SelectCurrent { background-tint: $foreground 8%; }
    ExperimentForm SelectCurrent Static#label { text-wrap: nowrap; text-overflow: ellipsis; }
    ExperimentForm SelectOverlay { width: 40; text-wrap: nowrap; text-overflow: ellipsis; }
    ExperimentForm Select:disabled { opacity: 60%; }
    ExperimentForm .wrong Label { color: $text-error; text-style: bold; }
    ExperimentForm .row:focus-within { background: $boost; }
    ExperimentForm .row:focus-within Label { color: $primary; text-style: bold reverse; }
    ExperimentForm #more:focus { color: $primary; text-style: bold reverse; }
    ExperimentForm #more { width: 1fr; text-align: left; content-align: left middle; }
    ExperimentForm #more { background: transparent; color: $text-muted; }
    ExperimentForm #more:focus { background: $boost; background-tint: $foreground 8%; }
    ExperimentForm #about.-wrong { color: $text-error; }
    ExperimentForm #about { dock: bottom; height: auto; padding: 1 0 0 0; background: $background; color: $text-muted; }
    """

    @dataclass
    class Changed(Message):
        """The draft has changed; `errors` by row, empty if it is valid."""

        errors: dict[str, str]

    class OwnWanted(Message):
        """The user selected the entry for a kernel file."""

    class Submitted(Message):
        """Enter was pressed in a text field."""

    def __init__(self, draft: Draft):
        super().__init__()
        self.draft = draft
        self._agreed_texts: dict[str, str] = {}  # the texts of the fields when they last equalled those of the draft
        self._rows: dict[str, Horizontal] = {}  # rows that were shown at least once: each is a dozen widgets and slow to create
        self._late = False  # True while a second sync is due, because rows were not mounted yet
        self._wrong: dict[str, str] = {}  # errors by row
        self._helped = "kernel"  # the row that had the focus last; empty: the button More
        self._few = Vertical()
        self._more = Button("", compact=True, id="more")
        self._rest = Vertical()
        self._rest.display = False
        self._about = Static(id="about", markup=False)

    def compose(self) -> ComposeResult:
        rows = self.draft.rows()
        with self._few:
            yield from [self._made(row) for row in rows if row.shown and not row.more]
        yield self._more
        yield self._rest
        yield self._about
        self._say_more(rows)

    def on_mount(self) -> None:
        self.mark_errors(self.draft.misread())

    def sync(self, errors: dict[str, str] | None = None) -> None:
        """Show the draft with its choices and errors; `errors` saves a second check."""
        self._take_typed()
        rows = self.draft.rows()
        for place in (self._few, self._rest):
            last: Widget | None = None
            for row in (row for row in rows if row.more == (place is self._rest)):
                if row.key in self._rows:
                    self._sync_row(row)
                elif row.shown and place.display:
                    place.mount(self._made(row), after=last)
                last = self._rows.get(row.key) or last
        self._say_more(rows)
        self.mark_errors(self.draft.errors() if errors is None else errors)

    def _sync_late(self) -> None:
        self._late = False
        self.sync()

    def mark_errors(self, errors: dict[str, str]) -> None:
        """Mark these rows; show the error of the focused row, else the first one, below all rows, so that none moves."""
        if not self._rest.display and any(row.more and row.key in errors for row in self.draft.rows()):
            self.show_rest(True)
        self._wrong = errors
        for key, row in self._rows.items():
            row.set_class(key in errors, "wrong")
        self._explain()

    def show_rest(self, visible: bool) -> None:
        """Show all rows, or only the main ones."""
        self._rest.display = visible
        self.sync()

    def _say_more(self, rows: tuple[FormRow, ...]) -> None:
        """Name the hidden settings that differ from their defaults."""
        changed_fields = [
            f"{row.title.lower()} {row.names.get(row.text, row.text)}" for row in rows if row.more and row.shown and row.changed
        ]
        closed = Content.assemble("▸ More   ", (", ".join(changed_fields), "$text-warning"))
        self._more.label = Content("▾ Less") if self._rest.display else closed

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.show_rest(not self._rest.display)

    def _explain(self) -> None:
        """Show an error, else the help of the focused row; an open list of choices belongs to its row."""
        if not self.is_attached:
            return
        focused, rows = self.screen.focused, self.draft.rows()
        inside = focused is not None and self in focused.ancestors
        if focused is not None and inside:
            here = {widget.id for widget in (focused, *focused.ancestors)}
            self._helped = next((row.key for row in rows if f"field-{row.key}" in here), "")
        wrong = (self._wrong.get(self._helped) if inside else "") or next(iter(self._wrong.values()), "")
        about = next((row.help for row in rows if row.key == self._helped), REST_HELP)
        self._about.update(Content(wrong or about))
        self._about.set_class(bool(wrong), "-wrong")

    on_descendant_focus = _explain

    @on(Select.Changed)
    def _picked(self, event: Select.Changed) -> None:
        if event.value == OWN:
            with self.prevent(Select.Changed):
                self.query_one("#field-kernel", FieldSelect).value = self.draft.text("kernel")
            self.post_message(self.OwnWanted())
        elif event.value is not Select.NULL:
            self._take(event.select, str(event.value))
            self._explain()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._take(event.input, event.input.value)  # event.value may be outdated: the user may have typed more since

    def _take_typed(self) -> None:
        """Take typed text that was not handled yet into the draft, unless the draft was replaced."""
        for field in self.query(Input):
            key = (field.id or "").removeprefix("field-")
            drawn_text = self._agreed_texts[key]
            if field.value != drawn_text and (self.draft.last or self.draft.text(key) == drawn_text):
                self._agreed_texts[key] = field.value
                self.draft.set(key, field.value)

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        self.post_message(self.Submitted())

    def _take(self, field: Widget, text: str) -> None:
        key = (field.id or "").removeprefix("field-")
        self._agreed_texts[key] = text
        if self.draft.text(key) == text:
            return
        self.draft.set(key, text)
        errors = self.draft.errors()
        if key in DECIDING:
            self.sync(errors)
        self.post_message(self.Changed(errors))

    def _made(self, row: FormRow) -> Horizontal:
        if row.choices is None:
            field: Widget = Input(row.text, row.hint, id=f"field-{row.key}", compact=True, select_on_focus=False)
        else:
            field = FieldSelect(row)
        self._agreed_texts[row.key] = row.text
        self._rows[row.key] = Horizontal(Label(Content(row.title)), field, classes="row", id=f"row-{row.key}")
        return self._rows[row.key]

    def _sync_row(self, row: FormRow) -> None:
        self._rows[row.key].display = row.shown
        if not self._rows[row.key].is_mounted:  # just created
            if not self._late:
                self._late = self.call_after_refresh(self._sync_late)
            return
        field = self.query_one(f"#field-{row.key}")
        with self.prevent(Select.Changed, Input.Changed):
            if isinstance(field, FieldSelect):
                field.offer(row)
            if isinstance(field, Input | FieldSelect) and field.value != row.text:
                field.value = self._agreed_texts[row.key] = row.text
