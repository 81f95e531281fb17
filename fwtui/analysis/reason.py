"""Why a run takes its time, in a sentence: which quantity changed against the baseline, and what limits the run now.

Uses only data from the session: the kernel's model of bytes, hardware counters, telemetry.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite
from typing import NamedTuple

from fwtui.analysis.compare import FASTER, NOT_COMPARED, SAME, SLOWER, UNCLEAR, ComparedRun, Comparison, compare, other_name
from fwtui.analysis.cpu import cpu_facts, in_words, loop_of
from fwtui.analysis.ledger import OWNER, UNKNOWN, UNMEASURED, Limiter, counters_of, ledger, slowest_line
from fwtui.analysis.limits import limit_of
from fwtui.analysis.ranks import number_word, waits
from fwtui.analysis.warps import loop_facts, main_samples
from fwtui.common import units
from fwtui_kernels.plan import ITEMSIZE

CHANGED = 1.25  # ratio from which a quantity counts as changed
MOST_CHANGES = 2
ROUND = 0.05  # a number of times that is so near to a whole one is told as that
HALF = 0.5  # of the limit: a unit that is busy does much else below it
COUNTED = {  # what less of makes a run faster, and the words before and after its numbers
    "instructions": ("{} times {} integer instructions", "a relaxation"),
    "loop": ("{} times {} instructions in the inner loop", "a relaxation"),
    "shared": ("reads {} times {} from shared memory", "bytes a relaxation"),
}
# of the hardware counters, what _counted() reads
SHARED, RELAXATIONS, INSTRUCTIONS = COUNTERS_READ = (
    "shared_load_bytes",
    "relaxations",
    "integer_instructions_per_relaxation",
)
COUNTERS, LIMITS = "counters", "limits"  # what would show more


class Reason(NamedTuple):
    """The parts of the sentence; missing ones are empty or None."""

    change: str = ""  # against the baseline
    limiter: Limiter | None = None  # of the phase that takes longest
    phase: str = ""  # its title and share, if there are several
    missing: str = ""  # COUNTERS or LIMITS, if they would show what limits it
    beside: str = ""  # what units are busy with far below the limit of relaxations, if they are
    exchange: str = ""  # what ranks lose by exchanging panels
    cpu: str = ""  # what is known of a run on a CPU

    def sentence(self, ask: str = "", sourced: bool = False) -> str:
        """The whole sentence; `ask` says how to get missing data; `sourced`: with where the limiter's numbers come from."""
        parts = [self.change] if self.change else []
        if self.limiter is not None and not (self.exchange and self.limiter.what == OWNER):
            inside = self.phase and self.limiter.what not in (UNKNOWN, OWNER)  # a phase's title may be a plural
            offers = bool(self.missing and ask)
            limiter = self.limiter.sourced if sourced else self.limiter
            if offers and limiter.because == UNMEASURED:
                limiter = limiter._replace(because="")
            within = f"in {self.phase} " if inside else ""
            sentence = within + limiter.sentence("it" if inside or not self.phase else self.phase, self.beside)
            parts.append(sentence + f"; {ask}" * offers)
        parts += [part for part in (self.exchange, self.cpu) if part]
        return " ".join(f"{words[0].upper()}{words[1:]}." for words in parts)


def reason(entrant: ComparedRun, baseline: ComparedRun | None) -> Reason:
    """Why the run takes as long as it does, and why longer or shorter than the baseline."""
    model, run, _ = entrant
    if run.state != "done" or run.simulated or run.seconds is None:
        return Reason()
    lines = ledger(model, run)
    slowest = slowest_line(lines)
    limiter = slowest.limiter if slowest is not None else None
    missing = ""
    if limiter is not None and limiter.what == UNKNOWN:
        missing = COUNTERS if run.backend == "cuda" else LIMITS if model.measured.get(run.device) is None else ""
    phase = ""
    if slowest is not None and len(lines) > 1 and lines[-1].seconds:
        phase = f"phase {slowest.title} ({100 * slowest.seconds / lines[-1].seconds:.0f} % of time)"
    limit = limit_of(model, run)
    busy = limiter is not None and "instructions" in limiter.what and "% busy" in f"{limiter.because}{limiter.busy}"
    far = busy and limit is not None and limit.share is not None and limit.share < HALF
    beside = "mainly loads and addresses" if far else ""
    against = _against(compare(entrant, baseline)) if baseline is not None else ""
    facts = cpu_facts(model, run)
    cpu_words = in_words(facts, loop_of(run, slowest.key if slowest is not None else "")) if facts is not None else ""
    return Reason(against, limiter, phase, missing, beside, waits(model, run), cpu_words)


def changes(comparison: Comparison) -> tuple[str, ...]:
    """The quantities that changed in favour of the faster run, greatest first; empty if neither is known to be faster."""
    if comparison.verdict not in (FASTER, SLOWER):
        return ()
    entrant, baseline, faster = comparison.entrant, comparison.baseline, comparison.verdict == FASTER
    finite = [(gain, words) for gain, words in _quantities(entrant, baseline) if isfinite(gain) and gain > 0]
    quantities = [(gain if faster else 1 / gain, words) for gain, words in finite]
    largest = [words for gain, words in sorted(quantities, reverse=True) if gain >= CHANGED][:MOST_CHANGES]
    if entrant.run.backend != baseline.run.backend:
        largest.insert(0, f"{entrant.device or 'a GPU'} instead of {baseline.device or 'a CPU'}")
    elif entrant.run.experiment.kernel == baseline.run.experiment.kernel:
        differences = [
            one for one in comparison.differs if not one.startswith(("dtype ", "devices "))
        ]  # quantities say those better
        largest = [*differences[:1], *largest]
    return tuple(largest)


def _against(comparison: Comparison) -> str:
    """The comparison in words."""
    if comparison.verdict == NOT_COMPARED:
        return ""
    name = other_name(comparison.entrant.run, comparison.baseline.run)
    if comparison.verdict == SAME:
        return f"as fast as {name}"
    if comparison.verdict == UNCLEAR:
        return (
            f"{comparison.multiple} {name}, but that is unclear: {comparison.why}"
            if comparison.multiple
            else f"unclear: {comparison.why}"
        )
    why = "; ".join(changes(comparison))
    return f"{comparison.multiple} {name}{f': {why}' if why else '; the measurements do not show why'}"


def _quantities(entrant: ComparedRun, baseline: ComparedRun) -> Iterator[tuple[float, str]]:
    """(baseline's / run's, in words) for every quantity of which less makes a run faster."""
    run, base = entrant.run, baseline.run
    if run.backend == base.backend and run.device_count != base.device_count:
        ours, theirs = (number_word(one.device_count) for one in (run, base))
        several = "GPUs" if run.backend == "cuda" else "machines"
        yield run.device_count / base.device_count, f"{ours} {several} instead of {theirs}"
    if run.relaxations and base.relaxations and run.n == base.n:
        gain = base.relaxations / run.relaxations
        amounts = " -> ".join(units.scaled(one.relaxations, "").strip() for one in (base, run))
        yield gain, f"does {_count(gain)} times {'fewer' if gain > 1 else 'more'} relaxations: {amounts}"
    sizes = [ITEMSIZE.get(one.experiment.dtype, 4) for one in (base, run)]
    if sizes[0] != sizes[1]:
        yield sizes[0] / sizes[1], f"numbers of {sizes[1]} bytes instead of {sizes[0]}"
    operands = [
        one.device_bytes / size / one.relaxations if one.relaxations else 0.0
        for one, size in zip((base, run), sizes, strict=True)
    ]
    if all(operands) and run.backend == base.backend and run.relaxations == base.relaxations:
        gain = operands[0] / operands[1]
        amounts = [units.scaled(one.device_bytes, "B") for one in (base, run)] if sizes[0] == sizes[1] else []
        often = f"reads each number {_count(gain)} times {'less' if gain > 1 else 'more'}"
        yield gain, f"{often}{': ' * bool(amounts)}{' -> '.join(amounts)}"
    theirs, ours = (_counted(one) for one in (baseline, entrant))
    for what, (words, unit) in COUNTED.items():
        if not (theirs[what] and ours[what]) or (what == "loop" and theirs["instructions"] and ours["instructions"]):
            continue
        gain = theirs[what] / ours[what]
        fewer = ("less" if what == "shared" else "fewer") if gain > 1 else "more"
        yield gain, f"{words.format(_count(gain), fewer)}: {units.digits(theirs[what])} -> {units.digits(ours[what])} {unit}"
    overlaps = [one.phase_pass.seconds / one.seconds if one.phase_pass and one.seconds else 0.0 for one in (base, run)]
    if all(overlaps) and not (run.ranks or base.ranks) and run.phase_pass is not None:
        work = f"{units.duration(run.phase_pass.seconds)} of work in {units.duration(run.seconds)}"
        yield overlaps[1] / overlaps[0], f"its phases overlap: {work}"


def _count(ratio: float) -> str:
    """How many times, whichever of the two is more; nothing for what no quantities have."""
    times = max(ratio, 1 / ratio) if ratio else inf
    if not isfinite(times):
        return ""
    return f"{times:,.0f}" if times >= 9.95 or abs(times - round(times)) < ROUND else f"{times:.1f}"


def _counted(entrant: ComparedRun) -> dict[str, float]:
    """Hardware counters, and instructions of the sampled inner loop, per relaxation in the phase that takes longest."""
    slowest = slowest_line(ledger(entrant.model, entrant.run))
    counters = counters_of(entrant.run, slowest.key) if slowest is not None else {}
    shared = counters.get(SHARED, 0.0) / counters[RELAXATIONS] if counters.get(RELAXATIONS) else 0.0
    sampled = main_samples(entrant.run)
    loop = loop_facts(sampled).each if sampled is not None else None
    return {"instructions": counters.get(INSTRUCTIONS, 0.0), "loop": loop or 0.0, "shared": shared}
