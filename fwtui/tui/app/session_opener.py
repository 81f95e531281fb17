"""How sessions come to be shown: files that are read beside the screen, and one that comes down a pipe."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App

from fwtui.common import gc_pause
from fwtui.common.errors import Refused
from fwtui.common.text import clean

if TYPE_CHECKING:
    from fwtui.sessions.stream import Listener
    from fwtui.tui.app.session_reading import Reading
    from fwtui.tui.frame.recording import Recording

PATIENCE = 0.3  # seconds before a progress bar is shown


class SessionOpener:
    """Hands recordings to `enter`, or to `failed` a sentence and an exit code: 0 where the user gave up."""

    def __init__(
        self,
        app: App[None],
        enter: Callable[[Recording], None],
        failed: Callable[[str, int], None],
        speed: float,
        start: float,
        max_gap: float | None,
    ):
        self._app = app
        self._enter = enter
        self._failed = failed
        self._how: dict[str, Any] = {"speed": speed, "start": start, "max_gap": max_gap}  # every recording is played
        self._awaited: Listener | None = None  # what a pipe has not brought yet

    def read(self, path: Path) -> str:
        """Read a session in the background; its name, as it is shown."""
        from fwtui.tui.app.session_reading import Reading

        reading = Reading(self._app, path, self._done, **self._how)
        self._app.set_timer(PATIENCE, partial(self._show_reading, reading))
        return reading.name

    def _show_reading(self, reading: Reading) -> None:
        from fwtui.tui.app.session_reading import ReadingScreen

        if not reading.over:
            self._app.push_screen(ReadingScreen(reading))

    def _done(self, reading: Reading) -> None:
        from fwtui.tui.app.session_reading import ReadingScreen

        for screen in list(self._app.screen_stack):
            if isinstance(screen, ReadingScreen) and screen.reading is reading:
                screen.dismiss(None)
        if reading.given_up:
            self._failed(f"{reading.name} was not opened", 0)
        elif isinstance(reading.outcome, Refused):
            self._failed(str(reading.outcome), 2)
        elif isinstance(reading.outcome, Exception):
            self._failed(f"the session could not be read: {clean(str(reading.outcome))}", 2)
        else:
            self._app.call_later(self._enter, reading.outcome)

    def wait_for(self, listener: Listener) -> None:
        """Show what comes down that pipe, once something has come."""
        self._awaited = listener
        self._app.set_timer(PATIENCE, self._show_waiting)

    def _show_waiting(self) -> None:
        from fwtui.tui.app.session_reading import WaitingScreen

        gc_pause.wake()  # nobody knows how long that takes
        if self._awaited is not None:
            self._app.push_screen(WaitingScreen())

    def hear(self) -> None:
        """The first lines of a session that comes down a pipe begin its replay."""
        listener = self._awaited
        if listener is None:
            return
        lines = listener.take()
        if lines:
            from fwtui.tui.app.session_reading import WaitingScreen
            from fwtui.tui.frame.recording import Recording

            self._awaited = None
            if isinstance(self._app.screen, WaitingScreen):
                self._app.screen.dismiss(None)
            recording = Recording(listener.inlet.name, listener.inlet.loaded(lines), listener=listener, **self._how)
            self._app.call_later(self._enter, recording)
        elif listener.over:
            self._awaited = None
            self._failed(listener.refusal or "nothing came down the pipe", 2)
