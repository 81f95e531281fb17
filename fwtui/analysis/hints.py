"""What a run's numbers say could be better, a sentence each with its evidence, and the rung of the ladder that shows the way.

Hints, not answers: only what was measured, counted or compiled is said, and nothing of a run that is near its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from fwtui.analysis.cpu import cpu_facts
from fwtui.analysis.ledger import (
    COUNTERS,
    LATENCY,
    LAUNCH_SECONDS,
    LedgerLine,
    counters_of,
    ledger,
    roofs_of,
    slowest_line,
    tiles_per_launch,
)
from fwtui.analysis.limits import limit_of
from fwtui.analysis.ranks import UNEVEN, imbalance, of_ranks, waits
from fwtui.analysis.warps import DEVICE_MEMORY, SHARED_MEMORY, SHARED_PIPE, loop_facts, samples_of, shares, stall
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
GOOD = 0.8  # share of the measured limit from which there is no hint
FEW_WARPS = 0.5  # of those that can be resident
MUCH = 0.3  # of the time
PADDED = 1.2  # times the relaxations
SPILLED = 32  # bytes of a thread
CONFLICTS = 0.2  # of the accesses to shared memory
INSTRUCTIONS = 4.0  # integer ones for a relaxation, whose own are an addition and a minimum
BUSY = 0.6  # of the time, as in fwtui.analysis.ledger
SEGMENT = 128  # bytes that the 32 threads of a warp load at once, 4 each


class Hint(NamedTuple):
    """One thing that the numbers prove."""

    key: str
    sentence: str  # with its numbers
    see: str  # the rung that does it another way; empty if another choice helps
    source: str = ""  # where its numbers come from, if not from the run itself

    def __str__(self) -> str:
        words = f"{self.sentence} ({self.source})" if self.source else self.sentence
        return f"{words}; see `{self.see}`" if self.see else words


class RunFacts:
    """What is known of a run."""

    def __init__(self, model: Model, run: Run):
        self.model, self.run, self.e = model, run, run.experiment
        self.itemsize = ITEMSIZE.get(run.experiment.dtype, 4)
        self.evidence, self.roofs, self.cpu = model.evidence(run), roofs_of(model, run), cpu_facts(model, run)
        self.lines = tuple(line for line in ledger(model, run) if line.seconds > 0)
        slowest = self.slowest = slowest_line(self.lines)
        self.counters = dict(counters_of(run, slowest.key)) if slowest is not None else {}
        self.samples = samples_of(run, slowest.key) if slowest is not None else None
        main = run.main_occupancy
        self.main = main if main is not None and main.max_warps and main.threads else None

    def share(self, line: LedgerLine) -> float:
        """Of the time of all phases."""
        return line.seconds / sum(one.seconds for one in self.lines if one.key or len(self.lines) == 1)

    def offered(self, what: str) -> Sequence[Any]:
        """The kernel's tiles, number types or memories; empty if a recording's kernel is no longer known."""
        try:
            return getattr(kernel_named(self.e.kernel), what)
        except Refused:
            return ()

    def per(self, amount: str, by: str) -> float | None:
        """One counter for each of another."""
        over, under = self.counters.get(amount), self.counters.get(by)
        return over / under if over is not None and under else None


def hints(model: Model, run: Run) -> tuple[Hint, ...]:
    """What could be better, the most telling first; nothing of a run that is wrong, not timed, or near its limit."""
    if run.state != "done" or run.simulated or run.wrong or not run.seconds:
        return ()
    limit = limit_of(model, run)
    if limit is not None and (limit.share or 0.0) >= GOOD:
        return ()
    facts = RunFacts(model, run)
    rules = (*(RANKED if run.ranks else ()), *(CUDA if run.backend == "cuda" else CPU))
    applicable = (
        Hint(key, sentence, see, _source(key, facts))
        for key, see, rule in rules
        if (not see or _ahead(see, run)) and (sentence := rule(facts))
    )
    return tuple(applicable)


def _source(key: str, facts: RunFacts) -> str:
    """Where the numbers of the hint with that key come from."""
    if key == "resident warps" or (key == "device memory" and "dram_share" not in facts.counters):
        return GPM
    return COUNTERS if key in OF_COUNTERS else ""


def _ahead(see: str, run: Run) -> bool:
    """Whether that rung has something to show to the run's kernel: it is no earlier one, but for how `naive` uses memory."""
    kernel = run.experiment.kernel
    return see != kernel and (see == NAIVE or rungs().get(kernel, 0) <= rungs()[see])


def _launches(f: RunFacts) -> str:
    line = f.slowest
    if line is None or line.limiter.what != "launches":
        return ""
    each, empty = units.duration(line.seconds / line.launches), units.duration(LAUNCH_SECONDS)
    return f"{line.launches:,} launches of {each} each; an empty one takes up to {empty}"


def _few_tiles(f: RunFacts) -> str:
    for line in sorted(f.lines, key=lambda line: -line.seconds):
        tiles = tiles_per_launch(f.run, line)
        if line.key and tiles and f.roofs.multiprocessors and tiles < f.roofs.multiprocessors and f.share(line) >= MUCH:
            there = f"{units.counted(round(tiles), 'tile')} a launch for {f.roofs.multiprocessors} SM"
            return f"{units.percent(f.share(line))} of the time is in {line.title}: {there}"
    return ""


def _bytes(f: RunFacts) -> str:
    each = f.run.device_bytes / f.run.relaxations if f.run.relaxations else 0.0
    if each < 3 * f.itemsize:
        return ""
    numbers = units.digits(each / f.itemsize)
    return f"{units.digits(each)} bytes are asked of memory for each relaxation, as many as {numbers} numbers have"


def _dram(f: RunFacts) -> str:
    counted, read = f.counters.get("dram_share"), f.evidence.dram_utilisation if f.evidence is not None else None
    share = counted if counted is not None else read
    return f"device memory is {units.percent(share)} busy" if share is not None and share >= BUSY else ""


def _spills(f: RunFacts) -> str:
    worst = max(f.run.occupancies, key=lambda one: one.spill_bytes, default=None)
    if worst is None or worst.spill_bytes < SPILLED:
        return ""
    return f"{worst.op} keeps {worst.spill_bytes:,} bytes of each thread in device memory, beside {worst.registers} registers"


def _limited(f: RunFacts, by: str) -> Occupancy | None:
    """The main operation where that limits how many warps are resident, and they are few."""
    one = f.main
    return one if one is not None and by in one.limiters and one.warps < FEW_WARPS * one.max_warps else None


def _shared(f: RunFacts) -> str:
    one = _limited(f, "shared memory")
    if one is None:
        return ""
    size, blocks = units.memory(one.shared_bytes), units.counted(one.blocks, "block")
    return f"{size} of shared memory limit {one.op} to {blocks} per SM: {one.warps} of {one.max_warps} warps"


def _registers(f: RunFacts) -> str:
    one = _limited(f, "registers")
    if one is None or f.slowest is None or f.slowest.limiter.what != LATENCY:
        return ""
    return (
        f"{one.registers} registers a thread limit {one.op} to {one.warps} of {one.max_warps} warps, "
        f"and {f.slowest.limiter.evidence}"
    )


def _resident(f: RunFacts) -> str:
    one, measured = f.main, f.evidence.sm_occupancy if f.evidence is not None else None
    if one is None or measured is None:
        return ""
    allowed = one.warps / one.max_warps
    if measured >= FEW_WARPS * allowed:
        return ""
    return f"{units.percent(allowed)} of the warps could be resident, and {units.percent(measured)} were"


def _lanes(f: RunFacts) -> str:
    one = f.main
    if one is None or not one.threads % WARP:
        return ""
    idle = -one.threads % WARP
    return f"{one.op} has blocks of {one.threads} threads: {idle} of the {WARP} lanes of its last warp never work"


def _narrow(f: RunFacts) -> str:
    row = f.e.tile * f.itemsize
    if f.e.tile <= 1 or row >= SEGMENT // 2:
        return ""
    return f"a row of a tile is {row} bytes, and a warp can load {SEGMENT} at once"


def _scattered(f: RunFacts) -> str:
    pieces = f.per("global_load_sectors", "global_load_requests")
    if pieces is None or pieces < 2 * f.itemsize:
        return ""
    return f"a load of a warp touches {units.digits(pieces)} pieces of 32 bytes, where {f.itemsize} hold as many numbers"


def _conflicts(f: RunFacts) -> str:
    share = f.per("shared_load_conflicts", "shared_load_wavefronts")
    if share is None or share < CONFLICTS:
        return ""
    return f"{units.percent(share)} of the loads from shared memory wait for a bank that another thread asks"


def _instructions(f: RunFacts) -> str:
    each = f.counters.get("integer_instructions_per_relaxation")
    if each is None or each < INSTRUCTIONS:
        return ""
    return f"{units.digits(each)} integer instructions for each relaxation, whose own are at most two"


def _operands(f: RunFacts) -> str:
    each = f.per("shared_load_bytes", "relaxations")
    if each is None or each < 2 * f.itemsize:
        return ""
    return f"{units.digits(each)} bytes of shared memory are read for each relaxation: both operands, every time"


def _padding(f: RunFacts) -> str:
    times = f.run.relaxations / f.run.n**3 if f.run.n else 0.0
    if times < PADDED:
        return ""
    return f"{f.run.n:,} vertices are padded to {f.run.padded:,}, to whole tiles: {units.gain(times)} the relaxations"


def _type(f: RunFacts) -> str:
    graph = f.run.graph
    if graph is None or graph.high is None or (graph.low or 0) < 0 or f.e.dtype == "int16" or f.e.real or f.e.file:
        return ""
    longest = (f.run.n - 1) * graph.high
    if "int16" not in f.offered("dtypes") or longest >= NO_EDGE["int16"]:
        return ""
    return f"no path is longer than {longest:,.0f}, which int16 holds in half the bytes of {f.e.dtype}"


def _copies(f: RunFacts) -> str:
    seconds, whole = f.run.seconds, f.run.end_to_end
    if not seconds or whole is None or whole < 2 * seconds or f.e.memory != "device" or "pinned" not in f.offered("memories"):
        return ""
    words = f"copying in and out takes {units.duration(whole - seconds)}, and computing {units.duration(seconds)}"
    return f"{words}; pinned memory is offered"


def _cores(f: RunFacts) -> str:
    busy, cores = (f.cpu.busy, f.cpu.cores) if f.cpu is not None else (None, None)
    if busy is None or cores is None or cores < 2 or not busy < 1.5:
        return ""
    return f"{busy:.1f} of {cores} cores were busy"


def _scalar(f: RunFacts) -> str:
    each, busy = (f.cpu.each, f.cpu.busy) if f.cpu is not None else (None, None)
    vectors = any(loop.lanes > 1 for loop in f.run.loops)  # then something else holds it back
    if each is None or vectors or busy is None or busy < 0.5:
        return ""
    return f"{each:.2g} relaxations a clock on each busy core, where one vector instruction does several" if each < 1 else ""


def _waits(f: RunFacts) -> str:
    ranks = of_ranks(f.run)
    share = fmean(one.share(key) for one in ranks for key in (BROADCAST, WAIT)) * 2 if ranks else 0.0
    if share < MUCH:
        return ""
    return f"{waits(f.model, f.run)}; a larger graph or fewer ranks leave more work to each"


def _rows(f: RunFacts) -> str:
    """Too few rows of tiles to share them out evenly."""
    shares = of_ranks(f.run)
    rows, ranks = f.run.padded // max(f.e.tile, 1), len(f.run.ranks)
    smaller = [tile for tile in f.offered("tiles") if tile < f.e.tile]
    if (imbalance(shares) or 0.0) < UNEVEN or not rows % ranks or not smaller:
        return ""
    there = f"{units.counted(rows, 'row')} of tiles for {ranks} ranks"
    return f"{there}: some have more than others; a tile of {max(smaller)} makes more rows"


def _sampled(reason: str, least: float) -> Rule:
    """That warps wait for that in at least this share of the samples of the slowest phase."""

    def rule(f: RunFacts) -> str:
        share = shares(f.samples.reasons).get(reason, 0.0) if f.samples is not None else 0.0
        if share < least:
            return ""
        wait = stall(reason)
        return f"a warp {wait.verb} in {100 * share:.0f} % of samples: {wait.advice}"

    return rule


def _loop(f: RunFacts) -> str:
    each = loop_facts(f.samples).each if f.samples is not None else None
    if each is None or each < INSTRUCTIONS:
        return ""
    return f"the inner loop has {units.digits(each)} instructions for each relaxation, whose own are at most two"


Rule = Callable[[RunFacts], str]
OF_COUNTERS = ("device memory", "registers", "scattered loads", "bank conflicts", "instructions", "operands")
# the key, the rung that shows the way, and what is said
CUDA: tuple[tuple[str, str, Rule], ...] = (
    ("launches", "resident", _launches),
    ("few tiles", "look-ahead", _few_tiles),
    ("bytes", "katz-kider", _bytes),
    ("device memory", "register-tiled", _dram),
    ("spills", "register-tile", _spills),
    ("shared memory", "staged-row-major", _shared),
    ("registers", "optimized", _registers),
    ("resident warps", "look-ahead", _resident),
    ("waits for device memory", "katz-kider", _sampled(DEVICE_MEMORY, 0.4)),
    ("queue of loads", "blocked-vector", _sampled("lg_throttle", 0.1)),
    ("waits for shared memory", "register-tile", _sampled(SHARED_MEMORY, 0.25)),
    ("shared memory pipe", "register-tiled", _sampled(SHARED_PIPE, 0.2)),
    ("barriers", "look-ahead", _sampled("barrier", 0.15)),
    ("latency", "register-tiled", _sampled("wait", 0.25)),
    ("branches", "katz-kider", _sampled("branch_resolving", 0.1)),
    ("last stores", "register-tiled", _sampled("drain", 0.1)),
    ("constants", "", _sampled("imc_miss", 0.1)),
    ("instruction cache", "", _sampled("no_instructions", 0.1)),
    ("inner loop", "optimized", _loop),
    ("idle lanes", NAIVE, _lanes),
    ("narrow tile", "register-tiled", _narrow),
    ("scattered loads", NAIVE, _scattered),
    ("bank conflicts", "staged-row-major", _conflicts),
    ("instructions", "optimized", _instructions),
    ("operands", "register-tiled", _operands),
    ("padding", "katz-kider", _padding),
    ("number type", "blocked-vector", _type),
    ("copies", NAIVE, _copies),
)
RANKED: tuple[tuple[str, str, Rule], ...] = (("exchange", "", _waits), ("uneven rows", "", _rows))
CPU: tuple[tuple[str, str, Rule], ...] = (
    ("cores", "tiled-cpu", _cores),
    ("vectors", "tiled-cpu", _scalar),
)
