"""When the garbage collector looks at everything: a long replay has many objects, and a full look stops the screen."""

from __future__ import annotations

import gc
import time

COLLECT_FROM = 20  # partial collections since the last full one: next to none while nothing happens
COLLECT_REST = 200  # times as long as a full collection took, the next one waits


class Collector:
    def __init__(self) -> None:
        self._partial = 0  # partial collections before the last full one
        self.next_at = 0.0  # monotonic time from which the next one may come

    def collect(self) -> None:
        """Free cycles of lines and removed widgets, which by itself comes once a minute, if there may be many and it is time."""
        begun, partial = time.monotonic(), sum(generation["collections"] for generation in gc.get_stats()[:2])
        if partial >= self._partial + COLLECT_FROM and begun >= self.next_at:
            gc.collect()
            self._partial, self.next_at = partial, begun + COLLECT_REST * (time.monotonic() - begun)
