"""One run in the worker: what is asked and of whom, and its events with the time and the run's number filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fwtui.engine.engine import Check, Engine
from fwtui.experiment.experiment import Experiment
from fwtui.graphs.graph import GraphInput
from fwtui.stream import events
from kernels.plan import Kernel, Shape


@dataclass(frozen=True, slots=True)
class Job:
    """Where a run goes on, and where it says what happens to it. `now` is the session's clock in seconds."""

    run: int
    experiment: Experiment
    kernel: Kernel
    engine: Engine
    check: Check  # raises Cancelled
    emit: Callable[[events.Event], None]
    now: Callable[[], float]

    def tell(self, kind: type[events.Event], **facts: Any) -> None:
        """An event of that kind, now."""
        self.emit(kind(t=self.now(), run=self.run, **facts))  # type: ignore[call-arg]

    @contextmanager
    def stage(self, name: str, size: int | None = None) -> Iterator[None]:
        """A part of the run that is told when it begins and, with its seconds and bytes, when it is over on the device too."""
        begin = self.now()
        self.tell(events.Stage, name=name)
        yield
        self.engine.synchronize()
        self.tell(events.Stage, name=name, seconds=self.now() - begin, bytes=size)

    def shape(self, graph: GraphInput) -> Shape:
        return self.experiment.shape(graph.n, nonnegative=graph.low is None or graph.low >= 0)
