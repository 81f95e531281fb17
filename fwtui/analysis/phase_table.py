"""The phase table: the roofline time, the measured time and the bottleneck of each phase.

Roofline times follow Williams, Waterman and Patterson (CACM 52(4), 2009): the larger of bytes / peak bandwidth and
relaxations / measured peak rate. The bytes are the DRAM traffic that GPM or counters measured, else those that the kernel
requests (cost model). The bottleneck comes from the first source that names one: launches and thread blocks, PC samples (with
the throughput of units), hardware counters (the busiest unit if it is busy for at least 60 % of the time, as in Nsight
Compute's "Speed of Light"), telemetry, the roofs. On a CPU the roofs are those of the busy cores and of the cache that holds
the matrix; the compiled loop adds the width of its instructions. A share above 100 % never names a bottleneck, and neither
does a time that the timers lengthened by more than MAX_OVERHEAD.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from typing import NamedTuple

from fwtui.analysis.bottleneck import (
    BOTTLENECK_SHARE,
    LATENCY,
    MAX_IDLE_SHARE,
    OWNER,
    SATURATED_SHARE,
    UNKNOWN,
    Bottleneck,
    IssueSlots,
    by_counters,
    by_samples,
    by_telemetry,
    counters_of,
    dram_share,
    reason_of,
)
from fwtui.analysis.cpu import CpuFacts, cpu_facts, level_with_article, phase_facts, scalar_reason
from fwtui.analysis.data_sheet import SHARED_BYTES_PER_CLOCK, shared_bytes_per_second
from fwtui.analysis.disturbances import MAX_OVERHEAD, timers_distort
from fwtui.analysis.limits import limit_of, of_all_devices
from fwtui.analysis.rank_timing import LATE, link_bandwidth, whole_percent
from fwtui.analysis.warps import ISSUE, PIPE, issue_rate, issue_slots, main_samples, samples_of
from fwtui.common import units
from fwtui.stream.events import CpuLoop
from fwtui.stream.model import Evidence, Model
from fwtui.stream.quantity import GPM
from fwtui.stream.run import BROADCAST, WAIT, PhaseTime, Run, of_phase
from fwtui_kernels.plan import ITEMSIZE, WARP

PEAK_ERROR = 0.05  # relative error of a measured peak rate: a share may exceed 1 by this much
MIN_COMBINED_SHARE = 0.8  # two roofs that add up to this share of the time explain a kernel that alternates between them
MAX_IDLE_RATE = 1.0  # instructions of the inner loop per cycle; below this rate a core mostly waits or executes other code
MIN_ISSUE_RATE = 3.0  # instructions of the inner loop per cycle; a core above this rate mostly issues them
MAX_USED = 0.95  # share of the cores; fewer are its busy cores
MIN_RUN_SHARE = 0.8  # telemetry of the whole run represents a phase that takes at least this share of it
LAUNCH_SECONDS = 3e-6  # approximate time to launch an empty kernel on current GPUs
EMPTY = f"an empty one takes up to {units.duration(LAUNCH_SECONDS)}"
LAUNCH_SHARE = 0.5  # share of a phase's time above which launch overhead is its bottleneck
CODE = ("kernel", "code", "dtype", "tile", "options")  # experiments that agree in these fields run the same machine code


class Roofs(NamedTuple):
    """The roofs of a run's device, or of all its devices together; None if a roof is unknown."""

    bytes_per_second: float | None = None  # device memory; for a CPU, the cache or memory that holds the matrix, measured
    relaxations_per_second: float | None = None  # measured, for the run's number type and sign
    form: str = ""  # the instructions of that measurement
    shared_bytes_per_second: float | None = None  # measured, else from the data sheet
    multiprocessors: int | None = None  # per device
    l2_bytes: int | None = None
    l2_bytes_per_second: float | None = None  # measured
    issue_slots: IssueSlots = IssueSlots(None)
    issued_per_second: float | None = None  # relaxations by the instructions of the slowest phase's loop, if nothing ever waited
    capability: tuple[int, int] | None = None  # compute capability; None for a CPU
    shared_measured: bool = False
    memory: str = "device memory"  # name of the memory or cache that `bytes_per_second` is measured for
    noisy: str = ""  # names of the roofs that were measured while other programs ran


LAUNCHES, SCALAR, STRIDED = "launch overhead", "not vectorised", "strided access"
OUTSIDE = "latency or other code"  # bottleneck of a phase whose inner loop issues few instructions
MODEL, SHEET = "model", "model, data sheet"  # origins of numbers
UNMEASURED = "the peak rates of this device are not measured"
TIMERS = f"timer overhead above {100 * MAX_OVERHEAD:.0f} % of the median time, so the per-phase times cannot show it"
LINK = "interconnect"  # bottleneck of broadcasting a panel


class PhaseRow(NamedTuple):
    """The row of a phase, or of all phases together; times of unknown roofs are None."""

    key: str
    title: str
    launches: int
    relaxations: int
    device_bytes: int
    seconds: float  # measured, in the instrumented repetition
    memory_seconds: float | None  # bytes / peak bandwidth, with the DRAM traffic if it was measured, else the requested bytes
    compute_seconds: float | None  # relaxations / measured peak rate
    shared_seconds: float | None  # time of its shared-memory accesses at peak bandwidth, including bank conflicts
    limiter: Bottleneck

    @property
    def roofline_seconds(self) -> float | None:
        """The larger of the memory and compute times; None if both roofs are unknown."""
        return max((t for t in (self.memory_seconds, self.compute_seconds) if t is not None), default=None)

    @property
    def share(self) -> float | None:
        """Roofline time / measured time; None if caches served part of the requested bytes, so that it exceeds 1."""
        share = self.roofline_seconds / self.seconds if self.roofline_seconds is not None and self.seconds > 0 else inf
        return share if share <= 1 + PEAK_ERROR else None


def roofs_of(model: Model, run: Run) -> Roofs:
    """Return the roofs of the run's device; no roofs for the simulator."""
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
        of_all_devices(run, most) for most in (gpu.peak_bytes_per_second, near or shared_bytes_per_second(gpu), read.get(2))
    )
    evidence = model.evidence(run)
    slots = IssueSlots(of_all_devices(run, issue_slots(model, run)), evidence.sm_occupancy if evidence is not None else None)
    issue = of_all_devices(run, issue_rate(model, run, main_samples(run)))
    size = gpu.multiprocessors, gpu.l2_bytes
    return Roofs(memory, rate, form, shared, *size, l2, slots, issue, gpu.compute_capability, near is not None)


def _cpu_roofs(model: Model, run: Run, rate: float | None, form: str, noisy: bool) -> Roofs:
    measured, facts = model.measured.get(run.device), cpu_facts(model, run)
    copied, copy_noisy = (measured.copy_bytes_per_second, measured.copy_noisy) if measured is not None else (None, False)
    level = facts.level if facts is not None else None
    if facts is not None and level is not None and measured is not None and measured.levels:
        copied, copy_noisy = (facts.limit.bytes_per_second, facts.limit.noisy) if facts.limit is not None else (None, False)
    elif level:
        copied = None  # the bandwidth of a copy in memory does not bound a cache
    memory = level_with_article(level)
    names = [name for name, one in (("peak rate", noisy), (f"bandwidth of {memory}", copy_noisy and copied)) if one]
    return Roofs(of_all_devices(run, copied), rate, form, memory=memory, noisy=" and ".join(names))


def phase_rows(model: Model, run: Run) -> tuple[PhaseRow, ...]:
    """Return a row per phase, and a total if there are several; empty before the instrumented repetition."""
    return model.once(_lines, run)


def _lines(model: Model, run: Run) -> tuple[PhaseRow, ...]:
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
        memory = sum(line.memory_seconds or 0.0 for line in lines) or total.memory_seconds
        limiter = Bottleneck(f"mostly {slowest.title}", share)
        if facts is not None and timers_distort(run) and run.seconds:
            # the repetitions without timers show the bottleneck of all phases together, with the loop of the longest one
            whole = total._replace(seconds=run.seconds, launches=0)
            limiter = _by_cpu(run, roofs, whole, facts, of_phase(run.loops, slowest.key))
        lines.append(total._replace(limiter=limiter, memory_seconds=memory))
    return tuple(lines)


def slowest_line(lines: Sequence[PhaseRow]) -> PhaseRow | None:
    """Return the line of the phase that takes longest; None before the instrumented repetition."""
    return max((line for line in lines if line.key or len(lines) == 1), key=lambda line: line.seconds, default=None)


def _line(run: Run, roofs: Roofs, phase: PhaseTime, evidence: Evidence | None, facts: CpuFacts | None) -> PhaseRow:
    key, title, seconds, share, launches, relaxations, moved, *_ = phase
    exchanges = run.ranks and key in (BROADCAST, WAIT)  # over the interconnect, whose peak is not measured
    memory_seconds = _over(moved, roofs.bytes_per_second) if not exchanges else None
    compute_seconds = _over(relaxations, roofs.relaxations_per_second)
    turns = _wavefronts(run, key, roofs) if roofs.shared_bytes_per_second else None
    shared_seconds = _over((turns or 0.0) * SHARED_BYTES_PER_CLOCK * relaxations / WARP, roofs.shared_bytes_per_second)
    roofline = memory_seconds, compute_seconds, shared_seconds
    line = PhaseRow(key, title, launches, relaxations, moved, seconds, *roofline, Bottleneck(UNKNOWN, ""))
    if facts is not None and not run.ranks and seconds > 0:
        limiter = Bottleneck(UNKNOWN, TIMERS)
        if share == 1.0 or not timers_distort(run):  # an only phase is the run, also without timers
            measured = line._replace(seconds=run.seconds) if share == 1.0 and run.seconds else line
            limiter = _by_cpu(run, roofs, measured, phase_facts(facts, phase), of_phase(run.loops, key))
        return line._replace(limiter=limiter)
    readings = evidence if share >= MIN_RUN_SHARE else None
    dram, _ = dram_share(run, readings, (key, seconds))
    measured = dram * seconds if dram is not None else memory_seconds
    return line._replace(limiter=_limiter(run, roofs, line, readings), memory_seconds=measured)


def _wavefronts(run: Run, phase: str, roofs: Roofs) -> float | None:
    """Return the shared-memory wavefronts of a warp for one relaxation of each of its threads; None if unknown.

    They include bank conflicts. They were counted in this run, else for the same code on the same GPU in the recorded ladder.
    """
    from fwtui.sessions.library import recorded_ladder  # imported late, to keep it out of the startup time

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
    """Return amount / rate in seconds; None if either is missing or the quotient is not finite."""
    seconds = amount / rate if amount and rate else inf
    return seconds if isfinite(seconds) else None


def tiles_per_launch(run: Run, line: PhaseRow) -> float | None:
    """Return the number of tiles per launch, from the relaxations of a tile per round; None for a kernel without tiles."""
    tile = run.experiment.tile
    return line.relaxations / line.launches / tile**3 if tile > 1 and line.launches and line.relaxations else None


def _limiter(run: Run, roofs: Roofs, line: PhaseRow, evidence: Evidence | None) -> Bottleneck:
    """Return the bottleneck of a phase from the first source that names one.

    The sources in order: launches, thread blocks, PC samples, counters, telemetry, roofs.
    """
    if line.seconds <= 0:
        return Bottleneck("unknown, too short to measure", "")
    cuda = run.backend == "cuda"
    if line.key == WAIT and run.ranks:
        return Bottleneck(OWNER, LATE)
    if line.key == BROADCAST and (through := link_bandwidth(run)) is not None:
        return Bottleneck(LINK, through.rate)
    samples = samples_of(run, line.key) if cuda else None
    sampled = reason_of(run, roofs.issue_slots, samples) if samples is not None else None
    sampled = None if sampled is not None and sampled.contradicts else sampled
    inside = f"; within one, {sampled}" if sampled is not None else ""
    launches = line.launches / max(len(run.ranks), 1)  # launches per rank, because the seconds are a mean over all ranks
    distorted = timers_distort(run)
    if cuda and launches and launches * LAUNCH_SECONDS >= LAUNCH_SHARE * line.seconds and not distorted:
        return Bottleneck(LAUNCHES, f"{line.launches:,} launches of {units.duration(line.seconds / launches)}; {EMPTY}{inside}")
    counters = counters_of(run, line.key)
    counted = by_counters(counters)
    if sampled is None and counted is not None and counted.what != LATENCY:
        return counted
    tiles = tiles_per_launch(run, line)
    if cuda and tiles is not None and roofs.multiprocessors and tiles < roofs.multiprocessors:
        return Bottleneck("too few thread blocks", f"{units.counted(round(tiles), 'tile')}, {roofs.multiprocessors} SMs{inside}")
    if sampled is not None:
        return by_samples(sampled, counted, counters, dram_share(run, evidence, (line.key, line.seconds)))
    by_times = Bottleneck(UNKNOWN, TIMERS) if distorted else _by_roofs(run, roofs, line, evidence)
    return counted or by_telemetry(evidence) or by_times


def _by_roofs(run: Run, roofs: Roofs, line: PhaseRow, evidence: Evidence | None) -> Bottleneck:
    """Return the bottleneck that the roofs prove; a share above 1 means that caches served the operands."""
    cuda = run.backend == "cuda"
    memory_share, compute_share, shared_share = (
        t / line.seconds if t else None for t in (line.memory_seconds, line.compute_seconds, line.shared_seconds)
    )
    if compute_share is not None and SATURATED_SHARE <= compute_share <= 1 + PEAK_ERROR:
        return Bottleneck(PIPE, _of_peak(compute_share))
    if shared_share is not None and BOTTLENECK_SHARE <= shared_share <= 1:
        source = MODEL if roofs.shared_measured else SHEET
        return Bottleneck("shared memory", f"{whole_percent(shared_share)} of its bandwidth", source=source)
    by_l2 = _over(line.device_bytes, roofs.l2_bytes_per_second)
    if memory_share is not None and memory_share > 1 and by_l2 is not None and BOTTLENECK_SHARE <= by_l2 / line.seconds <= 1:
        return Bottleneck("L2 cache", f"{whole_percent(by_l2 / line.seconds)} of its measured bandwidth", source=MODEL)
    if memory_share is not None and BOTTLENECK_SHARE <= memory_share <= 1 and not cuda:
        return Bottleneck(roofs.memory, f"{whole_percent(memory_share)} of its bandwidth", source=MODEL)
    dram = evidence.dram_utilisation if evidence is not None else None
    if memory_share is not None and dram is not None:
        more = ", ".join([_in_l2(run, roofs, dram), *_shares(compute_share)])
        return Bottleneck(UNKNOWN, f"{roofs.memory} {whole_percent(dram)} busy", source=GPM, more=more)
    return _unknown(roofs, memory_share, compute_share)


def _of_peak(share: float, peak: str = "") -> str:
    peak = peak or "the measured peak rate"
    return f"{whole_percent(share)} of {peak}" if share <= 1 else f"at {peak}"


def _unknown(roofs: Roofs, memory_share: float | None, compute_share: float | None, share_of: str = "") -> Bottleneck:
    """Report the shares of both roofs if neither is the bottleneck."""
    work = _shares(compute_share, share_of)
    if memory_share is None:
        return Bottleneck(UNKNOWN, "".join(work) or UNMEASURED)
    if memory_share <= 1:
        whole = "the bandwidth of its busy cores" if share_of else "its bandwidth"
        busy, rest = f"{roofs.memory} {whole_percent(memory_share)} of {whole}", ""
    else:
        busy, rest = f"it requests {units.gain(memory_share)} the bandwidth of {roofs.memory}", ": caches serve the rest"
    return Bottleneck(UNKNOWN, busy, source=MODEL, more=", ".join([rest, *work]))


def _shares(compute_share: float | None, share_of: str = "") -> list[str]:
    if compute_share is None:
        return []
    if compute_share <= 1 + PEAK_ERROR:
        return [f"compute {whole_percent(compute_share)} of {share_of or 'its measured peak rate'}"]
    return ["this run exceeds the measured peak rate; rerun `fwtui doctor --measure`"]


def _by_cpu(run: Run, roofs: Roofs, line: PhaseRow, facts: CpuFacts, loop: CpuLoop | None) -> Bottleneck:
    """Return the bottleneck of a phase on a CPU with that inner loop, or of all phases.

    Tested in order: other processes, too few tiles, instruction issue, the memory that holds the matrix, scalar code, both roofs,
    an idle loop.
    """
    bandwidth = facts.bytes_per_second
    tiles, cores = tiles_per_launch(run, line), facts.cores
    needed = (cores or 1) if run.experiment.options.get("cores") else 1
    if facts.busy is not None and cores and facts.busy < BOTTLENECK_SHARE * needed and facts.others > cores - needed + facts.busy:
        return Bottleneck("other processes", f"they used {facts.others:.1f} of {cores} cores, and this run {facts.busy:.1f}")
    if tiles is not None and cores and round(tiles) < cores and run.experiment.options.get("cores", 1):
        return Bottleneck("too few tiles", f"{units.counted(round(tiles), 'tile')}, {cores} cores")
    if bandwidth is None and "bandwidth" not in roofs.noisy:
        bandwidth = roofs.bytes_per_second
    seconds = _over(line.device_bytes, bandwidth)
    memory_share = seconds / line.seconds if seconds else None
    compute_share = line.compute_seconds / facts.used / line.seconds if line.compute_seconds else None
    share_of = "the peak rate of its busy cores" if facts.used < MAX_USED else ""
    if compute_share is not None and BOTTLENECK_SHARE <= compute_share <= 1 + PEAK_ERROR:
        return Bottleneck(ISSUE, f"{_of_peak(compute_share, share_of)}{' (noisy)' * ('peak rate' in roofs.noisy)}")
    if memory_share is not None and BOTTLENECK_SHARE <= memory_share <= 1:
        return Bottleneck(roofs.memory, f"{whole_percent(memory_share)} of its bandwidth", source=MODEL)
    rate = facts.instructions_a_cycle(loop, facts.each)
    idle = rate is not None and rate < MAX_IDLE_RATE
    few = f"the inner loop issues only {units.digits(rate)} instructions per cycle" if rate is not None and idle else ""
    if facts.down_columns and (idle or rate is None):
        return Bottleneck(
            STRIDED, "the inner loop goes down a column, so each load touches another cache line", more=few and f"; {few}"
        )
    if loop is not None and loop.lanes == 1 and not idle:
        return Bottleneck(SCALAR, scalar_reason(loop))
    if rate is not None and rate >= MIN_ISSUE_RATE:
        return Bottleneck(ISSUE, f"the inner loop issues {rate:.1f} instructions per cycle")
    if compute_share is not None and memory_share is not None and MIN_COMBINED_SHARE <= compute_share + memory_share <= 1:
        both = f"{_of_peak(compute_share, share_of)} and {whole_percent(memory_share)} of the bandwidth, alternating"
        return Bottleneck(f"{ISSUE} and {roofs.memory}", both)
    if idle and loop is not None and (compute_share is not None or loop.lanes == 1):
        return Bottleneck(OUTSIDE, f"{few}; copies, stores and barriers are outside it")
    return _unknown(roofs, memory_share, compute_share, share_of)


def _in_l2(run: Run, roofs: Roofs, dram: float) -> str:
    """Explain idle device memory by a matrix that fits in the L2 cache; empty if it does not fit or memory is busy."""
    matrix = run.padded**2 * ITEMSIZE.get(run.experiment.dtype, 4)
    if dram >= MAX_IDLE_SHARE or not roofs.l2_bytes or not 0 < matrix <= roofs.l2_bytes:
        return ""
    sizes = units.memory(matrix), units.memory(roofs.l2_bytes)
    return f" because the matrix of {sizes[0]} fits in the L2 cache of {sizes[1]}"


def formula(roofs: Roofs, line: PhaseRow) -> str:
    """Return the calculation of the roofline time: max(34.1 GB / 4.81 TB/s, ...) = 7.08 ms."""
    parts = []
    if line.memory_seconds is not None:
        moved = units.scaled(line.memory_seconds * (roofs.bytes_per_second or 0.0), "B")
        parts.append((f"{moved} / {units.bandwidth(roofs.bytes_per_second)}", line.memory_seconds))
    if line.compute_seconds is not None:
        work = units.scaled(line.relaxations, "relax")
        parts.append((f"{work} / {units.rate(roofs.relaxations_per_second)}", line.compute_seconds))
    if not parts:
        return "its peak rate is unknown"
    if len(parts) == 1:
        return f"{parts[0][0]} = {units.duration(parts[0][1])}"
    return f"max({', '.join(quotient for quotient, _ in parts)}) = max({', '.join(units.duration(t) for _, t in parts)})"
