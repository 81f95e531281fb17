"""What the dashboard itself costs: measured, and shown on one line on request."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from textual.content import Content

from fwtui.common import units
from fwtui.stream.model import Model
from fwtui.tui.widgets.drawn import MUTED, Drawn, Piece, line, longest

WINDOW = 1.0  # seconds over which this process is looked at
SAMPLED = 3.0  # seconds of telemetry that are looked at


class DashboardCost(NamedTuple):
    """Seconds and shares; None if nothing was painted, or nothing read."""

    frames: float  # per second
    per_frame: float | None  # processor time of this process for each painted frame, whatever it was spent on
    core: float  # processor time / time
    reading: float | None  # seconds of one telemetry reading, in the sampler's process
    readings: float  # per second


class Meter:
    """Counts frames and processor time; free while it is not shown."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, processor: Callable[[], float] = time.process_time):
        self.shown = False
        self._clock = clock
        self._processor = processor
        self.frames = 0
        self._since: tuple[float, float, int] | None = None
        self._last: tuple[float, float | None, float] | None = None

    def frame(self) -> None:
        """Something was painted."""
        self.frames += 1

    def read(self, model: Model) -> DashboardCost | None:
        """The cost over the last second or so; None until one has passed since it was first asked for."""
        now = (self._clock(), self._processor(), self.frames)
        if self._since is None or now[0] - self._since[0] > 3 * WINDOW:  # it was not shown for a while
            self._since, self._last = now, None
        seconds, busy, frames = (new - old for new, old in zip(now, self._since, strict=True))
        if seconds >= WINDOW:
            self._since = now
            self._last = (frames / seconds, busy / frames if frames else None, busy / seconds)
        return None if self._last is None else DashboardCost(*self._last, *sampling(model))


def sampling(model: Model) -> tuple[float | None, float]:
    """Mean seconds of one reading and readings per second, at the end of the session as far as it has come."""
    last = model.of_host[-1].t if model.of_host else 0.0
    recent = [r for r in model.of_host[-64:] if r.t > last - SAMPLED]
    costs = [r.cost_seconds for r in recent if r.cost_seconds is not None]
    span = recent[-1].t - recent[0].t if recent else 0.0
    return (sum(costs) / len(costs) if costs else None), ((len(recent) - 1) / span if span > 0 else 0.0)


# at the beginning, after a share, and between the two; and whether rates are told
WORDS = (
    ("own cost  screen ", " of a core", "   telemetry ", True),
    ("own cost ", "", "  telemetry ", True),
    ("", "", "  telemetry ", False),
)


class CostLine(Drawn[DashboardCost | None]):
    DEFAULT_CSS = "CostLine { height: 1; padding: 0 1; display: none; }"
    NOTHING = (line(("own cost  measuring…", MUTED)),)

    def draw(self, subject: DashboardCost, width: int) -> Sequence[Content]:
        return [longest((_cost_line(subject, *words) for words in WORDS), width)]


def _cost_line(c: DashboardCost, begin: str, core: str, between: str, rates: bool) -> Content:
    """Fixed widths: nothing jumps when a figure changes."""
    pieces: list[Piece] = [(begin, MUTED), f"{units.duration(c.per_frame):>7}", ("/frame", MUTED)]
    pieces += [f"  {c.frames:4.1f}", (" frames/s", MUTED)] * rates
    pieces += [f"{100 * c.core:6.1f} %", (core, MUTED), (between, MUTED)]
    if c.reading is None:
        return line(*pieces, units.ABSENT)
    pieces += [f"{units.duration(c.reading):>7}", ("/reading", MUTED), *[f"  {c.readings:4.1f}", ("/s", MUTED)] * rates]
    return line(*pieces, f"{100 * c.reading * c.readings:6.1f} %", (core, MUTED))
