"""The form of a live screen with its buttons: a panel on the left, or one line on a narrow screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Static

from fwtui.tui.frame.dialogs import FormScreen
from fwtui.tui.widgets.draft import Draft
from fwtui.tui.widgets.form import ExperimentForm
from fwtui.tui.widgets.text_panel import MUTED, TextPanel, line


class FormHost(Protocol):
    """A screen with a form."""

    def key_of(self, name: str) -> str: ...
    def show_message(self, text: str, level: str = "info") -> None: ...
    def action_run(self) -> None: ...
    def summary(self) -> tuple[str, ...]: ...  # the valid form in one line: several texts, longest first
    def checked(self) -> None: ...  # called after a change of the form or of its errors


class FormStatus(NamedTuple):
    texts: tuple[str, ...] = ("",)  # the first one that fits is shown
    wrong: bool = False
    key: str = ""  # opens the form


class FormLine(TextPanel[FormStatus]):
    """A summary of the form, or its first error."""

    DEFAULT_CSS = "FormLine { display: none; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__(FormStatus())

    def draw(self, subject: FormStatus, width: int) -> Sequence[Content]:
        edit = f"   {subject.key} edit"
        text = next((text for text in subject.texts if len(text) + len(edit) <= width), subject.texts[-1])
        return line((text, "$text-error" if subject.wrong else ""), (edit, MUTED)).wrap(width)[:1]


class FormPanel(Vertical):
    """The form and its buttons; `run` and `edit` are the ids of their actions. Its screen also has a FormLine."""

    DEFAULT_CSS = """
    FormPanel { width: 36; padding: 0 1; border-right: solid $border-blurred; }
    FormPanel.-with-more ExperimentForm { height: auto; max-height: 70%; }
    FormPanel #buttons { height: 1; margin-top: 1; }
    FormPanel Button { margin-right: 1; min-width: 14; }
    FormPanel #cancel { min-width: 16; }
    """

    def __init__(self, host: FormHost, heading: str, draft: Draft, run: str = "run", edit: str = "edit", *below: Widget):
        """`below` are widgets for the room between the form and the buttons."""
        super().__init__(id="left", classes="-with-more" if below else None)
        self._below = below
        self.errors: dict[str, str] = {}  # row -> error message
        self._host = host
        self._heading = heading
        self._draft = draft
        self._run, self._edit = run, edit

    def compose(self) -> ComposeResult:
        yield Static(Content(self._heading), classes="heading", markup=False)
        yield ExperimentForm(self._draft)
        yield from self._below
        with Horizontal(id="buttons"):
            yield Button("", id="run", compact=True, variant="primary", action="screen.run")
            yield Button("", id="cancel", compact=True, action="screen.cancel")

    def on_mount(self) -> None:
        self._read()
        self._name_keys()

    def _name_keys(self) -> None:
        """Show on the buttons the keys with the same effect."""
        for button, title, row in (("#run", self._run.capitalize(), self._run), ("#cancel", "Cancel", "cancel")):
            self.query_one(button, Button).label = Content(f"{title}  {self._host.key_of(row)}")

    on_descendant_focus = on_descendant_blur = _name_keys

    def _read(self) -> None:
        self.errors = self._draft.errors()
        text = (next(iter(self.errors.values())),) if self.errors else self._host.summary()
        self.screen.query_one(FormLine).show(FormStatus(text, bool(self.errors), self._host.key_of(self._edit)))

    def check(self) -> None:
        """Check the draft, and show its errors."""
        self._read()
        self.query_one(ExperimentForm).mark_errors(self.errors)
        self._host.checked()

    def sync(self) -> None:
        """Show the draft after a change outside the form."""
        self.query_one(ExperimentForm).sync()
        self.check()

    def allow(self, busy: bool, cancel: bool) -> None:
        """Enable or disable the buttons: nothing starts during a run or with errors."""
        self.query_one("#run", Button).disabled = busy or bool(self.errors)
        self.query_one("#cancel", Button).disabled = not cancel

    def edit(self) -> None:
        """Give the focus to the form's first field; if the form is hidden, open it over the screen."""
        if self.display:
            self.query_one("ExperimentForm Input, ExperimentForm Select").focus()
            return

        def done(answer: str | None) -> None:
            self.sync()
            if answer == "own":
                self.post_message(ExperimentForm.OwnWanted())
            if answer == "run":
                self._host.action_run()

        self.app.push_screen(FormScreen(self._heading.capitalize(), self._draft), done)

    def on_experiment_form_changed(self, event: ExperimentForm.Changed) -> None:
        self.check()

    def on_experiment_form_submitted(self, event: ExperimentForm.Submitted) -> None:
        self._host.action_run()
