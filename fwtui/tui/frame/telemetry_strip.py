"""The telemetry strip: the telemetry of a model, with a fixed position for each quantity."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from statistics import fmean
from typing import ClassVar, NamedTuple

from msgspec.structs import replace
from rich.segment import Segment
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from fwtui.common import units
from fwtui.common.text import truncate
from fwtui.experiment.device import DeviceId
from fwtui.stream import events
from fwtui.stream.events import QUANTITIES
from fwtui.stream.model import Model, averaged_within, within
from fwtui.stream.quantity import CELSIUS, MEMORY, PERCENT, TRAFFIC, Quantity, throttled
from fwtui.stream.run import Run
from fwtui.tui.widgets.shown_quantities import default_quantities, default_quantities_of_several, most_of
from fwtui.tui.widgets.spark import spark

BINS = 10  # bins of a history
BIN_SECONDS = 0.5
LABEL, TEXT = 9, 8  # cells of a label with a space, and of a text, next to a history


class StripColumn(NamedTuple):
    """A quantity on the strip; `low` and `high` are the ends of its history's scale."""

    label: str
    text: str
    history: tuple[float | None, ...]
    low: float = 0.0
    high: float = 1.0
    left_aligned: bool = False  # for texts; numbers are aligned to the right
    width: int = 8  # cells of the text
    peak: str = ""  # replaces the history

    def cells(self, with_history: bool) -> int:
        """Return the width of the column in cells."""
        return sum(map(len, self.parts(with_history)))

    def parts(self, with_history: bool) -> tuple[str, str, str]:
        """Return label, text and history; with histories all labels and texts have one width, so that rows align."""
        if with_history and (self.history or self.peak):
            past = f" {self.peak:<{BINS}}" if self.peak else " " + spark(self.history, self.low, self.high)
            return f"{self.label:<{LABEL}}", f"{fitting(self.text, TEXT):>{TEXT}}", past
        return f"{self.label} ", f"{fitting(self.text, self.width):{'<' if self.left_aligned else '>'}{self.width}}", ""


def fitting(text: str, width: int) -> str:
    """Return the text, truncated if necessary; an ellipsis for a number that does not fit."""
    return "…" if len(text) > width and text[:1].isdecimal() else truncate(text, width)


def gap(with_history: bool) -> str:
    """Return the separator of two quantities."""
    return "  " if with_history else "   "


def history(readings: Sequence[events.Telemetry], key: str) -> tuple[float | None, ...]:
    """Return means over the last ten half seconds, oldest first; bins are aligned to half seconds, so that values are stable."""
    last = int(readings[-1].t / BIN_SECONDS) if readings else 0
    bins: list[list[float]] = [[] for _ in range(BINS)]
    for reading in reversed(readings):
        place = BINS - 1 - (last - int(reading.t / BIN_SECONDS))
        if place < 0:
            break
        found = getattr(reading, key)
        if found is not None:
            bins[min(place, BINS - 1)].append(found)
    return tuple(fmean(b) if b else None for b in bins)


def during(model: Model, run: Run, gpu: DeviceId | None = None) -> tuple[events.Telemetry, events.Telemetry] | None:
    """Return mean and maximum of the telemetry in the timed repetitions of an ended run, or in the complete run.

    None without samples. A sample that is an average counts only if its interval is within the run.
    """
    readings = model.readings.get(gpu or run.device, ()) if run.backend == "cuda" else model.telemetry
    whole = (run.started, run.finished or run.started)
    window = run.clean_window if run.clean_window and within(readings, *run.clean_window) else whole
    during_run = within(readings, *window)
    if not during_run or run.state == "running":
        return None
    columns = {key: averaged_within(readings, key, *window) for key in QUANTITIES}
    masks = [one.throttle for one in during_run if one.throttle is not None]
    throttle = reduce(or_, masks) if masks else None
    mean, peak = ({key: find(values) if values else None for key, values in columns.items()} for find in (fmean, max))
    return replace(during_run[-1], throttle=throttle, **mean), replace(during_run[-1], **peak)


def places(model: Model, run: Run | None = None) -> tuple[StripColumn, ...]:
    """Return the columns: telemetry of the GPU, of several GPUs, or of the host if there is no GPU.

    For an ended run these are mean and maximum during the run, on its device, if they were recorded.
    """
    if len(model.followed) > 1:
        return _of_several(model, run)
    found = during(model, run) if run is not None else None
    now, peak = found or (model.reading or events.Telemetry(t=0.0), None)
    host = model.gpu is None or bool(found and run is not None and run.backend == "cpu")
    # quantities without samples during the run are omitted, and so is the mean temperature
    left_out = {key for key, one in QUANTITIES.items() if found and (one.unit is CELSIUS or getattr(now, key) is None)}
    quantities = [(key, quantity) for key, quantity in default_quantities(model, host).items() if key not in left_out]
    columns = [place for key, quantity in quantities for place in _places(model, now, key, quantity, peak)]
    if run is not None and found is not None:
        columns.insert(0, StripColumn(f"run {run.id}", "mean", (), left_aligned=True, width=4, peak="↑ peak"))
    if not host:
        reasons = units.ABSENT if now.throttle is None else ", ".join(throttled(now.throttle)) or "none"
        columns.append(StripColumn("throttle", reasons, (), left_aligned=True, width=max(11, len(reasons))))
    return tuple(columns)


def _of_several(model: Model, run: Run | None = None) -> tuple[StripColumn, ...]:
    """Return a column for each quantity, with one number per GPU: of an ended run the means, else the last samples.

    A GPU without a value shows n/a; a mean that no GPU has is omitted. The indices of the GPUs are named unless they are
    0, 1, 2, ...
    """
    gpus = model.followed
    columns: list[StripColumn] = []
    if gpus != tuple(DeviceId("cuda", index) for index in range(len(gpus))):
        numbers = " ".join(map(str, gpus))
        columns.append(StripColumn("GPUs", numbers, (), left_aligned=True, width=len(numbers)))
    means = [found[0] for gpu in gpus if (found := during(model, run, gpu))] if run is not None and run.backend == "cuda" else []
    if run is not None and len(means) == len(gpus):
        columns.append(StripColumn(f"run {run.id}", "mean", (), left_aligned=True, width=4))
        shown = means
    else:
        shown = [model.readings[gpu][-1] for gpu in gpus]
    for key, quantity in default_quantities_of_several(model, gpus).items():
        values = [getattr(one, key) for one in shown]
        if shown is means and all(value is None for value in values):
            continue
        most, sign = _split(quantity, max(most_of(quantity, model, gpu) or quantity.about for gpu in gpus))
        text = f"{' '.join(f'{_split(quantity, value)[0]:>{len(most)}}' for value in values)} {sign}"
        columns.append(StripColumn(quantity.short or quantity.title, text, (), left_aligned=True, width=len(text)))
    slowed = [gpu for gpu, reading in zip(gpus, shown, strict=True) if throttled(reading.throttle)]
    reasons = f"GPU {', '.join(map(str, slowed))}" if slowed else "none"
    return (*columns, StripColumn("throttle", reasons, (), left_aligned=True, width=max(11, len(reasons))))


def _split(quantity: Quantity, value: float | None) -> tuple[str, str]:
    """Return number and unit of a value; traffic and memory have fixed units, so that the values of several GPUs compare."""
    factor, sign = {TRAFFIC: (1e9, "GB/s"), MEMORY: (2**30, "GiB")}.get(quantity.unit, (0, ""))
    if value is None:
        return units.ABSENT, sign
    if factor:
        return f"{value / factor:.0f}", sign
    number, _, sign = quantity.unit.text(value).rpartition(" ")
    return number, sign


def _places(
    model: Model, now: events.Telemetry, key: str, quantity: Quantity, peak: events.Telemetry | None
) -> list[StripColumn]:
    """Return the column of a quantity. Memory shows its used and total size; host memory also its share with the history."""
    value, most = getattr(now, key), most_of(quantity, model)
    past = (() if peak is not None else history(model.telemetry, key), quantity.least, most or quantity.about)
    highest = getattr(peak, key, None)
    if quantity.unit is not MEMORY:
        text = units.ABSENT if value is None else quantity.unit.text(value)
        above = f"↑ {quantity.unit.text(highest)}" if highest is not None else ""
        return [StripColumn(quantity.short or quantity.title, text, *past, width=quantity.unit.cells, peak=above)]
    whole = f"/{units.memory(most)}" if most else " GiB"
    used = units.ABSENT if value is None else units.digits(value / 2**30) + whole
    if not quantity.host:
        return [StripColumn(quantity.title, used, (), left_aligned=True, width=13)]
    share = units.ABSENT if value is None or not most else PERCENT.text(value / most)
    above = f"↑ {PERCENT.text(highest / most)}" if highest is not None and most else ""
    return [StripColumn("memory", share, *past, peak=above), StripColumn("used", used, (), left_aligned=True, width=14)]


def arranged(all_of: Sequence[StripColumn], width: int, rows: int) -> list[list[tuple[StripColumn, bool]]]:
    """Arrange the columns in lines of at most `width` cells, with histories if all columns then fit into `rows` lines."""
    lines: list[list[tuple[StripColumn, bool]]] = []
    for with_history in (True, False) if any(quantity.history or quantity.peak for quantity in all_of) else (False,):
        lines = [[]]
        used, between = 0, len(gap(with_history))
        for quantity in all_of:
            cells = between + quantity.cells(with_history)
            if lines[-1] and used + cells > width + between:
                lines.append([])
                used = 0
            used += cells
            lines[-1].append((quantity, with_history and bool(quantity.history or quantity.peak)))
        if len(lines) <= rows:
            return lines
    return lines[:rows]


class TelemetryStrip(Widget):
    """The strip, drawn line by line because it changes ten times a second."""

    DEFAULT_CSS = """
    TelemetryStrip { height: auto; max-height: 2; padding: 0 1; }
    TelemetryStrip .telemetry--label { color: $text-muted; }
    TelemetryStrip .telemetry--value { color: $foreground; }
    TelemetryStrip .telemetry--history { color: $primary; }
    """
    COMPONENT_CLASSES: ClassVar = {"telemetry--label", "telemetry--value", "telemetry--history"}

    def __init__(self) -> None:
        super().__init__()
        self._places = places(Model())

    def show(self, model: Model, run: Run | None = None) -> None:
        """Show the latest telemetry, or that of an ended run; redraw only after a change."""
        before, self._places = self._places, places(model, run)
        if self._places != before:
            self.refresh()
            if self._rows(self.size.width) != self.size.height:  # after a pending layout, which still has the old height
                self.call_after_refresh(self.refresh, layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._rows(width)

    def _rows(self, width: int) -> int:
        return len(arranged(self._places, width, 2 if self.app.size.height >= 24 else 1))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        rows = arranged(self._places, width, self.size.height)
        styles = [self.get_component_rich_style(f"telemetry--{part}") for part in ("label", "value", "history")]
        between = gap(any(with_history for row in rows for _, with_history in row))
        segments: list[Segment] = []
        for number, (place, with_history) in enumerate(rows[y] if y < len(rows) else ()):
            segments.append(Segment(between if number else "", styles[0]))
            segments += map(Segment, place.parts(with_history), styles)
        return Strip(segments).adjust_cell_length(width, self.rich_style)
