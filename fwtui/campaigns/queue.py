"""Runs on a live session, one after another within a time limit: shared by tune, sweep and reproduce."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from math import inf

from fwtui.analysis.estimate import RATES, Expected, expect
from fwtui.common.errors import Refused
from fwtui.common.units import duration
from fwtui.experiment.experiment import Experiment, Settled
from fwtui.live.protocols import Driven, finish
from fwtui.stream.run import Run

MOST_SECONDS = 60.0  # for one pass
TOO_LONG = " s a pass"  # ends the reason for leaving out a longer run, in recordings too


class Queue:
    """The session and the remaining time for its runs, which counts down between `go()` and `hold()`."""

    def __init__(
        self,
        live: Driven,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        brief: bool = False,
        rates: Mapping[str, float] = RATES,
        earlier: Sequence[Run] = (),
        most: float = MOST_SECONDS,
        advice: str = "",
    ):
        """`brief`: only each run's total; `rates`: relaxations/s of kernels that never ran, by backend;
        `earlier`: runs of other sessions; `most`: seconds that one pass may take; `advice`: ends a refusal for lack of time.
        """
        self.live = live
        self.seconds = seconds
        self._clock, self._brief, self._rates, self._earlier = clock, brief, rates, earlier
        self._most, self._advice = most, advice
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
        """Start the countdown."""
        self.hold()
        self._since = self._clock()
        return self

    def hold(self) -> None:
        """Stop the countdown."""
        self._spent, self._since = self.spent, None

    def share(self, part: float) -> Queue:
        """That share of the remaining time, as a separate queue that is already counting down."""
        shared = copy(self)
        shared.seconds, shared._spent, shared._since = part * self.left, 0.0, None
        return shared.go()

    def expect(self, experiment: Experiment) -> Expected:
        """The estimated time of a run, from the session's runs so far."""
        return expect(self.live.model, experiment, self._brief, self._rates, self._earlier)

    def refusal(self, experiment: Experiment, needed: float | None = None, reserved: float = 0.0) -> str:
        """Why there is no time for it, or nothing; `needed`: seconds, by default of one run; `reserved`: seconds for others."""
        expected, left = self.expect(experiment), max(0.0, self.left - reserved)
        needed = expected.total if needed is None else needed
        if expected.one > self._most:
            return f"expected to take {duration(expected.one)}, more than {self._most:.0f}{TOO_LONG}"
        if needed > left:
            return f"expected to take {duration(needed)}, and {duration(left)} of {duration(self.seconds)} are left{self._advice}"
        return ""

    def repeated(self, experiment: Settled, rule: Sequence[tuple[float, int]], within: float = inf) -> Settled:
        """With the rule's number of passes for their length, unless set by the user or longer in total than `within`."""
        one = self.expect(experiment).one
        often = experiment.measured(repeats=experiment.repeats or next(count for seconds, count in rule if one < seconds))
        return often if self.expect(often).total <= within else experiment

    def start(self, experiment: Settled) -> str:
        """Start a run; return why it cannot run here, or nothing."""
        try:
            self._number = self.live.start(experiment, self._brief)
        except Refused as refusal:
            return str(refusal)
        return ""

    def run(self, experiment: Settled) -> tuple[Run | None, str]:
        """Run it to its end; return the run, and why it has no result, or nothing."""
        if why := self.start(experiment):
            return None, why
        finish(self.live)
        run = self.live.model.runs.get(self._number)
        if run is not None and run.state == "done":
            return run, ""
        message = run.done.message if run is not None and run.done is not None else ""
        return run, message or "the worker died"
