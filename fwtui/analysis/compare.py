"""Runs against a baseline: whether a difference in time is one, how large it is, and in which phase it lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fwtui.common import units
from fwtui.common.ratio_interval import Interval, ratio
from fwtui.experiment.experiment import HOW_MEASURED, Experiment, identity
from fwtui.experiment.fields import FIELDS, Field
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.stream.stages import STAGES

FASTER, SLOWER, SAME, UNCLEAR = "FASTER", "SLOWER", "SAME", "UNCLEAR"
MATTERS = 0.01  # smaller differences are none: passes of one run say nothing of how much runs differ among themselves


class Entrant(NamedTuple):
    """A run with the session that it comes from; a session has no name while it is the one that is going on."""

    model: Model
    run: Run
    session: str = ""

    @property
    def label(self) -> str:
        return f"{self.session}:{self.run.id}" if self.session else f"run {self.run.id}"

    @property
    def device(self) -> str:
        """What computed: the GPU's or the processor's name, empty where a session does not say."""
        if self.run.backend == "cuda":
            gpu = self.model.gpu_of(self.run)
            return gpu.name if gpu is not None else ""
        return self.model.header.machine.cpu if self.model.header is not None else ""


class Delta(NamedTuple):
    """One part of both runs in seconds, None where a run does not have it."""

    key: str
    title: str
    baseline: float | None
    seconds: float | None

    @property
    def change(self) -> float | None:
        """Share by which the run's part takes longer (less where negative)."""
        return self.seconds / self.baseline - 1 if self.baseline and self.seconds is not None else None


class Comparison(NamedTuple):
    """What can be said of a run against a baseline. `ratio` is the run's time as a multiple of the baseline's."""

    verdict: str
    why: str
    ratio: Interval | None
    total: Delta
    phases: tuple[Delta, ...]
    stages: tuple[Delta, ...]
    differs: tuple[str, ...]

    @property
    def speedup(self) -> float | None:
        """How many times as fast by the medians of all passes; None where nothing may be said."""
        if self.ratio is None or not self.total.seconds or not self.total.baseline:
            return None
        return self.total.baseline / self.total.seconds


def compare(entrant: Entrant, baseline: Entrant) -> Comparison:
    """The run against the baseline."""
    run, base = entrant.run, baseline.run
    verdict, why, interval = judge(entrant, baseline)
    titles = {p.key: p.title for r in (base, run) for p in r.phases}
    ours, theirs = ({p.key: p.seconds for p in r.phases} for r in (run, base))
    stages = [Delta(s.key, s.title, base.stage_seconds(s.key), run.stage_seconds(s.key)) for s in STAGES.values() if s.title]
    return Comparison(
        verdict,
        why,
        interval,
        Delta("total", "total", base.seconds, run.seconds),
        tuple(Delta(key, title, theirs.get(key), ours.get(key)) for key, title in titles.items()),
        tuple(d for d in stages if d.baseline is not None or d.seconds is not None),
        differences(entrant, baseline),
    )


def judge(entrant: Entrant, baseline: Entrant) -> tuple[str, str, Interval | None]:
    """FASTER, SLOWER, SAME or UNCLEAR, the reason in words, and the ratio of times where one may be formed.

    By the interval of `fwtui.common.ratio_interval.ratio` and a difference that matters (1 %, either way): FASTER or SLOWER
    where all of it lies beyond, SAME where all of it lies within (two one-sided tests: D. J. Schuirmann, J. Pharmacokinetics and
    Biopharmaceutics 15, 1987), else UNCLEAR. The interval tells how passes of a run differ; runs differ among themselves
    by more (T. Kalibera, R. Jones, Rigorous Benchmarking in Reasonable Time, ISMM 2013), so where an experiment was
    repeated, a difference must also exceed that between its repetitions. A run that is not verified, not finished,
    throttled or of another n is never FASTER or SLOWER.
    """
    why = _refusal(entrant, baseline)
    if why:
        return UNCLEAR, why, None
    run, base = entrant.run, baseline.run
    interval = ratio(*(tuple(s.seconds for s in one.samples) for one in (run, base)))
    if interval is None:
        for one in (run, base):
            if one.done is not None and len(one.samples) < min(one.done.count, events.SAMPLES_TOLD):
                kept = f"{len(one.samples)} of the {one.done.count} passes of run {one.id}"
                return UNCLEAR, f"this recording keeps {kept}, too few to tell a difference from chance; run it again", None
        fewest = min(len(run.samples), len(base.samples))
        few = f"{fewest} pass{'es' * (fewest != 1)} of a run {'is' if fewest == 1 else 'are'} too few"
        return UNCLEAR, f"{few}; repeat it at least 5 times", None
    _, low, high = interval
    words = "time " + " to ".join(dict.fromkeys((_change(low), _change(high))))
    if low >= 1 / (1 + MATTERS) and high <= 1 + MATTERS:
        return SAME, f"{words}, within {units.percent(MATTERS)}", interval
    if not (high < 1 / (1 + MATTERS) or low > 1 + MATTERS):
        return UNCLEAR, f"{words}; more passes would tell whether it exceeds {units.percent(MATTERS)}", interval
    throttled = [e.label for e in (entrant, baseline) if _throttled(e)]
    if throttled:
        return UNCLEAR, f"{words}, but {' and '.join(throttled)} {'were' if throttled[1:] else 'was'} throttled", interval
    noise = max(repeated(e.model, e.run) for e in (entrant, baseline))
    if not (high < 1 / (1 + noise) or low > 1 + noise):
        return UNCLEAR, f"{words}, but runs of one and the same experiment differ by {units.percent(noise)}", interval
    return (FASTER if high < 1 else SLOWER), words, interval


def repeated(model: Model, run: Run) -> float:
    """By what share the slowest verified run of the same experiment in that session exceeds the fastest; 0 for a single one."""
    wanted = identity(run.experiment)
    right = (r for r in model.runs.values() if r.state == "done" and r.verified and r.backend == run.backend)
    times = [r.seconds for r in right if r.seconds and identity(r.experiment) == wanted]
    return max(times) / min(times) - 1 if times else 0.0


def differences(entrant: Entrant, baseline: Entrant) -> tuple[str, ...]:
    """Everything besides the times in which the two differ: tile 32 against 16."""
    ours, theirs = entrant.run.experiment, baseline.run.experiment
    both = ours.options.keys() & theirs.options.keys()  # another kernel's options are no difference of their own
    told = [(field.name, _shown(field, ours), _shown(field, theirs)) for field in FIELDS if field.name not in HOW_MEASURED]
    told += [(name, str(ours.options[name]), str(theirs.options[name])) for name in sorted(both)]
    words = [f"{name} {one} against {other}" for name, one, other in told if one != other]
    if entrant.device != baseline.device:
        words.append(f"{entrant.device or 'an unknown machine'} against {baseline.device or 'an unknown machine'}")
    return tuple(words)


def pairs(ours: Sequence[Entrant], theirs: Sequence[Entrant]) -> list[tuple[Entrant, Entrant]]:
    """(run, baseline) for every experiment of which both have a finished run; of several the latest."""
    known = {identity(e.run.experiment): e for e in theirs if e.run.state == "done"}
    latest = {identity(e.run.experiment): e for e in ours if e.run.state == "done"}
    return [(entrant, known[wanted]) for wanted, entrant in latest.items() if wanted in known]


def _refusal(entrant: Entrant, baseline: Entrant) -> str:
    """Why the two cannot be compared at all; empty where they can."""
    run, base = entrant.run, baseline.run
    if run is base:
        return "it is the baseline itself"
    for e in (entrant, baseline):
        if e.run.state != "done":
            return f"{e.label} {'is still going' if e.run.state == 'running' else f'was {e.run.state}'}"
        if e.run.simulated:
            return f"{e.label} was simulated, and nothing simulated is timed"
        if e.run.verified is not True:
            found = e.run.verdict.verdict if e.run.verdict is not None else "unverified"
            return f"{e.label} is {found}, so its time counts for nothing"
    if run.n != base.n:
        return f"n = {run.n} is not the same work as n = {base.n}; rates can be compared, times cannot"
    return ""


def _shown(field: Field, experiment: Experiment) -> str:
    text = field.show(experiment)
    return "none" if not text or (field.name == "tile" and not experiment.tile) else text


def _throttled(entrant: Entrant) -> bool:
    evidence = entrant.model.evidence(entrant.run) if entrant.run.backend == "cuda" else None
    return evidence is not None and bool(evidence.throttled)


def _change(multiple: float) -> str:
    """A ratio of times as a change: -67.2 %; a great one as a multiple."""
    return f"{100 * (multiple - 1):+.1f} %" if multiple < 2 else units.times(multiple)
