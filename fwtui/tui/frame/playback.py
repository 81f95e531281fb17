"""The playback of a recording: a player advances, a Model follows it; the position line and the timeline show both."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, NamedTuple

from textual import events as ui
from textual.content import Content
from textual.strip import Strip

from fwtui.common import units
from fwtui.stream.codec import Unknown
from fwtui.stream.events import Event, Marker, RunStarted
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.charts.base import Piece, PieceWidget
from fwtui.tui.frame.loaded_recording import Band, Recording, first_seen
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, justify, line, longest

SLICE_SECONDS = 0.02  # maximum time to apply events before keys and signals are handled
PAUSE_SECONDS = 0.005
CHUNK = 64  # events between two readings of the clock
SIGNS = {"run": "━", "marker": "◆", "fault": "✗"}


class Playback:
    """The player and the model of a recording. Every move returns a message, such as "the recording ends here", or "".

    The model follows in slices; `later(seconds, call)` schedules the next one.
    """

    def __init__(
        self,
        recording: Recording,
        later: Callable[[float, Callable[[], None]], object],
        playing: bool = True,
        slice_seconds: float = SLICE_SECONDS,
    ):
        """Start at the first run. Without `playing`, seeks are synchronous."""
        self.recording = recording
        self.model = Model(seeking=True)
        self.player = recording.player
        self.player.speed = recording.speed
        self.player.stops = recording.marks.directed
        self.player.seek_time(recording.start or first_seen(recording.session.lines))
        self._later = later
        self._slice = slice_seconds if playing else math.inf
        self._behind = False  # the next slice is scheduled
        self.presenting = False  # shows cue cards one by one, without playing
        self.over = False  # past the last cue card
        if playing and not (self.player.stops and self.player.marker):
            self.player.play()

    @property
    def position(self) -> Position:
        """The position of the model, which may still follow the player."""
        p, r = self.player, self.recording
        seconds = p.position
        if self.model.index != p.index:
            seconds = p.due(self.model.index - 1) if self.model.index else 0.0
        played = (seconds, p.duration, p.playing, p.speed)
        return Position(*played, r.name, r.origin, r.session.faults, p.max_gap, p.stops, r.marks.bands(p))

    def tick(self, now: float) -> None:
        """Advance the player to `now` on a monotonic clock, in seconds; called about ten times a second."""
        self.player.tick(now)
        if not self._behind:
            self.follow()

    def follow(self) -> None:
        """Move the model to the player's position, at once or in slices."""
        self.model.seek(self.player.index)
        for event in self._due(time.monotonic() + self._slice):
            self.model.apply(event)
        if self.model.index < self.player.index and not self._behind:
            self._behind = True
            self._later(PAUSE_SECONDS, self._go_on)

    def _due(self, until: float) -> Iterator[Event | Unknown]:
        """Yield the events that the model lacks, until that time."""
        for place in range(self.model.index, self.player.index):
            yield self.player.lines[place].event
            if place % CHUNK == 0 and time.monotonic() > until:
                return

    def _go_on(self) -> None:
        self._behind = False
        self.follow()

    def _go_to(self, move: Callable[[], object], stays: str = "") -> str:
        """Move the player and follow it; return the message `stays` if the position does not change."""
        before = (self.player.index, self.player.position)
        move()
        self.follow()
        return stays if (self.player.index, self.player.position) == before else ""

    def play(self) -> str:
        """Play, or pause."""
        if self.player.playing:
            self.player.pause()
        else:
            self.player.play()
        self.follow()
        return ""

    def step(self, count: int) -> str:
        return self._go_to(lambda: self.player.step(count), _end(count))

    def next_run(self, count: int) -> str:
        return self._go_to(lambda: self.player.go(RunStarted, count), _none("run begins", count))

    def next_marker(self, count: int) -> str:
        return self._go_to(lambda: self.player.go(Marker, count), _none("marker", count))

    def jump(self, seconds: float) -> str:
        return self._go_to(lambda: self.player.seek(self.player.position + seconds), _end(seconds))

    def seek(self, share: float) -> str:
        """Go to this share (0 to 1) of the session."""
        return self._go_to(lambda: self.player.seek(share * self.player.duration))

    def present(self, on: bool) -> None:
        """Present the last passed cue card of a lecture, or its first one; `on` False ends the presentation at this position."""
        self.presenting, self.over = on and self.recording.marks.directed, False
        if self.presenting:
            self.player.pause()
            passed, _ = self.player.count(Marker)
            self.show_card(max(passed, 1))

    def turn(self, count: int) -> str:
        """Turn the cue cards by `count`; the end follows the last one."""
        number, of = self.player.count(Marker)
        if self.over or (number == of and count > 0):
            self.over = count > 0
        elif number == 1 and count < 0:
            return "this is the first cue card"
        else:
            self.show_card(number + count)
        return ""

    def show_card(self, number: int) -> None:
        """Show the marker of that number, from 1."""
        self.player.seek_marker(number)
        self.follow()

    def ahead(self, run: Run, *kinds: type[Event]) -> Run:
        """Return the run with the events of these kinds that follow this position, up to the next run."""
        for place in range(self.player.index, len(self.player.lines)):
            event = self.player.lines[place].event
            if isinstance(event, RunStarted):
                break
            if isinstance(event, kinds) and event.run == run.id:  # type: ignore[attr-defined]
                run = run.after(event)
        return run

    def speed(self, direction: int) -> str:
        before = self.player.speed
        self.player.hurry(direction)
        stays = f"{before:g}x is the {'fastest' if direction > 0 else 'slowest'} speed"
        return stays if self.player.speed == before else ""

    def stops(self) -> str:
        """Switch stopping at markers on or off."""
        self.player.stops = not self.player.stops
        return "playing stops at every marker" if self.player.stops else "playing does not stop at markers"


def _none(what: str, direction: int) -> str:
    return f"no {what} {'after' if direction > 0 else 'before'} this"


def _end(direction: float) -> str:
    return f"this is the {'end' if direction > 0 else 'beginning'}"


class Position(NamedTuple):
    """The position of a playback, and facts about its recording."""

    seconds: float
    duration: float
    playing: bool
    speed: float
    file: str
    origin: str  # device and date of the recording
    problems: tuple[str, ...]
    gap: float | None  # maximum seconds between two events; None: as recorded
    stops: bool  # stops at markers
    bands: tuple[Band, ...]


class PositionLine(TextPanel[Position]):
    def draw(self, subject: Position, width: int) -> Sequence[Content]:
        p = subject
        state = "▶ playing" if p.playing else "‖ paused "
        at_end = " (end)" if p.duration and p.seconds >= p.duration else ""
        where = f"  {units.clock(p.seconds)} / {units.clock(p.duration)}{at_end}"
        omit_speed = p.speed == 1 and width < len(state) + len(where) + len("  speed 1x") + len(p.file) + 5  # room for the name
        left = line(
            (state, f"{STRONG} $text-primary"),
            (where, STRONG),
            ("" if omit_speed else f"  speed {p.speed:g}x", ""),
            ("  stops at ◆" if p.stops else "", ""),
            (f"  gaps ≤ {units.duration(p.gap)}" if p.gap is not None else "", ""),
        )
        problems = line((f"! {', '.join(p.problems)}  ", "$text-warning")) if p.problems else line("")
        room = width - left.cell_length - problems.cell_length - 4
        parts = p.origin.split(" · ")
        origins = (" · ".join(parts[:most]) for most in range(len(parts), 0, -1))
        sources = [*(line((f"{p.file}  ", ""), (origin, MUTED)) for origin in origins), line(p.file)]
        right = Content.assemble(problems, longest(sources, room).truncate(room, ellipsis=True)) if room > 10 else problems
        return [justify(left, right, width)]


def timeline(bands: Sequence[Band], seconds: float, duration: float, width: int) -> list[Piece]:
    """Return one (character, part) per cell: runs are thick, markers and faults have signs, the position is a bar."""
    if width < 1:
        return []
    cells = [("─", "track")] * width
    for band in sorted(bands, key=lambda band: band.kind != "run"):  # signs over runs
        first, last = _cell(band.start, duration, width), _cell(band.end, duration, width)
        cells[first : last + 1] = [(SIGNS[band.kind], band.kind)] * (last + 1 - first)
    cells[_cell(seconds, duration, width)] = ("┃", "position")
    return cells


def aim(bands: Sequence[Band], x: int, duration: float, width: int) -> float:
    """Return the share (0 to 1) of the session under a cell, or of the marker, fault or start of a run in it."""
    x = min(max(x, 0), width - 1)
    here = [band for band in bands if _cell(band.start, duration, width) == x]
    exact = next((band for band in here if band.kind != "run"), here[0] if here else None)
    if exact is not None and duration > 0:
        return exact.start / duration
    return x / max(width - 1, 1)


def _cell(t: float, duration: float, width: int) -> int:
    return min(width - 1, max(0, int(t / duration * width))) if duration > 0 else 0


class Timeline(PieceWidget):
    """The timeline of a recording; a click or a drag moves the position."""

    ALLOW_SELECT = False
    PREFIX = "timeline"
    DEFAULT_CSS = """
    Timeline { height: 1; }
    Timeline .timeline--track { color: $text-muted; }
    Timeline .timeline--run { color: $secondary; }
    Timeline .timeline--marker { color: $text-warning; }
    Timeline .timeline--fault { color: $text-error; }
    Timeline .timeline--position { color: $text-primary; text-style: bold; }
    """
    COMPONENT_CLASSES: ClassVar = {f"timeline--{part}" for part in ("track", "run", "marker", "fault", "position")}

    def __init__(self, position: Position, seek: Callable[[float], object]):
        """`seek` is called with the chosen share (0 to 1) of the session."""
        super().__init__()
        self._position = position
        self._seek = seek

    def show(self, position: Position) -> None:
        if position != self._position:
            self._position = position
            self.refresh()

    def render_line(self, y: int) -> Strip:
        p = self._position
        return self.strip(timeline(p.bands, p.seconds, p.duration, self.size.width)).simplify()

    def on_mouse_down(self, event: ui.MouseDown) -> None:
        self.capture_mouse()
        self._point(self._position.bands, event.x)

    def on_mouse_move(self, event: ui.MouseMove) -> None:
        if self.app.mouse_captured is self:
            self._point((), event.x)

    def on_mouse_up(self, event: ui.MouseUp) -> None:
        self.release_mouse()

    def _point(self, bands: Sequence[Band], x: int) -> None:
        self._seek(aim(bands, x, self._position.duration, self.size.width))
