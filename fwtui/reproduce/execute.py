"""Runs a preset on a live session, within its time; whatever is left out is named."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from fwtui import counters, events
from fwtui.errors import Refused
from fwtui.experiment import Experiment, changed
from fwtui.model import Model
from fwtui.reproduce.preset import LeftOut, Preset, Scale
from fwtui.reproduce.runs import LEFT_OUT, MOST_SECONDS, TOO_LONG, Missing, Results, label, same
from fwtui.run import Run
from fwtui.sessions.recorder import Recorder
from kernels import registry

FULL_CHECK = {"cpu": 512, "cuda": 2048}  # vertices, as everywhere
DRAIN_EVERY = 0.02
LAUNCH_BOUND = 1024  # below this size a GPU's time grows more slowly than n^3
CPU_RATE, GPU_RATE = 1e9, 2e11  # relaxations/s, for a kernel of which nothing is known yet
FIRST_COMPILE = 2.0
STAGES = ("graph", "read", "allocate", "load", "reorder", "unload")
REFERENCE = 1e-9  # seconds of SciPy's for each relaxation, once for each graph


class Expected(NamedTuple):
    """What a run will take."""

    repeats: int
    one: float  # seconds of one pass
    total: float


class Session(Protocol):
    """What running a preset needs of fwtui.live.Live."""

    model: Model
    recorder: Recorder | None

    @property
    def now(self) -> float: ...
    @property
    def busy(self) -> bool: ...
    def start(self, experiment: Experiment) -> int: ...
    def drain(self) -> int: ...
    def mark(self, text: str) -> None: ...
    def tell(self, event: events.Event) -> None: ...
    def stop_recording(self, reason: str = "closed") -> None: ...
    def without_sampler(self) -> AbstractContextManager[None]: ...


class Performer:
    """Runs one preset from its first experiment to its last. What the session ran before does not count."""

    def __init__(self, live: Session, preset: Preset, scale: Scale, limit: float, say: Callable[[str], None]):
        self._live = live
        self._preset = preset
        self._scale = scale
        self._limit = limit
        self._say = say
        self.results = Results(live.model, since=live.now)
        self._begin = time.monotonic()
        self._left_out: set[str] = set()
        self._waits = False  # for what is not ready yet
        self._wanted: Iterator[Experiment | LeftOut | None] | None = None

    def perform(self) -> Results:
        """Everything, one run after the other; what could not be run is a marker of the session."""
        while self.advance():
            if self._waits:
                time.sleep(DRAIN_EVERY)
            finish(self._live)
        return self.results

    def advance(self) -> bool:
        """Start the next experiment that can be run, if one is ready; False when none is left. Only while nothing is going."""
        if self._wanted is None:
            self._live.mark(f"reproduce {self._preset.name}{' --quick' if self._scale.quick else ''}")
            self._wanted = self._preset.runs(self.results, self._scale)
        for wanted in self._wanted:
            self._waits = wanted is None
            if wanted is None:
                return True
            if isinstance(wanted, LeftOut):
                self._leave_out(*wanted)
            elif self._begins(wanted):
                return True
        return False

    def count(self, results: Results) -> None:
        """Hardware counters for the claims that can use them: profiled apart, so that nothing timed is touched."""
        for make, most in self._preset.counted:
            try:
                n = next((n for n in reversed(results.sizes(make)) if n <= most), None)
            except Missing as missing:
                self._say(f"no counters of {make(0).kernel}: {missing}")
                continue
            if n is None:
                self._say(f"no counters of {make(0).kernel}: it was run only above n = {most}")
                continue
            run = results.find(make(n))
            self._say(f"counters of {label(make(n))}")
            with self._live.without_sampler():
                found = counters.measure(run.experiment)
            if isinstance(found, str):
                return self._say(f"no counters: {found}")
            for op, values in found.items():
                self._live.tell(events.Counters(t=self._live.now, run=run.id, op=op, values=dict(values)))

    def _begins(self, wanted: Experiment) -> bool:
        kernel = registry().get(wanted.kernel)
        if kernel is None:
            return self._leave_out(wanted.kernel, "kernel missing")
        if kernel.backend == "cuda" and not self._scale.gpu and wanted.device != "simulator":
            return self._leave_out(wanted.kernel, "needs a GPU")
        if not wanted.file and self._has(wanted):
            return False
        full = wanted.n <= FULL_CHECK[kernel.backend]
        wanted = changed(wanted, verify=wanted.verify if full else "sample")
        expected = expect(self._live, wanted)
        spent = time.monotonic() - self._begin
        if expected.one > MOST_SECONDS:
            return self._leave_out(label(wanted), f"expected to take {expected.one:.0f} s, {TOO_LONG}")
        if spent + expected.total > self._limit:
            why = (
                f"expected to take {expected.total:.0f} s, and {max(0, self._limit - spent):.0f} of {self._limit:.0f} s are left"
            )
            return self._leave_out(label(wanted), why)
        self._say(f"{label(wanted)}, about {expected.total:.0f} s")
        try:
            self._live.start(changed(wanted, repeats=expected.repeats))
        except Refused as refusal:
            return self._leave_out(label(wanted), str(refusal))
        return True

    def _has(self, wanted: Experiment) -> bool:
        """Whether exactly that was run already: claims share runs."""
        try:
            self.results.find(wanted)
        except Missing:
            return False
        return True

    def _leave_out(self, what: str, why: str) -> bool:
        if what not in self._left_out:
            self._left_out.add(what)
            self._live.mark(f"{LEFT_OUT}{what}: {why}")
            self._say(f"{LEFT_OUT}{what}: {why}")
        return False


def finish(live: Session) -> None:
    """Wait until the run that is going is over."""
    while live.busy or live.drain():
        live.drain()
        if live.busy:
            time.sleep(DRAIN_EVERY)


def expect(live: Session, wanted: Experiment) -> Expected:
    """The run's length, from the rate at the nearest smaller size of the most similar run, and n^2 for all but computing."""
    kernel = registry()[wanted.kernel]
    runs = [r for r in live.model.runs.values() if r.state == "done" and r.seconds and r.n]
    similar = [r for r in runs if r.experiment.kernel == wanted.kernel]
    exact = [r for r in similar if same(r, wanted, kernel)]
    one = _scaled(_nearest(exact or similar, wanted.n), wanted.n, kernel.backend)
    if one is None:
        one = wanted.n**3 / (CPU_RATE if kernel.backend == "cpu" else GPU_RATE)
    repeats = 20 if one < 0.01 else 5 if one < 0.3 else 3 if one < 1 else 2
    around = FIRST_COMPILE * (not exact)
    if runs:
        largest = max(runs, key=lambda r: (r.n, r.id))
        around += sum(largest.stage_seconds(name) or 0 for name in STAGES) * max(1.0, wanted.n / largest.n) ** 2
    return Expected(repeats, one, around + _checking(runs, wanted) + (repeats + 2) * one)  # and a warm-up and a phase pass


def _checking(runs: list[Run], wanted: Experiment) -> float:
    """Seconds of the check: as long as that of the largest sampled run, by n^2, and SciPy's own time for a graph's first."""
    sampled = _nearest([r for r in runs if r.experiment.verify == "sample"], wanted.n)
    seconds = (sampled.stage_seconds("verify") or 0.0) * max(1.0, wanted.n / sampled.n) ** 2 if sampled is not None else 0.0
    known = any(r.experiment.graph == wanted.graph and r.experiment.verify != "sample" for r in runs)
    return seconds if wanted.verify == "sample" or known else seconds + REFERENCE * wanted.n**3


def _nearest(runs: list[Run], n: int) -> Run | None:
    below = [r for r in runs if r.n <= n]
    return max(below, key=lambda r: (r.n, r.id)) if below else min(runs, key=lambda r: r.n, default=None)


def _scaled(run: Run | None, n: int, backend: str) -> float | None:
    if run is None or not run.seconds:
        return None
    bound = LAUNCH_BOUND if backend == "cuda" else 0
    slow = max(1.0, min(n, bound) / run.n) ** 2
    return run.seconds * slow * (n / max(run.n, min(n, bound))) ** 3
