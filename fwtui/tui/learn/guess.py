"""Asks for a guess at what a run will say: one of several things."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from fwtui.learn.questions import Choice
from fwtui.tui.frame.dialogs import Dialog

NO_GUESS = "no guess: show the answer"


class GuessScreen(Dialog):
    """Answers the key of what was chosen, an empty string where nothing was guessed, None where it was closed."""

    DEFAULT_CSS = "GuessScreen OptionList { height: auto; max-height: 12; margin: 1 0; }"
    HINT = "↑ ↓ and Enter guess, Esc does not"
    BINDINGS: ClassVar = [Binding("escape,q", "close", "Close", id="guess.close", tooltip="close this")]

    def __init__(self, title: str, choices: Sequence[Choice]):
        super().__init__()
        self._title = title
        self._choices = [*choices, Choice("", NO_GUESS)]

    @property
    def heading(self) -> str:
        return self._title

    def body(self) -> ComposeResult:
        yield OptionList(*(Option(Content(choice.words)) for choice in self._choices), compact=True)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._choices[event.option_index].key)
