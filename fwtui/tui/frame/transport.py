"""The replay's transport: where it is in the session, and a timeline that can be clicked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from textual import events as ui
from textual.content import Content
from textual.strip import Strip
from textual.widget import Widget

from fwtui.common import units
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, apart, line, longest

SIGNS = {"run": "━", "marker": "◆", "fault": "✗"}


class Band(NamedTuple):
    """A stretch (a run) or a place (marker, fault) of the timeline, in seconds."""

    start: float
    end: float
    kind: str  # "run" | "marker" | "fault"


class Position(NamedTuple):
    """Where the player is, and what it plays."""

    seconds: float
    duration: float
    playing: bool
    speed: float
    loop: bool
    file: str
    origin: str  # recorded on what, when
    problems: tuple[str, ...]
    gap: float | None  # seconds that nothing may happen for; None: as long as it was
    stops: bool  # at markers
    live: bool  # it is still going, and followed
    bands: tuple[Band, ...]


class PositionLine(Drawn[Position]):
    def draw(self, subject: Position, width: int) -> Sequence[Content]:
        p = subject
        state = "● live   " if p.live else "▶ playing" if p.playing else "‖ paused "
        at_end = " (end)" if p.duration and p.seconds >= p.duration and not p.live else ""
        where = f"  {units.clock(p.seconds)} / {units.clock(p.duration)}{at_end}"
        usual = p.speed == 1 and width < len(state) + len(where) + len("  speed 1x") + len(p.file) + 5  # the name says more
        left = line(
            (state, f"{STRONG} $text-primary"),
            (where, STRONG),
            ("" if usual else f"  speed {p.speed:g}x", ""),
            ("  loop" if p.loop else "", ""),
            ("  stops at ◆" if p.stops else "", ""),
            (f"  gaps ≤ {units.duration(p.gap)}" if p.gap is not None else "", ""),
        )
        problems = line((f"! {', '.join(p.problems)}  ", "$text-warning")) if p.problems else line("")
        room = width - left.cell_length - problems.cell_length - 4
        parts = p.origin.split(" · ")
        origins = (" · ".join(parts[:most]) for most in range(len(parts), 0, -1))
        sources = [*(line((f"{p.file}  ", ""), (origin, MUTED)) for origin in origins), line(p.file)]
        right = Content.assemble(problems, longest(sources, room).truncate(room, ellipsis=True)) if room > 10 else problems
        return [apart(left, right, width)]


def timeline(bands: Sequence[Band], seconds: float, duration: float, width: int) -> list[tuple[str, str]]:
    """One (character, part) per cell: runs are thick, markers and faults have signs, the position is a bar."""
    if width < 1:
        return []
    cells = [("─", "track")] * width
    for band in sorted(bands, key=lambda band: band.kind != "run"):  # signs over runs
        first, last = _cell(band.start, duration, width), _cell(band.end, duration, width)
        cells[first : last + 1] = [(SIGNS[band.kind], band.kind)] * (last + 1 - first)
    cells[_cell(seconds, duration, width)] = ("┃", "position")
    return cells


def aim(bands: Sequence[Band], x: int, duration: float, width: int) -> float:
    """The share (0..1) of the session under a cell: a marker's, a fault's or a run's beginning where the cell has one."""
    x = min(max(x, 0), width - 1)
    here = [band for band in bands if _cell(band.start, duration, width) == x]
    exact = next((band for band in here if band.kind != "run"), here[0] if here else None)
    if exact is not None and duration > 0:
        return exact.start / duration
    return x / max(width - 1, 1)


def _cell(t: float, duration: float, width: int) -> int:
    return min(width - 1, max(0, int(t / duration * width))) if duration > 0 else 0


class Timeline(Widget):
    """Click or drag to go there."""

    ALLOW_SELECT = False
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
        """`seek` is given the share (0..1) of the session that the user points at."""
        super().__init__()
        self._position = position
        self._seek = seek

    def show(self, position: Position) -> None:
        if position != self._position:
            self._position = position
            self.refresh()

    def render_line(self, y: int) -> Strip:
        p = self._position
        cells = timeline(p.bands, p.seconds, p.duration, self.size.width)
        return Strip([Segment(text, self.get_component_rich_style(f"timeline--{part}")) for text, part in cells]).simplify()

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
