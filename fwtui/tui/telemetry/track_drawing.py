"""Drawing of the telemetry chart: runs as bands, a track per quantity on a common clock, and throttling below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from math import ceil
from operator import or_
from typing import NamedTuple

from fwtui.common import units
from fwtui.common.text import truncate
from fwtui.experiment.device import DeviceId
from fwtui.stream.events import QUANTITIES, Telemetry
from fwtui.stream.model import Model
from fwtui.stream.quantity import throttled
from fwtui.stream.run import Run
from fwtui.tui.charts.base import Piece, tick_rows
from fwtui.tui.charts.drawing import joined
from fwtui.tui.charts.figure import tick_text
from fwtui.tui.charts.scale import nice
from fwtui.tui.telemetry.tracks import Bins, Track, moments
from fwtui.tui.widgets.shown_quantities import most_of

TITLE, VALUE = 13, 11  # cells of a track's title and of its value
GUTTER = TITLE + VALUE + 1
COLUMN = 10  # cells of each of three values: now, mean and max
WIDE_GUTTER = TITLE + 3 * COLUMN + 1
EIGHTHS = " ▁▂▃▄▅▆▇█"  # block characters: braille cells of the same height have gaps in most fonts
UNREAD = "╌"  # at the foot of a track
PEAK = "┄"  # the maximum of a track
MIN_USED = 1 / 3  # smallest used share of a scale; below it the scale gets a lower end
STEPS = 5  # colours of the gradient from the bottom of a track to its top
RunReadings = Mapping[DeviceId | None, tuple[Telemetry, Telemetry]]  # mean and maximum of a run
NO_RUN: RunReadings = {}
Row = tuple[Piece, ...]


class Window(NamedTuple):
    """The visible columns, each `seconds` long and counted from time 0."""

    seconds: float
    first: int
    columns: int

    @property
    def start(self) -> float:
        return self.first * self.seconds

    @property
    def end(self) -> float:
        return (self.first + self.columns) * self.seconds

    def column(self, t: float) -> int:
        """Return the column of a time; it may be outside the window."""
        return int(t / self.seconds) - self.first


class TrackValues(NamedTuple):
    """The numbers at the left of a track, as text; empty without one."""

    now: str
    mean: str
    maximum: str
    peak: float | None  # the maximum as a number


@dataclass
class TrackDrawing:
    """The drawn chart: readings in bins, seen through a window, with or without a cursor."""

    model: Model
    shown: int | None  # the run that all screens show
    tracks: Sequence[Track]
    bins: Mapping[DeviceId | None, Bins]  # the readings of each GPU; those of the machine at None
    window: Window
    heights: Sequence[int]
    at: float | None  # session time of the cursor
    tops: dict[str, float]  # upper ends of the scales without a known maximum, by quantity; updated here
    run_readings: RunReadings = field(default_factory=dict)  # mean and maximum of the shown run on each GPU
    wide: bool = False  # now, mean and max have columns

    def __post_init__(self) -> None:
        model, window = self.model, self.window
        column = window.column(self.at) if self.at is not None else -1
        self.cursor = column if 0 <= column < window.columns else None
        self.during = [False] * window.columns  # columns in which a run was in progress
        self.stretches: list[tuple[Run, int, int]] = []  # runs with their columns, half-open
        for run in model.runs.values():
            low = max(0, window.column(run.started))
            high = min(window.columns, window.column(model.t if run.finished is None else run.finished) + 1)
            if low < high:
                self.stretches.append((run, low, high))
                self.during[low:high] = [True] * (high - low)
        starts = [0, *(c for c in range(1, window.columns) if self.during[c] != self.during[c - 1]), window.columns]
        self.bands = [(start, end, self.during[start]) for start, end in pairwise(starts)]  # columns with or without a run

    def rows(self) -> list[Row]:
        """Return all rows, the top one first."""
        pairs, bins = [pair for pair in zip(self.tracks, self.heights, strict=True) if pair[1]], self.bins
        places = [bins[track.gpu].names.index(track.name) for track, _ in pairs]
        span = self.window.first, self.window.columns
        means_of = [(*pair, bins[pair[0].gpu].means(place, *span)) for pair, place in zip(pairs, places, strict=True)]
        ends: dict[str, float] = {}  # one scale for all tracks of a quantity, so that they can be compared
        for name in {track.name for track, _, _ in means_of}:
            ends[name] = self._most(name, [(track, means) for track, _, means in means_of if track.name == name])
        rows: list[Row] = []
        for track, height, means in means_of:
            if track.head:
                rows.append(self._head(track, ends[track.name]))
            rows += self._track(track, height, means, ends[track.name])
        return [self._run_labels(), self._run_bands(), *rows, self._throttle(), *self._clock()]

    def _row(self, gutter: Sequence[Piece], cells: list[Piece]) -> Row:
        """Return the gutter and the cells, with the cursor through them, in as few pieces as possible."""
        if self.cursor is not None:
            text = cells[self.cursor][0]
            cells[self.cursor] = (text if text != " " else "│", "cursor")
        return (*gutter, *joined(cells))

    def _gutter(self, title: Piece, *values: Piece) -> list[Piece]:
        """Return a title and its values: three in a wide chart, else one."""
        cells = COLUMN if self.wide else VALUE
        return [(f"{title[0]:<{TITLE}}", title[1]), *((f"{text:>{cells}}", kind) for text, kind in values), (" ", "label")]

    def _blank_gutter(self, text: str = "") -> list[Piece]:
        cells = (WIDE_GUTTER if self.wide else GUTTER) - 1
        return [(f"{text:>{cells}.{cells}} ", "label")]

    def _run_labels(self) -> Row:
        """Return the kernels of the runs, each at the start of its band: the shown run, then the longest ones."""
        cells: list[Piece] = [(" ", "run")] * self.window.columns
        for run, low, _ in sorted(self.stretches, key=lambda one: (one[0].id != self.shown, one[1] - one[2])):
            for label in (f"{run.id} {run.experiment.kernel}", str(run.id)):
                start = min(low, self.window.columns - len(label))
                if start >= 0 and all(text == " " for text, _ in cells[max(0, start - 1) : start + len(label) + 1]):
                    cells[start : start + len(label)] = [(character, self._kind(run)) for character in label]
                    break
        return self._row(self._blank_gutter(), cells)

    def _kind(self, run: Run) -> str:
        return "shown" if run.id == self.shown else "run"

    def _run_bands(self) -> Row:
        cells = [(" ", "run")] * self.window.columns
        for run, low, high in self.stretches:
            band = f"┣{'━' * (high - low - 2)}┫" if high - low > 1 else "━"
            cells[low:high] = [(character, self._kind(run)) for character in band]
        title = (f"run {self.shown}", "shown") if self.run_readings else ("in view", "title")
        now = "now" if self.cursor is None else "cursor"
        if self.wide:
            of_run = "run " * bool(self.run_readings)
            names = (now, "label"), (f"{of_run}mean", "label"), (f"{of_run}max", "label")
        else:
            names = ((("mean" if self.run_readings and self.cursor is None else now) + " ↑ max", "label"),)
        return self._row(self._gutter(title, *names), cells)

    def _head(self, track: Track, high: float) -> Row:
        """Return the line above a group of tracks: the quantity and the ends of its scale."""
        gutter = WIDE_GUTTER if self.wide else GUTTER
        text = f"{track.head}: {_ends(track.name, high)}"
        cells = [(character, "label") for character in f"{text[gutter:]:<{self.window.columns}.{self.window.columns}}"]
        return self._row([(f"{text[:gutter]:<{gutter}}", "label")], cells)

    def _values(self, track: Track, means: Sequence[float | None]) -> TrackValues:
        """Return the value now or at the cursor, and mean and maximum of the shown run, else of the visible time."""
        unit = QUANTITIES[track.name].unit
        last = track.readings(self.model)[-1:] if track.gpu is None or track.gpu in self.model.followed else ()
        now = getattr(last[0], track.name) if last and self.model.t - last[0].t <= self.bins[track.gpu].hold else None
        if self.cursor is not None:
            now = means[self.cursor]
        of_run = self.run_readings.get(track.gpu)
        mean = maximum = None
        if of_run is not None:
            mean, maximum = (getattr(one, track.name) for one in of_run)
        elif not self.run_readings:
            bins = self.bins[track.gpu]
            place = bins.names.index(track.name)
            mean, maximum = bins.mean_and_maximum(place, self.window.first, self.window.columns)
        absent = "too short" if of_run is not None and any(one is not None for one in means) else units.ABSENT
        texts = [
            none if one is None else unit.text(one) for one, none in ((now, units.ABSENT), (mean, absent), (maximum, absent))
        ]
        return TrackValues(texts[0], texts[1], texts[2], maximum)

    def _track(self, track: Track, height: int, means: Sequence[float | None], high: float) -> list[Row]:
        quantity = QUANTITIES[track.name]
        low, grouped = quantity.least, track.title != quantity.title
        # the top eighth stays free, so that a full track does not touch the one above; a row of a group uses all eighths
        few, full = grouped and height == 1, len(EIGHTHS) - 1
        most, whole = (full, ceil) if few else (full * height - 1, round)

        def level(value: float) -> int:
            return max(1, whole(most * min(1.0, max(0.0, (value - low) / (high - low)))))

        filled = [0 if mean is None else level(mean) for mean in means]
        values = self._values(track, means)
        peak_row = (level(values.peak) - 1) // full if values.peak is not None and height > 1 else None
        gutters = self._track_gutters(track, values, [] if grouped else [_ends(track.name, high)])
        rows: list[Row] = []
        for row in range(height):
            gutter = gutters[row] if row < len(gutters) else self._blank_gutter()
            below = height - 1 - row
            step = round(below / (height - 1) * (STEPS - 1)) if height > 1 else STEPS - 1
            # once for each level that occurs: this runs for every row ten times a second
            area = {one: EIGHTHS[min(full, max(0, one - full * below))] for one in set(filled)} | {0: " " if below else UNREAD}
            text = "".join(map(area.__getitem__, filled))
            rows.append(self._banded(gutter, text, step, peak=below == peak_row))
        return rows

    def _track_gutters(self, track: Track, values: TrackValues, ends: Sequence[str]) -> list[list[Piece]]:
        """Return the gutters of a track's first rows: title and values, then the rest of the numbers."""
        title = (track.title, "title")
        if self.wide:
            kinds = ("value", "value", "label")
            columns = zip((values.now, values.mean, values.maximum), kinds, strict=True)
            first = self._gutter(title, *((text, kind if text[:1].isdecimal() else "label") for text, kind in columns))
            return [first, *map(self._blank_gutter, ends)]
        text = values.mean if self.run_readings.get(track.gpu) is not None and self.cursor is None else values.now
        highest = [f"↑ {values.maximum}"] if values.peak is not None else []
        first = self._gutter(title, (text, "value" if text[:1].isdecimal() else "label"))
        return [first, *map(self._blank_gutter, [*highest, *ends])]

    def _banded(self, gutter: Sequence[Piece], text: str, step: int, peak: bool) -> Row:
        """Return a row of a track, tinted during runs, with the line of its maximum if `peak`."""
        kinds = f"area-{step}", f"run-area-{step}"
        if self.cursor is not None or peak:
            cells = [(character, kinds[on]) for character, on in zip(text, self.during, strict=True)]
            if peak:
                lines = "peak", "run-peak"
                cells = [(PEAK, lines[on]) if one[0] == " " else one for one, on in zip(cells, self.during, strict=True)]
            return self._row(gutter, cells)
        return (*gutter, *((text[start:end], kinds[on]) for start, end, on in self.bands))

    def _most(self, name: str, tracks: Sequence[tuple[Track, Sequence[float | None]]]) -> float:
        """Return the upper end of the scale: the devices' maximum, else a round number above all visible values."""
        quantity = QUANTITIES[name]
        most = [most_of(quantity, self.model, track.gpu) or 0.0 for track, _ in tracks]
        if min(most) > quantity.least:
            return max(most)
        greatest = max((mean - quantity.least for _, means in tracks for mean in means if mean is not None), default=0.0)
        self.tops[name] = stepped(self.tops.get(name, 0.0), greatest)
        return quantity.least + self.tops[name]

    def _throttle(self) -> Row:
        """Return the row of throttling of any GPU; its text names the reasons of one GPU, or which of several throttle."""
        gpus = sorted(gpu for gpu in self.bins if gpu is not None)
        there = {gpu: self.bins[gpu].masks(self.window.first, self.window.columns) for gpu in gpus}
        masks = [_either(at_once) for at_once in zip(*there.values(), strict=True)]
        cells = [(" ", "label") if mask is None else ("█", "throttled") if throttled(mask) else ("·", "axis") for mask in masks]
        last = {gpu: self.model.readings[gpu][-1].throttle for gpu in self.model.followed if gpu in there}
        last |= {gpu: self.run_readings[gpu][0].throttle for gpu in there if gpu in self.run_readings}
        now = last if self.cursor is None else {gpu: masks[self.cursor] for gpu, masks in there.items()}
        mask = _either(list(now.values()))
        reasons = throttled(mask)
        text = units.ABSENT if mask is None else ", ".join(reasons) or "none"
        if reasons and len(there) > 1:
            which = [str(gpu) for gpu, one in now.items() if throttled(one)]
            text = f"GPU {', '.join(which)}" if len(which) < 3 else f"{len(which)} GPUs"
        kind = "throttled" if reasons else "value" if mask is not None else "label"
        text = f"{truncate(text, 3 * COLUMN):>{COLUMN}}{'':{2 * COLUMN}}"[: 3 * COLUMN] if self.wide else truncate(text, VALUE)
        return self._row([(f"{'throttle':<{TITLE}}", "title"), (f"{text:>{VALUE}} ", kind)], cells)

    def _clock(self) -> list[Row]:
        """Return the time axis and its labels, with the time under the cursor at the left end."""
        window, gutter = self.window, WIDE_GUTTER if self.wide else GUTTER
        found = moments(max(0.0, window.start), window.end, max(1, window.columns // 10))
        columns = [(window.column(t + 1e-9), moment_text(t, window.seconds * window.columns)) for t in found]
        rows = tick_rows(window.columns, [(column, text) for column, text in columns if 0 <= column < window.columns])
        at = f"at {moment_text(self.at, 1.0)}" if self.at is not None else ""
        return [((" " * (gutter - 1) + "└", "axis"), (rows.axis, "axis")), ((f"{at:<{gutter}}", "value"), (rows.labels, "label"))]


def _either(masks: Sequence[int | None]) -> int | None:
    """Return the union of throttle masks; None if all are unknown."""
    there = [mask for mask in masks if mask is not None]
    return reduce(or_, there) if there else None


def _ends(name: str, high: float) -> str:
    """Return the ends of the quantity's scale as text."""
    return f"{QUANTITIES[name].least:.0f} to {tick_text(high, QUANTITIES[name].unit.text)}"


def stepped(top: float, greatest: float) -> float:
    """Return a round end for a scale: the present one, unless it is too low or leaves more than two thirds empty."""
    if MIN_USED * top <= greatest <= top and top > 0:
        return top
    step = nice(max(greatest, 1e-9), 4)
    return step * max(1, ceil(greatest / step - 1e-9))


def moment_text(t: float, span: float) -> str:
    """Format a session time, with tenths in a short window: 00:42, 00:42.5."""
    tenths = f".{int(t * 10 + 0.5) % 10}" if span <= 10 else ""
    return units.clock(int(t * 10 + 0.5) / 10) + tenths


def changes(before: Row, now: Row) -> list[tuple[int, int]]:
    """Return the range of cells in which two rows of one width differ, half-open; empty if they are equal."""
    if before == now:
        return []
    cells = ([(character, kind) for text, kind in row for character in text] for row in (before, now))
    places = [place for place, (old, new) in enumerate(zip(*cells, strict=False)) if old != new]
    return [(places[0], places[-1] + 1)] if places else []
