"""The command palette: a field and the list of what it finds among the commands of a screen and of the application."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.fuzzy import Matcher
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from fwtui.tui.actions import look, move
from fwtui.tui.frame.base_screens import Over
from fwtui.tui.widgets.drawn import MUTED, line


class Command(NamedTuple):
    """Its words are data (file names are), and never read as markup."""

    words: str
    run: Callable[[], object]
    help: str | None = None
    looks: bool = False  # it only shows something: a dashboard that is read-only has it too


def found(commands: Iterable[Command], query: str) -> list[Command]:
    """Those that have these letters in this order, the best first; one whose name has the words before others."""
    if not query:
        return [*commands]
    matcher, scored = Matcher(query), list[tuple[float, Command]]()
    for command in commands:
        score, name = matcher.match(command.words), command.words.partition(": ")[0]
        if query.lower() in name.lower():
            score += matcher.match(name)
        if score > 0:
            scored.append((score, command))
    return [command for _, command in sorted(scored, key=lambda one: -one[0])]


class Palette(Over, ModalScreen[None]):
    DEFAULT_CSS = """
    Palette { align-horizontal: center; background: $background 60%; }
    Palette > #box { width: 90%; max-width: 120; height: auto; max-height: 100%; margin-top: 3; background: $surface; }
    Palette Input { border: none; padding: 1 2; height: 3; background: $surface; }
    Palette Input:focus { border: none; background-tint: $foreground 0%; }
    Palette OptionList { height: auto; max-height: 70vh; border: none; padding: 0 1; background: $surface; }
    Palette OptionList:focus { border: none; }
    """
    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar = [
        look("escape", "close", "Close", "close this", id="palette.close"),
        move("up", "mark('cursor_up')", "Up", "the command above", "palette.up"),
        move("down", "mark('cursor_down')", "Down", "the command below", "palette.down"),
        move("pageup", "mark('page_up')", "Page up", "a page up", "palette.page.up"),
        move("pagedown", "mark('page_down')", "Page down", "a page down", "palette.page.down"),
    ]

    def __init__(self, commands: Iterable[Command], placeholder: str = "Search for commands…"):
        super().__init__()
        self._commands = [*commands]
        self._placeholder = placeholder
        self.shown: Sequence[Command] = ()

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Input(placeholder=self._placeholder)
            yield OptionList(compact=True)

    def on_mount(self) -> None:
        self._find("")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._find(event.value)

    def _find(self, query: str) -> None:
        self.shown = found(self._commands, query)
        for options in self.query(OptionList):  # it may have gone before keys that were typed, or not be there yet
            options.can_focus = False
            options.clear_options()
            options.add_options(Option(line(one.words, (f"\n  {one.help}" if one.help else "", MUTED))) for one in self.shown)
            options.highlighted = 0 if self.shown else None

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        for options in self.query(OptionList):
            if options.highlighted is not None:
                self._run(options.highlighted)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._run(event.option_index)

    def _run(self, place: int) -> None:
        self.dismiss()
        self.app.call_later(self.shown[place].run)  # on the screen that it was opened over

    def action_mark(self, how: str) -> None:
        for options in self.query(OptionList):
            if options.option_count and options.scrollable_content_region:  # it has been laid out
                getattr(options, f"action_{how}")()

    def action_close(self) -> None:
        self.dismiss()
