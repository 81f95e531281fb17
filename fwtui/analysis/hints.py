"""Hints for making a run faster: a sentence with its evidence, and the rung of the ladder that demonstrates the fix.

Hints use only measured, counted or compiled values. A run near its peak rate has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from fwtui.analysis.cpu import cpu_facts
from fwtui.analysis.limits import limit_of
from fwtui.analysis.phase_table import (
    COUNTERS,
    LATENCY,
    LAUNCH_SECONDS,
    LAUNCHES,
    PhaseRow,
    counters_of,
    phase_rows,
    roofs_of,
    slowest_line,
    tiles_per_launch,
)
from fwtui.analysis.rank_timing import UNEVEN, describe_waiting, imbalance, rank_times
from fwtui.analysis.warps import LONG_SCOREBOARD, MIO_THROTTLE, SHORT_SCOREBOARD, loop_facts, samples_of, shares, stall
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import kernel_named
from fwtui.stream.events import Occupancy
from fwtui.stream.model import Model
from fwtui.stream.quantity import GPM
from fwtui.stream.run import BROADCAST, WAIT, Run
from fwtui_kernels import rungs
from fwtui_kernels.plan import ITEMSIZE, NO_EDGE, WARP

NAIVE = "naive"
NEAR_PEAK = 0.8  # share of the measured peak rate above which a run gets no hints
MIN_OCCUPANCY_RATIO = 0.5  # achieved / theoretical occupancy, and theoretical occupancy, below which a hint is given
MIN_TIME_SHARE = 0.3  # hints ignore phases below this share of the kernel time
MIN_PADDING = 1.2  # relaxations with padding / without
MIN_SPILL = 32  # bytes per thread
MIN_CONFLICT_SHARE = 0.2  # share of the shared-memory accesses that bank conflicts delay
MIN_INSTRUCTIONS = 4.0  # integer instructions per relaxation; the relaxation itself is an addition and a minimum
MIN_DRAM_SHARE = 0.6  # share of the time that DRAM is busy, as in the phase table
SEGMENT = 128  # bytes that the 32 threads of a warp load at once, 4 each


class Hint(NamedTuple):
    """A possible improvement that the numbers of a run prove."""

    key: str
    sentence: str  # including its numbers
    rung: str  # id of the kernel that demonstrates the fix; empty if another setting helps
    source: str = ""  # origin of its numbers, if not the run itself

    def __str__(self) -> str:
        text = f"{self.sentence} ({self.source})" if self.source else self.sentence
        return f"{text}; see `{self.rung}`" if self.rung else text


class RunFacts:
    """The values of a run that the rules use."""

    def __init__(self, model: Model, run: Run):
        self.model, self.run, self.e = model, run, run.experiment
        self.itemsize = ITEMSIZE.get(run.experiment.dtype, 4)
        self.evidence, self.roofs, self.cpu = model.evidence(run), roofs_of(model, run), cpu_facts(model, run)
        self.lines = tuple(line for line in phase_rows(model, run) if line.seconds > 0)
        slowest = self.slowest = slowest_line(self.lines)
        self.counters = dict(counters_of(run, slowest.key)) if slowest is not None else {}
        self.samples = samples_of(run, slowest.key) if slowest is not None else None
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


def hints(model: Model, run: Run) -> tuple[Hint, ...]:
    """Return the hints for a run, most important first; none for a run that is incorrect, not timed or near its peak rate."""
    if run.state != "done" or run.simulated or run.wrong or not run.seconds:
        return ()
    limit = limit_of(model, run)
    if limit is not None and (limit.share or 0.0) >= NEAR_PEAK:
        return ()
    facts = RunFacts(model, run)
    rules = (*(RANKED if run.ranks else ()), *(CUDA if run.backend == "cuda" else CPU))
    applicable = (
        Hint(key, sentence, rung, _source(key, facts))
        for key, rung, rule in rules
        if (not rung or _is_ahead(rung, run)) and (sentence := rule(facts))
    )
    return tuple(applicable)


def _source(key: str, facts: RunFacts) -> str:
    """Return the origin of the numbers of the hint with that key."""
    if key == "achieved occupancy" or (key == "device memory" and "dram_share" not in facts.counters):
        return GPM
    return COUNTERS if key in OF_COUNTERS else ""


def _is_ahead(rung: str, run: Run) -> bool:
    """Return whether that rung follows the run's kernel; `naive` always qualifies, as it demonstrates coalesced loads."""
    kernel = run.experiment.kernel
    return rung != kernel and (rung == NAIVE or rungs().get(kernel, 0) <= rungs()[rung])


def _launches(f: RunFacts) -> str:
    line = f.slowest
    if line is None or line.limiter.what != LAUNCHES:
        return ""
    each, empty = units.duration(line.seconds / line.launches), units.duration(LAUNCH_SECONDS)
    return f"{line.launches:,} launches of {each} each; an empty one takes up to {empty}"


def _few_tiles(f: RunFacts) -> str:
    for line in sorted(f.lines, key=lambda line: -line.seconds):
        tiles = tiles_per_launch(f.run, line)
        if line.key and tiles and f.roofs.multiprocessors and tiles < f.roofs.multiprocessors and f.share(line) >= MIN_TIME_SHARE:
            blocks = f"{units.counted(round(tiles), 'tile')} per launch for {f.roofs.multiprocessors} SMs"
            return f"{units.percent(f.share(line))} of the time is in the {line.title} phase: {blocks}"
    return ""


def _bytes(f: RunFacts) -> str:
    each = f.run.device_bytes / f.run.relaxations if f.run.relaxations else 0.0
    if each < 3 * f.itemsize:
        return ""
    values = units.digits(each / f.itemsize)
    return f"the kernel requests {units.digits(each)} bytes ({values} values) per relaxation"


def _dram(f: RunFacts) -> str:
    counted, read = f.counters.get("dram_share"), f.evidence.dram_utilisation if f.evidence is not None else None
    share = counted if counted is not None else read
    return f"device memory is {units.percent(share)} busy" if share is not None and share >= MIN_DRAM_SHARE else ""


def _spills(f: RunFacts) -> str:
    worst = max(f.run.occupancies, key=lambda one: one.spill_bytes, default=None)
    if worst is None or worst.spill_bytes < MIN_SPILL:
        return ""
    return f"{worst.op} spills {worst.spill_bytes:,} bytes per thread to local memory, with {worst.registers} registers in use"


def _limited(f: RunFacts, by: str) -> Occupancy | None:
    """Return the main kernel function if that resource limits its theoretical occupancy to less than half; else None."""
    one = f.main
    return one if one is not None and by in one.limiters and one.warps < MIN_OCCUPANCY_RATIO * one.max_warps else None


def _shared(f: RunFacts) -> str:
    one = _limited(f, "shared memory")
    if one is None:
        return ""
    size, blocks = units.memory(one.shared_bytes), units.counted(one.blocks, "block")
    return f"{size} of shared memory per block limit {one.op} to {blocks} per SM: {one.warps} of {one.max_warps} warps"


def _registers(f: RunFacts) -> str:
    one = _limited(f, "registers")
    if one is None or f.slowest is None or f.slowest.limiter.what != LATENCY:
        return ""
    return (
        f"{one.registers} registers per thread limit {one.op} to {one.warps} of {one.max_warps} warps, "
        f"and the phase is latency-bound: {f.slowest.limiter.evidence}"
    )


def _resident(f: RunFacts) -> str:
    one, measured = f.main, f.evidence.sm_occupancy if f.evidence is not None else None
    if one is None or measured is None:
        return ""
    allowed = one.warps / one.max_warps
    if measured >= MIN_OCCUPANCY_RATIO * allowed:
        return ""
    return f"achieved occupancy is {units.percent(measured)}, theoretical occupancy {units.percent(allowed)}"


def _lanes(f: RunFacts) -> str:
    one = f.main
    if one is None or not one.threads % WARP:
        return ""
    idle = -one.threads % WARP
    return f"{one.op} has blocks of {one.threads} threads: {idle} of the {WARP} threads of its last warp are idle"


def _narrow(f: RunFacts) -> str:
    row = f.e.tile * f.itemsize
    if f.e.tile <= 1 or row >= SEGMENT // 2:
        return ""
    return f"a row of a tile has {row} bytes, but a warp can load {SEGMENT} at once"


def _scattered(f: RunFacts) -> str:
    pieces = f.per("global_load_sectors", "global_load_requests")
    if pieces is None or pieces < 2 * f.itemsize:
        return ""
    return f"a load of a warp touches {units.digits(pieces)} sectors of 32 bytes; coalesced, it would touch {f.itemsize}"


def _conflicts(f: RunFacts) -> str:
    share = f.per("shared_load_conflicts", "shared_load_wavefronts")
    if share is None or share < MIN_CONFLICT_SHARE:
        return ""
    return f"bank conflicts delay {units.percent(share)} of the shared-memory loads"


def _instructions(f: RunFacts) -> str:
    each = f.counters.get("integer_instructions_per_relaxation")
    if each is None or each < MIN_INSTRUCTIONS:
        return ""
    return f"{units.digits(each)} integer instructions per relaxation; the relaxation itself needs at most two"


def _operands(f: RunFacts) -> str:
    each = f.per("shared_load_bytes", "relaxations")
    if each is None or each < 2 * f.itemsize:
        return ""
    return f"the kernel reads {units.digits(each)} bytes of shared memory per relaxation: both operands, every time"


def _padding(f: RunFacts) -> str:
    times = f.run.relaxations / f.run.n**3 if f.run.n else 0.0
    if times < MIN_PADDING:
        return ""
    return f"{f.run.n:,} vertices are padded to {f.run.padded:,} (whole tiles): {units.gain(times)} as many relaxations"


def _type(f: RunFacts) -> str:
    graph = f.run.graph
    if graph is None or graph.high is None or (graph.low or 0) < 0 or f.e.dtype == "int16" or f.e.real or f.e.file:
        return ""
    longest = (f.run.n - 1) * graph.high
    if "int16" not in f.offered("dtypes") or longest >= NO_EDGE["int16"]:
        return ""
    return f"no path is longer than {longest:,.0f}: int16 can hold it, with half the bytes of {f.e.dtype}"


def _copies(f: RunFacts) -> str:
    seconds, whole = f.run.seconds, f.run.end_to_end
    if not seconds or whole is None or whole < 2 * seconds or f.e.memory != "device" or "pinned" not in f.offered("memories"):
        return ""
    times = f"the copies take {units.duration(whole - seconds)}, the kernel {units.duration(seconds)}"
    return f"{times}; this kernel supports pinned memory"


def _cores(f: RunFacts) -> str:
    busy, cores = (f.cpu.busy, f.cpu.cores) if f.cpu is not None else (None, None)
    if busy is None or cores is None or cores < 2 or not busy < 1.5:
        return ""
    return f"{busy:.1f} of {cores} cores were busy"


def _scalar(f: RunFacts) -> str:
    each, busy = (f.cpu.each, f.cpu.busy) if f.cpu is not None else (None, None)
    vectors = any(loop.lanes > 1 for loop in f.run.loops)  # a vectorised loop is held back by something else
    if each is None or vectors or busy is None or busy < 0.5:
        return ""
    return f"{each:.2g} relaxations per cycle on each busy core; one vector instruction does several" if each < 1 else ""


def _waits(f: RunFacts) -> str:
    ranks = rank_times(f.run)
    share = fmean(one.share(key) for one in ranks for key in (BROADCAST, WAIT)) * 2 if ranks else 0.0
    if share < MIN_TIME_SHARE:
        return ""
    return f"{describe_waiting(f.model, f.run)}; a larger graph or fewer ranks give each rank more work"


def _rows(f: RunFacts) -> str:
    """Report too few rows of tiles for an even distribution."""
    shares = rank_times(f.run)
    rows, ranks = f.run.padded // max(f.e.tile, 1), len(f.run.ranks)
    smaller = [tile for tile in f.offered("tiles") if tile < f.e.tile]
    if (imbalance(shares) or 0.0) < UNEVEN or not rows % ranks or not smaller:
        return ""
    uneven = f"{units.counted(rows, 'row')} of tiles for {ranks} ranks"
    return f"{uneven}: some ranks have more rows than others; a tile of {max(smaller)} gives more rows"


def _sampled(reason: str, least: float) -> Rule:
    """Return a rule for a stall reason with at least this share of the PC samples of the slowest phase."""

    def rule(f: RunFacts) -> str:
        share = shares(f.samples.reasons).get(reason, 0.0) if f.samples is not None else 0.0
        if share < least:
            return ""
        return f"warps stall on {stall(reason).label} in {100 * share:.0f} % of PC samples: {stall(reason).advice}"

    return rule


def _loop(f: RunFacts) -> str:
    each = loop_facts(f.samples).each if f.samples is not None else None
    if each is None or each < MIN_INSTRUCTIONS:
        return ""
    return f"the inner loop has {units.digits(each)} instructions per relaxation; the relaxation itself needs at most two"


Rule = Callable[[RunFacts], str]
OF_COUNTERS = ("device memory", "registers", "scattered loads", "bank conflicts", "instructions", "operands")
# key, rung that demonstrates the fix, rule
CUDA: tuple[tuple[str, str, Rule], ...] = (
    ("launches", "resident", _launches),
    ("few tiles", "look-ahead", _few_tiles),
    ("bytes", "katz-kider", _bytes),
    ("device memory", "register-tiled", _dram),
    ("spills", "register-tile", _spills),
    ("shared memory", "staged-row-major", _shared),
    ("registers", "optimized", _registers),
    ("achieved occupancy", "look-ahead", _resident),
    ("long scoreboard", "katz-kider", _sampled(LONG_SCOREBOARD, 0.4)),
    ("LG throttle", "blocked-vector", _sampled("lg_throttle", 0.1)),
    ("short scoreboard", "register-tile", _sampled(SHORT_SCOREBOARD, 0.25)),
    ("MIO throttle", "register-tiled", _sampled(MIO_THROTTLE, 0.2)),
    ("barriers", "look-ahead", _sampled("barrier", 0.15)),
    ("latency", "register-tiled", _sampled("wait", 0.25)),
    ("branches", "katz-kider", _sampled("branch_resolving", 0.1)),
    ("final stores", "register-tiled", _sampled("drain", 0.1)),
    ("constants", "", _sampled("imc_miss", 0.1)),
    ("instruction cache", "", _sampled("no_instructions", 0.1)),
    ("inner loop", "optimized", _loop),
    ("idle threads", NAIVE, _lanes),
    ("narrow tile", "register-tiled", _narrow),
    ("scattered loads", NAIVE, _scattered),
    ("bank conflicts", "staged-row-major", _conflicts),
    ("instructions", "optimized", _instructions),
    ("operands", "register-tiled", _operands),
    ("padding", "katz-kider", _padding),
    ("data type", "blocked-vector", _type),
    ("copies", NAIVE, _copies),
)
RANKED: tuple[tuple[str, str, Rule], ...] = (("exchange", "", _waits), ("uneven rows", "", _rows))
CPU: tuple[tuple[str, str, Rule], ...] = (
    ("cores", "tiled-cpu", _cores),
    ("vectors", "tiled-cpu", _scalar),
)
