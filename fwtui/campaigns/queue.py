"""The time limit of a campaign and the runner of its experiments, for sweep, tune and reproduce."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from math import inf

from fwtui.analysis.estimate import RATES, Expected, expect
from fwtui.common.errors import Refused
from fwtui.common.units import duration
from fwtui.experiment.experiment import Experiment, Settled
from fwtui.live.protocols import DRAIN_EVERY, SessionDriver, finish
from fwtui.stream.run import Run

MAX_SECONDS = 60.0  # limit for one repetition


class Queue:
    """The session and the remaining time for its runs, which counts down between `go()` and `hold()`."""

    def __init__(
        self,
        live: SessionDriver,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        brief: bool = False,
        rates: Mapping[str, float] = RATES,
        earlier: Sequence[Run] = (),
        most: float = MAX_SECONDS,
    ):
        """Prepare runs of at most `seconds` in all, and `most` seconds per repetition.

        `brief`: measure only the median time; `rates`: relaxations/s of kernels that never ran, by backend; `earlier`: runs
        of other sessions."""
        self.live = live
        self.seconds = seconds
        self._clock, self._brief, self._rates, self._earlier = clock, brief, rates, earlier
        self._most = most
        self._spent = 0.0
        self._since: float | None = None
        self._number = 0  # number of the latest run

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
        """Return a queue with that share of the remaining time, which is already counting down."""
        shared = copy(self)
        shared.seconds, shared._spent, shared._since = part * self.left, 0.0, None
        return shared.go()

    def expect(self, experiment: Experiment) -> Expected:
        """Return the estimated time of a run, from the session's runs so far."""
        return expect(self.live.model, experiment, self._brief, self._rates, self._earlier)

    def refusal(self, experiment: Experiment, needed: float | None = None) -> str:
        """Return the reason if there is not enough time, else ""; `needed`: seconds, by default of one run."""
        expected, left = self.expect(experiment), self.left
        needed = expected.total if needed is None else needed
        if expected.one > self._most:
            return f"expected to take {duration(expected.one)}, more than {self._most:.0f} s per repetition"
        if needed > left:
            return f"expected to take {duration(needed)}, and {duration(left)} of {duration(self.seconds)} are left"
        return ""

    def repeated(self, experiment: Settled, rule: Sequence[tuple[float, int]], within: float = inf) -> Settled:
        """Set the repetitions that `rule` gives for a run of this length, unless the user set them or they exceed `within` s."""
        one = self.expect(experiment).one
        often = experiment.measured(repeats=experiment.repeats or next(count for seconds, count in rule if one < seconds))
        return often if self.expect(often).total <= within else experiment

    def start(self, experiment: Settled) -> str:
        """Start a run; return the reason if it cannot run here, else ""."""
        try:
            self._number = self.live.start(experiment, self._brief)
        except Refused as refusal:
            return str(refusal)
        return ""

    def run(self, experiment: Settled) -> tuple[Run | None, str]:
        """Run an experiment to its end; return the run, and the reason if it has no result."""
        if why := self.start(experiment):
            return None, why
        finish(self.live)
        run = self.live.model.runs.get(self._number)
        if run is not None and run.state == "done":
            return run, ""
        message = run.done.message if run is not None and run.done is not None else ""
        return run, message or "the worker died"


class Runner:
    """Starts a campaign's experiments one after the other, each once the session is free."""

    def __init__(self, queue: Queue, experiments: Iterator[Settled], skip: Callable[[Settled, str], object]):
        """Run `experiments`; `skip` receives the reasons of skipped ones."""
        self._queue, self._experiments, self._skip = queue, experiments, skip

    def tick(self) -> bool:
        """Start the next experiment for which there is time, without blocking; return False once none is left."""
        if self._queue.live.busy:
            return True
        for experiment in self._experiments:
            why = self._queue.refusal(experiment) or self._queue.start(experiment)
            if not why:
                return True
            self._skip(experiment, why)
        return False

    def run(self) -> None:
        """Run all experiments to their end."""
        while self.tick():
            finish(self._queue.live)
            time.sleep(DRAIN_EVERY)
