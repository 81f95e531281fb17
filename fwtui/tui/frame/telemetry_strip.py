"""The telemetry strip: one fixed place for each quantity, drawn cell by cell from the Model alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from fwtui.common import units
from fwtui.common.text import shortened
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.throttle import throttled

BINS = 10  # of the little history
BIN_SECONDS = 0.5
BARS = "▁▂▃▄▅▆▇█"
LABEL, TEXT = 9, 8  # cells of a label with a space and of a text, where histories are shown


class Quantity(NamedTuple):
    """One place on the strip; `low` and `high` are the fixed ends of its history's scale."""

    label: str
    text: str
    history: tuple[float | None, ...]
    low: float = 0.0
    high: float = 1.0
    words: bool = False  # words begin at the left, numbers end at the right
    width: int = 8  # of the text

    def cells(self, with_history: bool) -> int:
        """How wide it is; with histories all labels and texts share one width, so that rows line up."""
        if with_history and self.history:
            return LABEL + TEXT + 1 + len(self.history)
        return len(self.label) + 1 + self.width

    def parts(self, with_history: bool) -> tuple[str, str, str]:
        """Label, text, history."""
        if with_history and self.history:
            past = " " + spark(self.history, self.low, self.high)
            return f"{self.label:<{LABEL}}", f"{fitting(self.text, TEXT):>{TEXT}}", past
        return (
            f"{self.label} ",
            f"{fitting(self.text, self.width):{'<' if self.words else '>'}{self.width}}",
            "",
        )


def fitting(text: str, width: int) -> str:
    """The text if it fits; a number cut short would be another number."""
    return "…" if len(text) > width and text[:1].isdecimal() else shortened(text, width)


def gap(with_history: bool) -> str:
    """What separates two quantities; a history is a separator too."""
    return "  " if with_history else "   "


Value = Callable[[events.Telemetry], float | None]


def spark(history: Sequence[float | None], low: float, high: float) -> str:
    """One block per bin; a bin in which nothing was read stays empty."""
    span = high - low
    cells = ""
    for value in history:
        if value is None or not math.isfinite(value) or span <= 0:
            cells += " "
        else:
            share = min(1.0, max(0.0, (value - low) / span))
            cells += BARS[min(len(BARS) - 1, int(share * len(BARS)))]
    return cells


def history(readings: Sequence[events.Telemetry], value: Value) -> tuple[float | None, ...]:
    """Means over the last ten half seconds, oldest first; bins begin at whole half seconds, so they do not wobble."""
    if not readings:
        return (None,) * BINS
    last = int(readings[-1].t / BIN_SECONDS)
    bins: list[list[float]] = [[] for _ in range(BINS)]
    for reading in reversed(readings):
        place = BINS - 1 - (last - int(reading.t / BIN_SECONDS))
        if place < 0:
            break
        found = value(reading)
        if found is not None:
            bins[min(place, BINS - 1)].append(found)
    return tuple(fmean(b) if b else None for b in bins)


def quantities(model: Model) -> tuple[Quantity, ...]:
    """What the strip shows: the GPU's telemetry, or the host's where there is no GPU."""
    now = model.reading or events.Telemetry(t=0.0)
    return _gpu(model, now) if model.gpu is not None else _host(model, now)


def _gpu(model: Model, now: events.Telemetry) -> tuple[Quantity, ...]:
    gpu = model.gpu or events.Device(t=0.0)
    past = model.telemetry
    memory = now.gpu_memory_bytes
    held = units.ABSENT if memory is None else units.digits(memory / 2**30)
    total = f"/{units.memory(gpu.memory_bytes)}" if gpu.memory_bytes and memory is not None else ""
    reasons = throttled(now.throttle)
    throttle = units.ABSENT if now.throttle is None else (", ".join(reasons) or "none")
    return (
        Quantity(
            "power",
            _whole(now.gpu_power_watts, "W"),
            history(past, lambda r: r.gpu_power_watts),
            0,
            gpu.power_limit_watts or 700,
            width=6,
        ),
        Quantity(
            "SM clock", _whole(now.gpu_clock_mhz, "MHz"), history(past, lambda r: r.gpu_clock_mhz), 0, gpu.max_clock_mhz or 2000
        ),
        Quantity("temp", _whole(now.gpu_temperature, "°C"), history(past, lambda r: r.gpu_temperature), 20, 95, width=6),
        Quantity("util", _share(now.gpu_utilisation), history(past, lambda r: r.gpu_utilisation), width=5),
        Quantity("SM occ", _share(now.sm_occupancy), history(past, lambda r: r.sm_occupancy), width=5),
        Quantity("DRAM", _share(now.dram_utilisation), history(past, lambda r: r.dram_utilisation), width=5),
        Quantity("memory", held + total, (), words=True, width=13),
        Quantity("throttle", throttle, (), words=True, width=max(11, len(throttle))),
    )


def _host(model: Model, now: events.Telemetry) -> tuple[Quantity, ...]:
    past = model.telemetry
    memory = model.header.machine.memory_bytes if model.header is not None else None
    held = now.host_memory_bytes
    text = units.ABSENT if held is None else units.digits(held / 2**30) + (f"/{units.memory(memory)}" if memory else " GiB")
    return (
        Quantity("CPU", _share(now.cpu_utilisation), history(past, lambda r: r.cpu_utilisation), width=5),
        Quantity("clock", _whole(now.cpu_clock_mhz, "MHz"), history(past, lambda r: r.cpu_clock_mhz), 0, 5000),
        Quantity(
            "memory",
            _share(held / memory if held is not None and memory else None),
            history(past, lambda r: r.host_memory_bytes),
            0,
            memory or 2**36,
        ),
        Quantity("used", text, (), words=True, width=14),
    )


def _whole(value: float | None, unit: str) -> str:
    return units.ABSENT if value is None else f"{value:.0f} {unit}"


def _share(value: float | None) -> str:
    return units.ABSENT if value is None else f"{100 * value:.0f} %"


def arranged(all_of: Sequence[Quantity], width: int, rows: int) -> list[list[tuple[Quantity, bool]]]:
    """Quantities in rows of at most `width` cells, each with or without its history: with it if that fits into the rows."""
    for with_history in (True, False):
        lines: list[list[tuple[Quantity, bool]]] = [[]]
        used = 0
        between = len(gap(with_history))
        for quantity in all_of:
            cells = quantity.cells(with_history)
            if lines[-1] and used + between + cells > width:
                lines.append([])
                used = 0
            used += cells + (between if lines[-1] else 0)
            lines[-1].append((quantity, with_history and bool(quantity.history)))
        if len(lines) <= rows:
            return lines
    return lines[:rows]


class TelemetryStrip(Widget):
    """Drawn by lines: it changes ten times a second."""

    DEFAULT_CSS = """
    TelemetryStrip { height: auto; max-height: 2; padding: 0 1; }
    TelemetryStrip .telemetry--label { color: $text-muted; }
    TelemetryStrip .telemetry--value { color: $foreground; }
    TelemetryStrip .telemetry--history { color: $primary; }
    """
    COMPONENT_CLASSES: ClassVar = {"telemetry--label", "telemetry--value", "telemetry--history"}

    def __init__(self, *, id: str | None = None):
        super().__init__(id=id)
        self._quantities = quantities(Model())
        self._seen: tuple[object, ...] = ()

    def show(self, model: Model) -> None:
        """Show the model's latest telemetry; nothing is done where it is what was shown."""
        seen = (model.reading, model.device)
        if seen[0] is not self._seen_at(0) or seen[1] is not self._seen_at(1):
            self._seen = seen
            before = len(self._quantities)
            self._quantities = quantities(model)
            self.refresh(layout=len(self._quantities) != before)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(arranged(self._quantities, width, 2 if viewport.height >= 24 else 1))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        rows = arranged(self._quantities, width, self.size.height)
        if y >= len(rows):
            return Strip.blank(width, self.rich_style)
        label, value, past = (self._part(name) for name in ("label", "value", "history"))
        segments: list[Segment] = []
        between = gap(any(with_history for row in rows for _, with_history in row))
        for place, (quantity, with_history) in enumerate(rows[y]):
            segments.append(Segment(between if place else "", label))
            segments += [Segment(*pair) for pair in zip(quantity.parts(with_history), (label, value, past), strict=True)]
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    def _part(self, name: str) -> Style:
        return self.get_component_rich_style(f"telemetry--{name}")

    def _seen_at(self, place: int) -> object:
        return self._seen[place] if self._seen else self
