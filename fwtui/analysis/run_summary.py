"""The summary of a run: its speedup, the reason for it, the bottleneck, and the rung to try next.

It contains only measured, counted or compiled values. The time of the next rung is that of a run on the same graph, or a
prediction: the ratio of both rungs in the recorded ladder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from fwtui.analysis.causes import NAIVE, NEAR_PEAK, hints
from fwtui.analysis.columns import baseline_run
from fwtui.analysis.compare import FASTER, NOT_COMPARED, SAME, SLOWER, UNCLEAR, ComparedRun, Comparison, compare, run_name
from fwtui.analysis.explanation import Explanation, explain, speedup_causes
from fwtui.analysis.limits import limit_of
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import kernel_named
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui_kernels import rungs

ALL_CORES = "tiled-cpu"  # the CPU's rung that uses every core
MIN_GAIN = 1.1  # smallest predicted speedup that is worth a run
MARKS = r"\((R|TM)\)| CPU| Processor"  # parts of a processor's name that are not shown
MAX_SIZE_RATIO = {"cpu": 9, "cuda": 2}  # a recording predicts nothing for graphs smaller by more than this factor
BOTTLENECK, NEXT = "bottleneck", "try next"  # labels of the summary
SPEEDUP_FROM, SLOWER_FROM, UNCLEAR_REASON = "speedup from", "slower from", "unclear"
LABELS = (SPEEDUP_FROM, SLOWER_FROM, UNCLEAR_REASON, BOTTLENECK, NEXT)


class NextRung(NamedTuple):
    """The rung that removes the bottleneck of a run."""

    kernel: str
    title: str
    why: str  # the bottleneck that it removes; empty if it is only the next rung
    seconds: float | None  # measured or predicted time on the same graph; None if neither exists
    source: str  # origin of that time


class Assessment(NamedTuple):
    """The summary that a reader should grasp within three seconds."""

    run: Run
    baseline: Run | None
    comparison: Comparison | None  # None without a baseline to compare it with
    reason: Explanation
    next: NextRung | None
    share: float | None  # rate / measured peak rate

    @property
    def times(self) -> str:
        """The speedup; empty if it is not certain."""
        sure = self.comparison is not None and self.comparison.verdict in (FASTER, SLOWER, SAME)
        return self.comparison.speedup_text if sure and self.comparison is not None else ""

    @property
    def headline(self) -> str:
        """The comparison in one line; without a baseline the time of the run."""
        if self.comparison is not None:
            return self.comparison.headline
        return f"{run_name(self.run)} takes {units.duration(self.run.seconds)}" if self.run.seconds else ""

    @property
    def headline_upper(self) -> str:
        """The headline in capitals, except for words with digits or brackets."""
        return re.sub(r"\(.*?\)|\S+", lambda word: word[0] if re.search(r"[(\d]", word[0]) else word[0].upper(), self.headline)

    @property
    def same_answer(self) -> bool:
        """Return True if both runs computed identical distances."""
        sums = [one.verdict.checksum for one in (self.run, self.baseline) if one is not None and one.verdict is not None]
        return len(sums) == 2 and sums[0] == sums[1] != ""

    @property
    def why(self) -> tuple[str, ...]:
        """The quantities that changed in favour of the faster run, largest first; the reason for an unclear comparison."""
        if self.comparison is None:
            return ()
        return speedup_causes(self.comparison) or ((self.comparison.why,) if self.comparison.verdict == UNCLEAR else ())

    def now(self, ask: str = "", sourced: bool = False) -> str:
        """Describe the bottleneck; `ask` and `sourced` as in `Explanation.bottleneck`."""
        return "; ".join(filter(None, (self.reason.bottleneck(ask, sourced), self.reason.exchange)))

    def parts(self, ask: str = "", sourced: bool = False) -> tuple[tuple[str, str], ...]:
        """Return the labelled lines below the bars: the reason for the difference, the bottleneck, and the next rung."""
        reasons = [(self._reason_label, text) for text in self.why]
        labelled = [*reasons, (BOTTLENECK, self.now(ask, sourced)), (NEXT, self.then)]
        return tuple((label, text) for label, text in labelled if text)

    @property
    def _reason_label(self) -> str:
        """The label of the quantities that changed."""
        verdict = self.comparison.verdict if self.comparison is not None else ""
        return {FASTER: SPEEDUP_FROM, SLOWER: SLOWER_FROM}.get(verdict, UNCLEAR_REASON)

    @property
    def then(self) -> str:
        """The next rung; a hint if the run is near its peak rate; else empty."""
        if self.next is None:
            near = self.share is not None and self.share >= NEAR_PEAK
            return f"it reaches {units.percent(self.share)} of the peak rate; try a larger graph or several GPUs" if near else ""
        if self.next.seconds is None:
            return f"{self.next.title}{': ' * bool(self.next.why)}{self.next.why}"
        return (
            f"{self.next.title}: {units.duration(self.run.seconds)} -> {units.duration(self.next.seconds)} ({self.next.source})"
        )


def summarise(
    entrant: ComparedRun, baseline: ComparedRun | None, recorded: Model | None = None, comparison: Comparison | None = None
) -> Assessment:
    """Summarise a run.

    `recorded` is a session of the whole ladder, from which times are predicted. `comparison` is the comparison with the
    baseline if the caller has made it already.
    """
    model, run, _ = entrant
    timed = run.seconds is not None and run.state == "done"
    if comparison is None and timed and baseline is not None and baseline.run.id != run.id:
        comparison = compare(entrant, baseline)
    if comparison is not None and comparison.verdict == NOT_COMPARED:
        comparison = None
    limit = limit_of(model, run)
    share, other = limit.share if limit is not None else None, comparison.baseline.run if comparison is not None else None
    return Assessment(run, other, comparison, explain(entrant, None), next_rung(model, run, recorded), share)


def fastest(model: Model, recorded: Model | None = None, baseline: str | None = None) -> Assessment | None:
    """Summarise the fastest run of the newest graph against its baseline; None without two timed runs.

    `recorded` as in `summarise()`. `baseline` is a kernel, by default that of the first verified run of the same graph.
    """
    timed = [run for run in model.runs.values() if run.counts]
    alike = [run for run in timed if run.experiment.graph == timed[-1].experiment.graph]
    best = min(alike, key=lambda run: run.seconds or 0.0, default=None)
    base = baseline_run(model, best, baseline) if best is not None else None
    if best is None or base is None or base.id == best.id or not base.seconds or not best.seconds:
        return None
    return summarise(ComparedRun(model, best), ComparedRun(model, base), recorded)


def next_rung(model: Model, run: Run, recorded: Model | None = None) -> NextRung | None:
    """Return the first rung that a hint names and that is not known to be slower; None if there is none."""
    if run.state != "done" or run.simulated or run.wrong or not run.seconds:
        return None
    for kernel, why in _candidates(model, run):
        try:
            title = kernel_named(kernel).title
        except Refused:  # the kernel of an old recording no longer exists
            continue
        runs = [r for r in model.runs.values() if r.experiment.kernel == kernel and _same_work(r, run)]
        if runs:
            best = min(runs, key=lambda r: r.seconds or 0.0)
            if (best.seconds or 0.0) * MIN_GAIN <= run.seconds:
                return NextRung(kernel, title, why, best.seconds, f"run {best.id}")
            continue
        prediction = predicted(model, run, kernel, recorded) if recorded is not None else None
        if prediction is None:
            return NextRung(kernel, title, why, None, "")
        if prediction[0] * MIN_GAIN <= run.seconds:
            return NextRung(kernel, title, why, *prediction)
    return None


def _candidates(model: Model, run: Run) -> Iterator[tuple[str, str]]:
    """Yield the rungs of the causes, then the best CPU kernel, then the fastest one of the session on the same graph."""
    kernel = run.experiment.kernel
    yield from ((hint.rung, hint.reason) for hint in hints(model, run) if hint.rung not in ("", NAIVE, kernel))
    if run.backend == "cpu" and rungs().get(kernel, 0) < rungs()[ALL_CORES]:
        yield ALL_CORES, ""
    alike = [one for one in model.runs.values() if _same_work(one, run) and one.experiment.kernel != kernel]
    best = min(alike, key=lambda one: one.seconds or 0.0, default=None)
    if best is not None and (best.seconds or 0.0) * MIN_GAIN <= (run.seconds or 0.0):
        yield best.experiment.kernel, ""


def _same_work(other: Run, run: Run) -> bool:
    """Return whether both runs have the same graph, data type and devices, so that their times are comparable."""
    ours, theirs = run.experiment, other.experiment
    same = (theirs.graph, theirs.dtype, theirs.devices, other.backend) == (ours.graph, ours.dtype, ours.devices, run.backend)
    return same and bool(other.counts and other.seconds)


def predicted(model: Model, run: Run, kernel: str, recorded: Model) -> tuple[float, str] | None:
    """Predict the time of a kernel on the run's graph from the recorded ladder: seconds, and the origin of the prediction.

    None without a recorded run of that data type and about that size, because the ratio of two kernels depends on both.
    """
    there = [r for r in recorded.runs.values() if r.counts and r.seconds and r.experiment.kernel == kernel]
    most_n, dtype = run.n * MAX_SIZE_RATIO[run.backend], run.experiment.dtype
    near = next((r for r in there if r.experiment.dtype == dtype and r.n < most_n), None)
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
