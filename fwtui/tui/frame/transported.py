"""What moves a recording, on every place alike: the actions of its keys, and its timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.screen import Screen

from fwtui.tui.frame.dialogs import AskScreen
from fwtui.tui.frame.view import View

if TYPE_CHECKING:
    from fwtui.tui.frame.playback import Playback
    from fwtui.tui.frame.transport import Timeline


class Transported(Screen[None]):
    """A screen of a view that may be a recording; frames say what they show."""

    view: View

    def update(self, forced: bool = False) -> None:
        raise NotImplementedError

    def say(self, text: str, level: str = "info") -> None:
        raise NotImplementedError

    def transport(self, playback: Playback) -> ComposeResult:
        """What moves it, and what its markers say."""
        from fwtui.tui.frame.cue_card import CueCard
        from fwtui.tui.frame.transport import Transport

        yield CueCard(None)
        yield Transport(playback.position)

    def show_transport(self, playback: Playback) -> None:
        """Agree with where it stands."""
        from fwtui.tui.frame.transport import Transport

        self.query_one(Transport).show(playback.position, playback.bands)

    def on_timeline_sought(self, event: Timeline.Sought) -> None:
        event.stop()
        self.action_seek(event.share)

    def action_play(self) -> None:
        self._move("play")

    def action_step(self, count: int) -> None:
        self._move("step", count, stays=_end(count))

    def action_step_round(self, count: int) -> None:
        self._move("step_round", count, stays=_none("round of a phase pass is told", count))

    def action_next_run(self, count: int) -> None:
        self._move("next_run", count, stays=_none("run begins", count))

    def action_next_marker(self, count: int) -> None:
        self._move("next_marker", count, stays=_none("marker stands", count))

    def action_jump(self, direction: int) -> None:
        self._move("jump", direction, stays=_end(direction))

    def action_leap(self, direction: int) -> None:
        self._move("leap", direction, stays=_end(direction))

    def action_seek(self, share: float) -> None:
        self._move("seek", share)

    def action_go(self) -> None:
        def leave(place: str | None) -> None:
            problem = self._move("go", place) if place else ""
            if problem:
                self.say(problem, "error")

        self.app.push_screen(PlaceScreen(), leave)

    def action_speed(self, direction: int) -> None:
        playback = self.view.playback
        before = playback.player.speed if playback is not None else 0.0
        self._set("speed", direction)
        if playback is not None and playback.player.speed == before:
            self.say(f"{before:g}x is the {'fastest' if direction > 0 else 'slowest'} that it plays")

    def action_loop(self) -> None:
        self._set("loop")

    def action_gaps(self) -> None:
        self.say(self._set("gaps") or "")

    def action_stops(self) -> None:
        self.say(self._set("stops") or "")

    def key_of(self, name: str) -> str:
        raise NotImplementedError

    def show_card(self) -> None:
        """Agree with the marker that the recording stands at, if there is one."""
        from fwtui.tui.frame.cue_card import CueCard, card

        shown = card(self.view, self.key_of)
        widget = self.query_one(CueCard)
        widget.show(shown)
        widget.set_class(shown is not None, "-there")
        self.point(shown.cue.panel if shown is not None else "")

    def point(self, panel: str) -> None:
        """Let the panel of that name (fwtui.learn.cue.PANELS) stand out, and no other; most places have none of them."""

    @property
    def asks(self) -> bool:
        """Whether the recording stands at a question that its run can answer."""
        standing = self.view.playback.player.marker if self.view.playback is not None else None
        if standing is None:
            return False
        from fwtui.learn.cue import cue

        return cue(standing[2].text).kind is not None

    def action_answer(self) -> None:
        standing = self.view.playback.player.marker if self.view.playback is not None else None
        if standing is not None:
            self.view.answered = None if self.view.answered == standing[0] else standing[0]
            self.update(True)

    def _move(self, how: str, *amount: Any, stays: str = "") -> str | None:
        """Go elsewhere in the recording; `stays` is said where there is no such place."""
        self.view.selected = self.view.told = None
        before = self._moment
        answer = self._set(how, *amount)
        if stays and self._moment == before:
            self.say(stays)
        return answer

    @property
    def _moment(self) -> tuple[int, float]:
        """Where the player is."""
        player = self.view.playback.player if self.view.playback is not None else None
        return (player.index, player.position) if player is not None else (0, 0.0)

    def _set(self, how: str, *amount: Any) -> str | None:
        if self.view.playback is None:
            return None
        answer = getattr(self.view.playback, how)(*amount)
        self.update()
        return answer


def _none(what: str, direction: int) -> str:
    return f"no {what} {'after' if direction > 0 else 'before'} this"


def _end(direction: int) -> str:
    return f"this is the {'end' if direction > 0 else 'beginning'}"


class PlaceScreen(AskScreen):
    """Asks where to go in a recording."""

    def __init__(self) -> None:
        from fwtui.tui.frame.playback import PLACES

        super().__init__(
            "Go to", placeholder="12.5 · 1:30 · 40 % · run 3 · marker 2", hint=f"{PLACES}. Enter goes there, Esc does not"
        )

    def answer(self, text: str) -> str | None:
        return text.strip() or None
