"""The rows of the telemetry chart as text: runs, one lane for each quantity, throttling, the clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fwtui.common import units
from fwtui.stream.events import QUANTITIES
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.stream.throttle import throttled
from fwtui.tui.charts.drawing import Piece, joined
from fwtui.tui.charts.figure import tick_text
from fwtui.tui.charts.scale import nice
from fwtui.tui.frame.telemetry_strip import BARS
from fwtui.tui.widgets.lanes import Bins, moments, most_of

GUTTER = 22  # cells of a lane's name and value
TITLE, VALUE = 10, 11
AROUND = 4  # rows besides the lanes: runs, throttling, the clock's line and its labels
BAND = {"past": "run-past", "below": "run-below"}  # parts of a lane while a run was going
Row = tuple[Piece, ...]


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


class Lanes:
    """One moment of the chart: what the model knows, through a window, with a cursor at a session time or without.

    `shown` is the run that is shown on all screens.
    """

    def __init__(self, model: Model, shown: int | None, bins: Bins, window: Window, heights: Sequence[int], at: float | None):
        self.model, self.shown = model, shown
        self.bins, self.window, self.heights = bins, window, heights
        self.at = at
        column = window.column(at) if at is not None else -1
        self.cursor = column if 0 <= column < window.columns else None
        self.during = [False] * window.columns  # whether a run was going
        self.stretches: list[tuple[Run, int, int]] = []  # runs on the clock, with their columns, half-open
        for run in model.runs.values():
            low = max(0, window.column(run.started))
            high = min(window.columns, window.column(model.t if run.finished is None else run.finished) + 1)
            if low < high:
                self.stretches.append((run, low, high))
                self.during[low:high] = [True] * (high - low)

    def rows(self) -> list[Row]:
        """All rows, the top one first."""
        lanes = [row for lane, height in enumerate(self.heights) if height for row in self._lane(lane, height)]
        return [self._runs(), *lanes, self._throttle(), self._axis(), self._clock()]

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
        return self._row([(f"{'runs':<{GUTTER}}", "title")], cells)

    def _lane(self, lane: int, height: int) -> list[Row]:
        quantity = QUANTITIES[self.bins.names[lane]]
        means = self.bins.means(lane, self.window.first, self.window.columns)
        low, high = quantity.least, self._most(lane)
        # an eighth of the lane stays free, so that a full one does not touch the one above
        shares = [None if value is None else min(1.0, max(0.0, (value - low) / (high - low))) for value in means]
        eighths = [0 if share is None else max(1, round(share * (8 * height - 1))) for share in shares]
        latest = getattr(self.model.reading, self.bins.names[lane], None)
        value = means[self.cursor] if self.cursor is not None else latest
        text = units.ABSENT if value is None else quantity.unit.text(value)
        rows: list[Row] = []
        for row in range(height):
            under = 8 * (height - 1 - row)
            cells: list[Piece] = []
            for filled, during in zip(eighths, self.during, strict=True):
                kind = "past" if filled <= under + 8 else "below"
                bar = " " if filled <= under else BARS[min(filled - under, 8) - 1]
                cells.append((bar, BAND[kind] if during else kind))
            if row == 0:
                said = (f"{text:>{VALUE}} ", "value" if value is not None else "label")
                rows.append(self._row([(f"{quantity.title:<{TITLE}}", "title"), said], cells))
            else:
                ends = f"{low:.0f} to {tick_text(high, quantity.unit.text)}" if row == 1 else ""
                rows.append(self._row([(f"{ends:>{GUTTER - 1}.{GUTTER - 1}} ", "label")], cells))
        return rows

    def _most(self, lane: int) -> float:
        """The upper end of the scale: what the device says, else a round number above all that was read."""
        quantity = QUANTITIES[self.bins.names[lane]]
        known = most_of(quantity, self.model)
        if known is not None and known > quantity.least:
            return known
        greatest = max(self.bins.greatest[lane], quantity.least + 1e-9)
        step = nice(greatest - quantity.least, 2)
        return quantity.least + step * -(-(greatest - quantity.least) // step)

    def _throttle(self) -> Row:
        masks = self.bins.masks(self.window.first, self.window.columns)
        cells = [(" ", "label") if mask is None else ("█", "throttled") if throttled(mask) else ("·", "axis") for mask in masks]
        reading = self.model.reading
        mask = masks[self.cursor] if self.cursor is not None else reading.throttle if reading is not None else None
        reasons = throttled(mask)
        words = units.ABSENT if mask is None else ", ".join(reasons) or "none"
        text = words if len(words) <= VALUE else words[: VALUE - 1] + "…"
        kind = "throttled" if reasons else "value" if mask is not None else "label"
        return self._row([(f"{'throttle':<{TITLE}}", "title"), (f"{text:>{VALUE}} ", kind)], cells)

    def _axis(self) -> Row:
        cells = ["─"] * self.window.columns
        for column, _ in self._moments():
            cells[column] = "┬"
        return ((" " * (GUTTER - 1) + "└", "axis"), ("".join(cells), "axis"))

    def _clock(self) -> Row:
        """Labels of the clock's line; at the left, the time under the cursor."""
        columns, end = self.window.columns, -1
        cells = [" "] * columns
        for column, t in self._moments():
            text = moment_text(t, self.window.seconds * columns)
            start = min(max(0, column - len(text) // 2), max(0, columns - len(text)))
            if start > end and start + len(text) <= columns:
                cells[start : start + len(text)] = text
                end = start + len(text)
        at = f"at {moment_text(self.at, 1.0)}" if self.at is not None else ""
        return ((f"{at:<{GUTTER}}", "value"), ("".join(cells), "label"))

    def _moments(self) -> list[tuple[int, float]]:
        """Round times, each after its column."""
        window = self.window
        found = moments(max(0.0, window.start), window.end, max(1, window.columns // 10))
        columns = [(window.column(t + 1e-9), t) for t in found]
        return [(column, t) for column, t in columns if 0 <= column < window.columns]


def moment_text(t: float, span: float) -> str:
    """A moment of the session, with tenths where the window is short: 00:42, 00:42.5."""
    tenths = f".{int(t * 10 + 0.5) % 10}" if span <= 10 else ""
    return units.clock(int(t * 10 + 0.5) / 10) + tenths
