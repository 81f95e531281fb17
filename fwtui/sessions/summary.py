"""What is in a session, counted while it streams by."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from fwtui.sessions.reader import Condition, Session
from fwtui.stream.events import Device, Event, Header, Planned, RunDone, RunStarted, Verdict


@dataclass(slots=True)
class Summary:
    """A session in a few words; kernels and sizes in order of appearance, each once."""

    header: Header
    condition: Condition
    runs: int = 0
    kernels: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)  # vertices
    best_rate: float | None = None  # relaxations per second, of verified runs only
    gpu: str = ""


def summarise(session: Session) -> Summary:
    """Read all of an open session, in little memory."""
    summary = Summary(session.header, session.condition())
    kernels: dict[str, None] = {}
    sizes: dict[int, None] = {}
    rates = _Rates()
    for item in session.lines():
        summary.condition.see(item)
        if isinstance(item, Exception):
            continue
        event = item.event
        if isinstance(event, RunStarted):
            summary.runs += 1
            kernels[event.experiment.kernel] = None
        elif isinstance(event, Planned):
            sizes[event.n] = None
        elif isinstance(event, Device) and event.name:
            summary.gpu = event.name
        if isinstance(event, Event):
            rates.see(event)
    summary.kernels = list(kernels)
    summary.sizes = list(sizes)
    summary.best_rate = rates.best
    return summary


class _Rates:
    """The best rate so far; only a verified run has one, and its verdict may come before or after its times."""

    def __init__(self) -> None:
        self.best: float | None = None
        self._vertices: dict[int, int] = {}
        self._rates: dict[int, float] = {}
        self._verified: set[int] = set()

    def see(self, event: Event) -> None:
        if isinstance(event, RunStarted):  # a second run of that number starts from nothing
            self._vertices.pop(event.run, None)
            self._rates.pop(event.run, None)
            self._verified.discard(event.run)
        elif isinstance(event, Planned):
            self._vertices[event.run] = event.n
        elif isinstance(event, Verdict) and event.verdict == "verified":
            self._verified.add(event.run)
            self._consider(event.run)
        elif isinstance(event, RunDone) and event.median and event.run in self._vertices:
            rate = float(self._vertices[event.run]) ** 3 / event.median
            if math.isfinite(rate):
                self._rates[event.run] = rate
                self._consider(event.run)

    def _consider(self, run: int) -> None:
        if run in self._verified and run in self._rates:
            self.best = max(self.best or 0.0, self._rates[run])
