"""What is in a session, counted while it streams by."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from fwtui.common.errors import Corrupt
from fwtui.sessions.reader import Condition, Session
from fwtui.stream.events import Device, Header, Planned, RunDone, RunStarted, Verdict


@dataclass(slots=True)
class Summary:
    """A session in a few words; kernels and sizes in order of appearance, each once."""

    header: Header
    condition: Condition
    runs: int = 0
    kernels: dict[str, None] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)  # vertices
    best_rate: float | None = None  # relaxations per second, of verified runs only
    gpu: str = ""


def summarise(session: Session) -> Summary:
    """Read all of an open session, in little memory."""
    summary = Summary(session.header, Condition(session.torn))
    vertices: dict[int, int] = {}  # by run
    rates: dict[int, float] = {}
    verified: set[int] = set()
    for item in session.lines():
        summary.condition.see(item)
        if isinstance(item, Corrupt):
            continue
        match item.event:
            case RunStarted(run=run, experiment=experiment):
                summary.runs += 1
                summary.kernels[experiment.kernel] = None
                vertices.pop(run, None)  # a second run of that number starts from nothing
                rates.pop(run, None)
                verified.discard(run)
            case Planned(run=run, n=n):
                summary.sizes[n] = vertices[run] = n
            case Device(name=name) if name:
                summary.gpu = name
            case Verdict(run=run, verdict="verified"):
                verified.add(run)
            case RunDone(run=run, median=median) if median and run in vertices:
                rate = float(vertices[run]) ** 3 / median
                if math.isfinite(rate):
                    rates[run] = rate
        event = item.event  # a verdict may come before or after its run's times
        if isinstance(event, Verdict | RunDone) and event.run in verified and event.run in rates:
            summary.best_rate = max(summary.best_rate or 0.0, rates[event.run])
    return summary
