"""Compiled code inside a caller's process: one thread at a time, its cache in a folder of our own; and where the time goes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np

from fwtui.common.environment import cache_folder
from fwtui.engine.engine import Engine

# of a block, a power of two; in the simulator each is a thread of the host
THREADS = 4 if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else 256
BLOCKS = 1024  # at most, where a block has more than its own row to look at
_one_at_a_time = RLock()  # numba's simplest threading layer is not made for two callers


class Clock:
    """Seconds of wall-clock time by stage, without gaps; what launches take to compile or load something is "compile"."""

    compiling = 0.0  # by launches since the last lap of any clock

    def __init__(self, ago: float = 0.0):
        """It has run for so many seconds already."""
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter() - ago
        Clock.compiling = 0.0  # of earlier calls

    def lap(self, stage: str) -> None:
        """All since the last call was that stage, except for what compiling took."""
        now = time.perf_counter()
        self._add(stage, now - self._last - Clock.compiling)
        if Clock.compiling:
            self._add("compile", Clock.compiling)
        self._last, Clock.compiling = now, 0.0

    def take(self, stage: str, seconds: float) -> None:
        """Since the last call that stage took so many seconds, by another clock; the rest of the time is "prepare"."""
        self._add(stage, seconds)
        self._last += seconds
        self.lap("prepare")

    def _add(self, stage: str, seconds: float) -> None:
        # a device's own clock and this one may differ by less than either shows
        self.seconds[stage] = self.seconds.get(stage, 0.0) + max(0.0, seconds)


@contextmanager
def compiled() -> Iterator[None]:
    """What is decorated within is kept compiled in this program's folder, unless the caller named one."""
    import numba

    with _one_at_a_time:
        before = numba.config.CACHE_DIR  # type: ignore[attr-defined]  # made at run time
        numba.config.CACHE_DIR = before or str(cache_folder())  # type: ignore[attr-defined]
        try:
            yield
        finally:
            numba.config.CACHE_DIR = before  # type: ignore[attr-defined]


def launch(function: Any, grid: int | tuple[int, int], stream: Any, *given: Any) -> None:
    """The function on so many blocks, compiled or loaded before where it has not been for such types."""
    known, begin = len(getattr(function, "overloads", ())), time.perf_counter()
    function[grid, THREADS, stream](*given)
    if len(getattr(function, "overloads", ())) > known:
        Clock.compiling += time.perf_counter() - begin


def on_device(array: Any, engine: Engine) -> Any:
    """What is on the host, on the device; anything else as it is."""
    if not isinstance(array, np.ndarray):
        return array
    from kernels.numba_door.device import cuda

    return cuda.to_device(array, stream=engine.stream)


def on_host(array: Any, engine: Engine) -> np.ndarray:
    """What is on the device, on the host; anything else as it is."""
    if isinstance(array, np.ndarray):
        return array
    from kernels.numba_door.device import host_copy

    return host_copy(array, engine.stream)


def put(row: np.ndarray, to: Any, engine: Engine) -> None:
    """Copy a row to where `to` is."""
    if isinstance(to, np.ndarray):
        to[...] = row
    else:
        to.copy_to_device(row, stream=engine.stream)
        engine.synchronize()
