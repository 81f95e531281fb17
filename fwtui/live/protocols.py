"""Driving a live session: what a program that runs experiments one after another needs of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from fwtui.experiment.experiment import Experiment
from fwtui.sessions.recorder import Recorder
from fwtui.stream import events
from fwtui.stream.model import Model

DRAIN_EVERY = 0.02  # seconds


class Driven(Protocol):
    """What every driver needs of fwtui.live.session.Live."""

    model: Model

    @property
    def busy(self) -> bool: ...
    def drain(self) -> int: ...
    def start(self, experiment: Experiment, brief: bool = False) -> int: ...
    def cancel(self) -> None: ...
    def mark(self, text: str) -> None: ...


class Session(Driven, Protocol):
    """What running several experiments needs of fwtui.live.session.Live."""

    recorder: Recorder | None

    @property
    def now(self) -> float: ...
    def tell(self, event: events.Event) -> None: ...
    def stop_recording(self, reason: str = "closed") -> None: ...
    def without_sampler(self) -> AbstractContextManager[None]: ...


def finish(live: Driven, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Wait until the run that is going is over, and everything it said was taken; `meanwhile()` is called now and then."""
    while live.busy or live.drain():
        live.drain()
        meanwhile()
        if live.busy:
            time.sleep(DRAIN_EVERY)
