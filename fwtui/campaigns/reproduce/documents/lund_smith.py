"""Lund and Smith, A Multi-Stage CUDA Kernel for Floyd-Warshall (2010): float32 on a Tesla C1060."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product

from fwtui.analysis.data_sheet import fp32_flops
from fwtui.campaigns.reproduce import evidence
from fwtui.campaigns.reproduce.claim import NOISE, TOLERANCE, ClaimAnswer, alike, always, claim, judged, near, speedup, time_ratio
from fwtui.campaigns.reproduce.preset import CountedKernel, DocumentFigure, Preset, RunScale
from fwtui.campaigns.reproduce.results import Missing, Results, ask, asking, later, needed
from fwtui.common import units
from fwtui.common.units import gain as times
from fwtui.experiment.experiment import Experiment
from fwtui_kernels import registry

CPU, NAIVE, KATZ, OPTIMIZED, STAGED = "serial", "naive", "katz-kider", "optimized", "staged-load"
REGISTER, ROW_MAJOR, NATURAL = "register-tile", "staged-row-major", "staged-natural"
RUNGS = (NAIVE, KATZ, OPTIMIZED, STAGED)
at = asking("float32")
# Table 1: seconds by vertices, for the CPU and the four rungs
TABLE: Mapping[int, tuple[float | None, ...]] = {
    1024: (2.405, 0.408, 0.108, 0.0428, 0.0274),
    2048: (18.38, 3.212, 0.65, 0.282, 0.14),
    4096: (145.2, 26.05, 4.62, 2.06, 0.934),
    8192: (None, 208.6, 35.37, 16.39, 6.88),
    16384: (None, None, 277.8, 126.9, 53.02),
    17408: (None, None, None, None, 63.4),
}
TEXT_SECONDS = 53.06  # n = 16384, abstract
CONSTANT = 1.2e-11  # seconds per task
TILE = 32
FLOPS_THERE, FLOPS_HERE = 3, 2  # FLOPs per instruction: 933e9 of 240 cores at 1.296 GHz; a multiply-add
KATZ_FLOPS, STAGED_FLOPS = 62.7, 12.7  # FLOPs' worth of time per task, section 5
STAGED_RATE, STAGED_CLAIMED = 73.6e9, 46e9  # tasks/s and bytes/s, section 5
SHARED_BYTES, SHARED_OF_C1060, BLOCKS = 1056, 16384, 15  # section 4.2
OVER_CPU, HEADROOM = 150, 1.5
WAYS = 4  # conflicts of the natural order there, section 4.3
UNUSED = "Peak FLOP/s counts multiply-adds, but a relaxation is an addition and a minimum"
BROADCAST = "Since compute capability 2.0 any number of threads can read the same word of a bank at once"
FORMS = (
    "It keeps more results per thread in registers, and with nonnegative weights it takes two k at once; "
    "the two gains were not measured separately"
)
PARAMETERS = 32  # bytes of shared memory for a kernel's arguments on that generation
COPY_BANDWIDTH, NAIVE_BANDWIDTH = 77e9, 42e9  # bytes/s, sections 2 and 5
TASK_BYTES = 16  # bytes per task without reuse: three words read, one written
COUNTERS = "counters"
SHARED = "Row k and column k come from caches, so memory traffic is less than the model's"
BESIDE = "The kernel is limited by more than the bus"


def _in_table(slow: int, fast: int, n: int) -> str:
    a, b = TABLE[n][slow], TABLE[n][fast]
    assert a is not None and b is not None
    return f"{times(a / b)} at {n}"


def runs(results: Results, scale: RunScale) -> Iterator[Experiment]:
    sizes = (1024, 2048, 4096) if scale.quick else (1024, 2048, 4096, 8192, 16384)
    for n in (256, 512) if not scale.gpu else (512, 1024) if scale.quick else (1024, 2048):
        yield ask(CPU, n)
    for n, rung in product((n for n in sizes if n <= 8192), reversed(RUNGS)):
        yield ask(rung, n)
    for rung in (REGISTER, ROW_MAJOR, NATURAL, *later(STAGED, "float32")):
        yield ask(rung, min(8192, sizes[-1]))
    if not scale.quick:
        if best := fastest(results):
            yield ask(best[0], sizes[-1])
        for rung in reversed(RUNGS):
            yield ask(rung, sizes[-1])
        yield ask(STAGED, 17408)


def flops_worth(results: Results, rung: str) -> tuple[float, float]:
    """(FLOPs' worth of time per task, tasks/s) at the largest size run."""
    n = results.sizes(at(rung))[-1]
    rate = n**3 / results.seconds(ask(rung, n))
    return needed(fp32_flops(results.device), "the peak FLOP/s of this device is not known") / rate, rate


@claim("LS7", "Katz-Kider is bound by computation", f"14.9e9 tasks/s, {KATZ_FLOPS:g} FLOPs' worth a task")
def computing(results: Results) -> ClaimAnswer:
    """peak FLOP/s over rate, and the bus's share, at the largest size"""
    per_task, rate = flops_worth(results, KATZ)
    share = rate * TASK_BYTES / TILE / results.peak_bandwidth
    value = f"{units.rate(rate)}, {per_task:.3g} FLOPs' worth, bus {units.percent(share)}"
    holds, note = near(per_task, KATZ_FLOPS) and share < 0.5, "the limiter itself needs counters"
    if bound := evidence.integer_bound(results, at(KATZ)):
        value, note = f"{value}; {bound}", ""
    with suppress(Missing):
        n, (memory, compute) = evidence.counters(results, at(KATZ), "dram_share", "compute_share")
        value += f", counters: compute {units.percent(compute)}, DRAM {units.percent(memory)} (n {n})"
        holds, note = holds and compute > memory, ""
    fewer = per_task < KATZ_FLOPS / TOLERANCE
    reason = f"a task takes {times(KATZ_FLOPS / per_task)} fewer FLOPs' worth" if fewer else ""
    return judged(holds, value, reason, note, UNUSED if per_task > KATZ_FLOPS * TOLERANCE else _slots(per_task))


def _slots(per_task: float) -> str:
    """Why a task may be worth fewer FLOPs: there, peak counted more FLOPs per instruction."""
    there, here = KATZ_FLOPS / FLOPS_THERE, per_task / FLOPS_HERE
    if near(per_task, KATZ_FLOPS) or not near(here, there):
        return ""
    words = f"Peak FLOP/s count {FLOPS_THERE} for each instruction that a core of the document's GPU can issue, and {FLOPS_HERE}"
    return f"{words} here: a task takes the time of {there:.3g} instructions there and {here:.3g} here"


@claim("LS8", "staged load: rate, FLOPs' worth and bandwidth", f"73.6e9 tasks/s, {STAGED_FLOPS:g} FLOPs' worth, 46 GB/s")
def staged_rate(results: Results) -> ClaimAnswer:
    """the same at the largest size; the text's own model gives 36.8 GB/s"""
    per_task, rate = flops_worth(results, STAGED)
    there = STAGED_RATE * TASK_BYTES / TILE
    value = f"{units.rate(rate)}, {per_task:.3g} FLOPs' worth, {units.bandwidth(rate * TASK_BYTES / TILE)}"
    note = f"by its own model the document's rate moves {units.bandwidth(there)}, not {units.bandwidth(STAGED_CLAIMED)}"
    return judged(near(per_task, STAGED_FLOPS), value, note=note, cause=UNUSED if per_task > STAGED_FLOPS else "")


@claim("LS10", "staged load needs so little shared memory that it allows 15 blocks", "1,056 bytes, 15 blocks")
def resources(results: Results) -> ClaimAnswer:
    """resources of the compiled kernel; limits of that GPU and of this one"""
    shared, resident = evidence.shared_bytes(results, STAGED)
    there = SHARED_OF_C1060 // (shared + PARAMETERS)
    value = f"{shared:,} bytes, {there} blocks there; {resident}"
    return judged(shared + PARAMETERS <= SHARED_BYTES and there == BLOCKS, value)


@claim(
    "LS11",
    "4x4 order conflicts 4 ways with natural k, not at all with cyclic k; row-major staged loads do not coalesce",
    "4-way, none",
)
def conflicts(results: Results) -> ClaimAnswer:
    """counters of the three variants: conflicts per wavefront, sectors per load; else the index pattern, and their times"""
    there = conflict(False, 16, False), conflict(True, 16, False)
    pattern = f"on 16 banks natural {there[0]}-way, cyclic {there[1]}-way"
    if results.model.gpu is None:
        return judged(there == (4, 1), f"{pattern} (index pattern)")
    here = conflict(False, 32, True), conflict(True, 32, True)
    n = results.sizes(at(STAGED), at(NATURAL), at(ROW_MAJOR))[-1]
    ratio = [time_ratio(results, ask(name, n), ask(STAGED, n)).value for name in (NATURAL, ROW_MAJOR)]
    value = f"{pattern}; here {here[0]}- and {here[1]}-way; natural {times(ratio[0])}, row-major {times(ratio[1])} the time"
    with suppress(Missing):
        natural, cyclic = (evidence.ways(results, at(name)) for name in (NATURAL, STAGED))
        sectors = evidence.sectors(results, at(ROW_MAJOR)) / evidence.sectors(results, at(STAGED))
        words = f"natural {natural:.3g}-way, cyclic {cyclic:.3g}-way, row-major {times(sectors)} the sectors per load"
        cause = BROADCAST if near(natural, 1) and near(cyclic, 1) and sectors > NOISE else ""
        return judged(near(natural, WAYS) and near(cyclic, 1) and sectors > NOISE, f"{words}; {value}", cause=cause)
    reason = "threads that read the same word are served together, so neither order conflicts"
    return judged(here[0] > here[1], value, reason, "whether row-major loads coalesce needs counters", BROADCAST)


@claim(
    "LS12",
    "one constant times n^3",
    f"n = 16384 in {TEXT_SECONDS:g} s (text), {TABLE[16384][4]:g} s (table), {CONSTANT:g} s a task",
)
def cubic(results: Results) -> ClaimAnswer:
    """constants of the two largest sizes within the usual factor; absolute times belong to their machine"""
    sizes = results.sizes(at(STAGED))
    needed(sizes[1:], "a single size of staged-load shows no constant")
    constants = [results.seconds(ask(STAGED, n)) / n**3 for n in sizes[-2:]]
    value = f"n = {sizes[-1]} in {units.duration(results.seconds(ask(STAGED, sizes[-1])))}, constant {constants[1]:.2g} s"
    value += f" ({times(CONSTANT / constants[1])} less)" if constants[1] < CONSTANT else ""
    return judged(near(constants[1] / constants[0], 1), value, f"at n = {sizes[-2]} the constant is {constants[0]:.2g} s")


@claim("LS13", "further optimizations could gain a factor of 1.5 or less", "at most 1.5x")
def headroom(results: Results) -> ClaimAnswer:
    """every float32 rung of the ladder against staged load, at the largest size that both ran at"""
    results.sizes(at(STAGED))  # raises Missing with the reason
    rung, n = needed(fastest(results), f"no other rung was run at a size of {STAGED}")
    gain = time_ratio(results, ask(STAGED, n), ask(rung, n))
    if not gain.slower:
        return judged(True, f"no rung here is faster; the nearest is {rung} with {times(gain.value)} (n {n})")
    cause = FORMS if any(option.name == "form" for option in registry()[rung].options) else ""
    return judged(gain.value <= HEADROOM, f"{rung} {times(gain.value)} (n {n})", f"{rung} gains more", cause=cause)


def fastest(results: Results) -> tuple[str, int] | None:
    """The float32 rung with the greatest gain over the staged load, at their largest common size, and that size."""
    gains = {}
    for rung in (*RUNGS[:-1], REGISTER, ROW_MAJOR, NATURAL, *later(STAGED, "float32")):
        with suppress(Missing):
            n = results.sizes(at(STAGED), at(rung))[-1]
            gains[rung, n] = results.seconds(ask(STAGED, n)) / results.seconds(ask(rung, n))
    return max(gains, key=lambda key: gains[key], default=None)


@claim("LS5", "staged load is over 150 times as fast as the basic CPU loop", f"over 150x ({_in_table(0, 4, 4096)})")
def over_cpu(results: Results) -> ClaimAnswer:
    """serial CPU measured up to n = 2048, extrapolated by n^3"""
    n = next((n for n in results.sizes(at(STAGED)) if n >= 4096), None) or results.sizes(at(STAGED))[-1]
    cpu = results.time(at(CPU), n)
    ratio = cpu.seconds / results.seconds(ask(STAGED, n))
    return judged(ratio > OVER_CPU, f"{times(ratio)} (n {n}, CPU {cpu.words})")


@claim("LS6", "the naive kernel is bound by the bus: 16 bytes a task", "54 % (42 of 77 GB/s)")
def bus(results: Results) -> ClaimAnswer:
    """at least that share, and computing less: DRAM from counters or GPM; else the model's share, and the rate from cache"""
    # a higher share than the document's confirms the claim; a matrix in the L2 cache shows the rate without the bus
    cached = results.device.l2_bytes or 0
    cached_sizes, beyond = ([n for n in results.sizes(at(NAIVE)) if (4 * n * n > cached) == outside] for outside in (False, True))
    needed(beyond, f"the naive kernel was run only on matrices that fit into {units.memory(cached)} of L2 cache")
    least = NAIVE_BANDWIDTH / COPY_BANDWIDTH / TOLERANCE
    measured = _measured(results, beyond)
    if measured is not None:
        dram, computing, n, teller = measured
        shares = f"DRAM {units.percent(dram)}, computing {units.percent(computing)}"
        value = f"{_model_share(results, n)[1]}, {shares} by {teller} (n {n})"
        reason = "the memory is not busy enough" if dram < least else "the bus is less busy than the arithmetic units"
        waits = "its threads wait for their loads" if teller == COUNTERS else "it waits; counters are needed to show for what"
        why = "its arithmetic units are always busy" if computing >= evidence.FULL else f"neither is full: {waits}"
        return judged(least <= dram >= computing, value, reason, cause=f"{SHARED}, and {why}")
    n, note = beyond[-1], "the DRAM share itself needs counters"
    share, value = _model_share(results, n)
    value += f" (n {n})"
    if share > 1:
        reason = "the model's traffic is more than the bus can carry, so caches serve part of it"
        return judged(False, value, reason, note, SHARED)
    if not cached_sizes or share < least:
        return judged(share >= least, value, note=note)
    without = results.seconds(ask(NAIVE, n)) / results.seconds(ask(NAIVE, cached_sizes[-1])) * (cached_sizes[-1] / n) ** 3
    value += f"; {times(without)} the rate if everything fits the L2 cache (n {cached_sizes[-1]})"
    return judged(without >= TOLERANCE, value, "even without the bus it is hardly faster", note, BESIDE)


def _measured(results: Results, sizes: Sequence[int]) -> tuple[float, float, int, str] | None:
    """Memory's and computing's shares of peak for the naive kernel, the size and the source: counters, else GPM."""
    with suppress(Missing):
        n, (compute, dram) = evidence.counters(results, at(NAIVE), "compute_share", "dram_share", op="relax")
        if n in sizes:
            return dram, compute, n, COUNTERS
    for n in reversed(sizes):
        with suppress(Missing):
            integer, dram = results.gpm(ask(NAIVE, n))
            return dram, integer, n, "GPM"
    return None


def _model_share(results: Results, n: int) -> tuple[float, str]:
    """The share of a measured copy, as in the document, if the session has one, else of the peak."""
    limits = results.model.measured.get(results.model.watched)
    copied = limits.copy_bytes_per_second if limits is not None else None
    share = n**3 * TASK_BYTES / results.seconds(ask(NAIVE, n)) / (copied or results.peak_bandwidth)
    return share, f"model {units.percent(share)} of {'a measured copy' if copied else 'the peak on the data sheet'}"


def conflict(cyclic: bool, banks: int, broadcasts: bool) -> int:
    """The conflict degree of a half warp in shared memory, the worse of the two tiles.

    16 threads own a 4 x 4 tile; slices are stored as 4 x 4 tiles, row by row. With broadcasts of any
    word, only different words of one bank conflict; earlier GPUs broadcast a single word per half warp.
    """
    worst = 1
    for step, i_aligned in product(range(4), (False, True)):
        words = []
        for i, j in product(range(4), range(4)):
            k = (step + i + j) % 4 if cyclic else step
            words.append(4 * i + k if i_aligned else 4 * k + j)
        served = Counter(word % banks for word in (set(words) if broadcasts else words))
        worst = max(worst, *served.values())
    return worst


def _bound(results: Results) -> str:
    return evidence.full(results, at(KATZ)) or evidence.integer_bound(results, at(KATZ))


def fewer_instructions(results: Results, n: int) -> str:
    """The plain kernel's extra work for every k, and evidence that it is the limit."""
    bound = _bound(results)
    words = f"{KATZ} computes addresses, loads and stores its cells for every k, which {OPTIMIZED} does not"
    return f"{words}, and {bound}" if bound else f"{words}; only counters can show its cost"


def both_steps(results: Results, n: int) -> str:
    """LS1 is LS2 and LS3 together."""
    parts = evidence.gain(results, at(KATZ), at(OPTIMIZED), n), evidence.gain(results, at(OPTIMIZED), at(STAGED), n)
    return f"That is {parts[0]} by {OPTIMIZED} (LS2) and {parts[1]} by the staged load (LS3)" if all(parts) else ""


def cyclic_order(results: Results, n: int) -> str:
    """The gain from less shared memory alone, with the natural order."""
    with suppress(Missing):
        n = results.sizes(at(OPTIMIZED), at(NATURAL), at(STAGED))[-1]
        gain, order = (evidence.gain(results, at(other), at(NATURAL), n) for other in (OPTIMIZED, STAGED))
        words = f"{NATURAL}, with the same little shared memory, is {gain} as fast as {OPTIMIZED} (n {n})"
        return f"{words} and {order} as fast as {STAGED}, which differs only in its cyclic order of k (LS11)"
    return ""


def slow_blocks(results: Results, n: int) -> str:
    """The gain of the same algorithm with cheaper indices."""
    gain, bound = evidence.gain(results, at(NAIVE), at(OPTIMIZED), n), _bound(results)
    words = f"{OPTIMIZED}, the same algorithm with cheaper indices, is {gain} as fast as {NAIVE} (n {n})" if gain else ""
    words = ", and ".join(filter(None, (words, bound)))
    return f"{words}. The effect of caches on {NAIVE} needs counters" if bound else words


def table(results: Results) -> Iterator[DocumentFigure]:
    """Table 1 with this machine's times."""
    names = (CPU, *RUNGS)
    rows = [["vertices", *(f"{name} {where}" for name in names for where in ("there", "here"))]]
    for n, there in TABLE.items():
        rows.append([str(n)])
        for name, seconds in zip(names, there, strict=True):
            rows[-1] += [units.duration(seconds) if seconds is not None else "-", "-"]
            with suppress(Missing):
                rows[-1][-1] = units.duration(results.seconds(ask(name, n)))
    yield DocumentFigure("Table 1", rows)


@claim("LS1", "staged load is faster than Katz-Kider", f"5.2x ({_in_table(2, 4, 8192)}, {_in_table(2, 4, 16384)})")
def staged_over_katz(results: Results) -> ClaimAnswer:
    """the same two rungs at n = 8192 and 16384 (smaller with --quick)"""
    return speedup(results, at(KATZ), at(STAGED), 5.2, 5.2, above=both_steps, below=both_steps)


@claim("LS2", "fewer and cheaper instructions: optimized is faster than Katz-Kider", "2.1 to 2.3x")
def optimized_over_katz(results: Results) -> ClaimAnswer:
    """the same two rungs at n = 8192 and 16384 (smaller with --quick)"""
    return speedup(results, at(KATZ), at(OPTIMIZED), 2.1, 2.3, above=fewer_instructions)


@claim("LS3", "less shared memory: staged load is faster than optimized", "2.3 to 2.5x (section 4: 2.3 to 2.4x)")
def staged_over_optimized(results: Results) -> ClaimAnswer:
    """the same two rungs at n = 8192 and 16384 (smaller with --quick)"""
    return speedup(results, at(OPTIMIZED), at(STAGED), 2.3, 2.5, below=cyclic_order)


@claim("LS4", "Katz-Kider is faster than Harish-Narayanan (naive)", f"5 to 6.5x ({_in_table(1, 2, 8192)})")
def katz_over_naive(results: Results) -> ClaimAnswer:
    """the same two rungs at n = 8192 and 16384 (smaller with --quick)"""
    return speedup(results, at(NAIVE), at(KATZ), 5, 6.5, below=slow_blocks)


@claim("LS9", "the register tile alone does not affect performance", "1.0x")
def register_tile(results: Results) -> ClaimAnswer:
    """register tile against optimized, largest sizes"""
    saves = always("Its own results stay in registers, which saves reads and writes of shared memory")
    return alike(results, at(OPTIMIZED), at(REGISTER), longer=saves)


STEPS = (staged_over_katz, optimized_over_katz, staged_over_optimized, katz_over_naive, over_cpu)
CLAIMS = (*STEPS, bus, computing, staged_rate, register_tile, resources, conflicts, cubic, headroom)
COUNTED = tuple(CountedKernel(at(rung), 8192) for rung in (NAIVE, KATZ, ROW_MAJOR, NATURAL, STAGED))
PRESET = Preset("lund-smith", "Lund and Smith 2010", CLAIMS, runs, seconds=156, figures=table, counted=COUNTED)
