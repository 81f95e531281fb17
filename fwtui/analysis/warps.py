"""Warp states from PC samples, the source lines with most of them, and the rate that the instructions of a loop allow.

The meanings are those of NVIDIA, Nsight Compute documentation, "Kernel Profiling Guide", section "Warp Stall Reasons".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fwtui.common import units
from fwtui.stream.events import WarpSamples
from fwtui.stream.listing import MAX_MIX, OTHER, CodeLine, Listing
from fwtui.stream.model import Model
from fwtui.stream.run import Run, of_phase
from fwtui_kernels.plan import WARP

SCHEDULERS = 4  # warp schedulers of an SM since Volta; each issues one instruction per cycle
MIN_BUSY_SHARE = 0.5  # share of samples issued, eligible or throttled by the math pipe; above it the kernel is compute-bound
# ratio of samples throttled by the math pipe to those not selected from which the pipe is full, not the issue slots
MIN_PIPE_RATIO = 0.4
MIN_ELIGIBLE_WARPS = 2.0  # eligible warps per issued instruction; with fewer, a scheduler often has none and the kernel waits
MIN_CHANGE = 0.01  # comparisons list shares of samples that differ by at least this much


# minimums of a thread in one instruction: two for three operands, doubled for two packed 16-bit values; the instruction for
# single 16-bit values is also named S16x2, and uses half of it
_MINIMUM = re.compile(r"(?:VIADDMNMX|VIMNMX|IMNMX|FMNMX|HMNMX2?)(3)?\b(?:\.\w+)*")
_PACKED = re.compile(r"U16x2|ADDMNMX.*16x2|HMNMX2")


class Stall(NamedTuple):
    """A warp state that PC sampling reports: a stall reason, or an eligible warp."""

    name: str  # Nsight Compute's name
    plain: str  # the state without Nsight Compute's terms
    resource: str  # the bottleneck that it indicates
    meaning: str
    advice: str = ""

    @property
    def label(self) -> str:
        """The name with its description: long scoreboard (global memory load)."""
        return f"{self.name} ({self.plain})"


ISSUE, PIPE, MEMORY_LATENCY = "instruction issue", "arithmetic pipe", "device memory latency"  # bottlenecks
SELECTED, NOT_SELECTED, MATH_PIPE = "selected", "not_selected", "math_pipe_throttle"
LONG_SCOREBOARD, SHORT_SCOREBOARD, MIO_THROTTLE = "long_scoreboard", "short_scoreboard", "mio_throttle"
ELIGIBLE = frozenset({SELECTED, NOT_SELECTED})  # states of a warp that is not stalled
# fmt: off
STALLS: Mapping[str, Stall] = {
    SELECTED: Stall("selected", "issuing", ISSUE, "the scheduler issued an instruction of this warp"),
    NOT_SELECTED: Stall("not selected", "eligible, another warp issued", ISSUE,
                        "the scheduler had several eligible warps, so more warps would not help"),
    MATH_PIPE: Stall("math pipe throttle", "compute pipe busy", PIPE,
                     "the arithmetic units take no further instruction in this cycle", "do less work"),
    LONG_SCOREBOARD: Stall("long scoreboard", "global memory load", MEMORY_LATENCY,
                           "the warp waits for a value from device memory or a cache",
                           "reuse each value from shared memory or registers, or keep more loads in flight"),
    "lg_throttle": Stall("LG throttle", "load/store queue full", "load/store queue",
                         "too many loads and stores to global or local memory are in flight",
                         "load several neighbours with one instruction"),
    SHORT_SCOREBOARD: Stall("short scoreboard", "shared memory", "shared memory latency",
                            "the warp waits for a value from shared memory",
                            "keep operands in registers, and do other work between the load and its use"),
    MIO_THROTTLE: Stall("MIO throttle", "shared memory queue full", "shared memory pipe",
                        "the kernel issues more shared-memory loads than the pipe can take",
                        "use each loaded value more often: a tile of results in each thread's registers"),
    "barrier": Stall("barrier", "waits for its block", "barriers", "the warp waits for the other warps of its block",
                     "fewer barriers, or smaller blocks"),
    "membar": Stall("membar", "memory fence", "memory fences", "the warp waits until its stores are visible to others",
                    "fewer fences"),
    "wait": Stall("wait", "fixed-latency dependency", "instruction latency",
                  "the result of an earlier instruction is ready only after a fixed number of cycles",
                  "compute several independent results in each thread"),
    "branch_resolving": Stall("branch resolving", "branch target pending", "branches",
                              "the next instruction is unknown until the branch is computed",
                              "replace branches by minimums; unroll"),
    "dispatch_stall": Stall("dispatch stall", "dispatcher busy", "dispatcher",
                            "the dispatcher holds instructions back, often for busy registers or units"),
    "drain": Stall("drain", "final stores", "final stores", "the warp has ended, but its stores are not written yet",
                   "store whole rows of 128 bytes"),
    "imc_miss": Stall("IMC miss", "constant cache miss", "constants",
                      "a constant or kernel argument is not in the constant cache", "pass fewer arguments, or use larger tiles"),
    "no_instructions": Stall("no instructions", "instruction cache miss", "instruction cache",
                             "the next instructions are not in the instruction cache", "unroll less"),
    "sleeping": Stall("sleeping", "sleep instruction", "sleep", "the kernel has put the warp to sleep", "shorter sleeps"),
    "tex_throttle": Stall("TEX throttle", "texture queue full", "texture queue", "too many texture loads are in flight"),
    OTHER: Stall("other reasons", "each too small to list", "several small causes", "stall reasons with few samples, added up"),
    "misc": Stall("misc", "unnamed by the hardware", "other", "the hardware reports no specific reason"),
    "gmma": Stall("GMMA", "matrix unit", "matrix units", "the warp waits for the result of a matrix instruction"),
}
# fmt: on
UNNAMED = Stall("unlisted reason", "unknown to this version", "unknown", "newer GPUs report further stall reasons")


def stall(reason: str) -> Stall:
    return STALLS.get(reason, UNNAMED)


class WarpReason(NamedTuple):
    """The most frequent warp state of a kernel function."""

    resource: str  # the bottleneck that it indicates
    state: str  # a clause: warps stall on long scoreboard (global memory load) in 41 % of PC samples
    line: CodeLine | None  # the source line with the most such samples
    computes: bool = False  # the schedulers nearly always have an eligible warp
    slots: str = ""  # the issue slots that its samples show filled
    contradicts: bool = False  # the samples show too few filled for the measured rate, so they name no bottleneck

    def __str__(self) -> str:
        return f"{self.state}{f', most at {self.place}' if self.place else ''}"

    @property
    def place(self) -> str:
        """The line as file:line; empty if it is unknown."""
        return f"{self.line.file}:{self.line.line}" if self.line is not None and self.line.file else ""


def samples_of(run: Run, phase: str) -> WarpSamples | None:
    """Return the PC samples of the phase's kernel function; None if it was not sampled."""
    return of_phase((samples for samples in run.warps if samples.samples), phase)


def main_samples(run: Run) -> WarpSamples | None:
    """Return the PC samples of the longest phase; None if it was not sampled."""
    slowest = max(run.phases, key=lambda phase: phase.seconds, default=None)
    return samples_of(run, slowest.key if slowest is not None else "")


def shares(reasons: Mapping[str, int]) -> dict[str, float]:
    """Return the share of each reason, largest first; empty without samples."""
    total = sum(reasons.values())
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return {reason: count / total for reason, count in ordered if count} if total else {}


def percentages(reasons: Mapping[str, int], most: int) -> dict[str, int]:
    """Return the whole percentages of the most frequent reasons; those of all others are the rest of 100 %, as OTHER."""
    listed = {reason: round(100 * share) for reason, share in list(shares(reasons).items())[:most] if reason != OTHER}
    rest = 100 - sum(listed.values())
    return {**listed, OTHER: rest} if listed and rest > 0 else listed


def busy_shares(reasons: Mapping[str, int]) -> tuple[float, float, float]:
    """Return the shares of samples that were issued, eligible but not selected, and throttled by the math pipe."""
    by_share = shares(reasons)
    issued, eligible, throttled = (by_share.get(reason, 0.0) for reason in (SELECTED, NOT_SELECTED, MATH_PIPE))
    return issued, eligible, throttled


def main_reason(reasons: Mapping[str, int]) -> str:
    """Return the most frequent stall reason; SELECTED if the schedulers nearly always have an eligible warp."""
    eligible = reasons.get(SELECTED, 0) + reasons.get(NOT_SELECTED, 0)
    computes = sum(busy_shares(reasons)) >= MIN_BUSY_SHARE and eligible >= MIN_ELIGIBLE_WARPS * reasons.get(SELECTED, 0)
    return SELECTED if computes else next((r for r in shares(reasons) if r not in ELIGIBLE), SELECTED)


def busy_text(reasons: Mapping[str, int]) -> str:
    """Describe the samples of a compute-bound kernel function: issued 6 %, eligible but not selected 41 %, ..."""
    issued, eligible, throttled = (f"{100 * share:.0f} %" for share in busy_shares(reasons))
    return f"issued {issued}, eligible but not selected {eligible}, math pipe throttle {throttled}"


def warp_reason(samples: WarpSamples, listing: Listing | None = None, full: bool = True) -> WarpReason:
    """Return the most frequent stall reason, or that the kernel computes, with the source line that has most such samples.

    The line comes from `listing` if it has samples, else from the run's summary. Pass `full=False` if the issue slots are known
    not to be full: a kernel that computes is then bound by its most frequent stall.
    """
    reason, stalled = main_reason(samples.reasons), next((r for r in shares(samples.reasons) if r not in ELIGIBLE), SELECTED)
    _, eligible, throttled = busy_shares(samples.reasons)
    pipe = stalled == MATH_PIPE and (throttled >= MIN_PIPE_RATIO * eligible or not full)
    if reason == SELECTED and not (full or pipe):
        reason = stalled
    hottest = max(listing.sampled if listing is not None else (), key=lambda line: line.reasons.get(reason, 0), default=None)
    line = hottest if hottest is not None and hottest.reasons.get(reason) else samples.hot
    whose = f"rank {samples.rank}'s PC samples" if samples.rank is not None else "PC samples"
    if reason == SELECTED:
        return WarpReason(PIPE if pipe else ISSUE, f"of {whose}, {busy_text(samples.reasons)}", line, computes=True)
    share = f"{100 * shares(samples.reasons)[reason]:.0f} %"
    return WarpReason(stall(reason).resource, f"warps stall on {stall(reason).label} in {share} of {whose}", line)


class LoopFacts(NamedTuple):
    """Instruction counts of an inner loop, and the relaxations of a thread in one iteration.

    They are those of the whole function if no loop has most of its work. The relaxations are 0 without minimums, and for a whole
    function with jumps, whose loops repeat.
    """

    instructions: int
    relaxations: int
    shared_loads: int
    global_loads: int
    spills: int
    whole: bool = False  # the counts are those of the whole function

    @property
    def each(self) -> float | None:
        """Instructions per relaxation."""
        return self.instructions / self.relaxations if self.relaxations else None

    @property
    def per_cycle(self) -> float | None:
        """Relaxations per cycle of an SM whose schedulers issue an instruction in every cycle."""
        return SCHEDULERS * WARP / self.each if self.each else None


def fewest_instructions(code: WarpSamples) -> float | None:
    """Return the instructions per relaxation of an inner loop; of a whole function those of minimums and additions alone."""
    if (each := loop_facts(code).each) is not None:
        return each
    found = [
        (count, match[1], minimums(name), "ADD" in name)
        for name, count in code.mix.items()
        if (match := _MINIMUM.fullmatch(name))
    ]
    done = sum(count * each for count, _, each, _ in found)
    return sum(count * (1 if fused else 3 if three else 2) for count, three, _, fused in found) / done if done else None


def minimums(name: str) -> int:
    """Return the relaxations of a thread in one instruction of that name; one relaxation is one minimum."""
    match = _MINIMUM.fullmatch(name)
    return (2 if match[1] else 1) * (2 if _PACKED.search(name) else 1) if match else 0


def loop_facts(code: WarpSamples | Listing) -> LoopFacts:
    """Count the instructions of an inner loop by kind."""

    def of(pattern: str) -> int:
        return sum(count for name, count in code.mix.items() if re.match(pattern, name))

    whole = "EXIT" in code.mix or len(code.mix) >= MAX_MIX
    repeats = whole and of("BRA") > 1  # a function ends with a jump to itself
    # the recorded number is needed for comparisons; of minimums, older recordings count the unused half of S16x2 too
    done = 0 if repeats else sum(minimums(name) * count for name, count in code.mix.items()) or code.relaxations
    return LoopFacts(sum(code.mix.values()), done, of("LDS"), of("LDG|LD\\b"), of("LDL|STL"), whole)


def issue_slots(model: Model, run: Run) -> float | None:
    """Return the instructions of threads that one GPU can issue per second; None if it is unknown."""
    gpu, evidence = model.gpu_of(run), model.evidence(run)
    clock = (evidence.gpu_clock_mhz if evidence is not None else None) or (gpu.max_clock_mhz if gpu is not None else None)
    return gpu.multiprocessors * clock * 1e6 * SCHEDULERS * WARP if gpu is not None and gpu.multiprocessors and clock else None


def issue_rate(model: Model, run: Run, samples: WarpSamples | None) -> float | None:
    """Return the issue-rate ceiling of the sampled inner loop on one GPU, in relaxations per second; None if it is unknown."""
    slots, each = issue_slots(model, run), loop_facts(samples).each if samples is not None else None
    return slots / each if slots and each else None


def derived(listing: Listing) -> str:
    """Describe the rate that the instructions of an inner loop allow; empty if there are none."""
    facts = loop_facts(listing)
    loads = [
        f"{units.digits(count / facts.relaxations)} loads from {memory} per relaxation"
        for count, memory in ((facts.shared_loads, "shared memory"), (facts.global_loads, "device memory"))
        if count and facts.relaxations
    ]
    reason = "no inner loop has half of the relaxations" if facts.whole and listing.relaxations else "no instruction is a minimum"
    limit = f"{reason}, so the instructions per relaxation are unknown"
    limit += "; write min(d, via) instead of a comparison" * reason.endswith("minimum")
    if facts.each is not None and facts.per_cycle is not None:
        each, most = units.digits(facts.each), units.digits(facts.per_cycle)
        limit = (
            f"{each} instructions per relaxation of a thread, so a multiprocessor can issue at most {most} relaxations per cycle"
        )
    mix = describe_mix(listing.mix)
    return f"{'; '.join([limit, *loads, mix])} (derived from its instructions, not measured)" if mix else ""


def line_text(line: CodeLine, total: int) -> str:
    """Describe a sampled source line: its position, its main warp state, its share of all samples and its text."""
    share = 100 * line.samples / (total or 1)
    return f"{line.file}:{line.line} {share:.0f} % of PC samples, {state_at(line)}: {line.text.strip()}".removesuffix(": ")


def state_at(line: CodeLine) -> str:
    """Return the main warp state at a sampled source line: its stall reason, or that warps compute."""
    reason = main_reason(line.reasons)
    return "computes" if reason == SELECTED else stall(reason).label


def describe_mix(mix: Mapping[str, int], most: int = 3) -> str:
    """Describe the instruction mix of a loop: 64 of 97 instructions are VIADDMNMX, 16 LDS.128."""
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
    """The shares of a reason or a line in the samples of two runs; None if a run does not have the line."""

    baseline: float | None
    run: float | None
    reason: str = ""
    line: CodeLine | None = None  # line of the run, else of the baseline

    @property
    def size(self) -> float:
        return abs((self.run or 0.0) - (self.baseline or 0.0))


def reason_changes(run: WarpSamples, baseline: WarpSamples) -> list[ShareChange]:
    """Return the reasons with different shares, largest change first."""
    ours, theirs = shares(run.reasons), shares(baseline.reasons)
    return _moved([ShareChange(theirs.get(name, 0.0), ours.get(name, 0.0), reason=name) for name in {**theirs, **ours}])


def line_changes(run: Listing, baseline: Listing) -> list[ShareChange]:
    """Return the lines with different shares, largest change first; lines with the same text are the same line."""
    ours, theirs = _line_shares(run), _line_shares(baseline)
    changes: list[ShareChange] = []
    for key in {**ours, **theirs}:
        (line, now), (before, was) = ours.get(key, _ABSENT), theirs.get(key, _ABSENT)
        changes.append(ShareChange(was, now, line=line or before))
    return _moved(changes)


def _line_shares(listing: Listing) -> dict[tuple[object, ...], tuple[CodeLine, float]]:
    """Map each line to its share. The key is its text and the number of equal lines before it; without text its position."""
    total = sum(line.samples for line in listing.lines) or 1
    occurrences: Counter[str] = Counter()
    shares: dict[tuple[object, ...], tuple[CodeLine, float]] = {}
    for line in listing.lines:
        text = line.text.strip()
        shares[(text, occurrences[text]) if text else (line.file, line.line)] = line, line.samples / total
        occurrences[text] += 1
    return shares


def _moved(changes: list[ShareChange]) -> list[ShareChange]:
    return sorted((one for one in changes if one.size >= MIN_CHANGE), key=lambda one: -one.size)


def mix_changes(run: Mapping[str, int], baseline: Mapping[str, int]) -> Sequence[tuple[str, int, int]]:
    """Return (name, count in the baseline, count in the run) of instructions with different counts, largest change first."""
    rows = [(name, baseline.get(name, 0), run.get(name, 0)) for name in {**baseline, **run}]
    return sorted((row for row in rows if row[1] != row[2]), key=lambda row: -abs(row[2] - row[1]))
