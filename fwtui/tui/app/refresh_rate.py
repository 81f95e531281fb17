"""How often the application ticks, and when everything is searched for garbage."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from textual.app import App
from textual.timer import Timer

TICK_SECONDS, IDLE_TICK_SECONDS = 0.1, 1.0  # between two ticks; idle: while nothing runs and nothing plays
COLLECT_SECONDS = 10.0  # between two looks whether there is much to free
COLLECT_FROM = 20  # partial collections since the last full one: next to none while nothing happens
COLLECT_REST = 200  # times as long as a full collection took, the next one waits: a long replay has many objects


class RefreshRate:
    """The clock of the application, which is slower while nothing happens: an idle dashboard takes less than 1 % of a core."""

    def __init__(self, app: App[None], tick: Callable[[], None]):
        self._app = app
        self._tick = tick
        self._clock: Timer | None = None
        self._seconds = TICK_SECONDS  # between two ticks
        self._partial = 0  # collections before the last full one
        self.collect_from = 0.0  # when to look again, on a monotonic clock

    def start(self) -> None:
        if self._clock is None:
            self._clock = self._app.set_interval(self._seconds, self._tick)

    def adapt(self, going: bool) -> None:
        """Tick slowly unless something is going on."""
        seconds = TICK_SECONDS if going else IDLE_TICK_SECONDS
        if self._clock is not None and seconds != self._seconds:
            self._clock.stop()
            self._seconds = seconds
            self._clock = self._app.set_interval(seconds, self._tick)

    def collect(self) -> None:
        """Free cycles of lines and removed widgets every few seconds if there may be many; Python itself rarely does."""
        begun = time.monotonic()
        if begun < self.collect_from:
            return
        partial = sum(generation["collections"] for generation in gc.get_stats()[:2])
        if partial >= self._partial + COLLECT_FROM:
            gc.collect()
            self._partial = partial
        self.collect_from = begun + max(COLLECT_SECONDS, COLLECT_REST * (time.monotonic() - begun))
