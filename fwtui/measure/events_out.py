"""Events of one run, with the time and the run's number filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fwtui.stream import events


class Teller:
    """Where a run says what happens to it. `now` is the session's clock in seconds."""

    def __init__(self, run: int, emit: Callable[[events.Event], None], now: Callable[[], float]):
        self.run = run
        self.now = now
        self._emit = emit

    def tell(self, kind: type[events.Event], **facts: Any) -> None:
        """An event of that kind, now."""
        self._emit(kind(t=self.now(), run=self.run, **facts))  # type: ignore[call-arg]

    @contextmanager
    def stage(self, name: str, size: int | None = None) -> Iterator[None]:
        """A part of the run that is told when it begins and, with its seconds and bytes, when it is over."""
        begin = self.now()
        self.tell(events.Stage, name=name)
        yield
        self.tell(events.Stage, name=name, seconds=self.now() - begin, bytes=size)
