"""The form: a compact row for each of the few settings that matter most, and all others when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button, Input, Label, Select, Static

from fwtui.tui.widgets.form_model import OWN, Drafted, FormRow

DECIDING = ("kernel", "device", "n")  # what the kernel's own choices depend on
REST_HELP = "all other settings: the graph's weights and seed, the kernel's own options, how it is timed and checked"


class FieldSelect(Select[str]):
    """What a row offers; it can be opened even without choices."""

    def __init__(self, row: FormRow):
        super().__init__(_options(row), value=row.text, allow_blank=False, compact=True, id=f"field-{row.key}")
        self._offered = row.choices
        self.offer(row)

    def offer(self, row: FormRow) -> None:
        """Replace the row's choices."""
        if row.choices != self._offered:
            self._offered = row.choices
            self.set_options(_options(row))
        self.disabled = len(row.choices or ()) < 2


def _options(row: FormRow) -> list[tuple[Text, str]]:
    # rich Text, because a str would be read as markup and typing to search does not know Content
    return [(Text(row.names.get(choice, choice)), choice) for choice in row.choices or ()] or [(Text("none"), "")]


class ExperimentForm(VerticalScroll, can_focus=False):
    """Shows a draft and writes what the user changes back into it."""

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
    ExperimentForm Select:disabled { opacity: 60%; }
    ExperimentForm .wrong Label { color: $text-error; text-style: bold; }
    ExperimentForm #more { width: 1fr; text-align: left; content-align: left middle; }
    ExperimentForm #more { background: transparent; color: $text-muted; }
    ExperimentForm #more:focus { background: $boost; background-tint: $foreground 8%; }
    ExperimentForm #about.-wrong { color: $text-error; }
    ExperimentForm #about { dock: bottom; height: auto; padding: 1 0 0 0; background: $background; color: $text-muted; }
    """

    @dataclass
    class Changed(Message):
        """The draft says something else now; `errors` by row, empty when it can run."""

        errors: dict[str, str]

    class OwnWanted(Message):
        """The user asked for a kernel file."""

    class Submitted(Message):
        """Enter was pressed in a text field."""

    def __init__(self, draft: Drafted):
        super().__init__()
        self.draft = draft
        self._known: dict[str, str] = {}  # what stood in text fields when the draft and they last agreed
        self._rows: dict[str, Horizontal] = {}  # those that were ever shown: each is a dozen widgets, which takes its time
        self._late = False  # what is shown will be synced again, as rows were not mounted yet
        self._wrong: dict[str, str] = {}  # what is wrong, by row
        self._helped: str | None = None  # the row that had the focus last; empty: none of them, but the form
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
        self.say(self.draft.misread())

    def sync(self, errors: dict[str, str] | None = None) -> None:
        """Show what the draft says, choices and errors included; the caller may know the errors already."""
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
        self.say(self.draft.errors() if errors is None else errors)

    def _sync_late(self) -> None:
        self._late = False
        self.sync()

    def say(self, errors: dict[str, str]) -> None:
        """Mark these rows; the sentence of the one that has the focus, else the first, is said below all, so that none moves."""
        if not self._rest.display and any(row.more and row.key in errors for row in self.draft.rows()):
            self.show_rest(True)
        self._wrong = errors
        for key, row in self._rows.items():
            row.set_class(key in errors, "wrong")
        self._explain()

    def show_rest(self, shown: bool) -> None:
        """Show all rows, or only those that matter most."""
        self._rest.display = shown
        self.sync()

    def _say_more(self, rows: tuple[FormRow, ...]) -> None:
        """Name the hidden settings that differ from their defaults."""
        told = [
            f"{row.title.lower()} {row.names.get(row.text, row.text)}" for row in rows if row.more and row.shown and row.changed
        ]
        closed = Content.assemble("▸ More   ", (", ".join(told), "$text-warning"))
        self._more.label = Content("▾ Less") if self._rest.display else closed

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.show_rest(not self._rest.display)

    def _explain(self) -> None:
        """Say what is wrong, else what the setting is that has the focus; an open list of choices is part of its field."""
        if not self.is_attached:
            return
        focused, rows = self.screen.focused, self.draft.rows()
        inside = focused is not None and self in focused.ancestors
        if focused is not None and inside:
            here = {widget.id for widget in (focused, *focused.ancestors)}
            self._helped = next((row.key for row in rows if f"field-{row.key}" in here), "")
        wrong = (self._wrong.get(self._helped or "") if inside else "") or next(iter(self._wrong.values()), "")
        about = next((row.help for row in rows if row.key == self._helped), "" if self._helped is None else REST_HELP)
        self._about.update(Content(wrong or about))
        self._about.set_class(bool(wrong), "-wrong")

    on_descendant_focus = _explain

    @on(Select.Changed)
    def _picked(self, event: Select.Changed) -> None:
        event.stop()
        if event.value == OWN:
            with self.prevent(Select.Changed):
                self.query_one("#field-kernel", FieldSelect).value = self.draft.text("kernel")
            self.post_message(self.OwnWanted())
        elif event.value is not Select.NULL:
            self._take(event.select, str(event.value))
            self._explain()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._take(event.input, event.input.value)  # not the event's: on a busy machine more was typed since

    def _take_typed(self) -> None:
        """Text that was typed but not yet handled counts more than the draft, unless something else has filled that in."""
        for field in self.query(Input):
            key = (field.id or "").removeprefix("field-")
            known = self._known[key]
            if field.value != known and (self.draft.last or self.draft.text(key) == known):
                self._known[key] = field.value
                self.draft.set(key, field.value)

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Submitted())

    def _take(self, field: Widget, text: str) -> None:
        key = (field.id or "").removeprefix("field-")
        self._known[key] = text
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
        self._known[row.key] = row.text
        self._rows[row.key] = Horizontal(Label(Content(row.title)), field, classes="row", id=f"row-{row.key}")
        return self._rows[row.key]

    def _sync_row(self, row: FormRow) -> None:
        self._rows[row.key].display = row.shown
        if not self._rows[row.key].is_mounted:  # made a moment ago
            if not self._late:
                self._late = self.call_after_refresh(self._sync_late)
            return
        field = self.query_one(f"#field-{row.key}")
        with self.prevent(Select.Changed, Input.Changed):
            if isinstance(field, FieldSelect):
                field.offer(row)
            if isinstance(field, Input | FieldSelect) and field.value != row.text:
                field.value = self._known[row.key] = row.text
