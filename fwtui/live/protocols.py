"""Protocols of a live session, and a loop that waits for its runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

import msgspec

from fwtui.experiment.experiment import Experiment, Settled
from fwtui.sessions.recorder import Recorder
from fwtui.stream import codec, events
from fwtui.stream.codec import Line
from fwtui.stream.model import Model

DRAIN_EVERY = 0.02  # seconds


class SessionDriver(Protocol):
    """The part of fwtui.live.session.Live that every driver needs."""

    model: Model

    @property
    def busy(self) -> bool: ...
    def drain(self) -> int: ...
    def settled(self, experiment: Experiment) -> Settled: ...
    def start(self, experiment: Settled) -> int: ...
    def cancel(self) -> None: ...
    def mark(self, text: str) -> None: ...


class RunSession(SessionDriver, Protocol):
    """The part of fwtui.live.session.Live for running several experiments."""

    recorder: Recorder | None

    @property
    def now(self) -> float: ...
    def count(self, run: int) -> None: ...


def recording_preface(live: RunSession, title: str, going: Sequence[Line] = ()) -> tuple[events.Header, list[Line], float]:
    """Return the first lines of a recording that begins now, and the session time at its time 0.

    A recording that begins mid-session has the current date, or the start of the run that is `going`.
    """
    header, model = live.model.header, live.model
    assert header is not None
    began = going[0].event.t if going else live.now if model.index > 1 else 0.0  # only the header so far
    if began:
        since = datetime.now(UTC) - timedelta(seconds=live.now - began)
        header = msgspec.structs.replace(header, created=since.isoformat(timespec="seconds"))
    lines = [codec.as_line(event) for event in (*model.devices.values(), *model.measured.values())]
    return msgspec.structs.replace(header, title=title), [*lines, *going], began


def current_run_lines(before: list[Line], line: Line, current: int | None) -> list[Line]:
    """Return the current run's lines including this one; none once the run has ended."""
    match line.event:
        case events.RunStarted():
            return [line]
        case events.RunDone() | events.Fault(run=int()):
            return []
        case event if before and getattr(event, "run", None) == current:
            before.append(line)
    return before


def finish(live: SessionDriver, on_wait: Callable[[], object] = lambda: None, enough: Callable[[], bool] = lambda: False) -> None:
    """Wait until the run has ended and all its events are taken, or until `enough()`; call `on_wait()` regularly."""
    while (live.busy or live.drain()) and not enough():
        live.drain()
        on_wait()
        if live.busy:
            time.sleep(DRAIN_EVERY)
