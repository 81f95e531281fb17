"""A recorded session, shown by the same panels; a player decides which of its lines have happened."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from fwtui import events
from fwtui.codec import Line
from fwtui.experiment import FIELDS
from fwtui.model import Model
from fwtui.run import Run
from fwtui.sessions.player import Player
from fwtui.sessions.reader import Loaded
from fwtui.tui import wording
from fwtui.tui.drawn import MUTED, STRONG, Drawn, line
from fwtui.tui.screen import COMMON, SessionScreen
from fwtui.tui.topbar import Top
from fwtui.tui.transport import Band, Position, Timeline, Transport

JUMP_SECONDS = 5.0
JUMP_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Recording:
    """A loaded session and what to call it."""

    name: str
    loaded: Loaded
    speed: float = 1.0
    start: float = 0.0

    @property
    def origin(self) -> str:
        """recorded on NVIDIA H200 · 2025-11-20"""
        gpu = next((e.name for e in _of_kind(self.loaded.lines, events.Device) if e.present and e.name), "")
        header = self.loaded.header
        title = f"{header.title} · " if header.title else ""
        return f"{title}recorded on {gpu or header.machine.cpu or 'a machine without a GPU'} · {header.created[:10]}"

    @property
    def problems(self) -> tuple[str, ...]:
        """What is not whole about the file, in words."""
        loaded = self.loaded
        found = [f"damaged: {loaded.damaged} line{'s' * (loaded.damaged != 1)}"] if loaded.damaged else []
        if not loaded.closed and not loaded.damaged:
            found.append("incomplete")
        if loaded.dropped:
            found.append(f"{loaded.dropped} events dropped")
        return tuple(found)


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
                rows.append((field.title, text))
            if field.name == "tile":
                rows += [(name.replace("_", " ").capitalize(), str(value)) for name, value in e.options.items()]
        return [line((f"{title:<13.12}", MUTED), text) for title, text in rows]


class ReplayScreen(SessionScreen):
    DEFAULT_CSS = """
    ReplayScreen #what { height: auto; }
    ReplayScreen.-narrow #line { display: none; }
    """
    BINDINGS = [
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
    ]
    NAME = "Replay"

    def __init__(self, recording: Recording, playing: bool = True):
        super().__init__(Model())
        self.recording = recording
        self.player = Player(recording.loaded.lines)
        self.player.speed = recording.speed
        self.player.seek(recording.start)
        self._bands = bands(recording.loaded.lines, self.player.duration)
        self._playing_first = playing

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

    def tick(self) -> None:
        """Let the player go on; called about ten times a second."""
        self.player.tick(time.monotonic())
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
        self.query_one("#line", Static).update(line((wording.summary(run.experiment) if run is not None else "", STRONG)))
        self.query_one(Transport).show(self._position(), self._bands)
        super().update(forced)

    def _position(self) -> Position:
        p, r = self.player, self.recording
        return Position(p.position, p.duration, p.playing, p.speed, p.loop, r.name, r.origin, r.problems)

    def _follow(self) -> None:
        """Make the model agree with the player."""
        if self.player.index < self.model.index:
            self.model.rewind(self.player.index)
        for recorded in self.player.lines[self.model.index : self.player.index]:
            self.model.apply(recorded.event)

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
        if self._over_dashboard:
            self.dismiss(None)
        else:
            self.app.exit(return_code=0)

    @property
    def _over_dashboard(self) -> bool:
        return any(isinstance(screen, SessionScreen) and screen is not self for screen in self.app.screen_stack)


def bands(lines: Sequence[Line], duration: float) -> tuple[Band, ...]:
    """What the timeline shows: runs from start to end, markers, faults."""
    found: list[Band] = []
    begun: dict[int, float] = {}
    for recorded in lines:
        match recorded.event:
            case events.RunStarted() as e:
                begun[e.run] = e.t
            case events.RunDone() as e if e.run in begun:
                found.append(Band(begun.pop(e.run), e.t, "run"))
            case events.Marker() as e:
                found.append(Band(e.t, e.t, "marker"))
            case events.Fault() as e:
                found.append(Band(e.t, e.t, "fault"))
                if e.run in begun:
                    found.append(Band(begun.pop(e.run), e.t, "run"))
    return (*found, *(Band(start, duration, "run") for start in begun.values()))


def _of_kind(lines: Sequence[Line], kind: type[events.Device]) -> Iterator[events.Device]:
    return (recorded.event for recorded in lines if isinstance(recorded.event, kind))


def named(path: Path) -> str:
    """The file's name as it is shown."""
    return path.name.removesuffix(".fwt.jsonl")
