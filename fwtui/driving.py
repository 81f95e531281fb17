"""Driving a live session: what whoever runs experiments one after another needs of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from fwtui.experiment import Experiment
from fwtui.model import Model

DRAIN_EVERY = 0.02  # seconds


class Driven(Protocol):
    """What every driver needs of fwtui.live.Live."""

    model: Model

    @property
    def busy(self) -> bool: ...
    def start(self, experiment: Experiment) -> int: ...
    def mark(self, text: str) -> None: ...


class Drained(Protocol):
    """What waiting needs of fwtui.live.Live."""

    @property
    def busy(self) -> bool: ...
    def drain(self) -> int: ...


def finish(live: Drained, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Wait until the run that is going is over, and everything it said was taken; `meanwhile()` is called now and then."""
    while live.busy or live.drain():
        live.drain()
        meanwhile()
        if live.busy:
            time.sleep(DRAIN_EVERY)
