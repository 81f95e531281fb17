"""The host's own readings, from psutil."""

from __future__ import annotations

from typing import Any

import psutil

from fwtui.machine.telemetry.bounds import count, scaled, share

LEAST_WINDOW = 0.05  # seconds; over less, CPU time is counted too coarsely to divide by
CLOCK_EVERY = 1.0  # seconds; on many cores asking is slow


class Host:
    """CPU utilisation since the last reading, memory in use, CPU clock (at most a second old)."""

    def __init__(self, now: float) -> None:
        psutil.cpu_percent()  # the first call only starts the window
        self._read_at = now
        self._clock_at: float | None = None
        self._clock: float | None = None

    def read(self, now: float) -> dict[str, Any]:
        """Fields of events.Telemetry; `now` in monotonic seconds."""
        utilisation = None
        if now - self._read_at >= LEAST_WINDOW:
            utilisation = share(psutil.cpu_percent())
            self._read_at = now
        if self._clock_at is None or now - self._clock_at >= CLOCK_EVERY:
            self._clock, self._clock_at = _clock_mhz(), now
        memory = psutil.virtual_memory()
        return {
            "cpu_utilisation": utilisation,
            "cpu_clock_mhz": self._clock,
            "host_memory_bytes": count(memory.total - memory.available),
        }


def _clock_mhz() -> float | None:
    try:
        frequency = psutil.cpu_freq()
    except (OSError, NotImplementedError, RuntimeError, AttributeError):  # psutil has no one way to say "unknown"
        return None
    return scaled(frequency.current, 1.0) or None if frequency is not None else None
