"""How often the application ticks, how often a tick updates the screens, and when everything is searched for garbage."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from textual.app import App
from textual.timer import Timer

TICKS_PER_SECOND = 10
QUIET_SECONDS = 0.5  # between two updates while nothing runs and nothing plays
AWAY_AFTER, AWAY_SECONDS = 60.0, 5.0  # the same once the terminal has been without focus for so long
AWAY_TICK_SECONDS = 0.5  # between two ticks then
COLLECT_TICKS = 100  # between two looks whether there is much to free
COLLECT_FROM = 20  # partial collections since the last full one: next to none while nothing happens
COLLECT_REST = 200  # times as long as a full collection took, the next one waits: a long replay has many objects


class Pace:
    """`now` is a monotonic clock."""

    def __init__(self, app: App[None], tick: Callable[[], None], now: Callable[[], float] = time.monotonic):
        self._app = app
        self._tick = tick
        self._now = now
        self._clock: Timer | None = None
        self._seconds = 0.0  # between two ticks
        self._left_alone: float | None = None  # since when the terminal has no focus
        self._looked = 0.0  # when the screens were updated last
        self._ticks = self._partial = 0  # so far, and partial collections before the last full one
        self.collect_ticks, self.collect_from = COLLECT_TICKS, 0.0  # when there is a look, and from when on the next one may free

    def start(self) -> None:
        if self._clock is None:
            self._every(1 / TICKS_PER_SECOND)

    def _every(self, seconds: float) -> None:
        if self._clock is not None:
            self._clock.stop()
        self._seconds = seconds
        self._clock = self._app.set_interval(seconds, self._tick)

    def adapt(self, going: bool) -> None:
        """Tick more slowly while nothing happens and nobody looks."""
        seconds = AWAY_TICK_SECONDS if self._away and not going else 1 / TICKS_PER_SECOND
        if self._clock is not None and seconds != self._seconds:
            self._every(seconds)

    @property
    def _away(self) -> bool:
        return self._left_alone is not None and self._now() > self._left_alone + AWAY_AFTER

    def look_due(self, going: bool) -> bool:
        """Whether the screens are updated in this tick: less often while nothing happens, rarely in a terminal without focus."""
        now = self._now()
        if not going and now < self._looked + (AWAY_SECONDS if self._away else QUIET_SECONDS):
            return False
        self._looked = now
        return True

    def lost_focus(self) -> None:
        """The terminal has lost the focus."""
        self._left_alone = self._now()

    def returned(self) -> None:
        """It has it again, and the next tick updates the screens."""
        self._left_alone, self._looked = None, 0.0

    def collect(self) -> None:
        """Free cycles of lines and removed widgets every few ticks, if there may be many; by itself it comes once a minute."""
        self._ticks += 1
        if self._ticks % self.collect_ticks:
            return
        begun, partial = self._now(), sum(generation["collections"] for generation in gc.get_stats()[:2])
        if partial >= self._partial + COLLECT_FROM and begun >= self.collect_from:
            gc.collect()
            self._partial, self.collect_from = partial, begun + COLLECT_REST * (self._now() - begun)
