"""Runs on a live session, one after another and within a time: what bench, tune, sweep and reproduce share."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from fwtui.analysis.estimate import RATES, Expected, expect
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment
from fwtui.live.protocols import Driven, finish
from fwtui.stream.run import Run


class Queue:
    """The session, and what is left of the time for its runs; it passes between `go()` and `hold()`."""

    def __init__(
        self,
        live: Driven,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        brief: bool = False,
        rates: Mapping[str, float] = RATES,
    ):
        """`brief`: of each run only what its total needs; `rates`: relaxations/s of kernels that never ran, by backend."""
        self.live = live
        self.seconds = seconds
        self._clock, self._brief, self._rates = clock, brief, rates
        self._spent = 0.0
        self._since: float | None = None
        self._number = 0  # of the latest run

    @property
    def going(self) -> bool:
        return self._since is not None

    @property
    def spent(self) -> float:
        return self._spent + (self._clock() - self._since if self._since is not None else 0.0)

    @property
    def left(self) -> float:
        return max(0.0, self.seconds - self.spent)

    def go(self) -> Queue:
        """Let time pass from now on."""
        self.hold()
        self._since = self._clock()
        return self

    def hold(self) -> None:
        """No time passes from now on."""
        self._spent, self._since = self.spent, None

    def share(self, part: float) -> Queue:
        """That part of what is left, as a queue of its own that goes already."""
        return Queue(self.live, part * self.left, self._clock, self._brief, self._rates).go()

    def expect(self, wanted: Experiment) -> Expected:
        """What a run would take, by the session's runs so far."""
        return expect(self.live.model, wanted, self._brief, self._rates)

    def start(self, wanted: Experiment) -> str:
        """Start a run; why it cannot run here, or nothing."""
        try:
            self._number = self.live.start(wanted, self._brief)
        except Refused as refusal:
            return str(refusal)
        return ""

    def run(self, wanted: Experiment) -> tuple[Run | None, str]:
        """Run it to its end; the run, and why it did not come to one, or nothing."""
        if why := self.start(wanted):
            return None, why
        finish(self.live)
        run = self.live.model.runs.get(self._number)
        if run is not None and run.state == "done":
            return run, ""
        told = run.done.message if run is not None and run.done is not None else ""
        return run, told or "the worker died"
