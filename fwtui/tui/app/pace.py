"""How often the application ticks, and when everything is searched for garbage."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from textual.app import App
from textual.timer import Timer

TICK_SECONDS, IDLE_TICK_SECONDS = 0.1, 1.0  # between two ticks; idle: while nothing runs and nothing plays
COLLECT_TICKS = 100  # between two looks whether there is much to free
COLLECT_FROM = 20  # partial collections since the last full one: next to none while nothing happens
COLLECT_REST = 200  # times as long as a full collection took, the next one waits: a long replay has many objects


class Pace:
    """The clock of the application, which is slower while nothing happens: an idle dashboard takes less than 1 % of a core."""

    def __init__(self, app: App[None], tick: Callable[[], None]):
        self._app = app
        self._tick = tick
        self._clock: Timer | None = None
        self._seconds = TICK_SECONDS  # between two ticks
        self._ticks = self._partial = 0  # so far, and partial collections before the last full one
        self.collect_ticks, self.collect_from = COLLECT_TICKS, 0.0  # between two looks, and from when on the next one may free

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
        """Free cycles of lines and removed widgets every few ticks if there may be many; Python itself does so once a minute."""
        self._ticks += 1
        if self._ticks % self.collect_ticks:
            return
        begun, partial = time.monotonic(), sum(generation["collections"] for generation in gc.get_stats()[:2])
        if partial >= self._partial + COLLECT_FROM and begun >= self.collect_from:
            gc.collect()
            self._partial, self.collect_from = partial, begun + COLLECT_REST * (time.monotonic() - begun)
