"""The read-only dashboard, for example in a lecture: its screens, and its placeholder for a live session."""

from __future__ import annotations

from typing import Any, NoReturn

from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Settled
from fwtui.live.samplers import OFF
from fwtui.sessions.autosave import Keeper
from fwtui.sessions.recorder import Recorder
from fwtui.stream.model import Model
from fwtui.tui.actions import READ_ONLY

PLACES = ("learn", "sessions")  # the screens that show something without runs


class NoEngine:
    """A session in which nothing runs, and nothing can be started."""

    def __init__(self) -> None:
        self.model = Model()
        self.experiments: dict[int, Settled] = {}
        self.recorder: Recorder | None = None
        self.keeper: Keeper | None = None
        self.busy = False
        self.now = 0.0
        self.samples = OFF

    def drain(self) -> int:
        return 0

    def cancel(self) -> None: ...

    def close(self, reason: str = "closed") -> None: ...

    def _refuse(self, *arguments: Any, **named: Any) -> NoReturn:
        raise Refused(READ_ONLY)

    start = settled = mark = count = measure_limits = name = _refuse
