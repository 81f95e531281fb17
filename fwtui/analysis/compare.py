"""Compares runs with a baseline: whether a difference in time is real, how large it is, and in which phase."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import NamedTuple

from fwtui.analysis.disturbances import FAR, Disturbance, disturbances, most_gained
from fwtui.analysis.ratio_interval import LEAST_SECONDS, Interval, ratio
from fwtui.common import units
from fwtui.experiment.experiment import HOW_MEASURED, Experiment, identity
from fwtui.experiment.fields import FIELDS, Field
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.stream.stages import STAGES

FASTER, SLOWER, SAME, UNCLEAR, NOT_COMPARED = "FASTER", "SLOWER", "SAME", "UNCLEAR", "NOT COMPARED"
MATTERS = 0.01  # smaller differences do not count: the passes of one run do not show how much runs vary
ENOUGH, FEW = 5, 3  # passes of both, for a useful interval, and for a verdict on great differences
EXACT, APART = 1.05, 1.5  # times: three passes that agree so well decide if even the closest of both runs are so far apart
LEAST = 2.0  # times: a disturbed run is judged if as much is left of the difference without what disturbed it


class ComparedRun(NamedTuple):
    """A run and its session; the current session has no name."""

    model: Model
    run: Run
    session: str = ""

    @property
    def label(self) -> str:
        return f"{self.session}:{self.run.id}" if self.session else f"run {self.run.id}"

    @property
    def device(self) -> str:
        """The name of the GPU or processor, empty if the session has none."""
        if self.run.backend == "cuda":
            gpu = self.model.gpu_of(self.run)
            return gpu.name if gpu is not None else ""
        return self.model.header.machine.cpu if self.model.header is not None else ""


class Delta(NamedTuple):
    """One part of both runs in seconds, None for a run without it."""

    key: str
    title: str
    baseline: float | None
    seconds: float | None
    change: float | None  # relative change of the run's part; None if times are not compared


class Rough(NamedTuple):
    """A ratio of times from too few passes for an interval: rounded to one digit, with its extremes over the passes."""

    estimate: float
    low: float
    high: float
    passes: int

    @property
    def words(self) -> str:
        """About 100x (one pass), whichever run is faster."""
        by = "one pass" if self.passes == 1 else f"{self.passes} passes"
        return f"about {max(self.estimate, 1 / self.estimate):.0f}x ({by})"


class AtLeast(NamedTuple):
    """A ratio of times in spite of what disturbed the slower run: as measured, and what is left of it at least."""

    estimate: float
    low: float
    high: float
    least: float
    disturbed: str  # in a word

    @property
    def words(self) -> str:
        """At least 10x (noisy), whichever run is faster."""
        return f"at least {self.least:.0f}x ({self.disturbed})"


Ratio = Interval | Rough | AtLeast


class Comparison(NamedTuple):
    """A run compared with a baseline. `ratio` is the run's time as a multiple of the baseline's."""

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
        """The speed-up's 95 % interval; None with too few passes."""
        return (1 / self.ratio.high, 1 / self.ratio.low) if isinstance(self.ratio, Interval) else None

    @property
    def speedup(self) -> float | None:
        """The estimated speed-up; None if there is no estimate."""
        return 1 / self.ratio.estimate if self.ratio is not None else None

    @property
    def gained(self) -> str:
        """The speed-up in words: 8.12x, ~100x from few passes, >10x if disturbed, ~1/100; empty if there is no estimate."""
        if self.ratio is None:
            return ""
        gain = 1 / self.ratio.estimate
        if isinstance(self.ratio, AtLeast):
            return f">{self.ratio.least:.0f}x" if gain >= 1 else f"<1/{self.ratio.least:.0f}"
        if isinstance(self.ratio, Rough):
            return f"~{gain:.0f}x" if gain >= 1 else f"~1/{1 / gain:.0f}"
        return units.gain(gain)

    @property
    def multiple(self) -> str:
        """The same in a sentence: 8.12x as fast as, at least 10x as long as; empty if there is no estimate."""
        if self.ratio is None:
            return ""
        estimate, how = (1 / self.ratio.estimate, "fast") if self.ratio.estimate <= 1 else (self.ratio.estimate, "long")
        if isinstance(self.ratio, AtLeast):
            return f"at least {self.ratio.least:.0f}x as {how} as"
        return f"{f'about {estimate:.0f}x' if isinstance(self.ratio, Rough) else units.gain(estimate)} as {how} as"

    @property
    def headline(self) -> str:
        """Who is how many times as fast as whom or takes how many times as long, or that it is unclear."""
        name, other = run_name(self.entrant.run), other_name(self.entrant.run, self.baseline.run)
        if self.verdict == UNCLEAR:
            return f"Unclear: {name}, {f'measured {self.multiple}' if self.multiple else 'against'} {other}"
        if self.verdict == SAME:
            return f"{name} is as fast as {other}"
        doubt = f" ({self.ratio.disturbed})" if isinstance(self.ratio, AtLeast) else ""
        return f"{name} {'takes' if self.verdict == SLOWER else 'is'} {self.multiple} {other}{doubt}"


def run_name(run: Run) -> str:
    """What a sentence calls a run."""
    return run.title or run.experiment.kernel


def other_name(run: Run, baseline: Run) -> str:
    """What a sentence about a run calls the other one: its kernel's title, or its number where both have the same."""
    return f"run {baseline.id}" if baseline.title == run.title else run_name(baseline)


def compare(entrant: ComparedRun, baseline: ComparedRun) -> Comparison:
    """The run against the baseline."""
    run, base = entrant.run, baseline.run
    verdict, why, speed = judge(entrant, baseline)

    def part(key: str, title: str, before: float | None, now: float | None) -> Delta:
        return Delta(key, title, before, now, now / before - 1 if speed is not None and before and now is not None else None)

    titles = {p.key: p.title for r in (base, run) for p in r.phases}
    ours, theirs = ({p.key: p.seconds for p in r.phases} for r in (run, base))
    stages = [part(s.key, s.title, base.stage_seconds(s.key), run.stage_seconds(s.key)) for s in STAGES.values() if s.title]
    return Comparison(
        entrant,
        baseline,
        verdict,
        why,
        speed,
        Delta("total", "total", base.seconds, run.seconds, speed.estimate - 1 if speed is not None else None),
        tuple(part(key, title, theirs.get(key), ours.get(key)) for key, title in titles.items()),
        tuple(d for d in stages if d.baseline is not None or d.seconds is not None),
        differences(entrant, baseline),
    )


def judge(entrant: ComparedRun, baseline: ComparedRun) -> tuple[str, str, Ratio | None]:
    """The verdict, the reason in words, and the ratio of times if there is one.

    From the interval of `fwtui.analysis.ratio_interval.ratio` and a threshold of 1 % either way: FASTER or SLOWER if the whole
    interval lies beyond it, SAME if it lies within (two one-sided tests: D. J. Schuirmann, J. Pharmacokinetics and
    Biopharmaceutics 15, 1987), else UNCLEAR: the measurement cannot decide. With too few passes for an interval, there is
    still a verdict if even the closest passes differ FAR times, or APART times if there are three of each that agree. A run
    that is not finished, not verified, simulated or of another n is NOT COMPARED (another graph of the same n is the same
    work).

    The interval covers variation between passes of a run; runs vary more (T. Kalibera, R. Jones, Rigorous Benchmarking in
    Reasonable Time, ISMM 2013), so if an experiment was repeated, a difference must also exceed that between its
    repetitions. What disturbs a run only makes it slower: if the slower of the two was disturbed, as much as that may have
    cost it more than the other is taken off the difference, and LEAST has to be left of it. The same experiment in the same
    session on the same device is never FASTER or SLOWER: nothing changed between the two, so any difference comes from the
    machine. The same experiment in two sessions is compared as usual: before and after a change, two machines, two versions.
    """
    why = _refusal(entrant, baseline)
    if why:
        return NOT_COMPARED, why, None
    run, base = entrant.run, baseline.run
    speed = ratio(run.passes, base.passes) or _rough(run, base)
    if speed is None:
        return UNCLEAR, _too_few(run, base), None
    low, high = speed.low, speed.high
    span = speed.words if isinstance(speed, Rough) else " to ".join(dict.fromkeys((_change(low), _change(high))))
    words, better = f"time {span}", ""
    if isinstance(speed, Rough):
        few = speed.passes < ENOUGH
        words, better = span, f"; for a better estimate {f'repeat it at least {ENOUGH} times' if few else 'run it again'}"
    if low >= 1 / (1 + MATTERS) and high <= 1 + MATTERS:
        return SAME, f"{words}, within {units.percent(MATTERS)}", speed
    ours, theirs = disturbed = _disturbances(entrant), _disturbances(baseline)
    both = [(e.label, one) for e, ones in zip((entrant, baseline), disturbed, strict=True) for one in ones]
    if both:
        whys = " and ".join(f"{label} was {one.word} ({one.why})" for label, one in both)
        least = 1 / high / most_gained(base, run, theirs, ours) if high < 1 else low / most_gained(run, base, ours, theirs)
        if least < LEAST:
            return UNCLEAR, f"{words}, but {whys}", speed
        word = ", ".join(dict.fromkeys(one.word for _, one in both))
        speed = AtLeast(speed.estimate, low, high, _rounded_down(least), word)
        words, better = f"{speed.words}: {whys}", ""
    if _device(entrant) == _device(baseline) and identity(run.experiment) == identity(base.experiment):
        return UNCLEAR, f"the same experiment again {_again(speed)}: the machine's doing; run it on a quiet machine", speed
    if not (high < 1 / (1 + MATTERS) or low > 1 + MATTERS):
        return UNCLEAR, f"{words}; more passes would show whether it exceeds {units.percent(MATTERS)}", speed
    noise = max(repeated(e.model, e.run) for e in (entrant, baseline))
    if not (high < 1 / (1 + noise) or low > 1 + noise):
        return UNCLEAR, f"{words}, but repetitions of the same experiment differ by {units.percent(noise)}", speed
    return (FASTER if high < 1 else SLOWER), words + better, speed


def speedup(run: Run, against: Run | None) -> float | None:
    """The run's speed-up, estimated as in a comparison; from the totals if there are too few passes.

    None if the two did not do the same work, or one of them is not finished or not verified.
    """
    if against is None or run.n != against.n or not (run.counts and against.counts):
        return None
    assert run.seconds and against.seconds
    times = ratio(run.passes, against.passes)
    return against.seconds / run.seconds if times is None else 1 / times.estimate


def repeated(model: Model, run: Run) -> float:
    """How much slower the slowest verified run of the same experiment in that session is than the fastest; 0 for a single run.

    Disturbed runs are left out: they do not represent the others.
    """
    return model.once(_noise, *model.once(_by_experiment).get((run.device, *identity(run.experiment)), ()))


def _by_experiment(model: Model) -> dict[tuple[object, ...], list[Run]]:
    """The runs of each experiment on each device, as far as they count."""
    by_experiment: dict[tuple[object, ...], list[Run]] = {}
    for run in model.runs.values():
        if run.counts:
            by_experiment.setdefault((run.device, *identity(run.experiment)), []).append(run)
    return by_experiment


def _noise(model: Model, *runs: Run) -> float:
    times = [run.seconds for run in runs if run.seconds and not disturbances(run, model.evidence(run))]
    return max(times) / min(times) - 1 if times else 0.0


def differences(entrant: ComparedRun, baseline: ComparedRun) -> tuple[str, ...]:
    """Every difference between the two except times: tile 32 against 16."""
    ours, theirs = entrant.run.experiment, baseline.run.experiment
    both = ours.options.keys() & theirs.options.keys()  # options of different kernels are not compared
    fields = [(field.name, _shown(field, ours), _shown(field, theirs)) for field in FIELDS if field.name not in HOW_MEASURED]
    fields += [(name, str(ours.options[name]), str(theirs.options[name])) for name in sorted(both)]
    words = [f"{name} {one} against {other}" for name, one, other in fields if one != other]
    if entrant.device != baseline.device:
        words.append(f"{entrant.device or 'an unknown machine'} against {baseline.device or 'an unknown machine'}")
    return tuple(words)


def pairs(ours: Sequence[ComparedRun], theirs: Sequence[ComparedRun]) -> list[tuple[ComparedRun, ComparedRun]]:
    """(run, baseline) for every experiment with a finished run in both; the latest of several."""
    by_identity = {identity(e.run.experiment): e for e in theirs if e.run.state == "done"}
    latest = {identity(e.run.experiment): e for e in ours if e.run.state == "done"}
    return [(entrant, by_identity[experiment]) for experiment, entrant in latest.items() if experiment in by_identity]


def _refusal(entrant: ComparedRun, baseline: ComparedRun) -> str:
    """Why the two cannot be compared; empty if they can."""
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
    return ""


def _shown(field: Field, experiment: Experiment) -> str:
    text = field.show(experiment)
    if field.name == "devices" and not text:
        return "one"
    return "none" if not text or (field.name == "tile" and not experiment.tile) else text


def _disturbances(entrant: ComparedRun) -> tuple[Disturbance, ...]:
    return disturbances(entrant.run, entrant.model.evidence(entrant.run))


def _device(entrant: ComparedRun) -> tuple[object, ...]:
    """The run's device and session; the same session may have been read twice or recorded in parts."""
    header = entrant.model.header
    session = (header.created, header.machine) if header is not None else (entrant.model,)
    return (*session, entrant.run.device)


def _rough(run: Run, base: Run) -> Rough | None:
    """The ratio of times from too few passes for an interval; None if chance could explain it."""
    ours, theirs = (r.passes or (r.seconds or 0.0,) for r in (run, base))
    if not run.seconds or not base.seconds or min(*ours, *theirs, run.seconds, base.seconds) < LEAST_SECONDS:
        return None
    low, high = min(ours) / max(theirs), max(ours) / min(theirs)
    exact = min(len(ours), len(theirs)) >= FEW and all(max(passes) <= EXACT * min(passes) for passes in (ours, theirs))
    far = APART if exact else FAR
    if not (high <= 1 / far or low >= far):
        return None
    slower = run.seconds > base.seconds
    times = float(f"{max(run.seconds, base.seconds) / min(run.seconds, base.seconds):.0e}")
    passes = min(r.done.count if r.done is not None else len(r.samples) for r in (run, base))
    return Rough(times if slower else 1 / times, low, high, passes)


def _too_few(run: Run, base: Run) -> str:
    """Why there are not enough passes of both."""
    for one in (run, base):
        if one.done is not None and len(one.passes) < min(one.done.count, events.SAMPLES_TOLD):
            count = f"{len(one.passes)} of the {one.done.count} passes of run {one.id}"
            return f"this recording keeps {count}, too few to tell a difference from chance; run it again"
    fewest = min(len(run.passes), len(base.passes))
    few = f"{units.counted(fewest, 'pass', 'passes')} per run {'is' if fewest == 1 else 'are'} too few"
    return f"{few}; repeat it at least {ENOUGH} times"


def _rounded_down(times: float) -> float:
    """To one digit."""
    unit = 10.0 ** floor(log10(times))
    return floor(times / unit) * unit


def _again(speed: Ratio) -> str:
    """How much longer or shorter the same took."""
    low, high = sorted((speed.low, speed.high))
    if not isinstance(speed, Interval):
        return f"took {'less' if high < 1 else 'more'} time, {speed.words}"
    if not (high < 1 or low > 1):
        return f"took between {units.percent(1 - low)} less and {units.percent(high - 1)} more time"
    if low >= 2:
        return f"took {units.gain(low)} the time"
    ends = dict.fromkeys(units.percent(abs(end - 1)) for end in sorted((low, high), key=lambda end: abs(end - 1)))
    return f"took {' to '.join(ends)} {'less' if high < 1 else 'more'} time"


def _change(multiple: float) -> str:
    """A ratio of times as a change: -67.2 %; a large one as a multiple."""
    return f"{100 * (multiple - 1):+.1f} %" if multiple < 2 else units.gain(multiple)
