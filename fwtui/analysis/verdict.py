"""The verdict on a run: who is how many times as fast, why, what limits it now, and the rung to try next.

Only what was measured, counted or compiled is said. The gain of the next rung is that of a run of it on the same graph, else
the recorded ladder's ratio of the two rungs, told as a prediction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from fwtui.analysis.compare import FASTER, NOT_COMPARED, SAME, SLOWER, UNCLEAR, ComparedRun, Comparison, compare, run_name
from fwtui.analysis.hints import GOOD, NAIVE, hints
from fwtui.analysis.ledger import UNKNOWN
from fwtui.analysis.limits import limit_of
from fwtui.analysis.reason import Reason, changes, reason
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import kernel_named
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui_kernels import rungs

ALL_CORES = "tiled-cpu"  # the CPU's rung that uses every core
LEAST_GAIN = 1.1  # of a prediction that is worth a run
MARKS = r"\((R|TM)\)| CPU| Processor"  # of a processor's name
LIKE = {"cpu": 9, "cuda": 2}  # times: a recording on a graph that many times as large says nothing


class NextRung(NamedTuple):
    """The rung that mends what limits a run."""

    kernel: str
    title: str
    why: str  # what of the run it mends; empty if it is only the next one
    seconds: float | None  # it takes on the same graph, or would; None if nothing says so
    source: str  # how that is known


class Assessment(NamedTuple):
    """What a person should understand of a run within three seconds."""

    run: Run
    baseline: Run | None
    comparison: Comparison | None  # None without a baseline to compare it with
    reason: Reason
    next: NextRung | None
    share: float | None  # of the measured limit

    @property
    def times(self) -> str:
        """How many times as fast it is; empty if that is not known for sure."""
        sure = self.comparison is not None and self.comparison.verdict in (FASTER, SLOWER, SAME)
        return self.comparison.gained if sure and self.comparison is not None else ""

    @property
    def headline(self) -> str:
        """Who is how many times as fast as whom; without another run how long it takes."""
        if self.comparison is not None:
            return self.comparison.headline
        return f"{run_name(self.run)} takes {units.duration(self.run.seconds)}" if self.run.seconds else ""

    @property
    def loud(self) -> str:
        """The headline in capitals, but for numbers, what has some in it, and what is in brackets."""
        return re.sub(r"\S+", lambda word: word[0] if re.search(r"[(\d]", word[0]) else word[0].upper(), self.headline)

    @property
    def same_answer(self) -> bool:
        """Whether both runs have the same distances."""
        sums = [one.verdict.checksum for one in (self.run, self.baseline) if one is not None and one.verdict is not None]
        return len(sums) == 2 and sums[0] == sums[1] != ""

    @property
    def why(self) -> tuple[str, ...]:
        """What changed in favour of the faster one, the greatest first, or why it is unclear."""
        if self.comparison is None:
            return ()
        return changes(self.comparison) or ((self.comparison.why,) if self.comparison.verdict == UNCLEAR else ())

    def now(self, ask: str = "", sourced: bool = False) -> str:
        """What limits it, as a sentence without its stop; `ask` and `sourced` as in the sentence of a reason."""
        limiter, beside = self.reason.limiter, self.reason.beside
        limiter = limiter.sourced if limiter is not None and sourced else limiter
        if limiter is not None and limiter.busy and limiter.computes:  # Explain has the samples that say the same
            most = f"; most at {limiter.place}" * bool(limiter.place)
            words = f"{limiter.busy}{f', {beside}' * bool(beside)}{most}{f', in {self.reason.phase}' * bool(self.reason.phase)}"
        else:
            words = self.reason._replace(cpu="").sentence(ask, sourced).removesuffix(".")  # Explain has the facts of a CPU
        return f"{words[:1].lower()}{words[1:]}"

    def parts(self, ask: str = "", sourced: bool = False) -> tuple[tuple[str, str], ...]:
        """Everything below the bars, each with its label: why, what limits it now, and what to try next."""
        labelled = [*(("why", why) for why in self.why), (self._of_now, self.now(ask, sourced)), ("next", self.then)]
        return tuple((label, words) for label, words in labelled if words)

    @property
    def _of_now(self) -> str:
        """The label of what limits it, which is why it takes its time where nothing else says that."""
        limited = self.reason.limiter is not None and self.reason.limiter.what != UNKNOWN
        return "why" if limited and not self.why else "now"

    @property
    def then(self) -> str:
        """The next rung in words; why there is none, where the run is near its limit; else nothing."""
        if self.next is None:
            near = self.share is not None and self.share >= GOOD
            return f"it reaches {units.percent(self.share)} of the limit; try a larger graph or several GPUs" if near else ""
        if self.next.seconds is None:
            return f"{self.next.title}{': ' * bool(self.next.why)}{self.next.why}"
        return (
            f"{self.next.title}: {units.duration(self.run.seconds)} -> {units.duration(self.next.seconds)} ({self.next.source})"
        )


def verdict(
    entrant: ComparedRun, baseline: ComparedRun | None, recorded: Model | None = None, comparison: Comparison | None = None
) -> Assessment:
    """The verdict on a run.

    `recorded` is a session of the whole ladder, from which gains are predicted; `comparison`: with the baseline, if it is made.
    """
    model, run, _ = entrant
    if (
        comparison is None
        and baseline is not None
        and baseline.run.id != run.id
        and run.seconds is not None
        and run.state == "done"
    ):
        comparison = compare(entrant, baseline)
    if comparison is not None and comparison.verdict == NOT_COMPARED:
        comparison = None
    limit = limit_of(model, run)
    share, other = limit.share if limit is not None else None, comparison.baseline.run if comparison is not None else None
    return Assessment(run, other, comparison, reason(entrant, None), next_rung(model, run, recorded), share)


def next_rung(model: Model, run: Run, recorded: Model | None = None) -> NextRung | None:
    """The first rung that a hint names and that is faster, as far as that is known; None if there is none."""
    if run.state != "done" or run.simulated or run.wrong or not run.seconds:
        return None
    for kernel, why in _candidates(model, run):
        try:
            title = kernel_named(kernel).title
        except Refused:  # a recording's kernel, which is no longer known
            continue
        runs = [r for r in model.runs.values() if r.experiment.kernel == kernel and _same_work(r, run)]
        if runs:
            best = min(runs, key=lambda r: r.seconds or 0.0)
            if (best.seconds or 0.0) * LEAST_GAIN <= run.seconds:
                return NextRung(kernel, title, why, best.seconds, f"run {best.id}")
            continue
        prediction = predicted(model, run, kernel, recorded) if recorded is not None else None
        if prediction is None:
            return NextRung(kernel, title, why, None, "")
        if prediction[0] * LEAST_GAIN <= run.seconds:
            return NextRung(kernel, title, why, *prediction)
    return None


def _candidates(model: Model, run: Run) -> Iterator[tuple[str, str]]:
    """Kernels that hints name, then the best of the CPU, then the fastest of the session on the same graph."""
    kernel = run.experiment.kernel
    yield from ((hint.see, hint.sentence) for hint in hints(model, run) if hint.see not in ("", NAIVE, kernel))
    if run.backend == "cpu" and rungs().get(kernel, 0) < rungs()[ALL_CORES]:
        yield ALL_CORES, ""
    alike = [one for one in model.runs.values() if _same_work(one, run) and one.experiment.kernel != kernel]
    best = min(alike, key=lambda one: one.seconds or 0.0, default=None)
    if best is not None and (best.seconds or 0.0) * LEAST_GAIN <= (run.seconds or 0.0):
        yield best.experiment.kernel, ""


def _same_work(other: Run, run: Run) -> bool:
    """Whether that run's time tells what another kernel would take here: the same graph, number type and devices."""
    ours, theirs = run.experiment, other.experiment
    same = (theirs.graph, theirs.dtype, theirs.devices, other.backend) == (ours.graph, ours.dtype, ours.devices, run.backend)
    return same and bool(other.counts and other.seconds)


def predicted(model: Model, run: Run, kernel: str, recorded: Model) -> tuple[float, str] | None:
    """Seconds of that kernel on the run's graph by the recorded ladder, and how that is known.

    None without a recorded run of that number type and nearly that size: a ratio of two kernels changes with both.
    """
    there = [r for r in recorded.runs.values() if r.counts and r.seconds and r.experiment.kernel == kernel]
    near = next((r for r in there if r.experiment.dtype == run.experiment.dtype and run.n * LIKE[run.backend] > r.n), None)
    if near is None or not near.seconds:
        return None
    device, here = ComparedRun(recorded, near).device, ComparedRun(model, run).device
    cores = [m.header.machine.cores if m.header is not None else 0 for m in (recorded, model)]
    if device == here and run.n == near.n and (run.backend == "cuda" or cores[0] == cores[1]):
        return near.seconds, f"recorded on this kind of {'GPU' if run.backend == 'cuda' else 'CPU'}"
    same_kernel = [r for r in recorded.runs.values() if r.counts and r.experiment.kernel == run.experiment.kernel]
    same = next((r for r in same_kernel if r.seconds and _choices(r) == _choices(run)), None)
    if same is None or not same.seconds or not run.seconds:
        return None
    ratio = near.seconds / same.seconds
    if kernel == ALL_CORES and all(cores):
        ratio *= (cores[0] or 1) / (cores[1] or 1)
    return run.seconds * ratio, f"predicted from {re.sub(MARKS, '', device) or 'a recording'}"


def _choices(run: Run) -> tuple[object, ...]:
    e = run.experiment
    return e.dtype, e.tile, sorted(e.options.items())
