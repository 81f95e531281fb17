"""Benchmarks kernels and other packages side by side: one graph, one worker, turns A B C A B C (a machine drifts), verified."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import median

from msgspec.structs import replace

from fwtui.analysis.estimate import ran_before
from fwtui.campaigns.queue import Queue
from fwtui.common.errors import Refused
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment, Settled, changed, kernel_named
from fwtui.live.protocols import finish
from fwtui.live.session import Live
from fwtui.machine.tuned import config_of
from fwtui.stream.run import Run
from fwtui_kernels.peers import RUNGS, installed, missing, peers

TURN_SECONDS, MOST_PASSES = 1.0, 50  # of one turn
PASSES = (*((TURN_SECONDS / count, count) for count in range(MOST_PASSES, 1, -1)), (inf, 1))
SCOUT = {"cpu": 256, "cuda": 1024}  # size of a test pass for a kernel that has not run yet
UNKNOWN_RATE = {"cpu": 5e8, "cuda": 1e10}  # relaxations/s, up to that size


@dataclass
class BenchEntrant:
    """One kernel or peer at one size, with its turns so far."""

    experiment: Settled
    runs: list[Run] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.experiment.kernel

    @property
    def passes(self) -> list[float]:
        return [seconds for run in self.runs for seconds in run.passes]

    @property
    def seconds(self) -> float | None:
        """The median of all passes of all turns; None if a turn was not verified."""
        return median(self.passes) if self.right and self.passes else None

    @property
    def spread(self) -> float | None:
        """Half the range of the turns' medians, relative; None with fewer than two turns."""
        turns = [run.seconds for run in self.runs if run.seconds]
        return (max(turns) - min(turns)) / 2 / median(turns) if len(turns) > 1 else None

    @property
    def right(self) -> bool:
        return bool(self.runs) and all(run.state == "done" and run.verified is True for run in self.runs)

    @property
    def run(self) -> Run:
        """All turns as one run: the last one, or the first incorrect one, with the figures of all turns."""
        run = next((run for run in self.runs if not (run.verified and run.state == "done")), self.runs[-1])
        assert run.done is not None
        done = replace(run.done, median=self.seconds, spread=self.spread, count=len(self.passes))
        return replace(run, done=done)


@dataclass
class Heat:
    """One size and number type: the entrants, and those left out with the reason."""

    n: int
    dtype: str
    entrants: list[BenchEntrant] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    cut_short: bool = False  # the time ran out before all turns

    @property
    def best_peer(self) -> BenchEntrant | None:
        """The fastest other package; None if none was right."""
        there = [e for e in self.entrants if is_peer(e.name) and e.seconds]
        return min(there, key=lambda e: e.seconds or 0.0, default=None)

    def ratio(self, entrant: BenchEntrant) -> float | None:
        """The speed-up over the best peer; None if either has no time."""
        best = self.best_peer
        return best.seconds / entrant.seconds if best is not None and best.seconds and entrant.seconds else None

    @property
    def ranking(self) -> list[BenchEntrant]:
        """Each entrant that has had a turn, fastest first; those without a time last."""
        return sorted((e for e in self.entrants if e.runs), key=lambda e: (e.seconds is None, e.seconds or 0.0))


def is_peer(name: str) -> bool:
    return name in RUNGS or name in peers()


class Bench:
    """Runs heats on a live session within a time budget."""

    def __init__(self, live: Live, rounds: int, seconds: float, say: Callable[[str], None]):
        self._live = live
        self._rounds = rounds
        self._queue = Queue(live, seconds, brief=True, rates=UNKNOWN_RATE, advice="; give --seconds more").go()
        self._say = say
        self.heats: list[Heat] = []

    def measure_limits(self, devices: Iterable[DeviceId]) -> None:
        """Get the limits of these devices: stored ones, else measured now, before anything else runs."""
        for device in devices:
            if not self._live.tell_limits(device):
                self._say(f"measuring {device.noun}'s limit")
                self._live.measure_limits(device)
                finish(self._live)
                limits = self._live.model.measured.get(device)
                if limits is None or not limits.complete or limits.note:
                    why = limits.note if limits is not None else "the worker died"
                    self._say(f"{device.noun}'s limit is not known: {why}")

    def heat(self, experiments: Sequence[Experiment], share: float) -> Heat:
        """Run all possible entrants in turns, within that share of the remaining time."""
        heat = Heat(experiments[0].n, experiments[0].dtype)
        self.heats.append(heat)
        queue = self._queue.share(share)
        self._admit(heat, experiments, queue)
        for turn in range(self._rounds):
            for entrant in list(heat.entrants):
                if turn and queue.refusal(entrant.experiment.measured(repeats=1)):
                    heat.cut_short = True
                    return heat
                what = f"{entrant.name} ({config_of(entrant.experiment).words}), n {heat.n} {heat.dtype}"
                self._say(f"round {turn + 1} of {self._rounds}: {what.replace(' (-)', '')}")
                run, why = self._queue.run(self._queue.repeated(entrant.experiment, PASSES))
                entrant.runs += [run] if run is not None else []
                if why:
                    heat.entrants.remove(entrant)
                    heat.left_out.append((entrant.name, why))
        return heat

    def _admit(self, heat: Heat, experiments: Sequence[Experiment], queue: Queue) -> None:
        """The entrants that can run here, are installed and have enough time: shortest first, so a slow one excludes none."""
        able: list[BenchEntrant] = []
        for experiment in experiments:
            try:
                if experiment.kernel in peers() and not installed(experiment.kernel):
                    raise Refused(missing(experiment.kernel))
                entrant = BenchEntrant(self._live.settled(experiment))
            except Refused as refusal:
                heat.left_out.append((experiment.kernel, str(refusal)))
                continue
            if any(config_of(entrant.experiment) == config_of(other.experiment) for other in able):
                continue
            if why := self._scouted(entrant):
                heat.left_out.append((entrant.name, why))
            else:
                able.append(entrant)
        reserved = 0.0
        for entrant in sorted(able, key=self._needed):
            needed = self._needed(entrant)
            if why := queue.refusal(entrant.experiment, needed, reserved):
                heat.left_out.append((entrant.name, why))
            else:
                reserved += needed
                heat.entrants.append(entrant)
        heat.entrants.sort(key=able.index)

    def _scouted(self, entrant: BenchEntrant) -> str:
        """Run one small pass of a kernel that has not run yet, to predict its time; return why it could not."""
        n = SCOUT[kernel_named(entrant.name).backend]
        if entrant.experiment.n <= n or ran_before(self._live.model, entrant.experiment):
            return ""
        self._say(f"how fast is {entrant.name}? n {n} {entrant.experiment.dtype}")
        return self._queue.run(self._live.settled(changed(entrant.experiment, n=n, repeats=1)))[1]

    def _needed(self, entrant: BenchEntrant) -> float:
        """The expected seconds of all its turns; only the first one compiles."""
        turn = self._queue.expect(self._queue.repeated(entrant.experiment, PASSES))
        return turn.compiling + (turn.total - turn.compiling) * self._rounds
