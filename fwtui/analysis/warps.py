"""What the samples of a GPU's warps mean: stall reasons in words, the reason with its line, and how instructions bound a rate.

Meanings: NVIDIA, Nsight Compute documentation, "Kernel Profiling Guide", section "Warp Stall Reasons".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from fwtui.common import units
from fwtui.stream.events import WarpSamples
from fwtui.stream.listing import OTHER, CodeLine, Instruction, Listing, opcode
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui_kernels.plan import WARP

SCHEDULERS = 4  # of a multiprocessor, each of which issues an instruction of one warp in a cycle; since Volta
BUSY = 0.5  # share of samples of warps that issue, could, or wait for arithmetic, from which a kernel computes all the time
ELIGIBLE = 2.0  # warps for each instruction that is issued, below which a scheduler often has none: it waits
MOVED = 0.01  # of the samples, by which a share has to differ to be told


class Stall(NamedTuple):
    """Why a warp did not issue an instruction in the cycle in which it was sampled."""

    noun: str  # what is lacking, in a table
    verb: str  # what it does then, after "it"
    meaning: str
    advice: str = ""

    @property
    def short(self) -> str:
        """The verb without what goes without saying."""
        return self.verb.replace("waits because ", "").replace("waits ", "")


ISSUED, COULD_ISSUE, ARITHMETIC = "selected", "not_selected", "math_pipe_throttle"
DEVICE_MEMORY, SHARED_MEMORY, SHARED_PIPE = "long_scoreboard", "short_scoreboard", "mio_throttle"
WORKING = frozenset({ISSUED, COULD_ISSUE})  # nothing to wait for
STALLS: Mapping[str, Stall] = {
    ISSUED: Stall("instructions", "issues an instruction", "it works"),
    COULD_ISSUE: Stall("instructions", "could issue, but another warp did", "the scheduler is busy: more warps would not help"),
    ARITHMETIC: Stall(
        "arithmetic units",
        "waits because the arithmetic units are full",
        "the kernel computes as fast as they can",
        "do less work",
    ),
    DEVICE_MEMORY: Stall(
        "device memory",
        "waits for device memory",
        "for a number from device memory or a cache",
        "load each number once into shared memory or registers, or load earlier",
    ),
    "lg_throttle": Stall(
        "the queue of loads",
        "waits because the queue of loads from device memory is full",
        "too many loads and stores are under way",
        "load several neighbours with one instruction",
    ),
    SHARED_MEMORY: Stall(
        "shared memory",
        "waits for shared memory",
        "for a number from shared memory",
        "keep operands in registers, and do other work between the load and its use",
    ),
    SHARED_PIPE: Stall(
        "the shared memory pipe",
        "waits because the shared memory pipe is full",
        "more loads from shared memory are asked for than its pipe takes",
        "use each number that is loaded more often: a tile of results in each thread's registers",
    ),
    "barrier": Stall("barriers", "waits at a barrier", "for the other warps of its block", "fewer barriers, or smaller blocks"),
    "membar": Stall("memory fences", "waits at a memory fence", "until its stores can be seen", "fewer fences"),
    "wait": Stall(
        "latency of instructions",
        "waits for the instruction before it",
        "a fixed number of cycles until a result is there",
        "several independent results in each thread",
    ),
    "branch_resolving": Stall(
        "branches", "waits for a branch", "until it is known where it goes on", "replace branches by minimums; unroll"
    ),
    "dispatch_stall": Stall(
        "the dispatcher", "waits for the dispatcher", "it holds instructions back, often for busy registers or units"
    ),
    "drain": Stall(
        "last stores", "waits for its last stores", "a block ends when they are written", "store whole rows of 128 bytes"
    ),
    "imc_miss": Stall(
        "constants", "waits for a constant", "the cache of constants does not hold it", "pass fewer arguments, or larger tiles"
    ),
    "no_instructions": Stall(
        "the instruction cache", "waits for its instructions", "they are not in the instruction cache", "unroll less"
    ),
    "sleeping": Stall("sleep", "sleeps", "it asked to", "shorter sleeps"),
    "tex_throttle": Stall("the texture queue", "waits because the texture queue is full", "too many such loads are under way"),
    OTHER: Stall("several small reasons", "waits for one of several small reasons", "each too small to be named"),
    "misc": Stall("other", "waits for something else", "the hardware names no reason"),
    "gmma": Stall("matrix units", "waits for a matrix unit", "for the result of a matrix instruction"),
}
UNNAMED = Stall("something unknown", "waits for something that is not known here", "a newer GPU has reasons of its own")


def stall(reason: str) -> Stall:
    return STALLS.get(reason, UNNAMED)


class WarpReason(NamedTuple):
    """What the warps of an operation do most."""

    noun: str
    verb: str
    share: float  # of the samples
    line: CodeLine | None
    rank: int | None = None  # whose samples these are, of several

    def __str__(self) -> str:
        """After "it": waits for shared memory in 41 % of samples, most at k60_optimized.py:48."""
        return f"{self.verb} in {self.evidence}"

    @property
    def place(self) -> str:
        """Its line, as file:line; empty if that is not known."""
        return f"{self.line.file}:{self.line.line}" if self.line is not None and self.line.file else ""

    @property
    def evidence(self) -> str:
        """The share and the line: 41 % of samples, most at k60_optimized.py:48."""
        whose = f"rank {self.rank}'s " if self.rank is not None else ""
        return f"{100 * self.share:.0f} % of {whose}samples{f', most at {self.place}' if self.place else ''}"


def samples_of(run: Run, phase: str) -> WarpSamples | None:
    """Samples of the phase's op; None if there are none."""
    by_op = {samples.op: samples for samples in run.warps if samples.samples}
    return by_op.get(phase) or (next(iter(by_op.values())) if len(by_op) == 1 else None)


def main_samples(run: Run) -> WarpSamples | None:
    """Samples of the phase that takes longest; None if there are none."""
    slowest = max(run.phases, key=lambda phase: phase.seconds, default=None)
    return samples_of(run, slowest.key if slowest is not None else "")


def shares(reasons: Mapping[str, int]) -> dict[str, float]:
    """The share of each reason, the greatest first; empty without samples."""
    total = sum(reasons.values())
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return {reason: count / total for reason, count in ordered if count} if total else {}


def busy(reasons: Mapping[str, int]) -> float:
    """The share of samples of warps that issue, could, or wait for arithmetic units that are full."""
    by_share = shares(reasons)
    return sum(by_share.get(reason, 0.0) for reason in (ISSUED, COULD_ISSUE, ARITHMETIC))


def main_reason(reasons: Mapping[str, int]) -> str:
    """What most warps wait for. Where they compute instead, that they issue: warps that could wait wherever they are."""
    eligible = reasons.get(ISSUED, 0) + reasons.get(COULD_ISSUE, 0)
    computes = busy(reasons) >= BUSY and eligible >= ELIGIBLE * reasons.get(ISSUED, 0)
    return ISSUED if computes else next((r for r in shares(reasons) if r not in WORKING), ISSUED)


def warp_reason(samples: WarpSamples, listing: Listing | None = None) -> WarpReason:
    """What most warps wait for, or that they compute, and the line where most do: that of the listing, if there is one."""
    reason = main_reason(samples.reasons)
    hot = max(listing.sampled if listing is not None else (), key=lambda line: line.reasons.get(reason, 0), default=None)
    hot = hot if hot is not None and hot.reasons.get(reason) else samples.hot
    if reason == ISSUED:
        return WarpReason("instructions", "computes", busy(samples.reasons), hot, samples.rank)
    return WarpReason(stall(reason).noun, stall(reason).verb, shares(samples.reasons)[reason], hot, samples.rank)


class LoopFacts(NamedTuple):
    """What the instructions of an inner loop say, for one relaxation of one thread; None for loops without minimums."""

    instructions: int
    relaxations: int
    shared_loads: int
    global_loads: int
    spills: int

    @property
    def each(self) -> float | None:
        """Instructions per relaxation."""
        return self.instructions / self.relaxations if self.relaxations else None

    @property
    def per_cycle(self) -> float | None:
        """Relaxations per cycle of a multiprocessor whose schedulers issue an instruction in each, and wait for nothing."""
        return SCHEDULERS * WARP / self.each if self.each else None

    def rate(self, multiprocessors: int, hertz: float) -> float | None:
        """The same of a GPU, per second."""
        return multiprocessors * hertz * self.per_cycle if self.per_cycle else None


def loop_facts(code: WarpSamples | Listing) -> LoopFacts:
    """From how often each instruction is in its loop."""

    def of(pattern: str) -> int:
        return sum(count for name, count in code.mix.items() if re.match(pattern, name))

    return LoopFacts(sum(code.mix.values()), code.relaxations, of("LDS"), of("LDG|LD\\b"), of("LDL|STL"))


def issue_rate(model: Model, run: Run, samples: WarpSamples | None) -> float | None:
    """Relaxations a second of one GPU if its schedulers only ever issued the sampled inner loop; None if that is not known."""
    gpu, evidence = model.gpu_of(run), model.evidence(run)
    clock = (evidence.gpu_clock_mhz if evidence is not None else None) or (gpu.max_clock_mhz if gpu is not None else None)
    if samples is None or gpu is None or not gpu.multiprocessors or not clock:
        return None
    return loop_facts(samples).rate(gpu.multiprocessors, clock * 1e6)


def derived(listing: Listing) -> str:
    """What follows from the instructions of an inner loop alone; empty if there are none."""
    facts = loop_facts(listing)
    loads = [
        f"{units.digits(count / facts.relaxations)} loads from {memory} per relaxation"
        for count, memory in ((facts.shared_loads, "shared memory"), (facts.global_loads, "device memory"))
        if count and facts.relaxations
    ]
    limit = "none of its instructions is a minimum, so what a relaxation takes is not known"
    if facts.each is not None and facts.per_cycle is not None:
        each, most = units.digits(facts.each), units.digits(facts.per_cycle)
        limit = (
            f"{each} instructions per relaxation of a thread, so a multiprocessor can issue at most {most} relaxations per cycle"
        )
    words = in_words(listing.mix)
    return f"{'; '.join([limit, *loads, words])} (derived from its instructions, not measured)" if words else ""


def at_line(line: CodeLine) -> str:
    """What most warps do at a line that was sampled."""
    reason = main_reason(line.reasons)
    return "computes" if reason == ISSUED else stall(reason).verb


def line_words(line: CodeLine, total: int) -> str:
    """The same with its place, its text, and its share of all samples."""
    share = 100 * line.samples / (total or 1)
    return f"{line.file}:{line.line} {at_line(line)}: {share:.0f} % of samples, {line.text.strip()}".removesuffix(", ")


def in_words(mix: Mapping[str, int], most: int = 3) -> str:
    """The mix of a loop: 64 of 97 instructions are VIADDMNMX, 16 LDS.128."""
    total = sum(mix.values())
    named = Counter(mix).most_common(most)
    if not total:
        return ""
    rest = [f"{count:,} {name}" for name, count in named[1:]]
    count, name = named[0][1], named[0][0]
    verb = "is" if count == 1 else "are"
    return ", ".join([f"{count:,} of {units.counted(total, 'instruction')} {verb} {name}", *rest])


_ABSENT: tuple[CodeLine | None, float | None] = None, None


class ShareChange(NamedTuple):
    """What a reason or a line has of the samples of two runs; None if a run has no such line."""

    baseline: float | None
    run: float | None
    reason: str = ""
    line: CodeLine | None = None  # of the run, else of the baseline

    @property
    def size(self) -> float:
        return abs((self.run or 0.0) - (self.baseline or 0.0))


def reason_changes(run: WarpSamples, baseline: WarpSamples) -> list[ShareChange]:
    """The reasons whose share differs, the greatest change first."""
    ours, theirs = shares(run.reasons), shares(baseline.reasons)
    return _moved([ShareChange(theirs.get(name, 0.0), ours.get(name, 0.0), reason=name) for name in {**theirs, **ours}])


def line_changes(run: Listing, baseline: Listing) -> list[ShareChange]:
    """The lines whose share differs, the greatest change first: lines of one text are one line, in whatever file."""
    ours, theirs = _line_shares(run), _line_shares(baseline)
    changes: list[ShareChange] = []
    for key in {**ours, **theirs}:
        (line, now), (before, was) = ours.get(key, _ABSENT), theirs.get(key, _ABSENT)
        changes.append(ShareChange(was, now, line=line or before))
    return _moved(changes)


def _line_shares(listing: Listing) -> dict[tuple[object, ...], tuple[CodeLine, float]]:
    """The share of each line, by its text and how often that came before; by its place if the text was not recorded."""
    total = sum(line.samples for line in listing.lines) or 1
    occurrences: Counter[str] = Counter()
    shares: dict[tuple[object, ...], tuple[CodeLine, float]] = {}
    for line in listing.lines:
        text = line.text.strip()
        shares[(text, occurrences[text]) if text else (line.file, line.line)] = line, line.samples / total
        occurrences[text] += 1
    return shares


def _moved(changes: list[ShareChange]) -> list[ShareChange]:
    return sorted((one for one in changes if one.size >= MOVED), key=lambda one: -one.size)


class LoopRow(NamedTuple):
    """An instruction of two inner loops: "-" only in the baseline's, "+" only in the run's, " " in both by its name."""

    sign: str
    instruction: Instruction


def loop_rows(run: Listing, baseline: Listing) -> list[LoopRow]:
    """The inner loop of the baseline turned into that of the run, by the names of their instructions."""
    ours, theirs = run.inner, baseline.inner
    names = [[opcode(one.text) for one in loop] for loop in (theirs, ours)]
    rows: list[LoopRow] = []
    for what, i, until, j, end in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        if what == "equal":
            rows += [LoopRow(" ", one) for one in ours[j:end]]
        else:
            rows += [*(LoopRow("-", one) for one in theirs[i:until]), *(LoopRow("+", one) for one in ours[j:end])]
    return rows


def mix_changes(run: Mapping[str, int], baseline: Mapping[str, int]) -> Sequence[tuple[str, int, int]]:
    """The instructions that are more or less often in one loop than in the other: name, there, here; the greatest first."""
    rows = [(name, baseline.get(name, 0), run.get(name, 0)) for name in {**baseline, **run}]
    return sorted((row for row in rows if row[1] != row[2]), key=lambda row: -abs(row[2] - row[1]))
