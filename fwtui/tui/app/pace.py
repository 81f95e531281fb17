"""How often the application ticks, and how often a tick updates the screens."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.app import App
from textual.timer import Timer

TICKS_PER_SECOND = 10
QUIET_SECONDS = 0.5  # between two updates while nothing runs and nothing plays
AWAY_AFTER, AWAY_SECONDS = 60.0, 5.0  # the same once the terminal has been without focus for so long
AWAY_TICK_SECONDS = 0.5  # between two ticks then


class Pace:
    def __init__(self, app: App[None], tick: Callable[[], None]):
        self._app = app
        self._tick = tick
        self._clock: Timer | None = None
        self._seconds = 0.0  # between two ticks
        self._left_alone: float | None = None  # since when the terminal has no focus
        self._looked = 0.0  # when the screens were updated last

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
        return self._left_alone is not None and time.monotonic() > self._left_alone + AWAY_AFTER

    def look_due(self, going: bool) -> bool:
        """Whether the screens are updated in this tick: less often while nothing happens, rarely in a terminal without focus."""
        now = time.monotonic()
        if not going and now < self._looked + (AWAY_SECONDS if self._away else QUIET_SECONDS):
            return False
        self._looked = now
        return True

    def left(self) -> None:
        """The terminal has lost the focus."""
        self._left_alone = time.monotonic()

    def returned(self) -> None:
        """It has it again, and the next tick updates the screens."""
        self._left_alone, self._looked = None, 0.0
