"""Comparison of a run with a baseline: whether the time difference is real, its size, and the phases that it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import NamedTuple

from fwtui.analysis.disturbances import MAX_SLOWDOWN, disturbances, max_interference_factor
from fwtui.analysis.ratio_interval import MIN_SECONDS, Ratio, ratio
from fwtui.common import units
from fwtui.experiment.experiment import HOW_COMPUTED, HOW_MEASURED, Experiment, identity
from fwtui.experiment.fields import FIELDS, Field
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.stream.stages import STAGES

FASTER, SLOWER, SAME, UNCLEAR, NOT_COMPARED = "FASTER", "SLOWER", "SAME", "UNCLEAR", "NOT COMPARED"
MIN_DIFFERENCE = 0.01  # smaller relative differences do not count: repetitions of one run do not show how much runs vary
ENOUGH, FEW = 5, 3  # repetitions of both runs: for a useful interval, and for a verdict on a large difference
MAX_SPREAD, MIN_RATIO_FEW = 1.05, 1.5  # few repetitions within the first factor decide if both runs differ by the second
MIN_RATIO_DISTURBED = 2.0  # a disturbed run gets a verdict if this factor remains after subtracting the disturbance


class ComparedRun(NamedTuple):
    """A run and the name of its session; empty for the current session."""

    model: Model
    run: Run
    session: str = ""

    @property
    def label(self) -> str:
        return f"{self.session}:{self.run.id}" if self.session else f"run {self.run.id}"

    @property
    def device(self) -> str:
        """The name of the GPU or processor; empty if the session does not name it."""
        if self.run.backend == "cuda":
            gpu = self.model.gpu_of(self.run)
            return gpu.name if gpu is not None else ""
        return self.model.header.machine.cpu if self.model.header is not None else ""


class Delta(NamedTuple):
    """A part of two runs in seconds; None for a run without that part."""

    key: str
    title: str
    baseline: float | None
    seconds: float | None
    change: float | None  # run / baseline - 1; None if the times are not compared


class Comparison(NamedTuple):
    """A run compared with a baseline. `ratio` is the run's time / the baseline's time."""

    entrant: ComparedRun
    baseline: ComparedRun
    verdict: str
    why: str
    ratio: Ratio | None
    total: Delta
    phases: tuple[Delta, ...]
    stages: tuple[Delta, ...]
    differs: tuple[str, ...]

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the speedup; None with too few repetitions."""
        return (1 / self.ratio.high, 1 / self.ratio.low) if self.ratio is not None and self.ratio.certain else None

    @property
    def disturbed(self) -> bool:
        """Return True if a disturbance of the slower run made the ratio a lower bound."""
        return self.ratio is not None and bool(self.ratio.disturbed)

    @property
    def speedup(self) -> float | None:
        """The estimated speedup; None if there is no estimate."""
        return 1 / self.ratio.estimate if self.ratio is not None else None

    @property
    def speedup_text(self) -> str:
        """The speedup: 8.12x; ~108x from few repetitions, ≥ 10x if disturbed, ~1/108; empty if there is no estimate."""
        if self.ratio is None:
            return ""
        gain = 1 / self.ratio.estimate
        if self.ratio.disturbed:
            return f"≥ {self.ratio.least:.0f}x" if gain >= 1 else f"≤ 1/{self.ratio.least:.0f}"
        return f"{'~' * bool(self.ratio.few)}{units.gain(gain)}"

    @property
    def multiple(self) -> str:
        """The speedup as a clause: 8.12x speedup over, ≥ 10x slower than; empty if there is no estimate."""
        if self.ratio is None:
            return ""
        factor = f"≥ {self.ratio.least:.0f}x" if self.ratio.disturbed else self.ratio.factor
        return f"{'about ' * bool(self.ratio.few)}{factor} {'speedup over' if self.ratio.estimate <= 1 else 'slower than'}"

    @property
    def headline(self) -> str:
        """The result in one line: Katz-Kider: 8.03x speedup over Naive."""
        name, other = run_name(self.entrant.run), other_name(self.entrant.run, self.baseline.run)
        if self.verdict == UNCLEAR:
            return f"Unclear: {name}, {f'measured {self.multiple}' if self.multiple else 'against'} {other}"
        if self.verdict == SAME:
            return f"{name}: same time as {other}"
        headline = f"{name}: {self.multiple} {other}"
        return f"{headline} ({self.ratio.factor}, {self.ratio.disturbed})" if self.ratio and self.ratio.disturbed else headline


def run_name(run: Run) -> str:
    """Return the name of a run in a sentence: the title of its kernel."""
    return run.title or run.experiment.kernel


def other_name(run: Run, baseline: Run) -> str:
    """Return the baseline's name in a sentence: its kernel's title, or its number if both runs have the same kernel."""
    return f"run {baseline.id}" if baseline.title == run.title else run_name(baseline)


def compare(entrant: ComparedRun, baseline: ComparedRun) -> Comparison:
    """Compare a run with a baseline."""
    run, base = entrant.run, baseline.run
    verdict, why, speed = classify(entrant, baseline)

    def part(key: str, title: str, before: float | None, now: float | None) -> Delta:
        return Delta(key, title, before, now, now / before - 1 if speed is not None and before and now is not None else None)

    titles = {p.key: p.title for r in (base, run) for p in r.phases}
    ours, theirs = ({p.key: p.seconds for p in r.phases} for r in (run, base))
    stages = [part(s.key, s.title, base.stage_seconds(s.key), run.stage_seconds(s.key)) for s in STAGES.values() if s.title]
    known = tuple(d for d in stages if d.baseline is not None or d.seconds is not None)
    phases = tuple(part(key, title, theirs.get(key), ours.get(key)) for key, title in titles.items())
    total = Delta("total", "median time", base.seconds, run.seconds, speed.estimate - 1 if speed is not None else None)
    return Comparison(entrant, baseline, verdict, why, speed, total, phases, known, differences(entrant, baseline))


def classify(entrant: ComparedRun, baseline: ComparedRun) -> tuple[str, str, Ratio | None]:
    """Return the verdict, the reason for it, and the ratio of times if there is one.

    The verdict compares the interval of the ratio of median times with a threshold of 1 %: FASTER or SLOWER if the whole
    interval exceeds it, SAME if the interval is within it (two one-sided tests: D. J. Schuirmann, J. Pharmacokinetics and
    Biopharmaceutics 15, 1987), else UNCLEAR. With too few repetitions for an interval, large differences still get a verdict:
    MAX_SLOWDOWN between the closest repetitions, or MIN_RATIO_FEW if there are three of each within MAX_SPREAD. A run that is
    not finished, not verified, simulated or of another graph is NOT COMPARED.

    The interval covers the variation between repetitions of a run. Runs vary more (T. Kalibera, R. Jones, Rigorous
    Benchmarking in Reasonable Time, ISMM 2013): if an experiment was run again, a difference must also exceed that between its
    runs. Interference only slows a run down. If the slower run was disturbed, the comparison subtracts the largest slowdown
    that the disturbance can explain, and MIN_RATIO_DISTURBED must remain. The same experiment in the same session on the same
    device is never FASTER or SLOWER, because nothing changed between the two runs. The same experiment in two sessions is
    compared normally: before and after a change, on two machines, in two versions.
    """
    why = _refusal(entrant, baseline)
    if why:
        return NOT_COMPARED, why, None
    run, base = entrant.run, baseline.run
    speed = _ratio_of_medians(run, base) or _point_estimate(run, base)
    if speed is None:
        return UNCLEAR, _too_few(run, base), None
    low, high = speed.low, speed.high
    text, better = f"time {' to '.join(dict.fromkeys((_change(low), _change(high))))}", ""
    if speed.few:
        way = f"use at least {ENOUGH} repetitions" if speed.few < ENOUGH else "run it again"
        text, better = speed.text, f"; for a better estimate {way}"
    if low >= 1 / (1 + MIN_DIFFERENCE) and high <= 1 + MIN_DIFFERENCE:
        return SAME, f"{text}, within {units.percent(MIN_DIFFERENCE)}", speed
    ours, theirs = disturbed = [disturbances(e.run, e.model.evidence(e.run)) for e in (entrant, baseline)]
    both = [(e.label, one) for e, ones in zip((entrant, baseline), disturbed, strict=True) for one in ones]
    if both:
        whys = " and ".join(f"{label} was {one.word} ({one.why})" for label, one in both)
        theirs_first, ours_first = (base, run, theirs, ours), (run, base, ours, theirs)
        interference = max_interference_factor(*(theirs_first if high < 1 else ours_first))
        least = (1 / high if high < 1 else low) / interference
        if least < MIN_RATIO_DISTURBED:
            return UNCLEAR, f"{text}, but {whys}", speed
        word = ", ".join(dict.fromkeys(one.word for _, one in both))
        speed = speed._replace(few=0, least=_rounded_down(least), disturbed=word)
        text, better = f"{speed.text}: {whys}", ""
    if _device(entrant) == _device(baseline) and identity(run.experiment) == identity(base.experiment):
        return UNCLEAR, f"the same experiment {_again(speed)} this time; rerun it on an idle machine", speed
    if not (high < 1 / (1 + MIN_DIFFERENCE) or low > 1 + MIN_DIFFERENCE):
        return UNCLEAR, f"{text}; more repetitions would show whether it exceeds {units.percent(MIN_DIFFERENCE)}", speed
    noise = max(repeated(e.model, e.run) for e in (entrant, baseline))
    if not (high < 1 / (1 + noise) or low > 1 + noise):
        return UNCLEAR, f"{text}, but runs of the same experiment differ by {units.percent(noise)}", speed
    return (FASTER if high < 1 else SLOWER), text + better, speed


def speedup(run: Run, against: Run | None) -> float | None:
    """Return the ratio of the median times of two runs: the speedup of a comparison.

    None if the runs have different graphs, or one of them is not finished or not verified.
    """
    if against is None or (run.n, run.experiment.graph) != (against.n, against.experiment.graph):
        return None
    return against.seconds / run.seconds if run.counts and against.counts and run.seconds and against.seconds else None


def repeated(model: Model, run: Run) -> float:
    """Return the relative difference between the slowest and the fastest verified run of an experiment in its session.

    0 for a single run. Disturbed runs are skipped, because they do not represent the others.
    """
    return model.once(_noise, *model.once(_by_experiment).get((run.device, *identity(run.experiment)), ()))


def _by_experiment(model: Model) -> dict[tuple[object, ...], list[Run]]:
    """Group the verified runs by device and experiment."""
    by_experiment: dict[tuple[object, ...], list[Run]] = {}
    for run in model.runs.values():
        if run.counts:
            by_experiment.setdefault((run.device, *identity(run.experiment)), []).append(run)
    return by_experiment


def _noise(model: Model, *runs: Run) -> float:
    times = [run.seconds for run in runs if run.seconds and not disturbances(run, model.evidence(run))]
    return max(times) / min(times) - 1 if times else 0.0


def differences(entrant: ComparedRun, baseline: ComparedRun) -> tuple[str, ...]:
    """Return every difference between the settings of two runs: tile 32 against 16."""
    ours, theirs = entrant.run.experiment, baseline.run.experiment
    both = ours.options.keys() & theirs.options.keys()  # options of different kernels are not compared
    options = [(name, ours.options[name], theirs.options[name]) for name in sorted(both)]
    lines = _changed_fields(ours, theirs, HOW_MEASURED)
    lines += [f"{name} {one} against {other}" for name, one, other in options if one != other]
    if entrant.device != baseline.device:
        lines.append(f"{entrant.device or 'an unknown machine'} against {baseline.device or 'an unknown machine'}")
    return tuple(lines)


def pairs(ours: Sequence[ComparedRun], theirs: Sequence[ComparedRun]) -> list[tuple[ComparedRun, ComparedRun]]:
    """Pair the latest finished runs of every experiment that both sides have, as (run, baseline)."""
    by_identity = {identity(e.run.experiment): e for e in theirs if e.run.state == "done"}
    latest = {identity(e.run.experiment): e for e in ours if e.run.state == "done"}
    return [(entrant, by_identity[experiment]) for experiment, entrant in latest.items() if experiment in by_identity]


def _refusal(entrant: ComparedRun, baseline: ComparedRun) -> str:
    """Return why the runs cannot be compared; empty if they can."""
    run, base = entrant.run, baseline.run
    if run is base:
        return "it is the baseline itself"
    for e in (entrant, baseline):
        if e.run.state != "done":
            return f"{e.label} {'has not ended' if e.run.state == 'running' else f'was {e.run.state}'}"
        if e.run.simulated:
            return f"{e.label} was simulated, and nothing simulated is timed"
        if e.run.verified is not True:
            state = e.run.verdict.verdict if e.run.verdict is not None else "unverified"
            return f"{e.label} is {state}, so its time does not count"
    if run.n != base.n:
        return f"n = {run.n} is not the same work as n = {base.n}; rates can be compared, times cannot"
    if run.experiment.graph != base.experiment.graph:
        changes = ", ".join(_changed_fields(run.experiment, base.experiment, (*HOW_COMPUTED, *HOW_MEASURED)))
        return f"the graphs differ ({changes}); only times on the same graph are compared"
    return ""


def _changed_fields(ours: Experiment, theirs: Experiment, ignoring: Sequence[str]) -> list[str]:
    shown = [(field.name, _shown(field, ours), _shown(field, theirs)) for field in FIELDS if field.name not in ignoring]
    return [f"{name} {one} against {other}" for name, one, other in shown if one != other]


def _shown(field: Field, experiment: Experiment) -> str:
    text = field.show(experiment)
    if field.name == "devices" and not text:
        return "one"
    return "none" if not text or (field.name == "tile" and not experiment.tile) else text


def _device(entrant: ComparedRun) -> tuple[object, ...]:
    """Identify the run's device and session; the same session may have been read twice or recorded in parts."""
    header = entrant.model.header
    session = (header.created, header.machine) if header is not None else (entrant.model,)
    return (*session, entrant.run.device)


def _ratio_of_medians(run: Run, base: Run) -> Ratio | None:
    """Return the ratio of the median times that the screens show, with its interval; None with too few repetitions.

    The interval of `fwtui.analysis.ratio_interval.ratio` assumes that the distributions differ by a factor. It is widened to
    contain the ratio of the medians, which lies outside if the repetitions of one run form two groups.
    """
    interval = ratio(run.passes, base.passes)
    if interval is None or not run.seconds or not base.seconds or min(run.seconds, base.seconds) < MIN_SECONDS:
        return None
    estimate = run.seconds / base.seconds
    return Ratio(estimate, min(interval.low, estimate), max(interval.high, estimate))


def _point_estimate(run: Run, base: Run) -> Ratio | None:
    """Return the ratio of times from too few repetitions for an interval; None if chance could explain it."""
    ours, theirs = (r.passes or (r.seconds or 0.0,) for r in (run, base))
    if not run.seconds or not base.seconds or min(*ours, *theirs, run.seconds, base.seconds) < MIN_SECONDS:
        return None
    low, high = min(ours) / max(theirs), max(ours) / min(theirs)
    exact = min(len(ours), len(theirs)) >= FEW and all(max(times) <= MAX_SPREAD * min(times) for times in (ours, theirs))
    far = MIN_RATIO_FEW if exact else MAX_SLOWDOWN
    if not (high <= 1 / far or low >= far):
        return None
    repetitions = min(r.done.count if r.done is not None else len(r.samples) for r in (run, base))
    return Ratio(run.seconds / base.seconds, low, high, max(repetitions, 1))


def _too_few(run: Run, base: Run) -> str:
    """Return why the repetitions of both runs are too few to compare them."""
    for one in (run, base):
        if one.done is not None and len(one.passes) < min(one.done.count, events.MAX_SAMPLES):
            count = f"{len(one.passes)} of the {one.done.count} repetitions of run {one.id}"
            return f"this recording contains only {count}, too few for a significance test; run it again"
    fewest = min(len(run.passes), len(base.passes))
    few = f"{units.counted(fewest, 'repetition')} per run {'is' if fewest == 1 else 'are'} too few"
    return f"{few}; use at least {ENOUGH}"


def _rounded_down(times: float) -> float:
    """Round down to one significant digit."""
    unit = 10.0 ** floor(log10(times))
    return floor(times / unit) * unit


def _again(speed: Ratio) -> str:
    """Describe the time change between two runs of one experiment."""
    low, high = sorted((speed.low, speed.high))
    if not speed.certain:
        return f"took {'less' if high < 1 else 'more'} time, {speed.text}"
    if not (high < 1 or low > 1):
        return f"took between {units.percent(1 - low)} less and {units.percent(high - 1)} more time"
    if low >= 2:
        return f"took {units.gain(low)} the time"
    ends = dict.fromkeys(units.percent(abs(end - 1)) for end in sorted((low, high), key=lambda end: abs(end - 1)))
    return f"took {' to '.join(ends)} {'less' if high < 1 else 'more'} time"


def _change(multiple: float) -> str:
    """Format a ratio of times as a change, -67.2 %; a large one as a factor."""
    return f"{100 * (multiple - 1):+.1f} %" if multiple < 2 else units.gain(multiple)
