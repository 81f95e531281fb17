"""Where the time of an answer goes, stage by stage and without gaps."""

from __future__ import annotations

import time
from collections.abc import Mapping


class Clock:
    """Seconds of wall-clock time by stage; what a part tells of itself is kept, and the rest of its time is "prepare"."""

    def __init__(self, ago: float = 0.0):
        """It has run for so many seconds already."""
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter() - ago

    def lap(self, stage: str, compiling: float = 0.0) -> None:
        """All since the last call was that stage, but for the seconds of something compiled or loaded."""
        now = time.perf_counter()
        self._add(stage, now - self._last - compiling)
        if compiling:
            self._add("compile", compiling)
        self._last = now

    def take(self, told: Mapping[str, float]) -> None:
        """Since the last call there were these stages."""
        for stage, seconds in told.items():
            self._add(stage, seconds)
        self._last += sum(told.values())
        self.lap("prepare")

    def _add(self, stage: str, seconds: float) -> None:
        # a device's own clock and this one may differ by less than either shows
        self.seconds[stage] = self.seconds.get(stage, 0.0) + max(0.0, seconds)
