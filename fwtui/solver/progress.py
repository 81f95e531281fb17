"""How far a long answer is, on one line of a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from fwtui.common import units
from fwtui.common.signals import undone_by

_EVERY = 0.1  # seconds
_PATIENCE = 0.5  # seconds before anything is said


class Progress:
    """Says stage, share and time left on a terminal; says nothing elsewhere."""

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._shown = stream.isatty()
        self._stage = ""
        self._begun = self._last = 0.0
        self._written = False

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._stage = name
        self._begun = self._last = time.monotonic()
        with undone_by(self._wipe):
            try:
                yield
            finally:
                self._wipe()

    def _wipe(self) -> None:
        if self._written:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._written = False

    def tell(self, share: float) -> None:
        now = time.monotonic()
        if not self._shown or now - self._last < _EVERY or now - self._begun < _PATIENCE or share <= 0:
            return
        self._last, self._written = now, True
        left = (now - self._begun) * (1 - share) / share
        self._stream.write(f"\r\x1b[Kfwtui: {self._stage}: {units.percent(share)}, {units.duration(left)} left")
        self._stream.flush()
