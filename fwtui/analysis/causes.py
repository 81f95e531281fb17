"""Causes that prevent a run from reaching its peak rate: conditions on its numbers, sentences, bounds of the possible speedup.

The rows of a table are in the order in which the ladder removes the causes. They use only measured, counted or compiled
values. A run near its peak rate has no causes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from statistics import fmean
from string import Formatter
from typing import Any, NamedTuple

from fwtui.analysis.bottleneck import COUNTERS, LATENCY, counters_of, filled_slots, reason_of
from fwtui.analysis.cpu import cpu_facts, scalar_reason
from fwtui.analysis.disturbances import timers_distort
from fwtui.analysis.limits import limit_of
from fwtui.analysis.phase_table import (
    EMPTY,
    LAUNCH_SECONDS,
    LAUNCHES,
    PEAK_ERROR,
    PhaseRow,
    phase_rows,
    roofs_of,
    slowest_line,
    tiles_per_launch,
)
from fwtui.analysis.rank_timing import UNEVEN, describe_waiting, imbalance, rank_times, whole_percent
from fwtui.analysis.warps import ELIGIBLE, LONG_SCOREBOARD, MIO_THROTTLE, SHORT_SCOREBOARD, loop_facts, samples_of, shares, stall
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import kernel_named
from fwtui.stream.model import Model
from fwtui.stream.quantity import GPM
from fwtui.stream.run import BROADCAST, WAIT, Run
from fwtui_kernels import rungs
from fwtui_kernels.plan import ITEMSIZE, NO_EDGE, WARP

NAIVE = "naive"
NEAR_PEAK = 0.8  # share of the measured peak rate above which a run has no causes
MIN_GAIN = 1.05  # a cause is omitted if its removal cannot bring this speedup
MIN_OCCUPANCY_RATIO = 0.5  # achieved / theoretical occupancy, and theoretical occupancy, below which they are causes
MIN_TIME_SHARE = 0.3  # shorter phases are ignored
MIN_PADDING = 1.2  # relaxations with padding / without
MIN_SPILL = 32  # bytes per thread
MIN_CONFLICT_SHARE = 0.2  # share of the shared-memory accesses that bank conflicts delay
IDEAL_INSTRUCTIONS = 2.0  # integer instructions of a relaxation: an addition and a minimum
MIN_INSTRUCTIONS = 2 * IDEAL_INSTRUCTIONS
MIN_DRAM_SHARE = 0.6  # share of the time that DRAM is busy, as in the phase table
SEGMENT = 128  # bytes that the 32 threads of a warp load at once, 4 each
OF_COUNTERS = ("device memory", "scattered loads", "bank conflicts", "instructions", "operands")


class Hint(NamedTuple):
    """A cause that applies to a run."""

    key: str
    sentence: str  # including its numbers
    rung: str  # id of the kernel that demonstrates the fix; empty if another setting helps
    source: str = ""  # origin of its numbers, if not the run itself
    gain: str = ""  # bound of the speedup: at most 1.9x if no warp stalled on it; empty if it is unknown

    @property
    def reason(self) -> str:
        """The sentence with its bound."""
        return "; ".join(filter(None, (f"{self.sentence}{f' ({self.source})' * bool(self.source)}", self.gain)))

    def __str__(self) -> str:
        return f"{self.reason}{f'; see `{self.rung}`' * bool(self.rung)}"


class RunFacts:
    """The values of a run that the causes use."""

    def __init__(self, model: Model, run: Run, op: str = ""):
        """`op` is the kernel function of the phase that the causes are about; by default the slowest one."""
        self.run, self.e = run, run.experiment
        self.itemsize = ITEMSIZE.get(run.experiment.dtype, 4)
        self.evidence, self.roofs, self.cpu = model.evidence(run), roofs_of(model, run), cpu_facts(model, run)
        self.lines = tuple(line for line in phase_rows(model, run) if line.seconds > 0)
        single = len(self.lines) == 1  # its kernel function may have another name
        self.slowest = slowest_line([line for line in self.lines if single or line.key == op or not op])
        phase = self.slowest.key if self.slowest is not None else None
        self.counters = counters_of(run, phase) if phase is not None else {}
        self.samples = samples_of(run, phase) if phase is not None else None
        reason = reason_of(run, self.roofs.issue_slots, self.samples) if self.samples is not None else None
        self.stalls = shares(self.samples.reasons) if self.samples is not None and reason and not reason.contradicts else {}
        self.spilling = max(run.occupancies, key=lambda one: one.spill_bytes, default=None)
        self.ranks, self.waiting = rank_times(run), describe_waiting(model, run)
        self.rank_count, self.rows = len(run.ranks), run.padded // max(self.e.tile, 1)
        self.smaller_tile = max((tile for tile in self.offered("tiles") if tile < self.e.tile), default=0)
        main = run.main_occupancy
        self.main = main if main is not None and main.max_warps and main.threads else None

    def share(self, line: PhaseRow) -> float:
        """Return the phase's share of the time of all phases."""
        return line.seconds / sum(one.seconds for one in self.lines if one.key or len(self.lines) == 1)

    def offered(self, what: str) -> Sequence[Any]:
        """Return the kernel's tiles, dtypes or memories; empty if the kernel of an old recording no longer exists."""
        try:
            return getattr(kernel_named(self.e.kernel), what)
        except Refused:
            return ()

    def per(self, amount: str, by: str) -> float | None:
        """Return the ratio of two counters; None if one was not read."""
        over, under = self.counters.get(amount), self.counters.get(by)
        return over / under if over is not None and under else None

    @property
    def scalar_reason(self) -> str:
        """The reason why a CPU's code is not vectorised."""
        return scalar_reason(next(iter(self.run.loops), None))

    @property
    def narrow(self) -> PhaseRow | None:
        """The longest phase with fewer tiles per launch than multiprocessors; None if all such phases are short."""
        long = [line for line in self.lines if line.key and self.share(line) >= MIN_TIME_SHARE]
        narrow = [line for line in long if 0 < (tiles_per_launch(self.run, line) or 0) < (self.roofs.multiprocessors or 0)]
        return max(narrow, key=lambda line: line.seconds, default=None)

    def of_phase(self, factor: float, line: PhaseRow | None = None, memory: float = 1.0, instructions: float = 1.0) -> float:
        """Return the bound of the run's speedup if one phase (default: the slowest) is faster by a factor (Amdahl's law).

        The peak rate bounds the phase, and so do the shares of its memory traffic and of its instructions that remain. Infinite
        without a bound, or if the timers distort the per-phase times.
        """
        line = line or self.slowest
        if line is None or timers_distort(self.run):
            return inf
        samples, slots = samples_of(self.run, line.key), self.roofs.issue_slots.per_second
        each = loop_facts(samples).each if samples is not None else None
        issue = line.relaxations * each / slots if each and slots else 0.0
        if line.limiter.what != LAUNCHES:  # counters are those of one launch, without the time between launches
            issue = max(issue, counters_of(self.run, line.key).get("compute_share", 0.0) * line.seconds)
        moved = line.memory_seconds or 0.0
        moved *= moved <= line.seconds * (1 + PEAK_ERROR)  # if more, caches served part of the bytes
        least = max(line.compute_seconds or 0.0, memory * moved, instructions * issue)
        factor, share = min(factor, max(_inverse(least / line.seconds), 1.0)), self.share(line)
        return 1 / (1 - share + share / factor) if factor < inf else inf

    def without(self, share: float) -> float:
        """Return the bound of the speedup if the slowest phase lost this share of its stalls or accesses."""
        return self.of_phase(_inverse(1 - share))

    @property
    def without_shared_loads(self) -> float:
        """The share of the inner loop's instructions that are not loads from shared memory; 0 if they are unknown."""
        facts = loop_facts(self.samples) if self.samples is not None else None
        return 1 - facts.shared_loads / facts.instructions if facts is not None and facts.instructions else 0.0

    def ideal_instructions(self, each: float, part: float = 1.0) -> float:
        """Return the bound of the speedup if this part of the phase's instructions were two per relaxation instead of `each`."""
        remaining = 1 - part + part * IDEAL_INSTRUCTIONS / each
        return self.of_phase(1 / remaining, instructions=remaining)

    def ideal_loop(self, each: float) -> float:
        """Return the same for the instructions of the inner loop: their part of the issue slots that the samples show filled."""
        samples, slots, line = self.samples, self.roofs.issue_slots, self.slowest
        filled = filled_slots(self.run, samples, slots.occupancy) if samples is not None else None
        if filled is None or filled[2] or not slots.per_second or line is None:
            return self.ideal_instructions(each)
        part = line.relaxations * each / slots.per_second / line.seconds / (filled[0] * filled[1])
        return self.ideal_instructions(each, min(part, 1.0))


def _inverse(share: float) -> float:
    return 1 / share if share > 0 else inf


class Cause(NamedTuple):
    """A row of the table: the cause applies to a run if its quantity is at least `minimum`."""

    key: str
    rung: str  # id of the kernel that demonstrates the fix; empty if another setting helps
    quantity: Callable[[Any], float | None]  # value computed from RunFacts; None if it is unknown, or the cause does not apply
    minimum: float
    sentence: str  # template with fields of the facts `f` and the quantity `x`, in the formats of SHOWN
    gain: Callable[[Any, float], float] | None = None  # bound of the speedup of the run; infinite if it is unknown
    condition: str = ""  # completes "at most 1.9x if ..."


SHOWN: Mapping[str, Callable[[Any], str]] = {
    "percent": units.percent,
    "whole": whole_percent,
    "digits": units.digits,
    "duration": units.duration,
    "gain": units.gain,
    "memory": units.memory,
}


class Sentence(Formatter):
    """A formatter with the units of the screens: {x:percent}, {x:duration}."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return SHOWN[format_spec](value) if format_spec in SHOWN else format(value, format_spec)


def hints(model: Model, run: Run) -> tuple[Hint, ...]:
    """Return the causes that apply to a run; none for a run that is incorrect, not timed or near its peak rate."""
    if run.state != "done" or run.simulated or run.wrong or not run.seconds:
        return ()
    limit = limit_of(model, run)
    if limit is not None and (limit.share or 0.0) >= NEAR_PEAK:
        return ()
    facts = RunFacts(model, run)
    rows = (*(RANKED if run.ranks else ()), *(CUDA if run.backend == "cuda" else CPU))
    return tuple(hint for row in rows if (not row.rung or _is_ahead(row.rung, run)) and (hint := _evaluate(row, facts)))


def stall_gains(model: Model, run: Run, op: str) -> dict[str, float]:
    """Map the stall reasons of a kernel function to bounds of the run's speedup without each; infinite if unknown."""
    facts = RunFacts(model, run, op)
    return {reason: facts.without(share) for reason, share in facts.stalls.items() if reason not in ELIGIBLE}


def _evaluate(row: Cause, facts: RunFacts) -> Hint | None:
    quantity = row.quantity(facts)
    if quantity is None or not row.minimum <= quantity < inf:
        return None
    gain = row.gain(facts, quantity) if row.gain is not None else inf
    if gain < MIN_GAIN:
        return None
    bound = f"at most {units.gain(gain)} if {row.condition}" if gain < inf else ""
    return Hint(row.key, Sentence().format(row.sentence, f=facts, x=quantity), row.rung, _source(row.key, facts), bound)


def _source(key: str, facts: RunFacts) -> str:
    """Return the origin of the numbers of the cause with that key."""
    if key == "achieved occupancy" or (key == "device memory" and "dram_share" not in facts.counters):
        return GPM
    return COUNTERS if key in OF_COUNTERS else ""


def _is_ahead(rung: str, run: Run) -> bool:
    """Return whether that rung follows the run's kernel; `naive` always qualifies, as it demonstrates coalesced loads."""
    kernel = run.experiment.kernel
    return rung != kernel and (rung == NAIVE or rungs().get(kernel, 0) <= rungs()[rung])


def _launch_seconds(f: RunFacts) -> float | None:
    line = f.slowest
    return line.seconds / line.launches if line is not None and line.limiter.what == LAUNCHES else None


def _narrow_tiles(f: RunFacts) -> float | None:
    return tiles_per_launch(f.run, f.narrow) if f.narrow is not None else None


def _dram_share(f: RunFacts) -> float | None:
    return f.counters.get("dram_share", f.evidence.dram_utilisation if f.evidence is not None else None)


def _warp_ratio(f: RunFacts, resource: str) -> float | None:
    """Return maximum / theoretical warps if the resource allows less than half of the maximum; else None."""
    one = f.main
    if one is None or resource not in one.limiters or one.warps >= MIN_OCCUPANCY_RATIO * one.max_warps:
        return None
    return one.max_warps / max(one.warps, 1)


def _register_ratio(f: RunFacts) -> float | None:
    latency = f.slowest is not None and LATENCY in f.slowest.limiter.what
    return _warp_ratio(f, "registers") if latency else None


def _occupancy_ratio(f: RunFacts) -> float | None:
    """Return theoretical / achieved occupancy if the achieved one is less than half; else None."""
    achieved = f.evidence.sm_occupancy if f.evidence is not None else None
    ratio = f.main.warps / f.main.max_warps / achieved if f.main is not None and achieved else 0.0
    return ratio if ratio > 1 / MIN_OCCUPANCY_RATIO else None


def _longest_path(f: RunFacts) -> float | None:
    """Return the bound of all distances if int16 can hold it and the kernel supports int16; else None."""
    graph = f.run.graph
    if graph is None or graph.high is None or (graph.low or 0) < 0 or f.e.dtype == "int16" or f.e.real or f.e.file:
        return None
    longest = (f.run.n - 1) * graph.high
    return longest if "int16" in f.offered("dtypes") and longest < NO_EDGE["int16"] else None


def _copy_ratio(f: RunFacts) -> float | None:
    """Return the time with copies / the median time if the kernel could use pinned memory; else None."""
    pinned = f.e.memory == "device" and "pinned" in f.offered("memories")
    return f.run.end_to_end / f.run.seconds if pinned and f.run.end_to_end and f.run.seconds else None


def _idle_cores(f: RunFacts) -> float | None:
    """Return cores / busy cores if the run uses about one of several cores; else None."""
    busy, cores = (f.cpu.busy, f.cpu.cores) if f.cpu is not None else (None, None)
    return cores / max(round(busy, 1), 0.1) if busy and cores and cores > 1 and busy < 1.5 else None


def _core_cycles(f: RunFacts) -> float | None:
    """Return the cycles of a busy core per relaxation; None if its machine code is unknown, or something else limits it."""
    each, busy = (f.cpu.each, f.cpu.busy) if f.cpu is not None and not f.cpu.down_columns else (None, None)
    scalar = f.run.loops and all(loop.lanes == 1 for loop in f.run.loops)
    return 1 / each if each and busy and busy >= 0.5 and scalar else None


def _exchange_share(f: RunFacts) -> float | None:
    return sum(fmean(one.share(key) for one in f.ranks) for key in (BROADCAST, WAIT)) if f.ranks else None


def _stalled(key: str, rung: str, reason: str, minimum: float) -> Cause:
    """Return the row of a stall reason with at least this share of the PC samples of the slowest phase."""
    sentence = f"warps stall on {stall(reason).label} in {{x:whole}} of PC samples: {stall(reason).advice}"
    return Cause(key, rung, lambda f: f.stalls.get(reason), minimum, sentence, RunFacts.without, "no warp stalled on it")


# fmt: off
CUDA: tuple[Cause, ...] = (
    Cause("launches", "resident", _launch_seconds, 0.0,
          f"{{f.slowest.launches:,}} launches of {{x:duration}} each; {EMPTY}",
          lambda f, x: f.of_phase(_inverse(1 - LAUNCH_SECONDS / x)), "launches took no time"),
    Cause("few tiles", "look-ahead", _narrow_tiles, 0.0,
          "the {f.narrow.title} phase has {x:.0f} tiles per launch for {f.roofs.multiprocessors} SMs",
          lambda f, x: f.of_phase(f.roofs.multiprocessors / x, f.narrow, instructions=0.0), "it used all SMs"),
    Cause("bytes", "katz-kider", lambda f: f.run.device_bytes / f.run.relaxations / f.itemsize if f.run.relaxations else None,
          3.0, "the kernel requests {x:digits} values of {f.itemsize} bytes per relaxation",
          lambda f, x: f.of_phase(inf, memory=0.0), "only its memory accesses took no time"),
    Cause("device memory", "register-tiled", _dram_share, MIN_DRAM_SHARE, "device memory is {x:percent} busy",
          lambda f, x: f.of_phase(inf, memory=0.0), "only its memory accesses took no time"),
    Cause("spills", "register-tile", lambda f: f.spilling.spill_bytes if f.spilling is not None else None, MIN_SPILL,
          "{f.spilling.op} spills {x:,} bytes per thread to local memory, with {f.spilling.registers} registers in use"),
    Cause("shared memory", "staged-row-major", lambda f: _warp_ratio(f, "shared memory"), 1.0,
          "{f.main.shared_bytes:memory} of shared memory per block limit {f.main.op} to {f.main.warps} of {f.main.max_warps} "
          "warps per SM", RunFacts.of_phase, "all warps fitted"),
    Cause("registers", "optimized", _register_ratio, 1.0,
          "{f.main.registers} registers per thread limit {f.main.op} to {f.main.warps} of {f.main.max_warps} warps, and the "
          "phase is latency-bound: {f.slowest.limiter.sourced.evidence}", RunFacts.of_phase, "all warps fitted"),
    Cause("achieved occupancy", "", _occupancy_ratio, 1.0,
          "achieved occupancy is {f.evidence.sm_occupancy:percent}, {x:gain} below the theoretical occupancy: a larger graph has "
          "more blocks per launch",
          RunFacts.of_phase, "it reached the theoretical occupancy"),
    _stalled("long scoreboard", "katz-kider", LONG_SCOREBOARD, 0.4),
    _stalled("LG throttle", "blocked-vector", "lg_throttle", 0.1),
    _stalled("short scoreboard", "register-tile", SHORT_SCOREBOARD, 0.25),
    _stalled("MIO throttle", "register-tiled", MIO_THROTTLE, 0.2),
    _stalled("barriers", "look-ahead", "barrier", 0.15),
    _stalled("latency", "register-tiled", "wait", 0.25),
    _stalled("branches", "katz-kider", "branch_resolving", 0.1),
    _stalled("final stores", "register-tiled", "drain", 0.1),
    _stalled("constants", "", "imc_miss", 0.1),
    _stalled("instruction cache", "", "no_instructions", 0.1),
    Cause("inner loop", "optimized", lambda f: loop_facts(f.samples).each if f.samples is not None else None, MIN_INSTRUCTIONS,
          "the inner loop has {x:digits} instructions per relaxation; the relaxation itself needs at most two",
          RunFacts.ideal_loop, "it had two"),
    Cause("idle threads", NAIVE, lambda f: -f.main.threads % WARP if f.main is not None else None, 1,
          "{f.main.op} has blocks of {f.main.threads} threads: {x} of the 32 threads of its last warp are idle",
          lambda f, x: f.of_phase(1 + x / f.main.threads, instructions=1 / (1 + x / f.main.threads)), "they worked"),
    Cause("narrow tile", "register-tiled", lambda f: SEGMENT / f.e.tile / f.itemsize if f.e.tile > 1 else None, 2.01,
          "a row of a tile has {f.e.tile} values of {f.itemsize} bytes, but a warp can load 128 bytes at once"),
    Cause("scattered loads", NAIVE,
          lambda f: (f.per("global_load_sectors", "global_load_requests") or 0.0) / f.itemsize, 2.0,
          "a load of a warp touches {x:gain} the sectors of a coalesced one",
          lambda f, x: f.of_phase(x, memory=1 / x), "all loads were coalesced"),
    Cause("bank conflicts", "staged-row-major", lambda f: f.per("shared_load_conflicts", "shared_load_wavefronts"),
          MIN_CONFLICT_SHARE, "bank conflicts delay {x:percent} of the shared-memory loads", RunFacts.without, "there were none"),
    Cause("instructions", "optimized", lambda f: f.counters.get("integer_instructions_per_relaxation"), MIN_INSTRUCTIONS,
          "{x:digits} integer instructions per relaxation; the relaxation itself needs at most two",
          RunFacts.ideal_instructions, "it had two"),
    Cause("operands", "register-tiled", lambda f: (f.per("shared_load_bytes", "relaxations") or 0.0) / f.itemsize, 2.0,
          "the kernel reads {x:digits} values from shared memory per relaxation: both operands, every time",
          lambda f, x: f.of_phase(inf, instructions=f.without_shared_loads), "only these reads took no time"),
    Cause("padding", "katz-kider", lambda f: f.run.relaxations / f.run.n**3 if f.run.n else None, MIN_PADDING,
          "{f.run.n:,} vertices are padded to {f.run.padded:,} (whole tiles)", lambda f, x: x, "n were a multiple of the tile"),
    Cause("data type", "blocked-vector", _longest_path, 0.0,
          "no path is longer than {x:,.0f}: int16 can hold it, with fewer bytes than {f.e.dtype}",
          lambda f, x: 2.0 if f.itemsize == 4 else inf, "two int16 values took the time of one"),
    Cause("copies", NAIVE, _copy_ratio, 2.0,
          "the kernel takes {f.run.seconds:duration}, and {f.run.end_to_end:duration} with the copies of the matrix, which "
          "--memory pinned shortens"),
)
RANKED: tuple[Cause, ...] = (
    Cause("exchange", "", _exchange_share, MIN_TIME_SHARE,
          "{f.waiting}; a larger graph or fewer ranks give each rank more work",
          lambda f, x: f.run.seconds / max(one.work for one in f.ranks), "it overlapped with work"),
    Cause("uneven rows", "", lambda f: imbalance(f.ranks) if f.rows % f.rank_count and f.smaller_tile else None, UNEVEN,
          "{f.rows} rows of tiles for {f.rank_count} ranks: some ranks have more rows than others; a tile of {f.smaller_tile} "
          "gives more rows", lambda f, x: x, "all ranks had the same work"),
)
CPU: tuple[Cause, ...] = (
    Cause("stride", "serial", lambda f: 1.0 if f.cpu is not None and f.cpu.down_columns else None, 1.0,
          "the inner loop goes down a column, so each load touches another cache line: swap it with the loop over rows"),
    Cause("cores", "tiled-cpu", _idle_cores, 1.0, "{f.cpu.busy:.1f} of {f.cpu.cores} cores were busy",
          lambda f, x: x, "all of them were"),
    Cause("vectors", "tiled-cpu", _core_cycles, 1.0,
          "{f.cpu.each:.2g} relaxations per cycle on each busy core: {f.scalar_reason}"),
)
