"""Explanation of a run: the quantities that changed against the baseline, and the run's bottleneck.

Uses only data from the session: the kernel's cost model, hardware counters, telemetry.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite
from typing import NamedTuple

from fwtui.analysis.bottleneck import OWNER, UNKNOWN, Bottleneck, counters_of
from fwtui.analysis.compare import FASTER, NOT_COMPARED, SAME, SLOWER, UNCLEAR, ComparedRun, Comparison, compare, other_name
from fwtui.analysis.cpu import CACHE_LINE, cpu_facts, describe_cpu
from fwtui.analysis.disturbances import timers_distort
from fwtui.analysis.limits import limit_of
from fwtui.analysis.phase_table import TIMERS, UNMEASURED, phase_rows, slowest_line
from fwtui.analysis.rank_timing import describe_waiting, number_word
from fwtui.analysis.warps import ISSUE, PIPE, loop_facts, main_samples
from fwtui.common import units
from fwtui.stream.run import of_phase
from fwtui_kernels.plan import ITEMSIZE

MIN_RATIO = 1.25  # a quantity counts as changed from this ratio on
MAX_CHANGES = 2
ROUNDING = 0.05  # factors this close to an integer are printed as integers
MIN_PEAK_SHARE = 0.5  # below this share of the peak rate, a busy unit executes many instructions that are not relaxations
COUNTED = {  # quantities of which less makes a run faster: text before and after the numbers
    "instructions": ("{}x {} integer instructions", "per relaxation"),
    "loop": ("{}x {} instructions in the inner loop", "per relaxation"),
    "shared": ("{}x {} bytes read from shared memory", "B per relaxation"),
}
SHARED, RELAXATIONS, INSTRUCTIONS = "shared_load_bytes", "relaxations", "integer_instructions_per_relaxation"
COUNTERS, LIMITS = "counters", "limits"  # measurements that would name an unknown bottleneck


class Explanation(NamedTuple):
    """The parts of an explanation; missing ones are empty or None."""

    change: str = ""  # against the baseline
    limiter: Bottleneck | None = None  # bottleneck of the slowest phase
    phase: str = ""  # title and share of that phase, if there are several; no share if the timers lengthened it too much
    missing: str = ""  # COUNTERS or LIMITS, if they would name the bottleneck
    busy_with: str = ""  # instructions that keep a unit busy far below the peak rate of relaxations
    exchange: str = ""  # time that ranks lose by exchanging panels
    cpu: str = ""  # cores, clock and instructions of a run on a CPU

    def bottleneck(self, ask: str = "", sourced: bool = False) -> str:
        """Describe the bottleneck: shared memory in the remainder phase (71 % of the time): 95 % busy.

        `ask` is the instruction for measuring missing data; with `sourced` the text names the origin of its numbers.
        Empty if the run has no phases, or if `exchange` already describes it.
        """
        if self.limiter is None or (self.exchange and self.limiter.what == OWNER):
            return ""
        offers = bool(self.missing and ask)
        limiter = self.limiter.sourced if sourced else self.limiter
        if offers and limiter.because == UNMEASURED:
            limiter = limiter._replace(because="")
        return limiter.text(self.phase, self.busy_with) + f"; {ask}" * offers

    def sentence(self, sourced: bool = False) -> str:
        """Return the whole explanation in sentences."""
        limit = self.bottleneck(sourced=sourced)
        parts = [self.change, f"bottleneck: {limit}" * bool(limit), self.exchange, self.cpu]
        return " ".join(f"{part[0].upper()}{part[1:]}." for part in parts if part)


def explain(entrant: ComparedRun, baseline: ComparedRun | None) -> Explanation:
    """Explain the time of a run, and its difference to the baseline if there is one."""
    model, run, _ = entrant
    if run.state != "done" or run.simulated or run.seconds is None:
        return Explanation()
    lines = phase_rows(model, run)
    slowest = slowest_line(lines)
    if run.backend == "cpu" and slowest is not None and slowest.limiter.because == TIMERS:
        slowest, lines = lines[-1], lines[-1:]  # of all phases
    limiter = slowest.limiter if slowest is not None else None
    missing = ""
    if limiter is not None and limiter.what == UNKNOWN:
        unmeasured = limiter.because != TIMERS and model.measured.get(run.device) is None
        missing = COUNTERS if run.backend == "cuda" else LIMITS if unmeasured else ""
    phase = ""
    if slowest is not None and len(lines) > 1 and lines[-1].seconds:
        share = "" if timers_distort(run) else f" ({100 * slowest.seconds / lines[-1].seconds:.0f} % of the time)"
        phase = f"the {slowest.title} phase{share}"
    limit = limit_of(model, run)
    busy = limiter is not None and limiter.what.startswith((ISSUE, PIPE)) and "% busy" in f"{limiter.because}{limiter.busy}"
    far = busy and limit is not None and limit.share is not None and limit.share < MIN_PEAK_SHARE
    against = _against(compare(entrant, baseline)) if baseline is not None else ""
    facts = cpu_facts(model, run)
    cpu = describe_cpu(facts, of_phase(run.loops, slowest.key if slowest is not None else "")) if facts is not None else ""
    return Explanation(against, limiter, phase, missing, "mainly loads and addresses" * far, describe_waiting(model, run), cpu)


def speedup_causes(comparison: Comparison) -> tuple[str, ...]:
    """Return the quantities that changed in favour of the faster run, largest change first; empty without a faster run."""
    if comparison.verdict not in (FASTER, SLOWER):
        return ()
    entrant, baseline, faster = comparison.entrant, comparison.baseline, comparison.verdict == FASTER
    finite = [(gain, text) for gain, text in _quantities(entrant, baseline) if isfinite(gain) and gain > 0]
    quantities = [(gain if faster else 1 / gain, text) for gain, text in finite]
    largest = [text for gain, text in sorted(quantities, reverse=True) if gain >= MIN_RATIO][:MAX_CHANGES]
    if entrant.run.backend != baseline.run.backend:
        largest.insert(0, f"{entrant.device or 'a GPU'} instead of {baseline.device or 'a CPU'}")
    elif entrant.run.experiment.kernel == baseline.run.experiment.kernel:
        # the quantities describe a change of these two fields
        differences = [one for one in comparison.differs if not one.startswith(("dtype ", "devices "))]
        largest = [*differences[:1], *largest]
    return tuple(largest)


def _against(comparison: Comparison) -> str:
    """Describe the comparison with the baseline."""
    if comparison.verdict == NOT_COMPARED:
        return ""
    name = other_name(comparison.entrant.run, comparison.baseline.run)
    if comparison.verdict == SAME:
        return f"same time as {name}"
    if comparison.verdict == UNCLEAR:
        return (
            f"{comparison.multiple} {name}, but the difference is unclear: {comparison.why}"
            if comparison.multiple
            else f"unclear: {comparison.why}"
        )
    why = "; ".join(speedup_causes(comparison))
    return f"{comparison.multiple} {name}{f': {why}' if why else '; the measurements do not explain the difference'}"


def _quantities(entrant: ComparedRun, baseline: ComparedRun) -> Iterator[tuple[float, str]]:
    """Yield (baseline / run, description) for every quantity of which less makes a run faster."""
    run, base = entrant.run, baseline.run
    if run.backend == base.backend and run.device_count != base.device_count:
        ours, theirs = (number_word(one.device_count) for one in (run, base))
        several = "GPUs" if run.backend == "cuda" else "machines"
        yield run.device_count / base.device_count, f"{ours} {several} instead of {theirs}"
    if run.relaxations and base.relaxations and run.n == base.n:
        gain = base.relaxations / run.relaxations
        amounts = " -> ".join(units.scaled(one.relaxations, "").strip() for one in (base, run))
        yield gain, f"{_count(gain)}x {'fewer' if gain > 1 else 'more'} relaxations: {amounts}"
    sizes = [ITEMSIZE.get(one.experiment.dtype, 4) for one in (base, run)]
    if sizes[0] != sizes[1]:
        yield sizes[0] / sizes[1], f"values of {sizes[1]} bytes instead of {sizes[0]}"
    operands = [
        one.device_bytes / size / one.relaxations if one.relaxations else 0.0
        for one, size in zip((base, run), sizes, strict=True)
    ]
    if all(operands) and run.backend == base.backend and run.relaxations == base.relaxations:
        gain = operands[0] / operands[1]
        amounts = [units.scaled(one.device_bytes, "B") for one in (base, run)] if sizes[0] == sizes[1] else []
        often = f"{_count(gain)}x {'fewer' if gain > 1 else 'more'} bytes requested"
        yield gain, f"{often}{': ' * bool(amounts)}{' -> '.join(amounts)}"
    there, here = (cpu_facts(one.model, one.run) for one in (baseline, entrant))
    if there is not None and here is not None and there.down_columns != here.down_columns and base.source and run.source:
        cells = CACHE_LINE / sizes[1]  # of a row in one cache line
        if there.down_columns:
            yield cells, "its inner loop goes along a row, whose cells share cache lines, not down a column"
        else:
            yield 1 / cells, "its inner loop goes down a column, so each load touches another cache line"
    theirs, ours = (_counted(one) for one in (baseline, entrant))
    for what, (text, unit) in COUNTED.items():
        if not (theirs[what] and ours[what]) or (what == "loop" and theirs["instructions"] and ours["instructions"]):
            continue
        gain = theirs[what] / ours[what]
        fewer = "fewer" if gain > 1 else "more"
        yield gain, f"{text.format(_count(gain), fewer)}: {units.digits(theirs[what])} -> {units.digits(ours[what])} {unit}"
    overlaps = [
        one.instrumented_repetition.seconds / one.seconds if one.instrumented_repetition and one.seconds else 0.0
        for one in (base, run)
    ]
    # on a CPU, phases that take longer than all cores together could work also waited
    possible = run.backend == "cuda" or (here is not None and overlaps[1] <= (here.cores or 1))
    if possible and all(overlaps) and not (run.ranks or base.ranks) and run.instrumented_repetition is not None:
        work = f"{units.duration(run.instrumented_repetition.seconds)} of work in {units.duration(run.seconds)}"
        yield overlaps[1] / overlaps[0], f"its phases overlap: {work}"


def _count(ratio: float) -> str:
    """Format the larger of ratio and 1 / ratio; empty for a ratio that is 0 or not finite."""
    times = max(ratio, 1 / ratio) if ratio else inf
    if not isfinite(times):
        return ""
    return f"{times:,.0f}" if times >= 9.95 or abs(times - round(times)) < ROUNDING else f"{times:.1f}"


def _counted(entrant: ComparedRun) -> dict[str, float]:
    """Return counters, and instructions of the sampled inner loop, per relaxation in the slowest phase."""
    slowest = slowest_line(phase_rows(entrant.model, entrant.run))
    counters = counters_of(entrant.run, slowest.key) if slowest is not None else {}
    shared = counters.get(SHARED, 0.0) / counters[RELAXATIONS] if counters.get(RELAXATIONS) else 0.0
    sampled = main_samples(entrant.run)
    loop = loop_facts(sampled).each if sampled is not None else None
    return {"instructions": counters.get(INSTRUCTIONS, 0.0), "loop": loop or 0.0, "shared": shared}
