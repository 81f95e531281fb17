"""The time limit of a campaign and the runner of its experiments, for sweep and reproduce."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from math import inf

from fwtui.analysis.estimate import Expected, expect
from fwtui.common.errors import Refused
from fwtui.common.units import duration
from fwtui.experiment.experiment import Experiment, Settled
from fwtui.live.protocols import DRAIN_EVERY, SessionDriver, finish

MAX_SECONDS = 60.0  # limit for one repetition


class Queue:
    """The session and the remaining time for its runs, which counts down between `go()` and `hold()`."""

    def __init__(
        self,
        live: SessionDriver,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        most: float = MAX_SECONDS,
    ):
        """Prepare runs of at most `seconds` in all, and `most` seconds per repetition."""
        self.live = live
        self.seconds = seconds
        self._clock, self._most = clock, most
        self._spent = 0.0
        self._since: float | None = None

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

    def expect(self, experiment: Experiment) -> Expected:
        """Return the estimated time of a run, from the session's runs so far."""
        return expect(self.live.model, experiment)

    def refusal(self, experiment: Experiment) -> str:
        """Return the reason if there is not enough time, else ""."""
        expected, left = self.expect(experiment), self.left
        if expected.one > self._most:
            return f"expected to take {duration(expected.one)}, more than {self._most:.0f} s per repetition"
        if expected.total > left:
            return f"expected to take {duration(expected.total)}, and {duration(left)} of {duration(self.seconds)} are left"
        return ""

    def repeated(self, experiment: Settled, rule: Sequence[tuple[float, int]], within: float = inf) -> Settled:
        """Set the repetitions that `rule` gives for a run of this length, unless the user set them or they exceed `within` s."""
        one = self.expect(experiment).one
        often = experiment.measured(repeats=experiment.repeats or next(count for seconds, count in rule if one < seconds))
        return often if self.expect(often).total <= within else experiment

    def start(self, experiment: Settled) -> str:
        """Start a run; return the reason if it cannot run here, else ""."""
        try:
            self.live.start(experiment)
        except Refused as refusal:
            return str(refusal)
        return ""


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
