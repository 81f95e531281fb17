"""Telemetry over time: one lane for each quantity on a common clock, runs as bands over them, throttling under them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events as ui
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from fwtui.experiment.device import DeviceId
from fwtui.tui.arrow_keys import ACROSS, CHOOSE, Arrowed
from fwtui.tui.frame.view import View
from fwtui.tui.telemetry.lane_rows import AROUND, GUTTER, NO_RUN, STEPS, Lanes, Row, Told, Window
from fwtui.tui.widgets.lanes import Bins, TelemetryLane

PARTS = ("label", "title", "value", "run", "shown", "axis", "throttled", "cursor")
AREAS = {step: f"$primary {40 + 60 * step // (STEPS - 1)}%" for step in range(STEPS)}  # one gradient, of the theme's colour


class LaneChart(Arrowed, Widget, can_focus=True):
    """Ten times a second its rows are made again, and what changed of them is drawn. Values are those under the cursor."""

    ALLOW_SELECT = False
    BINDINGS: ClassVar = [*ACROSS, CHOOSE]
    DEFAULT_CSS = """
    LaneChart { height: 1fr; min-height: 1; padding: 0 1; }
    LaneChart .lanes--label { color: $text-muted; }
    LaneChart .lanes--title { color: $foreground; }
    LaneChart .lanes--value { color: $foreground; text-style: bold; }
    LaneChart .lanes--run { color: $secondary; }
    LaneChart .lanes--shown { color: $text-primary; text-style: bold; }
    LaneChart .lanes--axis { color: $border-blurred; }
    LaneChart:focus .lanes--axis { color: $border; }
    LaneChart .lanes--throttled { color: $text-warning; text-style: bold; }
    LaneChart .lanes--cursor { color: $foreground; text-style: bold reverse; }
    """ + "".join(
        f"LaneChart .lanes--area-{step} {{ color: {colour}; }} "
        f"LaneChart .lanes--run-area-{step} {{ color: {colour}; background: $primary 10%; }} "
        for step, colour in AREAS.items()
    )
    COMPONENT_CLASSES: ClassVar = {
        *(f"lanes--{part}" for part in PARTS),
        *(f"lanes--{run}area-{step}" for step in AREAS for run in ("", "run-")),
    }

    def __init__(
        self, view: View, chosen: Callable[[int], None], held: Callable[[bool], None], zoomed: Callable[[int], None]
    ) -> None:
        """`chosen` is given the run under the cursor, `held` whether a key has set the cursor, `zoomed` 1 for nearer or -1."""
        super().__init__()
        self._view = view
        self._chosen, self._held, self._zoomed = chosen, held, zoomed
        self._lanes: tuple[TelemetryLane, ...] = ()
        self._told = NO_RUN
        self._start = self._end = 0.0
        self._bins: dict[DeviceId | None, Bins] = {}  # those of the machine at None
        self.at: float | None = None  # session time under the cursor
        self._rows: list[Row] = []
        self._tops: dict[str, float] = {}  # of scales, by quantity

    @property
    def columns(self) -> int:
        return max(0, self.size.width - GUTTER)

    @property
    def window(self) -> Window:
        """Whole columns, so that nothing wobbles while time goes on; the last one holds the end."""
        columns = max(self.columns, 1)
        seconds = max((self._end - self._start) / columns, 1e-3)
        return Window(seconds, int(self._end / seconds + 1e-6) - columns + (0 if self._start <= 0 else 1), columns)

    @property
    def room(self) -> int:
        """Rows for lanes and the lines above groups of them."""
        return max(0, self.size.height - AROUND)

    @property
    def heights(self) -> list[int]:
        """Rows of each lane, the first ones higher where they do not divide evenly; a lane without room has none.

        Lanes in groups are equally high as long as all have room: their heights are compared.
        """
        heads, lanes = sum(bool(lane.head) for lane in self._lanes), len(self._lanes)
        rows = max(0, self.room - heads)
        odd = 0 if heads and rows >= lanes else rows % lanes
        return [rows // lanes + (place < odd) for place in range(lanes)]

    def show(self, lanes: Sequence[TelemetryLane], start: float, end: float, told: Told = NO_RUN) -> None:
        """Show these lanes from `start` to `end`, as far as the view's model has them, with the means and peaks of a run."""
        self._lanes, self._start, self._end, self._told = tuple(lanes), start, end, told
        self._draw()

    def _draw(self) -> None:
        """Make the rows again, and refresh those that look different."""
        if self.columns < 1 or not self._lanes:
            self._rows = []
            self.refresh()
            return
        window = self.window
        model, bins = self._view.model, dict[DeviceId | None, Bins]()
        gpus = {lane.gpu for lane in self._lanes}
        for gpu in gpus if gpus - {None} else {*gpus, model.watched}:  # a GPU for the lane of throttling
            names = tuple(lane.name for lane in self._lanes if lane.gpu == gpu)
            known = self._bins.get(gpu)
            if known is None or (known.seconds, known.names) != (window.seconds, names):
                known = Bins(window.seconds, names)
            known.take(model.of_host if gpu is None else model.readings.get(gpu, ()))
            bins[gpu] = known
        self._bins = bins
        shown = self._view.run.id if self._view.run is not None else None
        before = self._rows
        self._rows = Lanes(model, shown, self._lanes, bins, window, self.heights, self.at, self._tops, self._told).rows()
        if len(before) != len(self._rows):
            self.refresh()
            return
        rows = enumerate(zip(before, self._rows, strict=True))
        if changed := [Region(start, y, end - start, 1) for y, pair in rows for start, end in changes(*pair)]:
            self.refresh(*changed)

    def on_resize(self) -> None:
        self._rows = []  # the same text may be drawn in another width
        self._draw()

    def render_line(self, y: int) -> Strip:
        row = self._rows[y] if y < len(self._rows) else ()
        strip = Strip([Segment(text, self.get_component_rich_style(f"lanes--{kind}")) for text, kind in row])
        return strip.adjust_cell_length(self.size.width, self.rich_style)

    def action_arrow(self, rows: int, columns: int) -> None:
        """Move the cursor; at first it comes to the latest reading, which it does not pass."""
        latest = self.window.column(self._view.model.t)
        begins = self.at is None and abs(columns) == 1
        start = latest if self.at is None else self.window.column(self.at)
        self._point(latest if begins else min(start + columns, latest))
        self._held(True)

    def _point(self, column: int) -> None:
        if self.columns and self._bins:
            window = self.window
            column = min(self.columns - 1, max(0, column))
            self.at = max(0.0, (window.first + column + 0.5) * window.seconds)
            self._draw()

    def action_choose(self) -> None:
        at, model = self.at, self._view.model
        if at is not None:
            runs = model.runs.values()
            if under := [r.id for r in runs if r.started <= at <= (model.t if r.finished is None else r.finished)]:
                self._chosen(under[-1])

    def release(self) -> None:
        """Take the cursor away."""
        if self.at is not None:
            self.at = None
            self._draw()

    def on_blur(self) -> None:
        if self.at is not None:
            self.release()
            self._held(False)

    def on_leave(self) -> None:
        if not self.has_focus:
            self.on_blur()

    def on_mouse_move(self, event: ui.MouseEvent) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and offset.x >= GUTTER:
            self._point(offset.x - GUTTER)

    def on_click(self, event: ui.Click) -> None:
        self.on_mouse_move(event)
        self.action_choose()

    def on_mouse_scroll_up(self, event: ui.MouseScrollUp) -> None:
        event.stop()
        self._zoomed(1)

    def on_mouse_scroll_down(self, event: ui.MouseScrollDown) -> None:
        event.stop()
        self._zoomed(-1)


def changes(before: Row, now: Row) -> list[tuple[int, int]]:
    """Where two rows of the same width differ: the first and the last of those cells, half-open; nothing if they do not."""
    if before == now:
        return []
    cells = ([(character, kind) for text, kind in row for character in text] for row in (before, now))
    places = [place for place, (old, new) in enumerate(zip(*cells, strict=False)) if old != new]
    return [(places[0], places[-1] + 1)] if places else []
