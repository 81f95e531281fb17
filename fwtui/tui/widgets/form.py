"""The form: rows of texts and choices that follow the kernel, with what is wrong; on a screen the few that matter most first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button, Input, Label, Select, Static

from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.experiment.experiment import Experiment, changed, for_kernel, kernel_named, settle
from fwtui.experiment.fields import FIELDS, Field, vertices
from fwtui.experiment.user_kernel_registry import known_kernels
from fwtui.graphs.formats import read_help
from fwtui_kernels.auto import AUTO
from fwtui_kernels.plan import Kernel, Option

OPTION = "option-"  # begins the key of a kernel's own option
OWN = "your own…"  # in the list of kernels: a file that is asked for
UNITS = {"SECONDS": "s"}
Simulated = Callable[[Kernel, str], bool]  # (kernel, device) -> whether it would run in the simulator
Settled = Callable[[Experiment], Experiment]  # raises Refused for what cannot run here
GRAPH = "n"  # the row that takes a number of vertices or the path of a file
MAIN = ("kernel", GRAPH, "density", "dtype", "tile", "device")  # what is in sight, in this order
DECIDING = ("kernel", "device", "n")  # what the kernel's own choices depend on
REST_HELP = "all other settings: the graph's weights and seed, the kernel's own options, how it is timed and checked"


class FormRow(NamedTuple):
    """One line of the form. Choices are None for free text and empty if the kernel has nothing to choose."""

    key: str
    title: str
    help: str
    text: str
    choices: tuple[str, ...] | None
    shown: bool = True
    hint: str = ""  # what an empty text means
    names: Mapping[str, str] = {}  # what choices are called, where that is not their text
    more: bool = False  # whether it is among those that More opens
    changed: bool = False  # whether it says something else than it would by itself


class Draft(Protocol):
    """Whatever a form can show and change."""

    last = ""  # the row that was changed last; "" where the whole was taken from elsewhere
    _blamed = ("", "")  # an error of no single row, and the row under which it is shown

    def rows(self) -> tuple[FormRow, ...]: ...
    def set(self, key: str, text: str) -> None: ...
    def texts(self) -> dict[str, str]: ...  # what was said, also what cannot be read, for another draft to begin with
    def misread(self) -> dict[str, str]: ...  # rows whose text cannot be read at all
    def check(self) -> object: ...  # raises Refused with the first thing that is wrong

    def text(self, key: str) -> str:
        """What the row shows."""
        return next(row.text for row in self.rows() if row.key == key)

    def errors(self) -> dict[str, str]:
        """What is wrong, by row. An error of no single row is shown under the row changed last ("" if none)."""
        errors = self.misread()
        if not errors:
            try:
                self.check()
            except Refused as refusal:
                if self._blamed[0] != str(refusal):  # else it stays where it is, whatever is edited meanwhile
                    self._blamed = (str(refusal), self.last)
                errors[self._blamed[1]] = str(refusal)
        return errors


def titled(field: Field) -> str:
    """The field's title, with its unit where it has one."""
    return f"{field.title}, {UNITS[field.metavar]}" if field.metavar in UNITS else field.title


def names_a_file(text: str) -> bool:
    """Whether the row of the graph has a path: not a number, and with a separator or a suffix."""
    with suppress(ValueError):
        float(text)
        return False
    return any(sign in text for sign in "/\\.~")


def loaded_kernel(experiment: Experiment) -> Kernel:
    """The experiment's kernel. Raises Refused for a user's kernel whose file was not chosen in this session."""
    if experiment.code and experiment.kernel not in known_kernels():
        raise Refused(
            f"{clean(experiment.kernel)} is a kernel of your own; choose its file first, by {OWN} in the list of kernels"
        )
    return kernel_named(experiment.kernel)


class ExperimentDraft(Draft):
    """An experiment in the making. What a user picked is remembered when another kernel does not offer it."""

    def __init__(self, experiment: Experiment, simulated: Simulated, settled: Settled, texts: Mapping[str, str] = {}):
        """`texts` are those of a draft before; they do not count where their kernel is none, or not loaded."""
        self._simulated = simulated
        self._settled = settled
        self._wishes: dict[str, str] = {}
        self.take(experiment)
        if texts.get("kernel") in (*known_kernels(), AUTO.id):
            self._wishes = {**texts}

    @property
    def kernel(self) -> Kernel:
        return kernel_named(self._wishes["kernel"])

    @property
    def simulated(self) -> bool:
        return self._simulated(self.kernel, self._wishes.get("device", "auto"))

    def take(self, experiment: Experiment) -> None:
        """Say what this experiment says. Raises Refused."""
        loaded_kernel(experiment)
        self._wishes = {"kernel": experiment.kernel, "device": experiment.device, "n": str(experiment.n), "file": experiment.file}
        self.last = ""
        usual = self._usual()
        for field in FIELDS:
            text = field.show(experiment)
            choices = self._choices(field)
            if choices is None or (text in choices and text != field.show(usual)):
                self._wishes[field.name] = text
        self._wishes["kernel"] = experiment.kernel
        for option in self.kernel.options:
            value = experiment.options.get(option.name, option.default)
            if value != option.default:
                self._wishes[OPTION + option.name] = str(value)

    def texts(self) -> dict[str, str]:
        return {**self._wishes}

    def set(self, key: str, text: str) -> None:
        self._wishes[key] = text
        if key == GRAPH:
            self._wishes |= {"n": str(Experiment().n), "file": text} if names_a_file(text) else {"file": ""}
        self.last = key

    def rows(self) -> tuple[FormRow, ...]:
        """The few that are always in sight, then the kernel's own options and all the rest; options of others are not shown."""
        usual = self._usual()
        rows = {field.name: self._row(field, usual) for field in FIELDS}
        file, graph = rows.pop("file"), rows[GRAPH]
        help = f"vertices of a random graph, 1 to {self.kernel.max_n}, or a file: {read_help()}"
        rows[GRAPH] = graph._replace(title="Graph", text=file.text or graph.text, help=help)
        main = [rows.pop(key) for key in MAIN]
        rest = (row._replace(more=True, shown=row.choices is None or len(row.choices) > 1) for row in rows.values())
        return (*main, *self._option_rows(), *rest)

    def _row(self, field: Field, usual: Experiment) -> FormRow:
        text, choices = self._field_text(field), self._choices(field)
        help = self.kernel.summary if field.name == "kernel" else field.help
        if field.name == "kernel" and choices is not None:
            choices = (*choices, OWN)
        names = {"": "one"} if field.name == "devices" else {}
        changed = choices != () and text != field.show(usual)
        offered = field.offered(self.kernel)
        return FormRow(field.name, titled(field), help, text, choices, offered, names=names, changed=changed)

    def typed(self) -> Experiment:
        """The experiment as it says. Raises Refused for what cannot be read."""
        changes, errors = self._read()
        for sentence in errors.values():
            raise Refused(sentence)
        return Experiment(**changes, options={o.name: int(self._option_text(o)) for o in self.kernel.options})

    def experiment(self) -> Experiment:
        """The experiment as it would run here. Raises Refused with the first thing that is wrong."""
        return changed(self._settled(self.typed()))

    check = experiment

    def misread(self) -> dict[str, str]:
        return self._read()[1]

    def _read(self) -> tuple[dict[str, Any], dict[str, str]]:
        """What the fields say of an experiment, and what is wrong with those that cannot be read."""
        changes: dict[str, Any] = {}
        errors: dict[str, str] = {}
        for field in FIELDS:
            if self._choices(field) != ():
                if field.name == "n":  # one limit for the whole row: the kernel's
                    field = replace(field, parse=vertices(self.kernel.max_n))
                try:
                    changes |= field.read(self._field_text(field))
                except Refused as refusal:
                    errors[GRAPH if field.name == "file" else field.name] = str(refusal)
        return changes, errors

    def _choices(self, field: Field) -> tuple[str, ...] | None:
        if not field.offered(self.kernel):
            return ()
        return None if field.choices is None else field.choices(self.kernel, self.simulated)

    def _field_text(self, field: Field) -> str:
        wish = self._wishes.get(field.name)
        choices = self._choices(field)
        if wish is not None and (choices is None or wish in choices):
            return wish
        usual = field.show(self._usual())
        if choices is None:
            return usual
        return usual if usual in choices else (choices[0] if choices else "")

    def _option_text(self, option: Option) -> str:
        wish = self._wishes.get(OPTION + option.name, "")
        return wish if wish in map(str, option.values) else str(option.default)

    def _option_rows(self) -> list[FormRow]:
        options = {o.name: o for o in self.kernel.options}
        every = {o.name: o for kernel in known_kernels().values() for o in kernel.options} | options
        rows: list[FormRow] = []
        for name, option in every.items():
            there = name in options
            text, choices = (self._option_text(option), tuple(map(str, option.values))) if there else ("", ())
            title, changed = name.replace("_", " ").capitalize(), there and text != str(option.default)
            names = {str(value): word for word, value in option.words.items()}
            row = FormRow(OPTION + name, title, option.help, text, choices, there, names=names, more=True, changed=changed)
            rows.append(row)
        return rows

    def _usual(self) -> Experiment:
        """The kernel's own choices for a graph of that size."""
        usual = for_kernel(Experiment(), self.kernel)
        for n in (self._n(), 1):
            with suppress(Refused):
                return settle(changed(usual, n=n), self.simulated)
        return changed(usual, n=1)

    def _n(self) -> int:
        """The size that is asked for; of a file, which is not read yet, the largest."""
        text = self._wishes.get("n", "")
        if self._wishes.get("file"):
            return self.kernel.max_n
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 1


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

    def __init__(self, draft: Draft):
        super().__init__()
        self.draft = draft
        self._agreed_texts: dict[str, str] = {}  # what stood in text fields when the draft and they last agreed
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

    def show_rest(self, visible: bool) -> None:
        """Show all rows, or only those that matter most."""
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
        if event.value == OWN:
            with self.prevent(Select.Changed):
                self.query_one("#field-kernel", FieldSelect).value = self.draft.text("kernel")
            self.post_message(self.OwnWanted())
        elif event.value is not Select.NULL:
            self._take(event.select, str(event.value))
            self._explain()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._take(event.input, event.input.value)  # not the event's: on a busy machine more was typed since

    def _take_typed(self) -> None:
        """Text that was typed but not yet handled counts more than the draft, unless something else has filled that in."""
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
        if not self._rows[row.key].is_mounted:  # made a moment ago
            if not self._late:
                self._late = self.call_after_refresh(self._sync_late)
            return
        field = self.query_one(f"#field-{row.key}")
        with self.prevent(Select.Changed, Input.Changed):
            if isinstance(field, FieldSelect):
                field.offer(row)
            if isinstance(field, Input | FieldSelect) and field.value != row.text:
                field.value = self._agreed_texts[row.key] = row.text
