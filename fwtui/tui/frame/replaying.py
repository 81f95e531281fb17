"""What a place does with a recording: play it otherwise, ask where to go, answer its questions, present its cue cards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from fwtui.tui.frame.dialogs import AskScreen, Dialog

if TYPE_CHECKING:
    from fwtui.tui.frame.look import Appearance
    from fwtui.tui.frame.transport import Timeline
    from fwtui.tui.frame.view import View

_Any = Screen[Any] if TYPE_CHECKING else object  # Textual finds the styles of the first base that is a screen


class Replaying(_Any):
    """Actions of a Frame."""

    if TYPE_CHECKING:
        view: View

        @property
        def look(self) -> Appearance: ...
        def say(self, text: str, level: str = "info") -> None: ...
        def ask(self, dialog: Dialog, take: Callable[[str], object] = ..., level: str = ..., opener: str = ...) -> None: ...
        def update(self, forced: bool = False) -> None: ...
        def action_move(self, how: str, *where: float | str) -> None: ...

    def action_adjust(self, how: str, *amount: float | str) -> None:
        """Change how the recording is played, as that method of its playback does."""
        if words := getattr(self.view.playback, how)(*amount):
            self.say(words)
        else:
            self.update()

    def action_go(self) -> None:
        from fwtui.tui.frame.playback import WHERE

        hint = f"{WHERE}. Enter goes there, Esc does not"
        asked = AskScreen("Go to", "", "12.5 · 1:30 · 40 % · run 3 · marker 2", hint)
        self.ask(asked, lambda place: place.strip() and self.action_move("go", place), "error")

    def on_timeline_sought(self, event: Timeline.Sought) -> None:
        event.stop()
        self.action_move("seek", event.share)

    def action_answer(self) -> None:
        marker = self.view.marker
        if marker is not None:
            self.view.answered = None if self.view.answered == marker[0] else marker[0]
            self.update(True)

    def action_presenter(self) -> None:
        """Large figures, and a recording's cue cards if it has any; again: neither."""
        self.app.look = self.look._replace(presenter=not self.look.presenter)  # type: ignore[attr-defined]
        if (playback := self.view.playback) is not None:
            self.view.selected = self.view.told = self.view.answered = None
            playback.present(self.look.presenter)
        self.update(True)
