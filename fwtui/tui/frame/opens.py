"""How sessions come to be shown: files that are read beside the screen, and one that comes down a pipe."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from textual.app import App
from textual.message import Message

from fwtui.common import gc_pause
from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.tui.frame.view import View

if TYPE_CHECKING:
    from fwtui.sessions.stream import Listener
    from fwtui.tui.frame.opening import Opening
    from fwtui.tui.frame.recording import Recording

BESIDE = "compare"  # the place that takes a second session
PATIENCE = 0.3  # seconds before a progress bar is shown


class SessionWanted(Message):
    """A session is to be opened, or its runs are to be shown beside those of the view."""

    def __init__(self, path: Path, beside: bool = False):
        super().__init__()
        self.path = path
        self.beside = beside


@runtime_checkable
class Brings(Protocol):
    """A place that shows another session's runs beside those of the view."""

    def bring(self, name: str) -> None: ...


class Opened(Message):
    """A session has been read, or could not be."""

    def __init__(self, opening: Opening, outcome: Recording | Exception):
        super().__init__()
        self.opening = opening
        self.outcome = outcome


class Opens(App[None]):
    """An application that opens sessions; what it does with them is its own business."""

    refusal: str | None = None  # why there was nothing to show
    awaited: Listener | None = None  # what a pipe has not brought yet
    how: dict[str, Any]  # speed, start and max_gap of every recording

    @property
    def view(self) -> View | None:
        raise NotImplementedError

    def enter(self, recording: Recording) -> None:
        raise NotImplementedError

    def say(self, text: str, level: str = "info") -> None:
        raise NotImplementedError

    def open(self, path: Path) -> None:
        """Read a session in the background and show it over what is there."""
        from fwtui.tui.frame.opening import Opening

        opening = Opening(path, self._opened_it, **self.how)
        self.say(f"opening {opening.name}")
        self.set_timer(PATIENCE, partial(self._show_opening, opening))

    def _show_opening(self, opening: Opening) -> None:
        from fwtui.tui.frame.opening import OpeningScreen

        if not opening.over:
            self.push_screen(OpeningScreen(opening))

    def _opened_it(self, opening: Opening, outcome: Recording | Exception) -> None:
        with contextlib.suppress(RuntimeError):
            self.post_message(Opened(opening, outcome))

    def on_opened(self, event: Opened) -> None:
        from fwtui.tui.frame.opening import OpeningScreen

        for screen in list(self.screen_stack):
            if isinstance(screen, OpeningScreen) and screen.opening is event.opening:
                screen.dismiss(None)
        if event.opening.given_up:
            self._nothing_opened(f"{event.opening.name} was not opened", 0)
        elif not isinstance(event.outcome, Exception):
            self.say("")  # or it would be opening still when the user comes back
            self.call_later(self.enter, event.outcome)
        elif isinstance(event.outcome, Refused):
            self._nothing_opened(str(event.outcome), 2)
        else:
            self._nothing_opened(f"the session could not be read: {clean(str(event.outcome))}", 2)

    def _nothing_opened(self, sentence: str, code: int) -> None:
        if self.view is not None:
            self.say(sentence, "error" if code else "info")
            return
        self.refusal = sentence if code else None
        self.exit(return_code=code)

    def show_waiting(self) -> None:
        """Say what is waited for, where nothing has come yet."""
        from fwtui.tui.frame.opening import Waiting

        gc_pause.wake()  # nobody knows how long that takes
        if self.awaited is not None:
            self.push_screen(Waiting())

    def hear(self) -> None:
        """The first lines of a session that comes down a pipe begin its replay."""
        listener = self.awaited
        if listener is None:
            return
        lines = listener.take()
        if lines:
            from fwtui.tui.frame.opening import Waiting
            from fwtui.tui.frame.recording import Recording

            self.awaited = None
            if isinstance(self.screen, Waiting):
                self.screen.dismiss(None)
            recording = Recording(listener.inlet.name, listener.inlet.loaded(lines), listener=listener, **self.how)
            self.call_later(self.enter, recording)
        elif listener.over:
            self.awaited = None
            self._nothing_opened(listener.refusal or "nothing came down the pipe", 2)
