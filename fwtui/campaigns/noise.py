"""Other work on the machine: how much there is, which runs it disturbed, and their repetition once it is quiet."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from statistics import fmean
from typing import Protocol

from fwtui.analysis.disturbances import TAKEN, disturbances
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Settled, identity
from fwtui.live.protocols import RunSession
from fwtui.stream import events
from fwtui.stream.model import Model, within
from fwtui.stream.run import Run

LOOK = 5.0  # seconds: what is quiet for less may only be between two bursts
MOST = 50  # of the latest runs are looked at


class Repeatable(RunSession, Protocol):
    """A live session that knows what was asked for."""

    experiments: dict[int, Settled]


def other_work(model: Model) -> float | None:
    """The share of the CPU that other programs used in the last seconds; None if nothing was read for so long."""
    since = model.t - LOOK
    if not model.of_host or model.of_host[0].t > since:
        return None
    shares = [share for one in within(model.of_host, since, model.t) if (share := one.other_cpu_utilisation) is not None]
    return fmean(shares) if shares else None


def noisy_runs(model: Model) -> tuple[Run, ...]:
    """Of each experiment that was disturbed by other work each time it ran, the latest run; the oldest of them first."""
    latest: dict[tuple[object, ...], Run] = {}
    quiet = set[tuple[object, ...]]()
    for run in islice(reversed(model.runs.values()), MOST):
        if run.counts:
            key = run.device, *identity(run.experiment)
            latest.setdefault(key, run)
            if all(one.word != "noisy" for one in disturbances(run, model.evidence(run))):
                quiet.add(key)
    return tuple(run for key, run in reversed(latest.items()) if key not in quiet)


class Repeats:
    """Call `tick()` often: it starts the next of these runs once the machine is quiet."""

    def __init__(self, source: Repeatable, runs: Mapping[int, Settled]):
        self.source = source
        self.waiting = dict(runs)

    def tick(self, busy: bool) -> None:
        """Start the next run if nothing else is running, here or on the machine."""
        others = other_work(self.source.model)
        if busy or not self.waiting or others is None or others > TAKEN:
            return
        number = next(iter(self.waiting))
        try:
            self.source.start(self.waiting.pop(number))
        except Refused as refusal:
            words = f"run {number} is not repeated: {refusal}"
            self.source.tell(events.Notice(t=self.source.now, text=words, level="warning"))
