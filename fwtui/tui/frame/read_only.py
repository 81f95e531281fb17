"""The dashboard that only shows, as a lecture room gets it: its places, and what it has instead of a live session."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NoReturn

from fwtui.common.errors import Refused
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment, Settled
from fwtui.sessions.autosave import Keeper, Taken
from fwtui.sessions.recorder import Recorder
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.actions import READ_ONLY

PLACES = ("learn", "sessions")  # those of a session without runs that show something


class NoEngine:
    """What such a dashboard has instead of a live session: nothing runs, and nothing can be started."""

    def __init__(self) -> None:
        self.model = Model()
        self.asked: dict[int, Settled] = {}
        self.recorder: Recorder | None = None
        self.keeper: Keeper | None = None
        self.busy = False
        self.now = 0.0

    def drain(self) -> int:
        return 0

    def cancel(self) -> None: ...

    def stop_recording(self, reason: str = "closed") -> None: ...

    def close(self, reason: str = "closed") -> None: ...

    def whole(self, run: Run) -> Run:
        return run

    def without_sampler(self) -> AbstractContextManager[None]:
        return nullcontext()

    def start(self, experiment: Experiment, brief: bool = False) -> NoReturn:
        raise Refused(READ_ONLY)

    def settled(self, experiment: Experiment) -> NoReturn:
        raise Refused(READ_ONLY)

    def tell(self, event: events.Event) -> NoReturn:
        raise Refused(READ_ONLY)

    def mark(self, text: str) -> NoReturn:
        raise Refused(READ_ONLY)

    def count(self, run: int) -> NoReturn:
        raise Refused(READ_ONLY)

    def answer(self, run: int) -> NoReturn:
        raise Refused(READ_ONLY)

    def measure_limits(self, device: DeviceId) -> NoReturn:
        raise Refused(READ_ONLY)

    def name(self, title: str) -> Path:
        raise Refused(READ_ONLY)

    def go_on(self, taken: Taken) -> NoReturn:
        raise Refused(READ_ONLY)
