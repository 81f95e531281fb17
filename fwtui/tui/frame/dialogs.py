"""Dialogs: help, the log, prompts, confirmations, the form on a narrow screen. Escape closes each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from fwtui.common.errors import Refused
from fwtui.stream.events import Source
from fwtui.tui.actions import Action, bound, filled_in, hidden_look, look, shown_keys
from fwtui.tui.frame.base_screens import Over
from fwtui.tui.frame.notices import LogEntry
from fwtui.tui.widgets.draft import Draft
from fwtui.tui.widgets.form import ExperimentForm
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, indented, line

Row = tuple[Content, str]  # a term, and its text
Glosses = Sequence[tuple[str, str]]  # terms and their definitions
CLOSES = "{key[dialog.close]} closes this"
TAKES = "Enter accepts, {key[dialog.close]} cancels"
WORD = 21  # cells of a term
FRAME = 6  # rows of a dialog around its content
MAX_ENTRIES = 1000  # drawn entries of the log: more take long to draw


class Dialog(Over, ModalScreen[str | None]):
    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > #box { width: 90%; max-width: 100; height: auto; max-height: 100%; }
    Dialog > #box { border: round $border; padding: 0 1; background: $surface; }
    Dialog #title { text-style: bold; color: $text-primary; }
    Dialog #hint { color: $text-muted; }
    Dialog VerticalScroll { height: auto; scrollbar-size-vertical: 1; }
    Dialog Toast { display: none; }
    """
    BINDINGS: ClassVar = [look("escape,q", "close", "Close", "close this dialog", id="dialog.close", key_display="Esc")]
    closed_by: Collection[str] = ()  # keys that close it, because they opened it
    accept: Callable[[str], object] | None = None  # takes an answer before the dialog closes; if it raises Refused, it stays open

    def __init__(self, heading: str, *body: Widget, hint: str = CLOSES):
        """Show these widgets between the heading and the hint, whose keys are filled in."""
        super().__init__()
        self.heading = heading
        self._hint = hint
        self._body = body

    @property
    def hint(self) -> str:
        return filled_in(self._hint, self)

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(Content(self.heading), id="title", markup=False)
            yield from self.body()
            yield Static(Content(self.hint), id="hint", markup=False)

    def body(self) -> ComposeResult:
        yield from self._body

    def show_message(self, text: str) -> None:
        """Show a message on the line above the hint."""
        self.query_one("#hint", Static).update(line((text, "$text-primary"), f"\n{self.hint}"))

    def answer(self, text: str) -> None:
        """Close with this text as the answer; if it is refused, show the reason and stay open."""
        try:
            if self.accept is not None:
                self.accept(text)
        except Refused as refusal:
            self.show_message(str(refusal))
        else:
            self.dismiss(text)

    def on_mount(self) -> None:
        # a long text leaves room for title and hint
        for text in self.query(VerticalScroll):
            text.styles.max_height = max(3, self.app.size.height - FRAME)

    on_resize = on_mount

    def on_key(self, event: Key) -> None:
        if event.key in self.closed_by:
            event.stop()
            self.action_close()

    def action_close(self) -> None:
        self.dismiss(None)


class DefinitionList(TextPanel[tuple[Row, ...]]):
    """Terms with their texts, which wrap to the right of the terms."""

    def draw(self, subject: tuple[Row, ...], width: int) -> Sequence[Content]:
        return [part for head, text in subject for part in indented(head, text, width)]


class ScrollableText(VerticalScroll):
    """Text that may be longer than the dialog; it takes the focus, so that the arrows scroll it."""

    def __init__(self, *parts: Sequence[Row], at_end: bool = False):
        super().__init__()
        self._parts = parts
        self._at_end = at_end

    def compose(self) -> ComposeResult:
        yield from (DefinitionList(tuple(rows)) for rows in self._parts)

    def on_mount(self) -> None:
        self.focus()
        if self._at_end:
            self.call_after_refresh(self.scroll_end, animate=False)


class HelpScreen(Dialog):
    """All keys with their help texts, from the bindings; the terms of the screen; the glossary."""

    BINDINGS: ClassVar = [hidden_look("v", "glossary", "View", "scroll to the glossary, and back", id="help.glossary")]

    def __init__(self, groups: Iterable[tuple[str, Iterable[Action]]], about: Iterable[tuple[str, Glosses]]):
        keys = [(title, [self._key(binding) for binding in bindings]) for title, bindings in groups]
        *sections, glossary = [(title, [row for word in terms for row in self._word(*word)]) for title, terms in about]
        parts = (
            [row for title, rows in part for row in ((line((title, STRONG)), ""), *rows, (line(""), ""))]
            for part in ((*keys, *sections), (glossary,))
        )
        hint = f"{{key[help.glossary]}}: the glossary · ctrl+p: all actions · {CLOSES}"
        super().__init__("Keys and glossary", ScrollableText(*parts), hint=hint)

    def action_glossary(self) -> None:
        """Scroll to the glossary, and from it back to the keys."""
        scrolled, (keys, text) = self.query_one(ScrollableText), self.query(DefinitionList)
        at_text = scrolled.scroll_y >= min(keys.size.height, scrolled.max_scroll_y)
        scrolled.scroll_to_widget(keys if at_text else text, top=True, animate=False)

    @staticmethod
    def _word(word: str, means: str) -> Sequence[Row]:
        """Return the rows of a term; a long term has a separate line."""
        head = line((f"  {word:<{WORD}} ", "$text-primary"))
        return [(head, means)] if len(word) <= WORD else [(head, ""), (line(" " * (WORD + 3)), means)]

    def _key(self, binding: Action) -> Row:
        key_name = binding.key_display or " ".join(shown_keys(self.app, binding))
        return line((f"  {key_name:<10}", "$text-primary"), f"{binding.description:<13} "), binding.tooltip


def source_rows(parts: Iterable[Source]) -> Iterator[Row]:
    """Yield the recorded source of a user kernel as rows."""
    for part in parts:
        if part.first <= 1:
            yield line((part.file, STRONG)), ""
        yield from ((line((f"{number:>5} ", MUTED)), text) for number, text in enumerate(part.lines, part.first))


def log_rows(entries: Sequence[LogEntry], stderr: str = "") -> list[Row]:
    """Return the rows of the log, of a long session its end, then the last output of a crashed process."""
    earlier, rows = len(entries) - MAX_ENTRIES, [entry.row() for entry in entries[-MAX_ENTRIES:]]
    if earlier > 0:
        rows.insert(0, (line((f"{earlier:,} earlier entries are only in the session file", MUTED)), ""))
    if not entries:
        rows.append((line(("the log is empty", MUTED)), ""))
    if stderr:
        rows += [(line(""), ""), (line(("its last output (stderr)", STRONG)), "")]
        rows += [(line("  "), text) for text in stderr.split("\n")]
    return rows


class ChoiceScreen(Dialog):
    """A list of choices, given as keys with their texts; the answer is a key."""

    DEFAULT_CSS = "ChoiceScreen OptionList { height: auto; max-height: 14; }"

    def __init__(self, heading: str, choices: Iterable[tuple[str, str]], hint: str):
        self._choices = list(choices)
        options = OptionList(*(Option(Content(text)) for _, text in self._choices), compact=True)
        super().__init__(heading, *[options] * bool(self._choices), hint=hint)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.answer(self._choices[event.option_index][0])


class PickFile(ChoiceScreen):
    """A list of files, given as choices, and a field for the path of another file."""

    DEFAULT_CSS = "PickFile OptionList { max-height: 12; }"

    def __init__(self, heading: str, choices: Iterable[tuple[str, str]], another: str):
        super().__init__(heading, choices, f"Enter accepts, {CLOSES}")
        self._another = another if self._choices else another.removeprefix("or ")

    def body(self) -> ComposeResult:
        yield from super().body()
        yield Input(placeholder=self._another, max_length=1000, compact=True, id="path")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self.answer(event.value.strip())


class PromptScreen(Dialog):
    """A field for one line of text; the answer is None if the dialog was closed."""

    def __init__(self, heading: str, value: str = "", placeholder: str = "", hint: str = TAKES, max_length: int = 200):
        field = Input(value, placeholder=placeholder, max_length=max_length, compact=True, id="answer")
        super().__init__(heading, field, hint=hint)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.answer(event.value)


class ConfirmScreen(Dialog):
    """A confirmation with its consequence; the answer is "yes" or None."""

    BINDINGS: ClassVar = [look("enter,y", "yes", "Yes", "do it", id="confirm.yes", key_display="Enter")]

    def __init__(self, question: str, meaning: str, does: str):
        """`does` is the effect of the key, such as "deletes it"."""
        hint = f"{{key[confirm.yes]}} {does}, {{key[dialog.close]}} does not"
        super().__init__(question, Static(Content(meaning), markup=False), hint=hint)

    def action_yes(self) -> None:
        self.dismiss("yes")


class EndScreen(ConfirmScreen):
    def __init__(self, meaning: str):
        super().__init__("End the program?", meaning, "or ctrl+q ends it")


class FormScreen(Dialog):
    """The form on a narrow screen. The answer is "run" to start the experiment, "own" to choose a kernel file, else None."""

    DEFAULT_CSS = "FormScreen ExperimentForm { height: auto; max-height: 18; }"
    BINDINGS: ClassVar = [bound("ctrl+r", "run", "Run", "start this experiment", id="form.run")]

    def __init__(self, heading: str, draft: Draft):
        super().__init__(heading, ExperimentForm(draft), hint="Enter or {key[form.run]} runs it, {key[dialog.close]} closes it")

    def on_experiment_form_changed(self, event: ExperimentForm.Changed) -> None:
        self.query_one(ExperimentForm).mark_errors(event.errors)

    def on_experiment_form_submitted(self, event: ExperimentForm.Submitted) -> None:
        self.action_run()

    def on_experiment_form_own_wanted(self, event: ExperimentForm.OwnWanted) -> None:
        self.dismiss("own")

    def action_run(self) -> None:
        form = self.query_one(ExperimentForm)
        errors = form.draft.errors()
        form.mark_errors(errors)
        if not errors:
            self.dismiss("run")
