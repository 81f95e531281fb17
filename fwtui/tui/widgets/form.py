"""The form: one compact row per field of fwtui.experiment.experiment and per option of the chosen kernel."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Label, Select, Static

from fwtui.tui.widgets.draft import Drafted, Row

NUMERIC = set("0123456789.%_-")


class FieldInput(Input):
    """A text field; one for numbers leaves letters to the screen's keys, so that they work while it has the focus."""

    def __init__(self, row: Row):
        super().__init__(row.text, row.hint, id=f"field-{row.key}", compact=True, select_on_focus=False, tooltip=row.help)
        self._numeric = bool(row.text) and set(row.text) <= NUMERIC

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return super().check_consume_key(key, character) and not self._leaves(character)

    def on_key(self, event: events.Key) -> None:
        if event.is_printable and self._leaves(event.character):
            event.prevent_default()

    def _leaves(self, character: str | None) -> bool:
        return self._numeric and character not in NUMERIC


class FieldSelect(Select[str]):
    """What a row offers; it can be looked at where there is nothing to choose from."""

    def __init__(self, row: Row):
        super().__init__(_options(row), value=row.text, allow_blank=False, compact=True, id=f"field-{row.key}")
        self._offered = row.choices
        self.offer(row)

    def offer(self, row: Row) -> None:
        """From now on what the row has."""
        if row.choices != self._offered:
            self._offered = row.choices
            self.set_options(_options(row))
        self.disabled = len(row.choices or ()) < 2
        self.tooltip = row.help


def _options(row: Row) -> list[tuple[Text, str]]:
    # rich Text, because a str would be read as markup and typing to search does not know Content
    return [(Text(choice), choice) for choice in row.choices or ()] or [(Text("none"), "")]


class ExperimentForm(VerticalScroll, can_focus=False):
    """Shows a draft and writes what the user changes back into it."""

    DEFAULT_CSS = """
    ExperimentForm { scrollbar-size-vertical: 1; }
    ExperimentForm .row { height: 1; }
    ExperimentForm Label { width: 13; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
    ExperimentForm Input { width: 1fr; min-width: 8; background: $surface; padding: 0 1; }
    ExperimentForm Input:focus { background: $boost; background-tint: $foreground 8%; }
    ExperimentForm Select { width: 1fr; min-width: 8; }
    ExperimentForm SelectCurrent { background: $surface; padding: 0 1; }
    ExperimentForm Select:focus > SelectCurrent { background-tint: $foreground 8%; }
    ExperimentForm Select:disabled { opacity: 60%; }
    ExperimentForm .error { color: $text-error; display: none; height: auto; padding: 0 0 0 1; }
    ExperimentForm .error.-said { display: block; }
    ExperimentForm .wrong Label { color: $text-error; text-style: bold; }
    """

    @dataclass
    class Changed(Message):
        """The draft says something else now; `errors` by row, empty when it can run."""

        errors: dict[str, str]

    class Submitted(Message):
        """Enter was pressed in a text field."""

    def __init__(self, draft: Drafted):
        super().__init__()
        self.draft = draft
        self._rows: dict[str, Horizontal] = {}  # those that were ever shown: each is a dozen widgets, which takes its time
        self._errors: dict[str, Static] = {}  # those that were ever said

    def compose(self) -> ComposeResult:
        yield from [self._made(row) for row in self.draft.rows() if row.shown]

    def on_mount(self) -> None:
        self.say(self.draft.misread())

    def sync(self) -> None:
        """Show what the draft says, choices and errors included."""
        last: Widget | None = None
        for row in self.draft.rows():
            if row.key in self._rows:
                self._sync_row(row)
            elif row.shown:
                self.mount(self._made(row), after=last)
            last = self._errors.get(row.key) or self._rows.get(row.key) or last
        self.say(self.draft.misread())

    def say(self, errors: dict[str, str]) -> None:
        """Show these sentences under their rows."""
        for key in {*self._rows, *self._errors, *errors}:
            sentence = errors.get(key, "")
            if sentence and key not in self._errors:
                self._errors[key] = Static(id=f"error-{key}", classes="error", markup=False)
                self.mount(self._errors[key], after=self._rows.get(key))
            if key in self._errors:
                self._errors[key].update(Content(sentence))
                self._errors[key].set_class(bool(sentence), "-said")
            if key in self._rows:
                self._rows[key].set_class(bool(sentence), "wrong")

    @on(Select.Changed)
    def _picked(self, event: Select.Changed) -> None:
        event.stop()
        if event.value is not Select.NULL:
            self._take(event.select.id or "", str(event.value))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._take(event.input.id or "", event.value)

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Submitted())

    def _take(self, widget: str, text: str) -> None:
        key = widget.removeprefix("field-")
        if self.draft.text(key) == text:
            return
        self.draft.set(key, text)
        if key in ("kernel", "device", "n", "file"):  # what the kernel's own choices depend on
            self.sync()
        self.post_message(self.Changed(self.draft.errors()))

    def _made(self, row: Row) -> Horizontal:
        widget = FieldInput(row) if row.choices is None else FieldSelect(row)
        self._rows[row.key] = Horizontal(Label(Content(row.title)), widget, classes="row", id=f"row-{row.key}")
        return self._rows[row.key]

    def _sync_row(self, row: Row) -> None:
        self._rows[row.key].display = row.shown
        if not self._rows[row.key].is_mounted:  # made a moment ago
            self.call_after_refresh(self.sync)
            return
        widget = self.query_one(f"#field-{row.key}")
        with self.prevent(Select.Changed, Input.Changed):
            if isinstance(widget, FieldSelect):
                widget.offer(row)
            if isinstance(widget, FieldInput | FieldSelect) and widget.value != row.text:
                widget.value = row.text
