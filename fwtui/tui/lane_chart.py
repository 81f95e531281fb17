"""Telemetry over time: one lane for each quantity on a common clock, runs as bands over them, throttling under them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events as ui
from textual.binding import Binding
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from fwtui import units
from fwtui.telemetry.throttle import throttled
from fwtui.tui.arrowed import Arrowed
from fwtui.tui.charts.figure import tick_text
from fwtui.tui.charts.scale import nice
from fwtui.tui.lanes import NAMED, Bins, moments
from fwtui.tui.strip import BARS
from fwtui.tui.view import View

GUTTER = 22  # cells of a lane's name and value
TITLE, VALUE = 10, 11
BANDS = ("run-past", "run-below")  # parts of a lane while a run was going
AROUND = 4  # rows besides the lanes: runs, throttling, the clock's line and its labels
MOVES = (
    Binding("right", "cursor(1)", "Later", id="lanes.later", show=False, tooltip="the cursor one column on"),
    Binding("left", "cursor(-1)", "Earlier", id="lanes.earlier", show=False, tooltip="the cursor one column back"),
    Binding("home", "cursor_to(0)", "First", id="lanes.first", show=False, tooltip="the cursor to the window's beginning"),
    Binding("end", "cursor_to(-1)", "Last", id="lanes.last", show=False, tooltip="the cursor to the latest reading"),
    Binding("enter", "choose", "Choose", id="lanes.choose", show=False, tooltip="show the run under the cursor on every screen"),
)


class Window(NamedTuple):
    """What is seen: bins of one column each."""

    seconds: float  # of a bin
    first: int  # the bin of the first column
    columns: int

    @property
    def start(self) -> float:
        return self.first * self.seconds

    @property
    def end(self) -> float:
        return (self.first + self.columns) * self.seconds

    def column(self, t: float) -> int:
        """Of a time; may be outside."""
        return int(t / self.seconds) - self.first


class Stretch(NamedTuple):
    """A run on the clock; an end of None is now."""

    run: int
    words: str
    start: float
    end: float | None


class LaneChart(Arrowed, Widget, can_focus=True):
    """Draws itself by lines: it changes ten times a second. Values are those under the cursor, or the latest ones."""

    ALLOW_SELECT = False
    BINDINGS: ClassVar = list(MOVES)
    DEFAULT_CSS = """
    LaneChart { height: 1fr; min-height: 1; padding: 0 1; }
    LaneChart .lanes--label { color: $text-muted; }
    LaneChart .lanes--title { color: $foreground; }
    LaneChart .lanes--value { color: $foreground; text-style: bold; }
    LaneChart .lanes--past { color: $primary; }
    LaneChart .lanes--run { color: $secondary; }
    LaneChart .lanes--shown { color: $text-primary; text-style: bold; }
    LaneChart .lanes--below { color: $primary 40%; }
    LaneChart .lanes--run-past { color: $primary; background: $primary 10%; }
    LaneChart .lanes--run-below { color: $primary 40%; background: $primary 10%; }
    LaneChart .lanes--axis { color: $border-blurred; }
    LaneChart:focus .lanes--axis { color: $border; }
    LaneChart .lanes--throttled { color: $text-warning; text-style: bold; }
    LaneChart .lanes--cursor { color: $foreground; text-style: bold reverse; }
    """
    COMPONENT_CLASSES: ClassVar = {
        f"lanes--{part}"
        for part in (
            "label",
            "title",
            "value",
            "past",
            "below",
            "run-past",
            "run-below",
            "run",
            "shown",
            "axis",
            "throttled",
            "cursor",
        )
    }

    class Chosen(Message):
        """The user pointed at a run."""

        def __init__(self, run: int):
            super().__init__()
            self.run = run

    class Zoomed(Message):
        """The wheel was turned: +1 is nearer."""

        def __init__(self, direction: int):
            super().__init__()
            self.direction = direction

    class Held(Message):
        """The cursor was set by a key, so the window should stay where it is."""

    def __init__(self, view: View):
        super().__init__()
        self._view = view
        self._names: tuple[str, ...] = ()
        self._start = self._end = 0.0
        self._bins: Bins | None = None
        self._stretches: tuple[Stretch, ...] = ()
        self._at: float | None = None  # session time under the cursor

    @property
    def columns(self) -> int:
        return max(0, self.size.width - GUTTER - 1)

    @property
    def window(self) -> Window:
        """Whole bins, so that nothing wobbles while time goes on; the last one holds the end."""
        columns = max(self.columns, 1)
        seconds = max((self._end - self._start) / columns, 1e-3)
        return Window(seconds, int(self._end / seconds + 1e-6) - columns + (0 if self._start <= 0 else 1), columns)

    @property
    def at(self) -> float | None:
        """Session time under the cursor."""
        return self._at

    def show(self, names: Sequence[str], start: float, end: float) -> None:
        """Show these quantities from `start` to `end`, as far as the view's model has them."""
        self._names, self._start, self._end = tuple(names), start, end
        window = self.window
        if self._bins is None or self._bins.seconds != window.seconds or self._bins.names != self._names:
            self._bins = Bins(window.seconds, self._names)
        self._bins.take(self._view.model.telemetry)
        self._stretches = tuple(
            Stretch(run.id, f"{run.id} {run.experiment.kernel}", run.started, run.finished)
            for run in self._view.model.runs.values()
        )
        self.refresh()

    def on_resize(self) -> None:
        self.show(self._names, self._start, self._end)

    @property
    def heights(self) -> list[int]:
        """Rows of each lane, the first ones higher where they do not divide evenly; a lane without room has none."""
        rows, lanes = max(0, self.size.height - AROUND), len(self._names)
        if not lanes:
            return []
        return [rows // lanes + (place < rows % lanes) for place in range(lanes)]

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if self._bins is None or width <= GUTTER:
            return Strip.blank(width, self.rich_style)
        heights = self.heights
        if y == 0:
            pieces = self._runs()
        elif y <= sum(heights):
            lane, row = 0, y - 1
            while row >= heights[lane]:
                row, lane = row - heights[lane], lane + 1
            pieces = self._lane(self._bins, lane, row, heights[lane])
        else:
            below = (self._throttle, self._axis, self._clock)
            place = y - 1 - sum(heights)
            pieces = below[place]() if place < len(below) else []
        return Strip([Segment(text, self._part(kind)) for text, kind in pieces]).adjust_cell_length(width, self.rich_style)

    def _part(self, name: str) -> Style:
        return self.get_component_rich_style(f"lanes--{name}")

    def _cursor_column(self) -> int | None:
        if self._at is None:
            return None
        column = self.window.column(self._at)
        return column if 0 <= column < self.columns else None

    def _crossed(self, cells: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """The row with the cursor through it."""
        column = self._cursor_column()
        if column is not None:
            cells[column] = (cells[column][0] if cells[column][0] != " " else "│", "cursor")
        return cells

    def _within(self, cells: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """The row with the runs' bands behind it."""
        for stretch in self._stretches:
            low, high = self._span(stretch)
            for place in range(low, high):
                text, kind = cells[place]
                cells[place] = (text, kind if kind in BANDS else f"run-{kind}")
        return cells

    def _span(self, stretch: Stretch) -> tuple[int, int]:
        """Its columns, half-open; at least one where any of it is seen."""
        window = self.window
        end = stretch.end if stretch.end is not None else self._view.model.t
        low, high = window.column(stretch.start), window.column(end) + 1
        return max(0, low), min(self.columns, high)

    def _runs(self) -> list[tuple[str, str]]:
        cells = [(" ", "run")] * self.columns
        shown = self._view.run.id if self._view.run is not None else None
        for stretch in self._stretches:
            low, high = self._span(stretch)
            if high <= low:
                continue
            words = f" {stretch.words} " if high - low >= len(stretch.words) + 4 else f"{stretch.run}"
            text = words.center(high - low, "━") if high - low >= len(words) + 2 else "━" * (high - low)
            if len(text) > 1:
                text = "┣" + text[1:-1] + "┫"
            kind = "shown" if stretch.run == shown else "run"
            cells[low:high] = [(character, kind) for character in text]
        return [(f"{'runs':<{GUTTER}}", "title"), *self._crossed(cells)]

    def _lane(self, bins: Bins, lane: int, row: int, height: int) -> list[tuple[str, str]]:
        quantity = NAMED[self._names[lane]]
        window = self.window
        means = bins.means(lane, window.first, window.columns)
        low, high = quantity.least, self._most(bins, lane)
        cells: list[tuple[str, str]] = []
        for value in means[: self.columns]:
            share = -1.0 if value is None else min(1.0, max(0.0, (value - low) / (high - low)))
            # an eighth of the lane stays free, so that a full one does not touch the one above
            eighths = -1 if value is None else max(1, round(share * (8 * height - 1))) - 8 * (height - 1 - row)
            cells.append((" " if eighths <= 0 else BARS[min(eighths, 8) - 1], "past" if eighths <= 8 else "below"))
        if row == 0:
            column = self._cursor_column()
            value = means[column] if column is not None else self._latest(lane)
            text = units.ABSENT if value is None else quantity.text(value)
            gutter = [(f"{quantity.title:<{TITLE}}", "title"), (f"{text:>{VALUE}} ", "value" if value is not None else "label")]
        else:
            ends = f"{low:.0f} to {tick_text(high, quantity.text)}" if row == 1 else ""
            gutter = [(f"{ends:>{GUTTER - 1}.{GUTTER - 1}} ", "label")]
        return [*gutter, *self._crossed(self._within(cells))]

    def _most(self, bins: Bins, lane: int) -> float:
        quantity = NAMED[self._names[lane]]
        known = quantity.most(self._view.model)
        if known is not None and known > quantity.least:
            return known
        greatest = max(bins.greatest[lane], quantity.least + 1e-9)
        step = nice(greatest - quantity.least, 2)
        return quantity.least + step * -(-(greatest - quantity.least) // step)

    def _latest(self, lane: int) -> float | None:
        reading = self._view.model.reading
        return NAMED[self._names[lane]].value(reading) if reading is not None else None

    def _throttle(self) -> list[tuple[str, str]]:
        window = self.window
        assert self._bins is not None
        masks = self._bins.masks(window.first, window.columns)[: self.columns]
        cells = [(" ", "label") if mask is None else ("█", "throttled") if throttled(mask) else ("·", "axis") for mask in masks]
        column = self._cursor_column()
        reading = self._view.model.reading
        mask = masks[column] if column is not None else reading.throttle if reading is not None else None
        reasons = throttled(mask)
        words = units.ABSENT if mask is None else ", ".join(reasons) or "none"
        text = words if len(words) <= VALUE else words[: VALUE - 1] + "…"
        kind = "throttled" if reasons else "value" if mask is not None else "label"
        return [(f"{'throttle':<{TITLE}}", "title"), (f"{text:>{VALUE}} ", kind), *self._crossed(cells)]

    def _axis(self) -> list[tuple[str, str]]:
        cells = ["─"] * self.columns
        for t in self._moments():
            cells[self.window.column(t + 1e-9)] = "┬"
        return [(" " * (GUTTER - 1) + "└", "axis"), ("".join(cells), "axis")]

    def _clock(self) -> list[tuple[str, str]]:
        """Labels of the clock's line; at the left, the time under the cursor."""
        cells = [" "] * self.columns
        end = -1
        for t in self._moments():
            column = self.window.column(t + 1e-9)
            text = _clock(t, self.window.seconds * self.columns)
            start = min(max(0, column - len(text) // 2), max(0, self.columns - len(text)))
            if start > end and start + len(text) <= self.columns:
                cells[start : start + len(text)] = text
                end = start + len(text)
        at = f"at {_clock(self._at, 1.0)}" if self._at is not None else ""
        return [(f"{at:<{GUTTER}}", "value"), ("".join(cells), "label")]

    def _moments(self) -> list[float]:
        window = self.window
        found = moments(max(0.0, window.start), window.end, max(1, self.columns // 10))
        return [t for t in found if 0 <= window.column(t + 1e-9) < self.columns]

    def action_cursor(self, direction: int) -> None:
        column = self._cursor_column()
        latest = self.window.column(self._view.model.t)
        self._point(latest if column is None else column + direction)
        self.post_message(self.Held())

    def action_cursor_to(self, place: int) -> None:
        self._point(0 if place == 0 else self.window.column(self._view.model.t))
        self.post_message(self.Held())

    def _point(self, column: int) -> None:
        if self.columns and self._bins is not None:
            window = self.window
            column = min(self.columns - 1, max(0, column))
            self._at = max(0.0, (window.first + column + 0.5) * window.seconds)
            self.refresh()

    def action_choose(self) -> None:
        under = [s for s in self._stretches if self._at is not None and s.start <= self._at <= (s.end or self._view.model.t)]
        if under:
            self.post_message(self.Chosen(under[-1].run))

    def release(self) -> None:
        """Take the cursor away."""
        if self._at is not None:
            self._at = None
            self.refresh()

    def on_blur(self) -> None:
        self.release()

    def on_leave(self) -> None:
        if not self.has_focus:
            self.release()

    def on_mouse_move(self, event: ui.MouseMove) -> None:
        self._follow_mouse(event)

    def _follow_mouse(self, event: ui.MouseEvent) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and offset.x >= GUTTER:
            self._point(offset.x - GUTTER)

    def on_click(self, event: ui.Click) -> None:
        self._follow_mouse(event)
        self.action_choose()

    def on_mouse_scroll_up(self, event: ui.MouseScrollUp) -> None:
        event.stop()
        self.post_message(self.Zoomed(1))

    def on_mouse_scroll_down(self, event: ui.MouseScrollDown) -> None:
        event.stop()
        self.post_message(self.Zoomed(-1))


def _clock(t: float, span: float) -> str:
    """A moment of the session, with tenths where the window is short: 00:42, 00:42.5."""
    tenths = f".{int(t * 10 + 0.5) % 10}" if span <= 10 else ""
    return units.clock(int(t * 10 + 0.5) / 10) + tenths
