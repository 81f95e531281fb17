"""Opening sessions in the background."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App
from textual.containers import Horizontal
from textual.content import Content
from textual.message_pump import MessagePump
from textual.widgets import ProgressBar, Static

from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK, USAGE
from fwtui.common.text import sanitise
from fwtui.sessions import reader
from fwtui.sessions.folders import shipped_folder
from fwtui.tui.actions import look
from fwtui.tui.background import in_background
from fwtui.tui.frame.dialogs import Dialog
from fwtui.tui.frame.loaded_recording import Recording, named

PATIENCE = 0.3  # seconds before a dialog shows that a session is being read
READ_SHARE = 0.8  # share of reading in the time to open a session; the rest computes the player's times


class GivenUp(Exception):
    """The user cancelled before the session was open."""


def recording(path: Path, watch: Callable[[float], None] = lambda share: None, **how: Any) -> Recording:
    """Read a session and prepare its replay. Raises what reader.load() and `watch` raise."""
    by_user = path.parent.resolve() != shipped_folder().resolve()  # idle time between its runs has not been cut
    opened = Recording(named(path), reader.load(path, watch, for_screen=True), folded=by_user, **how)
    _ = opened.player, opened.marks  # computed here, in the background: it takes seconds for millions of events
    return opened


class ReadingScreen(Dialog):
    """The progress of reading a session in the background; `done` is called with this screen once `outcome` is set."""

    DEFAULT_CSS = """
    ReadingScreen #bar { height: 1; }
    ReadingScreen ProgressBar { width: 1fr; }
    ReadingScreen ProgressBar Bar { width: 1fr; }
    """
    BINDINGS: ClassVar = [look("escape,q", "give_up", "Cancel", "do not open it", id="opening.close")]

    def __init__(self, pump: MessagePump, path: Path, done: Callable[[ReadingScreen], object], **how: Any):
        bar = Horizontal(ProgressBar(total=100, show_eta=False), id="bar")
        self.session = sanitise(path.name)
        super().__init__("Opening", Static(Content(self.session), markup=False), bar, hint="Esc cancels")
        self.share = 0.0
        self.given_up = False
        self.outcome: Recording | Exception | None = None

        def end(outcome: Recording | Exception) -> None:
            self.outcome = outcome
            done(self)

        in_background(pump, partial(recording, path, self._watch, **how), end, "reader", end)

    def _watch(self, share: float) -> None:
        if self.given_up:
            raise GivenUp
        self.share = READ_SHARE * share

    def on_mount(self) -> None:
        self.set_interval(0.1, self.show_share)
        self.show_share()

    def show_share(self) -> None:
        """Show the share that has been read."""
        for bar in self.query(ProgressBar):  # none if the session was read before there was a bar
            bar.update(progress=100 * self.share)

    def action_give_up(self) -> None:
        self.given_up = True
        self.dismiss(None)


class SessionOpener:
    """Opens recordings: calls `enter` with each, or `failed` with a sentence and an exit code (OK if the user cancelled).

    `how` holds the speed, the start and the longest gap of every replay.
    """

    def __init__(
        self, app: App[None], enter: Callable[[Recording], None], failed: Callable[[str, int], None], how: dict[str, Any]
    ):
        self._app = app
        self._enter = enter
        self._failed = failed
        self._how = how

    def read(self, path: Path) -> str:
        """Start reading a session in the background, and return its displayed name."""
        reading = ReadingScreen(self._app, path, self._done, **self._how)
        self._app.set_timer(PATIENCE, lambda: self._app.push_screen(reading) if reading.outcome is None else None)
        return reading.session

    def _done(self, reading: ReadingScreen) -> None:
        if reading in self._app.screen_stack:
            reading.dismiss(None)
        if reading.given_up:
            self._failed(f"{reading.session} was not opened", OK)
        elif isinstance(reading.outcome, Refused):
            self._failed(str(reading.outcome), USAGE)
        elif isinstance(reading.outcome, Exception):
            self._failed(f"the session could not be read: {sanitise(str(reading.outcome))}", USAGE)
        else:
            self._app.call_later(self._enter, reading.outcome)
