"""Telemetry over time: one track for each quantity on a common clock, runs as bands over them, throttling under them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from math import ceil
from operator import or_
from typing import ClassVar, NamedTuple

from textual import events as ui
from textual.geometry import Region
from textual.strip import Strip

from fwtui.common import units
from fwtui.experiment.device import DeviceId
from fwtui.stream.events import QUANTITIES, Telemetry
from fwtui.stream.model import Model
from fwtui.stream.quantity import throttled
from fwtui.stream.run import Run
from fwtui.tui.charts.base import Piece, ValueCursor, tick_rows
from fwtui.tui.charts.drawing import joined
from fwtui.tui.charts.figure import tick_text
from fwtui.tui.charts.scale import nice
from fwtui.tui.frame.view import View
from fwtui.tui.telemetry.tracks import Bins, Track, moments
from fwtui.tui.widgets.shown_quantities import most_of

GUTTER = 25  # cells of a track's name and value
TITLE, VALUE = 13, 11
AROUND = 4  # rows besides the tracks: runs, throttling, the clock's line and its labels
EIGHTHS = " ▁▂▃▄▅▆▇█"  # of a cell: braille of the same height has holes in most fonts
UNREAD = "╌"  # at the foot of a track
MIN_USED = 1 / 3  # the share of a scale that must be used, or it gets a lower end
STEPS = 5  # of the gradient, from the foot of a track to its top
RunReadings = Mapping[DeviceId | None, tuple[Telemetry, Telemetry]]  # mean and peak of a run
NO_RUN: RunReadings = {}
Row = tuple[Piece, ...]
PARTS = ("label", "title", "value", "run", "shown", "axis", "throttled", "cursor")
AREAS = {step: f"$primary {40 + 60 * step // (STEPS - 1)}%" for step in range(STEPS)}  # one gradient, of the theme's colour


class Window(NamedTuple):
    """What is seen: columns of equal length, counted from time 0."""

    seconds: float  # of a column
    first: int
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


@dataclass
class Tracks:
    """One moment of the chart: what the model knows, through a window, with a cursor at a session time or without."""

    model: Model
    shown: int | None  # the run that is shown on all screens
    tracks: Sequence[Track]
    bins: Mapping[DeviceId | None, Bins]  # the readings of each GPU, and at None those of the machine
    window: Window
    heights: Sequence[int]
    at: float | None  # the cursor
    tops: dict[str, float]  # where the scales without a known end ended, by quantity; brought up to date
    run_readings: RunReadings = field(
        default_factory=dict
    )  # mean and peak of the shown run on each GPU, said where there is no cursor

    def __post_init__(self) -> None:
        model, window = self.model, self.window
        self.run_readings = self.run_readings if self.at is None else NO_RUN
        column = window.column(self.at) if self.at is not None else -1
        self.cursor = column if 0 <= column < window.columns else None
        self.during = [False] * window.columns  # whether a run was going
        self.stretches: list[tuple[Run, int, int]] = []  # runs on the clock, with their columns, half-open
        for run in model.runs.values():
            low = max(0, window.column(run.started))
            high = min(window.columns, window.column(model.t if run.finished is None else run.finished) + 1)
            if low < high:
                self.stretches.append((run, low, high))
                self.during[low:high] = [True] * (high - low)
        starts = [0, *(c for c in range(1, window.columns) if self.during[c] != self.during[c - 1]), window.columns]
        self.bands = [(start, end, self.during[start]) for start, end in pairwise(starts)]  # columns with a run, or without one

    def rows(self) -> list[Row]:
        """All rows, the top one first."""
        pairs, bins = [pair for pair in zip(self.tracks, self.heights, strict=True) if pair[1]], self.bins
        places = [bins[track.gpu].names.index(track.name) for track, _ in pairs]
        span = self.window.first, self.window.columns
        means_of = [(*pair, bins[pair[0].gpu].means(place, *span)) for pair, place in zip(pairs, places, strict=True)]
        ends: dict[str, float] = {}  # of scales: one for all tracks of a quantity, or they could not be compared
        for name in {track.name for track, _, _ in means_of}:
            ends[name] = self._most(name, [(track, means) for track, _, means in means_of if track.name == name])
        rows: list[Row] = []
        for track, height, means in means_of:
            if track.head:
                rows.append(self._head(track, ends[track.name]))
            rows += self._track(track, height, means, ends[track.name])
        return [self._runs(), *rows, self._throttle(), *self._clock()]

    def _row(self, gutter: Sequence[Piece], cells: list[Piece]) -> Row:
        """The gutter and the cells with the cursor through them, as few pieces as possible."""
        if self.cursor is not None:
            text = cells[self.cursor][0]
            cells[self.cursor] = (text if text != " " else "│", "cursor")
        return (*gutter, *joined(cells))

    def _runs(self) -> Row:
        cells = [(" ", "run")] * self.window.columns
        for run, low, high in self.stretches:
            room, words = high - low, f" {run.id} {run.experiment.kernel} "
            if room < len(words) + 2:
                words = str(run.id)
            text = words.center(room, "━") if room >= len(words) + 2 else "━" * room
            if len(text) > 1:
                text = "┣" + text[1:-1] + "┫"
            cells[low:high] = [(character, "shown" if run.id == self.shown else "run") for character in text]
        if not self.run_readings:
            return self._row([(f"{'runs':<{GUTTER}}", "title")], cells)
        return self._row([(f"{f'run {self.shown}':<{TITLE}}", "shown"), (f"{'mean ↑ peak':>{VALUE}} ", "label")], cells)

    def _head(self, track: Track, high: float) -> Row:
        """What a group of tracks is of, and the ends of its scale."""
        text = f"{track.head}: {_ends(track.name, high)}"
        cells = [(character, "label") for character in f"{text[GUTTER:]:<{self.window.columns}.{self.window.columns}}"]
        return self._row([(f"{text[:GUTTER]:<{GUTTER}}", "label")], cells)

    def _track(self, track: Track, height: int, means: Sequence[float | None], high: float) -> list[Row]:
        quantity = QUANTITIES[track.name]
        low, grouped = quantity.least, track.title != quantity.title
        # an eighth stays free, so that a full track does not touch the one above; but of few every begun one counts
        few, full = grouped and height == 1, len(EIGHTHS) - 1
        most, whole = (full, ceil) if few else (full * height - 1, round)
        filled = [0 if m is None else max(1, whole(most * min(1.0, max(0.0, (m - low) / (high - low))))) for m in means]
        now = track.readings(self.model)[-1:] if track.gpu is None or track.gpu in self.model.followed else ()
        value = getattr(now[0], track.name) if now else None
        mean, peak = self.run_readings.get(track.gpu, (None, None))
        if self.cursor is not None:
            value = means[self.cursor]
        elif mean is not None:
            value = getattr(mean, track.name)
        brief = mean is not None and self.cursor is None and any(m is not None for m in means)  # the run, for that quantity
        text = ("too short" if brief else units.ABSENT) if value is None else quantity.unit.text(value)
        highest = getattr(peak, track.name, None)
        below_it = [] if highest is None else [f"↑ {quantity.unit.text(highest)}"]
        below_it += [] if grouped else [_ends(track.name, high)]
        rows: list[Row] = []
        for row in range(height):
            if row == 0:
                number = (f"{text:>{VALUE}} ", "value" if value is not None else "label")
                gutter = [(f"{track.title:<{TITLE}}", "title"), number]
            else:
                words = below_it[row - 1] if row <= len(below_it) else ""
                gutter = [(f"{words:>{GUTTER - 1}.{GUTTER - 1}} ", "label")]
            below = height - 1 - row
            step = round(below / (height - 1) * (STEPS - 1)) if height > 1 else STEPS - 1
            # once for each height that there is, as this is done for every row ten times a second
            area = {one: EIGHTHS[min(full, max(0, one - full * below))] for one in set(filled)} | {0: " " if below else UNREAD}
            rows.append(self._banded(gutter, "".join(map(area.__getitem__, filled)), step))
        return rows

    def _banded(self, gutter: Sequence[Piece], text: str, step: int) -> Row:
        """A row of a track, tinted where a run was going."""
        kinds = f"area-{step}", f"run-area-{step}"
        if self.cursor is not None:
            return self._row(gutter, [(character, kinds[on]) for character, on in zip(text, self.during, strict=True)])
        return (*gutter, *((text[start:end], kinds[on]) for start, end, on in self.bands))

    def _most(self, name: str, tracks: Sequence[tuple[Track, Sequence[float | None]]]) -> float:
        """The upper end of the scale: the most that the devices allow, else a round number above all that is seen."""
        quantity = QUANTITIES[name]
        most = [most_of(quantity, self.model, track.gpu) or 0.0 for track, _ in tracks]
        if min(most) > quantity.least:
            return max(most)
        greatest = max((mean - quantity.least for _, means in tracks for mean in means if mean is not None), default=0.0)
        self.tops[name] = stepped(self.tops.get(name, 0.0), greatest)
        return quantity.least + self.tops[name]

    def _throttle(self) -> Row:
        """Of several GPUs any; at the left which of them, or why the only one."""
        gpus = sorted(gpu for gpu in self.bins if gpu is not None)
        there = {gpu: self.bins[gpu].masks(self.window.first, self.window.columns) for gpu in gpus}
        masks = [_either(at_once) for at_once in zip(*there.values(), strict=True)]
        cells = [(" ", "label") if mask is None else ("█", "throttled") if throttled(mask) else ("·", "axis") for mask in masks]
        last = {gpu: self.model.readings[gpu][-1].throttle for gpu in self.model.followed if gpu in there}
        last |= {gpu: self.run_readings[gpu][0].throttle for gpu in there if gpu in self.run_readings}
        now = last if self.cursor is None else {gpu: masks[self.cursor] for gpu, masks in there.items()}
        mask = _either(list(now.values()))
        reasons = throttled(mask)
        words = units.ABSENT if mask is None else ", ".join(reasons) or "none"
        if reasons and len(there) > 1:
            which = [str(gpu) for gpu, one in now.items() if throttled(one)]
            words = f"GPU {', '.join(which)}" if len(which) < 3 else f"{len(which)} GPUs"
        text = words if len(words) <= VALUE else words[: VALUE - 1] + "…"
        kind = "throttled" if reasons else "value" if mask is not None else "label"
        return self._row([(f"{'throttle':<{TITLE}}", "title"), (f"{text:>{VALUE}} ", kind)], cells)

    def _clock(self) -> list[Row]:
        """Return the clock's line and its labels; at the left, the time under the cursor."""
        window = self.window
        found = moments(max(0.0, window.start), window.end, max(1, window.columns // 10))
        columns = [(window.column(t + 1e-9), moment_text(t, window.seconds * window.columns)) for t in found]
        rows = tick_rows(window.columns, [(column, text) for column, text in columns if 0 <= column < window.columns])
        at = f"at {moment_text(self.at, 1.0)}" if self.at is not None else ""
        return [
            ((" " * (GUTTER - 1) + "└", "axis"), (rows.axis, "axis")),
            ((f"{at:<{GUTTER}}", "value"), (rows.labels, "label")),
        ]


def _either(masks: Sequence[int | None]) -> int | None:
    """Several throttle masks as one; None if none of them is known."""
    known_masks = [mask for mask in masks if mask is not None]
    return reduce(or_, known_masks) if known_masks else None


def _ends(name: str, high: float) -> str:
    """Both ends of the quantity's scale."""
    return f"{QUANTITIES[name].least:.0f} to {tick_text(high, QUANTITIES[name].unit.text)}"


def stepped(top: float, greatest: float) -> float:
    """A round end for a scale: the one that it had, unless that is too low, or leaves more than two thirds empty."""
    if MIN_USED * top <= greatest <= top and top > 0:
        return top
    step = nice(max(greatest, 1e-9), 4)
    return step * max(1, ceil(greatest / step - 1e-9))


def moment_text(t: float, span: float) -> str:
    """A moment of the session, with tenths where the window is short: 00:42, 00:42.5."""
    tenths = f".{int(t * 10 + 0.5) % 10}" if span <= 10 else ""
    return units.clock(int(t * 10 + 0.5) / 10) + tenths


class TrackChart(ValueCursor):
    """Ten times a second its rows are made again, and what changed of them is drawn. Values are those under the cursor."""

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
        """`on_choice` gets the run under the cursor, `on_hold` whether a key has set the cursor, `zoomed` 1 for nearer or -1."""
        super().__init__()
        self._view = view
        self._chosen, self._held, self._zoomed = on_choice, on_hold, zoomed
        self._tracks: tuple[Track, ...] = ()
        self._run_readings = NO_RUN
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
        """Rows for tracks and the lines above groups of them."""
        return max(0, self.size.height - AROUND)

    @property
    def heights(self) -> list[int]:
        """Rows of each track, the first ones higher where they do not divide evenly; a track without room has none.

        Tracks in groups are equally high as long as all have room: their heights are compared.
        """
        heads, tracks = sum(bool(track.head) for track in self._tracks), len(self._tracks)
        rows = max(0, self.room - heads)
        odd = 0 if heads and rows >= tracks else rows % tracks
        return [rows // tracks + (place < odd) for place in range(tracks)]

    def show(self, tracks: Sequence[Track], start: float, end: float, run_readings: RunReadings = NO_RUN) -> None:
        """Show these tracks from `start` to `end`, as far as the view's model has them, with the means and peaks of a run."""
        self._tracks, self._start, self._end, self._run_readings = tuple(tracks), start, end, run_readings
        self._draw()

    def _draw(self) -> None:
        """Make the rows again, and refresh those that look different."""
        if self.columns < 1 or not self._tracks:
            self._rows = []
            self.refresh()
            return
        window = self.window
        model, bins = self._view.model, dict[DeviceId | None, Bins]()
        gpus = {track.gpu for track in self._tracks}
        for gpu in gpus if gpus - {None} else {*gpus, model.watched}:  # a GPU for the track of throttling
            names = tuple(track.name for track in self._tracks if track.gpu == gpu)
            drawn_bins = self._bins.get(gpu)
            if drawn_bins is None or (drawn_bins.seconds, drawn_bins.names) != (window.seconds, names):
                drawn_bins = Bins(window.seconds, names)
            drawn_bins.take(model.of_host if gpu is None else model.readings.get(gpu, ()))
            bins[gpu] = drawn_bins
        self._bins = bins
        run_id = self._view.run.id if self._view.run is not None else None
        before = self._rows
        self._rows = Tracks(
            model, run_id, self._tracks, bins, window, self.heights, self.at, self._tops, self._run_readings
        ).rows()
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
        return self.strip(self._rows[y] if y < len(self._rows) else ())

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
        if self.at is not None:
            self.at = None
            self._draw()
            self._held(False)

    def point(self, x: int, y: int) -> None:
        if x >= GUTTER:
            self._point(x - GUTTER)

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
