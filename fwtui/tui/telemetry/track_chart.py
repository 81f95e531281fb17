"""The telemetry chart as a widget: open and folded tracks, a cursor, and painting of changed cells only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events as ui
from textual.geometry import Region
from textual.strip import Strip

from fwtui.experiment.device import DeviceId
from fwtui.tui.charts.base import ValueCursor
from fwtui.tui.frame.view import View
from fwtui.tui.telemetry.track_drawing import GUTTER, NO_RUN, STEPS, WIDE_GUTTER, Row, RunReadings, TrackDrawing, Window, changes
from fwtui.tui.telemetry.tracks import Bins, Track

WIDE = 100  # cells of the chart from which each track has three values on its first row
AROUND = 5  # rows that are not tracks: labels of runs, their bands, throttling, the time axis and its labels
MIN_OPEN_ROWS = 8  # minimum height of an open track if several are open; closed tracks have one row
# tracks that are open first; the others follow in their order
OPEN_FIRST = {name: place for place, name in enumerate(("gpu_utilisation", "gpu_power_watts", "sm_occupancy"))}
PARTS = ("label", "title", "value", "run", "shown", "axis", "peak", "run-peak", "throttled", "cursor")
AREAS = {step: f"$primary {40 + 60 * step // (STEPS - 1)}%" for step in range(STEPS)}  # one gradient, of the theme's colour


class TrackChart(ValueCursor):
    """The chart of all tracks. It is computed ten times a second, and only changed cells are painted."""

    PREFIX = "tracks"
    DEFAULT_CSS = """
    TrackChart { height: 1fr; min-height: 1; padding: 0 1; }
    TrackChart .tracks--label { color: $text-muted; }
    TrackChart .tracks--title { color: $foreground; }
    TrackChart .tracks--value { color: $foreground; text-style: bold; }
    TrackChart .tracks--run { color: $secondary; }
    TrackChart .tracks--shown { color: $text-primary; text-style: bold; }
    TrackChart .tracks--axis { color: $border-blurred; }
    TrackChart:focus .tracks--axis { color: $border; }
    TrackChart .tracks--peak { color: $text-muted; }
    TrackChart .tracks--run-peak { color: $text-muted; background: $primary 10%; }
    TrackChart .tracks--throttled { color: $text-warning; text-style: bold; }
    TrackChart .tracks--cursor { color: $foreground; text-style: bold reverse; }
    """ + "".join(
        f"TrackChart .tracks--area-{step} {{ color: {colour}; }} "
        f"TrackChart .tracks--run-area-{step} {{ color: {colour}; background: $primary 10%; }} "
        for step, colour in AREAS.items()
    )
    COMPONENT_CLASSES: ClassVar = {
        *(f"tracks--{part}" for part in PARTS),
        *(f"tracks--{run}area-{step}" for step in AREAS for run in ("", "run-")),
    }

    def __init__(
        self, view: View, on_choice: Callable[[int], None], on_hold: Callable[[bool], None], zoomed: Callable[[int], None]
    ) -> None:
        """Report the chosen run to `on_choice`, a cursor that keys hold to `on_hold`, and a step of the zoom to `zoomed`."""
        super().__init__()
        self._view = view
        self._chosen, self._held, self._zoomed = on_choice, on_hold, zoomed
        self._tracks: tuple[Track, ...] = ()
        self._run_readings = NO_RUN
        self._start = self._end = 0.0
        self._bins: dict[DeviceId | None, Bins] = {}  # the machine's at None
        self._opened = 0  # place of the first open track
        self.at: float | None = None  # session time under the cursor
        self._rows: list[Row] = []
        self._tops: dict[str, float] = {}  # quantity -> upper end of its scale

    @property
    def wide(self) -> bool:
        return self.size.width >= WIDE

    @property
    def plot_start(self) -> int:
        """Cells left of the tracks."""
        return WIDE_GUTTER if self.wide else GUTTER

    @property
    def columns(self) -> int:
        return max(0, self.size.width - self.plot_start)

    @property
    def window(self) -> Window:
        """The visible columns. Their edges do not move with time, and the last one holds the end."""
        columns = max(self.columns, 1)
        seconds = max((self._end - self._start) / columns, 1e-3)
        return Window(seconds, int(self._end / seconds + 1e-6) - columns + (0 if self._start <= 0 else 1), columns)

    @property
    def room(self) -> int:
        """Rows for tracks and for the lines above groups of them."""
        return max(0, self.size.height - AROUND)

    @property
    def open_tracks(self) -> int:
        """Number of tracks that are not folded; 0 if tracks are grouped, or have no room for more than a row each."""
        tracks, spare = len(self._tracks), self.room - len(self._tracks)
        if spare <= 0 or any(track.head for track in self._tracks):
            return 0
        return min(tracks, max(1, spare // (MIN_OPEN_ROWS - 1)))

    @property
    def heights(self) -> list[int]:
        """Rows of each track; 0 for a track without room. Grouped tracks are equally high, so that they can be compared."""
        tracks, count = len(self._tracks), self.open_tracks
        if not count:
            heads = sum(bool(track.head) for track in self._tracks)
            rows = max(0, self.room - heads)
            odd = 0 if heads and rows >= tracks else rows % max(tracks, 1)
            return [rows // tracks + (place < odd) for place in range(tracks)]
        rows = self.room - (tracks - count)
        order = sorted(range(tracks), key=lambda place: OPEN_FIRST.get(self._tracks[place].name, len(OPEN_FIRST)))
        opened = sorted(order[(self._opened + place) % tracks] for place in range(count))
        heights = [1] * tracks
        for place, track in enumerate(opened):
            heights[track] = rows // count + (place < rows % count)
        return heights

    def open_next(self) -> None:
        """Fold the open tracks, and open the next ones."""
        self._opened = (self._opened + self.open_tracks) % max(len(self._tracks), 1)
        self._draw()

    def show(self, tracks: Sequence[Track], start: float, end: float, run_readings: RunReadings = NO_RUN) -> None:
        """Show these tracks from `start` to `end`, with the means and maxima of a run."""
        self._tracks, self._start, self._end, self._run_readings = tuple(tracks), start, end, run_readings
        self._draw()

    def _draw(self) -> None:
        """Compute the rows, and paint the cells that changed."""
        if self.columns < 1 or not self._tracks:
            self._rows = []
            self.refresh()
            return
        window = self.window
        model, bins = self._view.model, dict[DeviceId | None, Bins]()
        gpus = {track.gpu for track in self._tracks}
        for gpu in gpus if gpus - {None} else {*gpus, model.watched}:  # the row of throttling needs a GPU
            names = tuple(track.name for track in self._tracks if track.gpu == gpu)
            drawn_bins = self._bins.get(gpu)
            if drawn_bins is None or (drawn_bins.seconds, drawn_bins.names) != (window.seconds, names):
                drawn_bins = Bins(window.seconds, names)
            drawn_bins.take(model.of_host if gpu is None else model.readings.get(gpu, ()))
            bins[gpu] = drawn_bins
        self._bins = bins
        run_id = self._view.run.id if self._view.run is not None else None
        before = self._rows
        picture = (window, self.heights, self.at, self._tops, self._run_readings, self.wide)
        self._rows = TrackDrawing(model, run_id, self._tracks, bins, *picture).rows()
        if len(before) != len(self._rows):
            self.refresh()
            return
        rows = enumerate(zip(before, self._rows, strict=True))
        if changed := [Region(start, y, end - start, 1) for y, pair in rows for start, end in changes(*pair)]:
            self.refresh(*changed)

    def on_resize(self) -> None:
        self._rows = []  # rows of another width cannot be compared
        self._draw()

    def render_line(self, y: int) -> Strip:
        return self.strip(self._rows[y] if y < len(self._rows) else ())

    def action_arrow(self, rows: int, columns: int) -> None:
        """Move the cursor; it starts at the latest reading and does not pass it."""
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
        if self.at is not None:
            self.at = None
            self._draw()
            self._held(False)

    def point(self, x: int, y: int) -> None:
        if x >= self.plot_start:
            self._point(x - self.plot_start)

    def on_mouse_scroll_up(self, event: ui.MouseScrollUp) -> None:
        event.stop()
        self._zoomed(1)

    def on_mouse_scroll_down(self, event: ui.MouseScrollDown) -> None:
        event.stop()
        self._zoomed(-1)
