"""A run in the worker: its request, its engine, and its events with time and run number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from fwtui.engine.engine import Check, Engine
from fwtui.experiment.experiment import Experiment
from fwtui.stream import events
from fwtui.stream.run import WAIT
from fwtui_kernels.plan import Kernel

PROGRESS_SECONDS = 0.1  # seconds


@dataclass(frozen=True, slots=True)
class RunContext:
    """A run's engine and its outlet for events. `now` is the session's clock in seconds."""

    run: int
    experiment: Experiment
    kernel: Kernel
    engine: Engine
    check: Check  # raises Cancelled
    emit: Callable[[events.Event], None]
    now: Callable[[], float]

    def emit_event(self, kind: type[events.Event], **facts: Any) -> None:
        """Emit an event of that kind with the current time."""
        self.emit(kind(t=self.now(), run=self.run, **facts))  # type: ignore[call-arg]

    @contextmanager
    def stage(self, name: str, size: int | None = None) -> Iterator[None]:
        """Report the start of a stage, and its seconds and bytes once the device has finished it."""
        begin = self.now()
        self.emit_event(events.Stage, name=name)
        yield
        self.engine.synchronize()
        self.emit_event(events.Stage, name=name, seconds=self.now() - begin, bytes=size)

    def progress(self, stage: str) -> Callable[[float], None]:
        """Return a function that reports the finished share of a stage at most ten times a second, and raises Cancelled."""
        last = monotonic()

        def report_share(share: float) -> None:
            nonlocal last
            self.check()
            if monotonic() - last >= PROGRESS_SECONDS:
                last = monotonic()
                self.emit_event(events.Progress, stage=stage, done=min(1.0, share))

        return report_share

    @property
    def phases(self) -> Mapping[str, str]:
        """The titles of the phases by key: the kernel's, and the wait for other ranks."""
        return {**self.kernel.phases, **({WAIT: "waiting"} if self.engine.ranks else {})}
