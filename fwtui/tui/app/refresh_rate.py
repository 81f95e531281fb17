"""The intervals of the application's ticks and of full garbage collections."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from textual.app import App
from textual.timer import Timer

TICK_SECONDS, IDLE_TICK_SECONDS = 0.1, 1.0  # idle: nothing runs and nothing plays
COLLECT_SECONDS = 10.0  # between two checks for garbage
COLLECT_FROM = 20  # partial collections since the last full one; almost none happen while the dashboard is idle
COLLECT_REST = 200  # minimum pause in durations of the last full collection: a long replay has many objects


class RefreshRate:
    """The clock of the application, slower while nothing happens: an idle dashboard takes less than 1 % of a core."""

    def __init__(self, app: App[None], tick: Callable[[], None]):
        self._app = app
        self._tick = tick
        self._clock: Timer | None = None
        self._seconds = TICK_SECONDS  # between two ticks
        self._partial = _partial_collections()  # before the last full one, or before the application
        self.collect_from = 0.0  # time of the next check, on a monotonic clock

    def start(self) -> None:
        if self._clock is None:
            self._clock = self._app.set_interval(self._seconds, self._tick)

    def adapt(self, going: bool) -> None:
        """Tick slowly unless something happens."""
        seconds = TICK_SECONDS if going else IDLE_TICK_SECONDS
        if self._clock is not None and seconds != self._seconds:
            self._clock.stop()
            self._seconds = seconds
            self._clock = self._app.set_interval(seconds, self._tick)

    def collect(self) -> None:
        """Free cycles of lines and removed widgets every few seconds, if there may be many; Python rarely collects them."""
        begun = time.monotonic()
        if begun < self.collect_from:
            return
        if (partial := _partial_collections()) >= self._partial + COLLECT_FROM:
            gc.collect()
            self._partial = partial
        self.collect_from = begun + max(COLLECT_SECONDS, COLLECT_REST * (time.monotonic() - begun))


def _partial_collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats()[:2])
