"""The speed-of-light ledger: each phase's time at the device's limits, its measured time, and what limits it.

Expected times follow the roofline model (Williams, Waterman, Patterson, CACM 52(4), 2009): the slowest of moving the
phase's bytes at peak bandwidth and doing its relaxations at the measured limit. Bytes are those of the kernel's own model.
Samples of the GPU's warps say what they wait for, and at which line; counters of a full unit stand beside them. Without
samples the limiter is that of hardware counters, the busiest unit, if busy for at least 60 % of the time, as in Nsight
Compute's "speed of light"; else one that telemetry or a roof proves. On a CPU the roofs are those of the busy cores and of the
cache that holds the matrix; the compiled loop adds how wide its instructions are. A share above 100 % is never a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from typing import NamedTuple

from fwtui.analysis.cpu import CpuFacts, cpu_facts, has_minimum, loop_of, per_cycle, the_level
from fwtui.analysis.data_sheet import SHARED_BYTES_PER_CLOCK, shared_bytes_per_second
from fwtui.analysis.limits import limit_of
from fwtui.analysis.ranks import LATE, carried, whole_percent
from fwtui.analysis.warps import issue_rate, main_samples, samples_of, warp_reason
from fwtui.common import units
from fwtui.stream.model import Evidence, Model
from fwtui.stream.quantity import GPM
from fwtui.stream.run import BROADCAST, WAIT, PhaseTime, Run
from fwtui_kernels.plan import ITEMSIZE, WARP

FULL = 0.8  # share of the time busy, from which a unit has no room; Nsight Compute's rules begin there
NEAR = 0.6  # share of a roof, or of the time busy, from which a unit is the limiter
ERROR = 0.05  # of a measured limit, whose own error may make a share a little more than 1
TOGETHER = 0.8  # of the time, that two roofs explain if one waits for the other
STALLED = 1.0  # instructions a cycle, below which a core mostly waits for results
ISSUING = 3.0  # from which it mostly issues them
ALIKE = 0.1  # two units whose shares differ by at most this limit together
INTEGER_BUSY = 0.93  # GPM reads higher than the profiler: its 90 % was 59 % there (naive, int16, H200)
MOSTLY_IDLE = 0.1  # below this busy share the caches serve nearly every request
MOST_FEW = 0.3  # of the possible resident warps: fewer can hardly hide latency
MOSTLY = 0.8  # of the run's time: telemetry of the whole run then represents the phase
LAUNCH_SECONDS = 3e-6  # roughly the time to start an empty kernel on current GPUs
LAUNCH_SHARE = 0.5  # of a phase's time, from which launches are the limiter
CODE = ("kernel", "code", "dtype", "tile", "options")  # fields of experiments that are compiled to the same


class Roofs(NamedTuple):
    """The limits of a run's device, or of all its devices together; None for unknown ones."""

    bytes_per_second: float | None = None  # device memory; for a CPU, the cache or memory that holds the matrix, measured
    relaxations_per_second: float | None = None  # measured, for the run's number type and sign
    form: str = ""  # the instructions of that measurement
    shared_bytes_per_second: float | None = None  # measured, else from the data sheet
    multiprocessors: int | None = None  # of one device
    l2_bytes: int | None = None
    l2_bytes_per_second: float | None = None  # measured
    issued_per_second: float | None = None  # relaxations by the instructions of the slowest phase's loop, if nothing ever waited
    capability: tuple[int, int] | None = None  # of a GPU
    shared_measured: bool = False
    memory: str = "device memory"  # what has those bytes
    noisy: str = ""  # of these roofs, what was measured while other programs ran
    float_minimum: float | None = None  # relaxations a second by a CPU's minimum of float32, if another form is faster


class Limiter(NamedTuple):
    """What limits a phase, and the evidence."""

    what: str  # device memory, instructions, ...; "unknown" without proof
    because: str  # the evidence, with its numbers
    verb: str = ""  # of samples: what most warps do, after "it"
    busy: str = ""  # what counters found beside samples: instructions and shared memory are both 95 % busy
    place: str = ""  # the line where most warps do it
    source: str = ""  # where those numbers come from: counters, GPM or the kernel's model
    more: str = ""  # what goes with them and is not from there

    def __str__(self) -> str:
        return f"{self.what}: {self.evidence}" if self.because else self.what

    @property
    def evidence(self) -> str:
        return f"{self.because}{self.more}"

    @property
    def sourced(self) -> Limiter:
        """The same, which names where its numbers come from."""
        counted = "busy" if self.busy else "because"
        return self._replace(**{counted: f"{getattr(self, counted)} ({self.source})"}, source="") if self.source else self

    @property
    def computes(self) -> bool:
        """Whether samples say that most warps wait for nothing."""
        return self.verb == "computes"

    @property
    def clause(self) -> str:
        """What counters found, as a clause."""
        several = " and " in self.what or self.what.endswith("s")
        return f"{self.what} {'are' if several else 'is'} {self.evidence}"

    def sentence(self, subject: str = "it", beside: str = "") -> str:
        """The same in words: rest is limited by shared memory: 95 % busy; `beside`: what units are busy with."""
        beside = f", {beside}" * bool(beside)
        if self.what == OWNER:
            return f"{subject}: {self.because}"
        if self.what == UNKNOWN:
            return f"what limits {subject} is not known{f': {self.evidence}' * bool(self.because)}"
        if self.verb:
            parts = [f"{subject} {self.verb} in {self.because}", *([f"{self.busy}{beside}"] if self.busy else [])]
            return "; ".join(reversed(parts) if self.computes else parts)
        how = f"is limited by {self.what}"
        return f"{subject} {how}: {self.evidence}{beside}" if self.because else f"{subject} {how}"


UNKNOWN, LATENCY = "unknown", "latency"
COUNTERS, MODEL, SHEET = "counters", "model", "model, data sheet"  # where numbers come from
UNMEASURED = "this device's limits are not measured"
LINK, OWNER = "the link", "the panel's owner"  # of a broadcast, and of waiting for one


class LedgerLine(NamedTuple):
    """One phase, or all of them together; seconds are None for an unknown roof."""

    key: str
    title: str
    launches: int
    relaxations: int
    device_bytes: int
    seconds: float  # measured, in the phase pass
    by_bytes: float | None
    by_work: float | None
    by_shared: float | None  # what its accesses to shared memory take, bank conflicts and all
    limiter: Limiter

    @property
    def expected(self) -> float | None:
        """Seconds at the lower of the known roofs."""
        return max((t for t in (self.by_bytes, self.by_work) if t is not None), default=None)

    @property
    def share(self) -> float | None:
        """The expected time over the measured one; above 1 if caches served part of the bytes."""
        share = self.expected / self.seconds if self.expected is not None and self.seconds > 0 else inf
        return share if isfinite(share) else None


def roofs_of(model: Model, run: Run) -> Roofs:
    """The roofs of the run's device; none for the simulator."""
    if run.simulated:
        return Roofs()
    limit = limit_of(model, run)
    rate, form = (limit.relaxations_per_second, limit.form.title) if limit is not None else (None, "")
    if run.backend != "cuda":
        return _cpu_roofs(model, run, rate, form, limit is not None and limit.noisy)
    gpu = model.gpu_of(run)
    if gpu is None:
        return Roofs(None, rate, form)
    measured = model.measured.get(run.device)
    read = {one.level: one.bytes_per_second for one in measured.levels} if measured is not None else {}
    near = read.get(1)
    memory, shared, l2 = (
        _all(run, most) for most in (gpu.peak_bytes_per_second, near or shared_bytes_per_second(gpu), read.get(2))
    )
    issue = _all(run, issue_rate(model, run, main_samples(run)))
    size = gpu.multiprocessors, gpu.l2_bytes
    return Roofs(memory, rate, form, shared, *size, l2, issue, gpu.compute_capability, near is not None)


def _cpu_roofs(model: Model, run: Run, rate: float | None, form: str, noisy: bool) -> Roofs:
    measured, facts = model.measured.get(run.device), cpu_facts(model, run)
    copied, doubtful = (measured.copy_bytes_per_second, measured.copy_noisy) if measured is not None else (None, False)
    level = facts.level if facts is not None else None
    if facts is not None and level is not None and measured is not None and measured.levels:
        copied, doubtful = (facts.limit.bytes_per_second, facts.limit.noisy) if facts.limit is not None else (None, False)
    elif level:
        copied = None  # what a copy in memory takes is no limit of a cache
    memory = the_level(level)
    names = [name for name, one in (("limit", noisy), (f"bandwidth of {memory}", doubtful and copied)) if one]
    forms = measured.forms if measured is not None else ()
    plain = next((one.relaxations_per_second for one in forms if one.form == "float32"), None)
    slower = plain if run.experiment.dtype == "float32" and plain and rate and plain < rate else None
    return Roofs(_all(run, copied), rate, form, memory=memory, noisy=" and ".join(names), float_minimum=slower)


def _all(run: Run, rate: float | None) -> float | None:
    """A device's rate for all devices of the run together."""
    return rate * run.device_count if rate is not None else None


def ledger(model: Model, run: Run) -> tuple[LedgerLine, ...]:
    """A line for each phase of the phase pass, plus a total if there are several; empty before the phase pass."""
    return model.once(_lines, run)


def _lines(model: Model, run: Run) -> tuple[LedgerLine, ...]:
    roofs = roofs_of(model, run)
    evidence = model.evidence(run) if run.backend == "cuda" else None
    phases = run.phases
    facts = cpu_facts(model, run)
    lines = [_line(run, roofs, phase, evidence, facts) for phase in phases]
    if len(lines) > 1:
        amounts = (sum(getattr(phase, name) for phase in phases) for name in PhaseTime._fields[2:])
        total = _line(run, roofs, PhaseTime("", "all phases", *amounts), evidence, facts)
        slowest = max(lines, key=lambda line: line.seconds)
        share = units.percent(slowest.seconds / total.seconds if total.seconds else None)
        lines.append(total._replace(limiter=Limiter(f"mostly {slowest.title}", share)))
    return tuple(lines)


def slowest_line(lines: Sequence[LedgerLine]) -> LedgerLine | None:
    """The phase that takes longest; None if there are none yet."""
    return max((line for line in lines if line.key or len(lines) == 1), key=lambda line: line.seconds, default=None)


def _line(run: Run, roofs: Roofs, phase: PhaseTime, evidence: Evidence | None, facts: CpuFacts | None) -> LedgerLine:
    key, title, seconds, share, launches, relaxations, moved, *_ = phase
    by_bytes, by_work = _over(moved, roofs.bytes_per_second), _over(relaxations, roofs.relaxations_per_second)
    turns = _wavefronts(run, key, roofs) if roofs.shared_bytes_per_second else None
    by_shared = _over((turns or 0.0) * SHARED_BYTES_PER_CLOCK * relaxations / WARP, roofs.shared_bytes_per_second)
    line = LedgerLine(key, title, launches, relaxations, moved, seconds, by_bytes, by_work, by_shared, Limiter(UNKNOWN, ""))
    if facts is not None and not run.ranks and seconds > 0:
        busy_facts = facts._replace(busy=phase.cpu_seconds / seconds) if phase.cpu_seconds else facts
        return line._replace(limiter=_by_cpu(run, roofs, line, busy_facts))
    return line._replace(limiter=_limiter(run, roofs, line, evidence if share >= MOSTLY else None))


def _wavefronts(run: Run, phase: str, roofs: Roofs) -> float | None:
    """What a warp takes of shared memory for a relaxation of each of its threads, in accesses of all banks at once; None if not
    known. Bank conflicts are in it, as it was counted: in this run, else for the same code on a GPU of that kind in the ladder.
    """
    from fwtui.sessions.library import recorded_ladder  # not before the first frame

    counters = counters_of(run, phase)
    uncounted = "shared_load_wavefronts" not in counters and any(one.shared_bytes for one in run.occupancies)
    ladder = recorded_ladder() if uncounted else None
    if ladder is not None and ladder.gpu is not None and ladder.gpu.compute_capability == roofs.capability:
        code = [getattr(run.experiment, name) for name in CODE]
        same = (one for one in ladder.runs.values() if [getattr(one.experiment, name) for name in CODE] == code)
        counters = next((counters_of(one, phase) for one in same), counters)
    relaxations = counters.get("relaxations")
    counts = [counters.get(f"shared_{way}_wavefronts") for way in ("load", "store")]
    return sum(filter(None, counts)) * WARP / relaxations if relaxations and None not in counts else None


def _over(amount: float, rate: float | None) -> float | None:
    """Seconds; None without an amount or a rate, or for impossible values in a made-up file."""
    seconds = amount / rate if amount and rate else inf
    return seconds if isfinite(seconds) else None


def tiles_per_launch(run: Run, line: LedgerLine) -> float | None:
    """The number of tiles per launch, from the relaxations of a tile per round; None for a kernel without tiles."""
    tile = run.experiment.tile
    return line.relaxations / line.launches / tile**3 if tile > 1 and line.launches and line.relaxations else None


def _limiter(run: Run, roofs: Roofs, line: LedgerLine, evidence: Evidence | None) -> Limiter:
    """The first known limiter of: launches, too few tiles, samples, counters, telemetry, roofs."""
    if line.seconds <= 0:
        return Limiter("too short to say", "")
    cuda = run.backend == "cuda"
    if line.key == WAIT and run.ranks:
        return Limiter(OWNER, LATE)
    if line.key == BROADCAST and (through := carried(run)) is not None:
        return Limiter(LINK, through.rate)
    samples = samples_of(run, line.key) if cuda else None
    sampled = warp_reason(samples, run.listing(samples.op)) if samples is not None else None
    inside = f"; in one it {sampled}" if sampled is not None else ""
    launches = line.launches / max(len(run.ranks), 1)  # of one rank; the seconds are a mean of all
    if cuda and launches and launches * LAUNCH_SECONDS >= LAUNCH_SHARE * line.seconds:
        return Limiter("launches", f"{line.launches:,} of {units.duration(line.seconds / launches)}{inside}")
    counters = counters_of(run, line.key)
    counted = _by_counters(counters)
    if sampled is None and counted is not None and counted.what != LATENCY:
        return counted
    tiles = tiles_per_launch(run, line)
    if cuda and tiles is not None and roofs.multiprocessors and tiles < roofs.multiprocessors:
        return Limiter("parallelism", f"{units.counted(round(tiles), 'tile')} for {roofs.multiprocessors} SM{inside}")
    if sampled is not None:
        full = counted is not None and max(counters.get(f"{unit}_share", 0.0) for unit in ("memory", "compute")) >= FULL
        busy, source = (counted.clause, counted.source) if full and counted else ("", "")
        return Limiter(sampled.noun, sampled.evidence, sampled.verb, busy, sampled.place, source)
    return counted or _by_telemetry(evidence) or _by_roofs(run, roofs, line, evidence)


def counters_of(run: Run, phase: str) -> Mapping[str, float]:
    """Hardware counters of the phase's op; empty if none were read."""
    ops = run.counters
    return ops.get(phase) or (next(iter(ops.values())) if len(ops) == 1 else {})


def _by_counters(counters: Mapping[str, float]) -> Limiter | None:
    """The busiest unit; if all are below 60 %, latency (Nsight Compute, "Speed of Light")."""
    dram, memory, compute = (counters.get(f"{name}_share") for name in ("dram", "memory", "compute"))
    if dram is None or memory is None or compute is None:
        return None
    if max(dram, memory, compute) < NEAR:
        warps = counters.get("occupancy")
        few = f"; only {whole_percent(warps)} of the warps are resident" if warps is not None and warps < MOST_FEW else ""
        both = f"compute is {whole_percent(compute)} busy, memory {whole_percent(memory)}"
        return Limiter(LATENCY, both, source=COUNTERS, more=few)
    if dram >= NEAR and dram >= memory - ALIKE:
        return Limiter("device memory", f"{whole_percent(dram)} busy", source=COUNTERS)
    shared, loaded = (
        sum(counters.get(f"{kind}_{way}_bytes_per_second", 0.0) for way in ("load", "store")) for kind in ("shared", "global")
    )
    on_chip = "shared memory" if shared > loaded else "caches"
    if abs(memory - compute) <= ALIKE:
        same, two = f"both {whole_percent(memory)}", f"{whole_percent(compute)} and {whole_percent(memory)}"
        busy = f"{same if whole_percent(compute) == whole_percent(memory) else two} busy"
        return Limiter(f"instructions and {on_chip}", busy, source=COUNTERS)
    what, share = (on_chip, memory) if memory > compute else ("instructions", compute)
    return Limiter(what, f"{whole_percent(share)} busy", source=COUNTERS)


def _by_telemetry(evidence: Evidence | None) -> Limiter | None:
    """The limiter that the GPU's own counters (GPM) prove for the whole run."""
    if evidence is None:
        return None
    if (dram := evidence.dram_utilisation or 0.0) >= NEAR:
        return Limiter("device memory", f"{whole_percent(dram)} busy", source=GPM)
    if (integer := evidence.integer_utilisation or 0.0) >= INTEGER_BUSY:
        return Limiter("integer instructions", f"{whole_percent(integer)} busy", source=GPM)
    return None


def _by_roofs(run: Run, roofs: Roofs, line: LedgerLine, evidence: Evidence | None) -> Limiter:
    """The limiter that the roofs prove; a share above 1 means that operands came from a nearer memory."""
    cuda = run.backend == "cuda"
    by_bytes, by_work, by_shared = (t / line.seconds if t else None for t in (line.by_bytes, line.by_work, line.by_shared))
    if by_work is not None and NEAR <= by_work <= 1 + ERROR:
        return Limiter("instructions", _of_limit(by_work))
    if by_shared is not None and NEAR <= by_shared <= 1:
        source = MODEL if roofs.shared_measured else SHEET
        return Limiter("shared memory", f"{whole_percent(by_shared)} of its bandwidth", source=source)
    by_l2 = _over(line.device_bytes, roofs.l2_bytes_per_second)
    if by_bytes is not None and by_bytes > 1 and by_l2 is not None and NEAR <= by_l2 / line.seconds <= 1:
        return Limiter("the L2 cache", f"{whole_percent(by_l2 / line.seconds)} of its measured bandwidth", source=MODEL)
    if by_bytes is not None and NEAR <= by_bytes <= 1 and not cuda:
        return Limiter(roofs.memory, f"{whole_percent(by_bytes)} of its bandwidth", source=MODEL)
    dram = evidence.dram_utilisation if evidence is not None else None
    if by_bytes is not None and dram is not None:
        more = ", ".join([_in_l2(run, roofs, dram), *_shares(by_work)])
        return Limiter(UNKNOWN, f"{roofs.memory} is {whole_percent(dram)} busy", source=GPM, more=more)
    return _unknown(roofs, by_bytes, by_work)


def _of_limit(share: float, limit: str = "") -> str:
    limit = limit or "the measured limit"
    return f"{whole_percent(share)} of {limit}" if share <= 1 else f"at {limit}"


def _unknown(roofs: Roofs, by_bytes: float | None, by_work: float | None, share_of: str = "") -> Limiter:
    """What is known of both roofs where neither is the reason."""
    work = _shares(by_work, share_of)
    if by_bytes is None:
        return Limiter(UNKNOWN, "".join(work) or UNMEASURED)
    if by_bytes <= 1:
        busy, rest = f"{roofs.memory} {whole_percent(by_bytes)} of its bandwidth", ""
    else:
        busy, rest = f"its requests are {units.gain(by_bytes)} what {roofs.memory} could serve", ": caches serve the rest"
    return Limiter(UNKNOWN, busy, source=MODEL, more=", ".join([rest, *work]))


def _shares(by_work: float | None, share_of: str = "") -> list[str]:
    if by_work is None:
        return []
    if by_work <= 1 + ERROR:
        return [f"arithmetic {whole_percent(by_work)} of {share_of or 'its limit'}"]
    return ["it is faster than the measured limit, which is too low: measure it again"]


def _by_cpu(run: Run, roofs: Roofs, line: LedgerLine, facts: CpuFacts) -> Limiter:
    """The first proven limiter of: too few tiles, instructions, the memory that holds the matrix, scalar code, both, waiting."""
    loop, busy, bandwidth = loop_of(run, line.key), facts.busy, facts.bytes_per_second
    tiles, cores = tiles_per_launch(run, line), facts.cores
    if tiles is not None and cores and round(tiles) < cores and run.experiment.options.get("cores", 1):
        return Limiter("parallelism", f"{units.counted(round(tiles), 'tile')} for {cores} cores")
    if bandwidth is None and "bandwidth" not in roofs.noisy:
        bandwidth = roofs.bytes_per_second
    seconds = _over(line.device_bytes, bandwidth)
    by_bytes = seconds / line.seconds if seconds else None
    by_work = line.by_work / facts.used / line.seconds if line.by_work else None
    share_of = "the limit of its busy cores" if facts.few else ""
    each = per_cycle(line.relaxations, line.seconds * (busy or 0.0), facts.clock_mhz)
    if by_work is not None and NEAR <= by_work <= 1 + ERROR:
        return Limiter("instructions", f"{_of_limit(by_work, share_of)}{' (noisy)' * ('limit' in roofs.noisy)}")
    if by_bytes is not None and NEAR <= by_bytes <= 1:
        return Limiter(roofs.memory, f"{whole_percent(by_bytes)} of its bandwidth", source=MODEL)
    if by_work is not None and loop is not None and roofs.float_minimum and roofs.relaxations_per_second and has_minimum(loop):
        faster = roofs.relaxations_per_second / roofs.float_minimum
        if NEAR <= by_work * faster <= 1 + ERROR:
            float_limit = _of_limit(
                by_work * faster, share_of.replace("limit", "float32 limit") or "the measured limit of float32"
            )
            return Limiter(
                "instructions", f"{float_limit}; a {roofs.form.rpartition(', ')[2]} would do {units.gain(faster)} as many"
            )
    if facts.scalar or (loop is not None and loop.lanes == 1):
        return Limiter("scalar instructions", "each does one relaxation, a vector instruction several")
    rate = facts.instructions_a_cycle(loop, each)
    if rate is not None and rate >= ISSUING:
        return Limiter("instructions", f"{rate:.1f} a cycle")
    if by_work is not None and by_bytes is not None and TOGETHER <= by_work + by_bytes <= 1:
        both = f"{_of_limit(by_work, share_of)} and {whole_percent(by_bytes)} of the bandwidth, in turn"
        return Limiter(f"instructions and {roofs.memory}", both)
    if rate is not None and rate < STALLED and by_work is not None:
        return Limiter(LATENCY, f"{rate:.1f} instructions a cycle, as it waits for results and for {roofs.memory}")
    return _unknown(roofs, by_bytes, by_work, share_of)


def _in_l2(run: Run, roofs: Roofs, dram: float) -> str:
    """Why device memory is idle: all that is computed fits in the L2 cache; empty if it does not, or where memory is in use."""
    matrix = run.padded**2 * ITEMSIZE.get(run.experiment.dtype, 4)
    if dram >= MOSTLY_IDLE or not roofs.l2_bytes or not 0 < matrix <= roofs.l2_bytes:
        return ""
    sizes = units.scaled(matrix, "B"), units.scaled(roofs.l2_bytes, "B")
    return f" because the matrix of {sizes[0]} fits in the L2 cache of {sizes[1]}"


def formula(roofs: Roofs, line: LedgerLine) -> str:
    """The calculation of the expected time: max(34.1 GB / 4.81 TB/s, ...) = 7.08 ms."""
    parts = []
    if line.by_bytes is not None:
        parts.append((f"{units.scaled(line.device_bytes, 'B')} / {units.bandwidth(roofs.bytes_per_second)}", line.by_bytes))
    if line.by_work is not None:
        parts.append((f"{units.scaled(line.relaxations, 'relax')} / {units.rate(roofs.relaxations_per_second)}", line.by_work))
    if not parts:
        return "no limit is known for it"
    if len(parts) == 1:
        return f"{parts[0][0]} = {units.duration(parts[0][1])}"
    return f"max({', '.join(words for words, _ in parts)}) = max({', '.join(units.duration(t) for _, t in parts)})"
