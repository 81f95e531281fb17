"""A recorded session, shown by the same panels; a player decides which of its lines have happened."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from fwtui.fields import FIELDS
from fwtui.model import Model
from fwtui.run import Run
from fwtui.sessions.player import Player
from fwtui.tui import wording
from fwtui.tui.draft import titled
from fwtui.tui.drawn import MUTED, STRONG, Drawn, line
from fwtui.tui.recording import Recording, bands, first_seconds
from fwtui.tui.screen import BASELINE, COMMON, SessionScreen
from fwtui.tui.topbar import Top
from fwtui.tui.transport import Position, Timeline, Transport

JUMP_SECONDS = 5.0
JUMP_SHARE = 0.1
SLICE_SECONDS = 0.02  # of applying events; keys and signals are served between two slices
PAUSE_SECONDS = 0.005
CHUNK = 64  # events between two looks at the clock


class Shown(Drawn["Run | None"]):
    """The experiment of a run, read-only: the form's rows."""

    def draw(self, subject: Run | None, width: int) -> Sequence[Content]:
        if subject is None:
            return [line(("no run yet", MUTED))]
        e = subject.experiment
        rows = [("Kernel", subject.title or e.kernel)]
        for field in FIELDS[1:]:
            text = field.show(e)
            if text and not (field.name == "tile" and not e.tile):
                rows.append((titled(field), text))
            if field.name == "tile":
                rows += [(name.replace("_", " ").capitalize(), str(value)) for name, value in e.options.items()]
        return [line((f"{title:<13.12}", MUTED), text) for title, text in rows]


class ReplayScreen(SessionScreen):
    DEFAULT_CSS = """
    ReplayScreen #what { height: auto; }
    ReplayScreen.-narrow #line { display: none; }
    """
    BINDINGS: ClassVar = [
        Binding("space", "play", "Play", id="play", tooltip="play and pause; from the end it begins again"),
        Binding("full_stop", "step(1)", "Step", id="step", key_display=".", tooltip="one event on (telemetry is no event)"),
        Binding("comma", "step(-1)", "Step back", id="step.back", key_display=",", show=False, tooltip="one event back"),
        Binding(
            "right_square_bracket",
            "next_run(1)",
            "Next run",
            id="run.next",
            key_display="]",
            tooltip="to where the next run begins",
        ),
        Binding(
            "left_square_bracket",
            "next_run(-1)",
            "Run before",
            id="run.before",
            key_display="[",
            show=False,
            tooltip="to where the run before begins",
        ),
        Binding("right", "jump(1)", "Forward", id="jump", show=False, priority=True, tooltip="5 s on"),
        Binding("left", "jump(-1)", "Backward", id="jump.back", show=False, priority=True, tooltip="5 s back"),
        Binding("shift+right", "leap(1)", "Leap", id="leap", show=False, priority=True, tooltip="a tenth of the session on"),
        Binding(
            "shift+left",
            "leap(-1)",
            "Leap back",
            id="leap.back",
            show=False,
            priority=True,
            tooltip="a tenth of the session back",
        ),
        Binding("home", "seek(0)", "Beginning", id="home", show=False, priority=True, tooltip="to the beginning"),
        Binding("end", "seek(1)", "End", id="end", show=False, priority=True, tooltip="to the end"),
        Binding("greater_than_sign", "speed(1)", "Faster", id="faster", key_display=">", tooltip="twice as fast, up to 16x"),
        Binding(
            "less_than_sign",
            "speed(-1)",
            "Slower",
            id="slower",
            key_display="<",
            show=False,
            tooltip="half as fast, down to 0.25x",
        ),
        Binding("L", "loop", "Loop", id="loop", key_display="L", show=False, tooltip="begin again at the end, on and off"),
        Binding(
            "escape", "back", "Back", id="back", show=False, tooltip="back to the newest run, then to the dashboard if it is open"
        ),
        *COMMON,
        Binding("q", "dashboard", "Back", id="dashboard", tooltip="back to the dashboard; a run there has gone on"),
        BASELINE,  # last: on 60 columns the footer has no room for it
    ]
    NAME = "Replay"

    def __init__(self, recording: Recording, playing: bool = True):
        """Without `playing` it is for pictures and tests: every seek is over at once, however long it takes."""
        super().__init__(Model())
        self.recording = recording
        self.player = Player(recording.loaded.lines)
        self.player.speed = recording.speed
        self.player.seek(recording.start or first_seconds(recording.loaded.lines))
        self._origin = recording.origin
        self._bands = bands(recording.loaded.lines, self.player.duration)
        self._playing_first = playing
        self._slice = SLICE_SECONDS if playing else math.inf
        self._behind = False  # the next slice is on its way

    def left(self) -> Widget:
        return VerticalScroll(
            Static(Content("WHAT WAS RUN"), classes="heading", markup=False), Shown(None, id="what"), id="left", can_focus=False
        )

    def bottom(self) -> ComposeResult:
        yield Transport(self._position())

    def on_mount(self) -> None:
        super().on_mount()
        self._follow()
        if self._playing_first:
            self.player.play()

    def tick(self, now: float) -> None:
        """Let the player go on to `now` seconds of a monotonic clock; called about ten times a second."""
        self.player.tick(now)
        if not self._behind:
            self._follow()
        self.update()

    def top(self) -> Top:
        return Top(self.NAME, wording.device(self.model))

    def advice(self) -> tuple[str, ...]:
        state = "It is playing." if self.player.playing else "Press space to play it."
        return ("No run has begun yet at this position.", "", f"{state} ] goes to where the next run begins, ? shows every key.")

    def state(self) -> object:
        p = self.player
        return (p.position, p.playing, p.speed, p.loop)

    def update(self, forced: bool = False) -> None:
        if not self.is_mounted:
            return
        run = self.run
        self.query_one(Shown).show(run)
        words = wording.summary(run.experiment, self.app.size.width - 2) if run is not None else ""
        self.query_one("#line", Static).update(line((words, STRONG)))
        self.query_one(Transport).show(self._position(), self._bands)
        super().update(forced)

    def _position(self) -> Position:
        p, r = self.player, self.recording
        seconds = p.position if self.model.index == p.index else min(self.model.t, p.duration)
        return Position(seconds, p.duration, p.playing, p.speed, p.loop, r.name, self._origin, r.problems)

    def _follow(self) -> None:
        """Make the model agree with the player, or come nearer and go on soon."""
        if self.player.index < self.model.index:
            self.model.rewind(self.player.index)
        until = time.monotonic() + self._slice
        while self.model.index < self.player.index:
            first = self.model.index
            for recorded in self.player.lines[first : min(first + CHUNK, self.player.index)]:
                self.model.apply(recorded.event)
            if time.monotonic() > until:
                break
        if self.model.index < self.player.index and not self._behind:
            self._behind = True
            self.set_timer(PAUSE_SECONDS, self._go_on)

    def _go_on(self) -> None:
        self._behind = False
        self._follow()

    def _moved(self) -> None:
        self.selected = None
        self._follow()
        self.update()

    def action_play(self) -> None:
        if self.player.playing:
            self.player.pause()
        else:
            self.player.play()
        self._moved()

    def action_step(self, count: int) -> None:
        self.player.step(count)
        self._moved()

    def action_next_run(self, count: int) -> None:
        if count > 0:
            self.player.next_run()
        else:
            self.player.previous_run()
        self._moved()

    def action_jump(self, direction: int) -> None:
        self.player.seek(self.player.position + direction * JUMP_SECONDS)
        self._moved()

    def action_leap(self, direction: int) -> None:
        self.player.seek(self.player.position + direction * JUMP_SHARE * self.player.duration)
        self._moved()

    def action_seek(self, share: float) -> None:
        self.player.seek(share * self.player.duration)
        self._moved()

    def on_timeline_sought(self, event: Timeline.Sought) -> None:
        event.stop()
        self.action_seek(event.share)

    def action_speed(self, direction: int) -> None:
        if direction > 0:
            self.player.faster()
        else:
            self.player.slower()
        self.update()

    def action_loop(self) -> None:
        self.player.loop = not self.player.loop
        self.update()

    def action_back(self) -> None:
        if self.selected is not None:
            self.selected = None
            self.update()
        elif self._over_dashboard:
            self.dismiss(None)

    def action_leave(self) -> None:
        self.app.exit(return_code=0)

    def action_dashboard(self) -> None:
        self.dismiss(None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("leave", "dashboard"):
            return self._over_dashboard == (action == "dashboard")
        return super().check_action(action, parameters)

    def offered(self) -> list[Binding]:
        elsewhere = "leave" if self._over_dashboard else "dashboard"
        return [binding for binding in super().offered() if binding.action != elsewhere]

    @property
    def _over_dashboard(self) -> bool:
        return any(isinstance(screen, SessionScreen) and screen is not self for screen in self.app.screen_stack)
