"""Runs a document's experiments on a live session within its time limit; reports what is left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from math import inf

from fwtui.campaigns.queue import Queue
from fwtui.campaigns.reproduce import presets
from fwtui.campaigns.reproduce.preset import BEGINS, LeftOut, Preset, RunScale
from fwtui.campaigns.reproduce.results import LEFT_OUT, Missing, Results, label, needed
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import FULL_CHECK, Experiment, as_it_ran, changed
from fwtui.live import counters
from fwtui.live.protocols import DRAIN_EVERY, RunSession, finish
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui_kernels import registry

RECORDED_HZ = 1.0  # readings of telemetry
ENDS = "end of reproduce "  # a marker after the runs of a document
PASSES = ((0.01, 20), (0.3, 5), (1.0, 3), (inf, 2))


class Performer:
    """Runs one preset from its first experiment to its last. Earlier runs of the session do not count."""

    def __init__(self, live: RunSession, preset: Preset, scale: RunScale, limit: float, say: Callable[[str], None]):
        self._live = live
        self._preset = preset
        self._scale = scale
        self._queue = Queue(live, limit).go()
        self._say = say
        self.results = Results(live.model, since=live.now)
        self._left_out: set[str] = set()
        self._waits = False  # to wait for an experiment that is not ready yet
        self._experiments: Iterator[Experiment | LeftOut | None] | None = None

    def perform(self) -> Results:
        """Run everything, one run after the other; a marker records what could not run."""
        while self.advance():
            if self._waits:
                time.sleep(DRAIN_EVERY)
            finish(self._live)
        return self.results

    def advance(self) -> bool:
        """Start the next possible experiment, if one is ready; False when none is left. Call it only between runs."""
        if self._experiments is None:
            self._live.mark(self._preset.heading(self._scale))
            self._experiments = self._preset.runs(self.results, self._scale)
        for experiment in self._experiments:
            self._waits = experiment is None
            if experiment is None:
                return True
            if isinstance(experiment, LeftOut):
                self._leave_out(*experiment)
            elif self._begins(experiment):
                return True
        return False

    def count(self, results: Results) -> None:
        """Hardware counters for the claims that can use them, from a separate profile, not the timed runs."""
        for make, most in self._preset.counted:
            try:
                n = needed([n for n in results.sizes(make) if n <= most], f"it was run only above n = {most}")[-1]
            except Missing as missing:
                self._say(f"no counters of {make(0).kernel}: {missing}")
                continue
            run = results.find(make(n))
            self._say(f"counters of {label(make(n))}")
            if why := counters.tell(self._live, run.id, as_it_ran(run.experiment, run.device)):
                return self._say(f"no counters: {why}")

    def _begins(self, experiment: Experiment) -> bool:
        kernel = registry().get(experiment.kernel)
        if kernel is None:
            return self._leave_out(experiment.kernel, "kernel missing")
        if kernel.backend == "cuda" and not self._scale.gpu and experiment.device != "simulator":
            return self._leave_out(experiment.kernel, "needs a GPU")
        if not experiment.file and self.results.find_or_none(experiment) is not None:
            return False  # claims share runs
        full = experiment.n <= FULL_CHECK[kernel.backend]
        try:
            settled = self._live.settled(changed(experiment, verify=experiment.verify if full else "sample"))
        except Refused as refusal:
            return self._leave_out(label(experiment), str(refusal))
        settled = self._queue.repeated(settled, PASSES)
        if not (why := self._queue.refusal(settled)):
            self._say(f"{label(experiment)}, about {self._queue.expect(settled).total:.0f} s")
            why = self._queue.start(settled)
        return self._leave_out(label(experiment), why) if why else True

    def _leave_out(self, what: str, why: str) -> bool:
        if what not in self._left_out:
            self._left_out.add(what)
            self._live.mark(f"{LEFT_OUT}{what}: {why}")
            self._say(f"{LEFT_OUT}{what}: {why}")
        return False


class Campaign:
    """A document's experiments, run one after the other without blocking a screen.

    Starts its own recording if there is none; call `tick()` until it is over, then `close()`.
    Earlier runs do not count, so that its recording holds everything that its answers are based on.
    """

    def __init__(self, live: RunSession, name: str, scale: RunScale, say: Callable[[str], None]):
        """Raises Refused if the recording cannot begin."""
        self.name = name
        self._live = live
        self._preset = presets()[name]
        self._performer = Performer(live, self._preset, scale, self._preset.limit(scale.quick, alone=True), say)
        self.cancelled = False
        self._recorder = None
        if live.recorder is None:
            self._recorder = live.record(title=self._preset.heading(scale), hz=RECORDED_HZ)

    def tick(self) -> bool:
        """Start the next run if none is in progress and it was not cancelled; False when all is over. Never blocks."""
        return self._live.busy or (not self.cancelled and self._performer.advance())

    def cancel(self) -> None:
        """Start no further run; the current one must be cancelled too, and is recorded to its end."""
        self.cancelled = True

    def close(self) -> None:
        """End the recording that it began, and report its path."""
        self._live.mark(f"{ENDS}{self.name}")
        recorder, self._recorder = self._recorder, None
        if recorder is not None and self._live.recorder is recorder:
            self._live.stop_recording()
            self._live.tell(events.Notice(t=self._live.now, text=f"recorded {recorder.path}"))


def results_of(model: Model, name: str, others: Sequence[Model] = ()) -> Results:
    """A session's runs of a document: those of its last campaign, or all if there was none."""
    begun = [m for m in model.markers if m.text.startswith((BEGINS, ENDS))]
    last = next((i for i, m in reversed([*enumerate(begun)]) if m.text.removeprefix(BEGINS).split(" ")[0] == name), None)
    if last is None:
        return Results(model, others)
    return Results(model, others, begun[last].t, begun[last + 1].t if last + 1 < len(begun) else inf)
