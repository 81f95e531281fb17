"""Reading a session beside the screen: how far that is, and giving it up."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.content import Content
from textual.message_pump import MessagePump
from textual.widgets import ProgressBar, Static

from fwtui.common.text import clean
from fwtui.sessions import reader
from fwtui.tui.background import in_background
from fwtui.tui.frame.dialogs import Dialog
from fwtui.tui.frame.recording import Recording, named

READ_SHARE = 0.8  # of the time that opening takes; the rest is finding out when what is due


class GivenUp(Exception):
    """Nobody waits for the session any more."""


class Reading:
    """One session that is read in the background; `then` is called with this once `outcome` is there."""

    outcome: Recording | Exception

    def __init__(self, pump: MessagePump, path: Path, then: Callable[[Reading], object], **how: Any):
        self.name = clean(path.name)
        self.share = 0.0
        self.over = False
        self.given_up = False
        in_background(pump, partial(self._read, path, how), then, "reader")

    def _read(self, path: Path, how: dict[str, Any]) -> Reading:
        try:
            self.outcome = recording(path, self._watch, **how)
        except Exception as error:
            self.outcome = error
        self.over = True
        return self

    def _watch(self, share: float) -> None:
        if self.given_up:
            raise GivenUp
        self.share = READ_SHARE * share


def recording(path: Path, watch: Callable[[float], None] = lambda share: None, **how: Any) -> Recording:
    """All of a session and everything that its replay needs; raises what reader.load() raises, and what `watch` raises.

    Its events are kept out of the garbage collector, which finds nothing in them and would stop the screen to look.
    """
    gc.collect()
    gc.disable()
    try:
        made = Recording(named(path), reader.load(path, watch), **how)
        _ = made.player, made.marks  # with millions of events that takes seconds
    finally:
        gc.freeze()
        gc.enable()
    return made


class ReadingScreen(Dialog):
    """How far a session has been read, where that takes its time; None is its answer in any case."""

    DEFAULT_CSS = """
    ReadingScreen #bar { height: 1; }
    ReadingScreen ProgressBar { width: 1fr; }
    ReadingScreen ProgressBar Bar { width: 1fr; }
    """
    TITLE = "Opening"
    HINT = "Esc gives up"
    BINDINGS: ClassVar = [Binding("escape,q", "give_up", "Give up", id="opening.close", tooltip="do not open it")]

    def __init__(self, reading: Reading):
        super().__init__()
        self.reading = reading

    def body(self) -> ComposeResult:
        yield Static(Content(self.reading.name), markup=False)
        with Horizontal(id="bar"):
            yield ProgressBar(total=100, show_eta=False)

    def on_mount(self) -> None:
        self.set_interval(0.1, self.look)
        self.look()

    def look(self) -> None:
        """Show how far it is."""
        for bar in self.query(ProgressBar):  # none where the session was there before the bar was
            bar.update(progress=100 * self.reading.share)

    def action_give_up(self) -> None:
        self.reading.given_up = True
        self.dismiss(None)


class WaitingScreen(Dialog):
    """Nothing has come down the pipe yet."""

    TITLE = "Waiting for a session on standard input"
    HINT = "Esc ends the program"
    BINDINGS: ClassVar = [Binding("escape,q", "leave", "Quit", id="waiting.close", tooltip="end the program")]

    def body(self) -> ComposeResult:
        yield Static(Content("The first line of `fwtui run --stream` has not come yet."), markup=False)

    def action_leave(self) -> None:
        self.app.exit(return_code=0)
