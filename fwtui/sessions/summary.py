"""What is in a session, folded while it streams by."""

from __future__ import annotations

from dataclasses import dataclass

from fwtui.sessions.reader import Condition, Session
from fwtui.stream.codec import Line
from fwtui.stream.events import Device, Header, Planned, RunDone, RunStarted, Verdict
from fwtui.stream.model import State

_FOLDED = (Device, RunStarted, Planned, Verdict, RunDone)  # few of any session: the rest need not be held in memory


@dataclass(frozen=True, slots=True)
class Summary:
    """A session in a few words; kernels and sizes in order of appearance, each once."""

    header: Header
    condition: Condition
    runs: int
    kernels: tuple[str, ...]
    sizes: tuple[int, ...]  # vertices
    best_rate: float | None  # relaxations per second, of verified runs only
    gpu: str


def summarise(session: Session) -> Summary:
    """Read all of an open session, in little memory."""
    condition = Condition(session.torn)
    state = State()
    for item in session.lines():
        condition.see(item)
        if isinstance(item, Line) and isinstance(item.event, _FOLDED):
            state = state.after(item.event)
    runs = state.runs.values()
    return Summary(
        header=session.header,
        condition=condition,
        runs=len(runs),
        kernels=tuple(dict.fromkeys(run.experiment.kernel for run in runs)),
        sizes=tuple(dict.fromkeys(run.n for run in runs if run.padded)),
        best_rate=max((run.rate for run in runs if run.verified and run.rate), default=None),
        gpu=next((device.name for device in [*state.devices.values()][::-1] if device.name), ""),
    )
