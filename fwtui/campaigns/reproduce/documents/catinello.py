"""Catinello, Parallel Floyd-Warshall (2023): int16 on an RTX 3070, pitched rows throughout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import product

from fwtui.campaigns.reproduce import break_even, evidence
from fwtui.campaigns.reproduce.claim import (
    ALIKE,
    NOISE,
    TOLERANCE,
    ClaimAnswer,
    claim,
    judged,
    near,
    no_faster,
    slower,
    time_ratio,
)
from fwtui.campaigns.reproduce.preset import CountedKernel, Preset, RunScale
from fwtui.campaigns.reproduce.results import Make, Missing, Results, asking, later, needed, unusable
from fwtui.common import units
from fwtui.common.units import gain as times
from fwtui.experiment.experiment import Experiment
from fwtui_kernels import registry
from fwtui_kernels.plan import WARP

CPU, SIMPLE, SIMPLE_VECTOR, PSEUDO = "serial", "naive", "naive-vector", "pseudo-blocked"
BLOCKED, BLOCKED_VECTOR = "katz-kider", "blocked-vector"
TWO, ONE = "two-matrix-blocked", "one-cooperative"
HEIGHTS = (1, 2, 4, 8, 16, 32)
BEST_HEIGHT, SECONDS_AT_32 = 4, 2.0
THREADS = (64, 256, 1024)
# his blocks are squares of threads, one for each cell of a tile, or for each four of a row
SIDES = {BLOCKED: {64: 8, 256: 16, 1024: 32}, BLOCKED_VECTOR: {64: 16, 256: 32, 1024: 64}}
STAGED, LAST = "staged-load", "kleene-base"  # rung of the documents
LARGEST = 59392
CELL = 2  # bytes
MATRICES = 2  # on the device during a run: the working matrix and the input for repetitions
BREAK_EVEN, OVER_CPU = 70, 570
DRASTIC = 2.0
UNALIGNED = 4099  # not a multiple of 32
DENSITY = 0.3
LAUNCHES = 3  # of a round of the blocked kernels
STARTED_ALIKE = 1.25  # greatest ratio of two block rates that may have the same limit
MOST_RESIDENT = 2048  # most resident threads per multiprocessor of any GPU
ROWS = 8  # of threads in a block of 256
at = asking("int16")
IN_ONE = at(ONE, launch="eager")  # his launch configuration


def by_threads(kernel: str, threads: int) -> Make:
    """The kernel with that block size, which also decides its tile (section 3.4)."""
    tile = {"tile": SIDES[kernel][threads]} if kernel in SIDES else {}
    return at(kernel, threads=threads, **tile)


def offered(kernel: str, threads: int) -> bool:
    """Whether the kernel has a tile for that many threads."""
    return kernel not in SIDES or kernel not in registry() or SIDES[kernel][threads] in registry()[kernel].tiles


FIVE = {
    SIMPLE: at(SIMPLE),
    SIMPLE_VECTOR: at(SIMPLE_VECTOR),
    PSEUDO: at(PSEUDO, results=BEST_HEIGHT),
    BLOCKED: by_threads(BLOCKED, 256),
    BLOCKED_VECTOR: by_threads(BLOCKED_VECTOR, 256),
}


def candidates() -> list[str]:
    """Other int16 kernels that may be faster than his: the staged load, and the ladder's rungs after those of the documents."""
    staged = registry().get(STAGED)
    return [STAGED] * (staged is not None and "int16" in staged.dtypes) + later(LAST, "int16")


def fastest(results: Results) -> str | None:
    """The int16 kernel with the best rate at its largest size."""
    rates = {}
    for name in (BLOCKED_VECTOR, *candidates()):
        with suppress(Missing):
            n = results.sizes(at(name))[-1]
            rates[name] = n**3 / results.seconds(at(name)(n))
    return max(rates, key=lambda name: rates[name], default=None)


def runs(results: Results, scale: RunScale) -> Iterator[Experiment]:
    if not scale.gpu:
        yield at(CPU, density=DENSITY)(512)
        for make in (*FIVE.values(), at(TWO), IN_ONE):
            yield make(1024)
        return
    yield from break_even.search(results, at(CPU), at(SIMPLE))
    yield at(CPU)(1024)
    sizes = (1024, 2048) if scale.quick else (2048, 4096)
    for make in FIVE.values():
        yield make(sizes[-1])
    for n, make in product(sizes[-1:] if scale.quick else (sizes[-1], 8192), (at(BLOCKED), at(TWO), IN_ONE)):
        yield make(n)
    for height in HEIGHTS:
        yield at(PSEUDO, results=height)(sizes[-1])
    for pitch in (0, 1):
        yield at(SIMPLE, pitch=pitch)(UNALIGNED // 2 if scale.quick else UNALIGNED)
    for n, kernel, threads in product(sizes, (SIMPLE, BLOCKED, BLOCKED_VECTOR), THREADS):
        if offered(kernel, threads):
            yield by_threads(kernel, threads)(n)
    for kernel in (BLOCKED_VECTOR, *candidates()):
        yield at(kernel)(sizes[-1] if scale.quick else 8192)
    if scale.quick:
        return
    # the fastest first: all five need a common size even if time is short
    for name in (BLOCKED_VECTOR, SIMPLE_VECTOR, BLOCKED, PSEUDO, SIMPLE):
        yield FIVE[name](16384)
    if best := fastest(results):
        yield at(best)(LARGEST)


@claim("CA2", "blocked vectorised is the fastest of his five", "570x the CPU at n = 16384")
def champion(results: Results) -> ClaimAnswer:
    """his five at n = 16384; CPU extrapolated by n^3"""
    n = results.sizes(*FIVE.values())[-1]
    vector = FIVE[BLOCKED_VECTOR](n)
    others = {name: time_ratio(results, make(n), vector) for name, make in FIVE.items() if name != BLOCKED_VECTOR}
    nearest = min(others, key=lambda name: others[name])
    cpu = results.time(at(CPU), n)
    ratio = cpu.seconds / results.seconds(vector)
    value = f"{nearest} takes {times(others[nearest].value)} its time; {times(ratio)} the CPU's speed (n {n}, CPU {cpu.words})"
    if not others[nearest].slower:
        return judged(False, value, f"{nearest} is no slower")
    cause = break_even.GPUS_GAINED_MORE if ratio > OVER_CPU else ""
    return judged(near(ratio, OVER_CPU), value, f"{times(ratio)} the CPU's speed", cause=cause)


@claim("CA3", "the naive kernel's effective bandwidth exceeds the memory's limit", "over 100 % of 448 GB/s")
def beyond_memory(results: Results) -> ClaimAnswer:
    """model bandwidth against peak; hit rates from counters"""
    n = results.sizes(at(SIMPLE))[-1]
    experiment = at(SIMPLE)(n)
    peak = results.peak_bandwidth
    bandwidth = needed(results.find(experiment).bandwidth, "the peak bandwidth of this device is not known")
    value = f"{units.percent(bandwidth / peak)} of {units.bandwidth(peak)} (n {n})"
    try:
        hits = [results.counter(experiment, "relax", name) for name in ("l1_hit_rate", "l2_hit_rate")]
        value, note = f"{value}, hits L1 {units.percent(hits[0])}, L2 {units.percent(hits[1])}", ""
    except Missing:
        note = "only counters can confirm that caches are the cause" if bandwidth > peak else ""
    return judged(bandwidth > peak, value, "it stays below", note, not_memory(results, peak))


@claim("CA4", "pseudo-blocked is best at 4, as simple at 1", f"4; {SECONDS_AT_32:g} s at 32 (n = 4096)")
def heights(results: Results) -> ClaimAnswer:
    """h = 1, 2, 4, 8, 16, 32 at n = 4096"""
    makes = {h: at(PSEUDO, results=h) for h in HEIGHTS}
    n = results.sizes(*makes.values(), at(SIMPLE))[-1]
    seconds = {h: results.seconds(make(n)) for h, make in makes.items()}
    best = min(seconds, key=lambda h: seconds[h])
    one = time_ratio(results, makes[1](n), at(SIMPLE)(n)).value
    value = f"best at {best}; 1 takes {times(one)} simple's time, 32 takes {units.duration(seconds[32])} (n {n})"
    # a height within noise of the best is as good
    as_good = not time_ratio(results, makes[BEST_HEIGHT](n), makes[best](n)).slower
    if not 1 / ALIKE <= one <= ALIKE:
        return judged(False, value, "1 is not like simple")
    cause = smaller_squares(results, n, best) if best < BEST_HEIGHT else ""
    return judged(as_good, value, f"{best} is better than {BEST_HEIGHT}", cause=cause)


@claim("CA5", "256 threads are best; 64 drastic for blocked, mild for vectorised; 1024 worse", "256")
def threads(results: Results) -> ClaimAnswer:
    """simple, blocked, blocked vectorised with 64, 256, 1024 threads (and their tiles), several n"""
    kernels = (SIMPLE, BLOCKED, BLOCKED_VECTOR)
    for kernel in kernels:
        lacking = [str(count) for count in THREADS if not offered(kernel, count)]
        needed(not lacking, f"{kernel} has no tile for {', '.join(lacking)} threads")
    sizes = results.sizes(*(by_threads(kernel, count) for kernel in kernels for count in THREADS))
    words, otherwise = [], []
    for kernel in kernels:
        for n in sizes:
            small, many = (time_ratio(results, by_threads(kernel, c)(n), by_threads(kernel, 256)(n)) for c in (64, 1024))
            if not many.slower:
                otherwise.append(f"1024 costs {kernel} nothing (n {n})")
            if small.faster:
                otherwise.append(f"{kernel} is best at 64 (n {n})")
            if n < sizes[-1]:
                continue
            words.append(f"{kernel} {times(small.value)}, {times(many.value)}")
            if kernel == BLOCKED and small.value < DRASTIC:
                otherwise.append(f"64 costs {kernel} only {times(small.value)}")
            if kernel == BLOCKED_VECTOR and small.value >= DRASTIC:
                otherwise.append(f"64 costs {kernel} {times(small.value)}")
    value = f"64 and 1024 over 256: {'; '.join(words)} (n {sizes[-1]})"
    cause = f"{BLOCKED} and {BLOCKED_VECTOR} change their tile with their threads, so the two effects cannot be separated"
    return judged(not otherwise, value, ", ".join(otherwise), cause=". ".join(filter(None, (starting(results), cause))))


@claim("CA8", "only memory limits n", f"n = {LARGEST} as int16 in 8 GB")
def limit(results: Results) -> ClaimAnswer:
    """that n with the fastest int16 kernel, if memory and 60 s allow it"""
    there = [r for r in results.runs if r.n == LARGEST and r.experiment.dtype == "int16" and r.backend == "cuda"]
    if wrong := [r for r in there if r.wrong]:
        return judged(False, f"{wrong[-1].experiment.kernel} is wrong there")
    if done := [r for r in there if r.counts]:
        return judged(True, f"{done[-1].experiment.kernel} in {units.duration(done[-1].seconds)}")
    if there:
        raise Missing(unusable(there[-1]))
    takes, memory = MATRICES * CELL * LARGEST**2, results.device.memory_bytes
    if memory is not None and takes > memory:
        raise Missing(f"needs {units.memory(takes)} of device memory, and the GPU has {units.memory(memory)}")
    best = needed(fastest(results), "no int16 kernel was run")
    why = next((text for text in results.left_out if f"n {LARGEST} " in f"{text.partition(':')[0]} "), "it was not run")
    raise Missing(f"{why}; {best} would take {results.time(at(best), LARGEST).words}")


@claim("CA9", "rows that are not aligned cost transactions", "pitched")
def pitched(results: Results) -> ClaimAnswer:
    """pitched and plain at n = 4099; transactions from counters"""
    plain, padded = at(SIMPLE, pitch=0), at(SIMPLE, pitch=1)
    n = needed([n for n in results.sizes(plain, padded) if n % 32], "both were run only at multiples of 32")[-1]
    ratio = time_ratio(results, plain(n), padded(n))
    value = f"plain rows take {times(ratio.value)} the time (n {n})"
    try:
        sectors = [results.counter(make(n), "relax", "global_load_sectors") for make in (plain, padded)]
    except Missing:
        cause = ""
        if starting(results) and not ratio.faster:
            rate = blocks_a_second(results, plain, n)
            cause = f"{starting(results)}, and plain rows start {billions(rate)} (n {n}): transactions do not matter"
        return judged(ratio.slower, value, "they are no slower", "transactions themselves need counters", cause)
    return judged(sectors[0] > NOISE * sectors[1], f"{times(sectors[0] / max(sectors[1], 1))} the sectors, {value}")


@claim("CA10", "his pseudo-code draws an edge when perc >= p, which inverts his density; the text wins", "density p")
def density(results: Results) -> ClaimAnswer:
    """edges of a graph of density 0.3"""
    for run in results.runs:
        experiment = run.experiment
        if (
            run.graph is not None
            and run.n > 1
            and not experiment.file
            and not experiment.exact
            and (experiment.kind, experiment.density) == ("random", DENSITY)
        ):
            share = run.graph.edges / (run.n * (run.n - 1))
            return judged(abs(share - DENSITY) < abs(share - (1 - DENSITY)), f"{units.percent(share)} of pairs at density 30 %")
    raise Missing("no graph of density 0.3 was generated")


def blocks_a_second(results: Results, make: Make, n: int, side: int = 1) -> float:
    """Blocks started per second by a kernel with side x side results per thread and one launch per k. Raises Missing."""
    threads = make(n).options.get("threads", WARP * ROWS)
    across, down = WARP * side, threads // WARP * side
    return -(-n // across) * -(-n // down) * n / results.seconds(make(n))


def billions(rate: float) -> str:
    """The rate in billions, in words."""
    return f"{units.digits(rate / 1e9)} billion"


def starting(results: Results) -> str:
    """Why starting blocks may limit the simple kernel: large and small blocks start at the same rate."""
    with suppress(Missing):
        n = results.sizes(by_threads(SIMPLE, 64), by_threads(SIMPLE, 256))[-1]
        large, small = (blocks_a_second(results, by_threads(SIMPLE, threads), n) for threads in (256, 64))
        if max(large, small) <= min(large, small) * STARTED_ALIKE:
            words = f"{billions(large)} blocks of 256 threads a second and {billions(small)} of 64"
            return f"{SIMPLE} starts {words} (n {n}): starting blocks seems to be its limit, not memory"
    return ""


def smaller_squares(results: Results, n: int, best: int) -> str:
    """Why a smaller h than his may be best."""
    words = []
    if starting(results) and best > 1:
        one, two = (billions(blocks_a_second(results, at(PSEUDO, results=h), n, h)) for h in (1, best))
        words.append(f"h = 1 starts {one} blocks a second, which is a limit there, and h = {best} {two}")
    threads = (n // BEST_HEIGHT) ** 2
    if threads > MOST_RESIDENT * (results.device.multiprocessors or threads):
        words.append(
            f"h = {BEST_HEIGHT} still has {threads:,} threads, more than this GPU holds at once, so threads are not lacking"
        )
    words.append(
        "a warp's threads lie h columns apart, so their accesses coalesce less as h grows (counters would show how much)"
    )
    return "; ".join(words)


def not_memory(results: Results, peak: float) -> str:
    """What keeps the simple kernel below the memory's limit, and a kernel of the same session that is above it."""
    words = starting(results)
    with suppress(Missing):
        n = results.sizes(at(SIMPLE_VECTOR))[-1]
        bandwidth = results.find(at(SIMPLE_VECTOR)(n)).bandwidth or 0.0
        if words and bandwidth > peak:
            words += f"; {SIMPLE_VECTOR}, which starts fewer, requests {units.percent(bandwidth / peak)} of the peak (n {n})"
    return words


def room_for_two(results: Results, n: int) -> str:
    """Why the memory may have time for a second matrix."""
    bound = evidence.integer_bound(results, at(BLOCKED), by_threads(BLOCKED, 256))
    with suppress(Missing):
        bandwidth, peak = results.find(at(BLOCKED)(n)).bandwidth or 0.0, results.peak_bandwidth
        if not bound and 0 < bandwidth < peak / 2:
            bound = f"{BLOCKED} requests {units.percent(bandwidth / peak)} of the peak bandwidth (model, n {n})"
    return f"{bound}: accesses to a second matrix are hidden" if bound else ""


def one_launch(results: Results, n: int) -> str:
    """Whether saved launches explain the gain; the time of one launch is that of the smallest simple run."""
    rounds = -(-n // registry()[BLOCKED].tile_for(n))
    each = (results.seconds(at(BLOCKED)(n)) - results.seconds(IN_ONE(n))) / rounds
    words = ""
    with suppress(Missing):
        small = results.sizes(at(SIMPLE))[0]
        launches = LAUNCHES * results.seconds(at(SIMPLE)(small)) / small
        took = f"{LAUNCHES} launches, which take {units.duration(launches)}"
        otherwise = f"and {LAUNCHES} launches take {units.duration(launches)}, so they are not the reason"
        words = f"It gains {units.duration(each)} in each of {rounds} rounds (n {n}), "
        words += f"as much as {took}" if each <= launches * TOLERANCE else otherwise
    return ", and ".join(filter(None, (words, evidence.integer_bound(results, at(BLOCKED), by_threads(BLOCKED, 256)))))


@claim("CA1", "below that many vertices the GPU does not pay", "about 70")
def pays(results: Results) -> ClaimAnswer:
    """bisection on end-to-end time: load, compute, unload"""
    return break_even.break_even(results, at(CPU), at(SIMPLE), BREAK_EVEN)


@claim("CA6", "two matrices for input and output are slower", "slower")
def two_matrices(results: Results) -> ClaimAnswer:
    """blocked with two matrices against one"""
    return slower(results, at(TWO), at(BLOCKED), same=room_for_two)


@claim("CA7", "the three phases in one kernel gain nothing", "no gain")
def in_one_kernel(results: Results) -> ClaimAnswer:
    """blocked in one cooperative kernel against three launches a round"""
    return no_faster(results, IN_ONE, at(BLOCKED), gains=one_launch)


CLAIMS = (pays, champion, beyond_memory, heights, threads, two_matrices, in_one_kernel, limit, pitched, density)
COUNTED = (CountedKernel(at(SIMPLE, pitch=1), UNALIGNED), CountedKernel(at(SIMPLE), UNALIGNED), CountedKernel(at(SIMPLE), 16384))
PRESET = Preset("catinello", "Catinello 2023", CLAIMS, runs, seconds=480, counted=COUNTED)
