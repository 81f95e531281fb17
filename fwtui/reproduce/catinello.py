"""Catinello, Parallel Floyd-Warshall (2023): int16 on an RTX 3070, pitched rows throughout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from fwtui import units
from fwtui.experiment import Experiment
from fwtui.reproduce import break_even
from fwtui.reproduce.claim import NOISE, TOLERANCE, Answer, Claim, judged, near, no_faster, slower, times
from fwtui.reproduce.preset import Preset, Scale
from fwtui.reproduce.runs import Make, Missing, Results, ask
from kernels import registry

CPU, SIMPLE, SIMPLE_VECTOR, PSEUDO = "serial", "naive", "naive-vector", "pseudo-blocked"
BLOCKED, BLOCKED_VECTOR = "katz-kider", "blocked-vector"
LAST = "kleene-base"  # rung of the documents
TWO, ONE = "two-matrix-blocked", "one-cooperative"
LARGEST = 59392
CELL = 2  # bytes
MATRICES = 2  # that a run keeps on the device: the working one, and the input to start again from
BREAK_EVEN, OVER_CPU = 70, 570
HEIGHTS = (1, 2, 4, 8, 16, 32)
BEST_HEIGHT, SECONDS_AT_32 = 4, 2.0
THREADS = (64, 256, 1024)
SIDE = {64: 8, 256: 16, 1024: 32}  # his blocks are squares of threads, one for each cell of a tile
DRASTIC = 2.0
UNALIGNED = 4099  # rows of no multiple of 32
DENSITY = 0.3


def at(kernel: str, **more: object) -> Make:
    return partial(ask, kernel, dtype="int16", **more)


def by_threads(kernel: str, threads: int) -> Make:
    """The kernel as he varies it: blocks of 8 x 8, 16 x 16 or 32 x 32 threads."""
    tile = {"tile": SIDE[threads]} if kernel == BLOCKED else {}
    return at(kernel, threads=threads, **tile)


FIVE = {
    SIMPLE: at(SIMPLE),
    SIMPLE_VECTOR: at(SIMPLE_VECTOR),
    PSEUDO: at(PSEUDO, results=BEST_HEIGHT),
    BLOCKED: by_threads(BLOCKED, 256),
    BLOCKED_VECTOR: at(BLOCKED_VECTOR),
}


def candidates() -> list[str]:
    """Kernels of others for int16 that may be faster than his: the staged load, and what the ladder has after its documents."""
    names = list(registry())
    later = names[names.index(LAST) + 1 :] if LAST in names else []
    cuda = [registry()[name] for name in ("staged-load", *later) if name in names]
    return [kernel.id for kernel in cuda if kernel.backend == "cuda" and "int16" in kernel.dtypes]


def fastest(results: Results) -> str | None:
    """The int16 kernel with the best rate at its largest size."""
    rates = {}
    for name in (BLOCKED_VECTOR, *candidates()):
        try:
            n = results.sizes(at(name))[-1]
        except Missing:
            continue
        rates[name] = n**3 / results.seconds(at(name)(n))
    return max(rates, key=lambda name: rates[name], default=None)


def runs(results: Results, scale: Scale) -> Iterator[Experiment]:
    if not scale.gpu:
        yield at(CPU, density=DENSITY)(512)
        for make in (*FIVE.values(), at(TWO), at(ONE)):
            yield make(1024)
        return
    yield from break_even.search(results, at(CPU), at(SIMPLE), 2)
    yield at(CPU)(1024)
    sizes = (1024, 2048) if scale.quick else (2048, 4096)
    for n in sizes:
        for make in FIVE.values():
            yield make(n)
    for n in sizes[-1:] if scale.quick else (sizes[-1], 8192):
        for kernel in (BLOCKED, TWO, ONE):
            yield at(kernel)(n)
    for height in HEIGHTS:
        yield at(PSEUDO, results=height)(sizes[-1])
    for pitch in (0, 1):
        yield at(SIMPLE, pitch=pitch)(UNALIGNED // 2 if scale.quick else UNALIGNED)
    for n in sizes:
        for kernel in (SIMPLE, BLOCKED, BLOCKED_VECTOR):
            for threads in THREADS:
                yield by_threads(kernel, threads)(n)
    for kernel in (BLOCKED_VECTOR, *candidates()):
        yield at(kernel)(sizes[-1] if scale.quick else 8192)
    if scale.quick:
        return
    # the fastest first: where the time is short, a size that all five ran at is what counts
    for name in (BLOCKED_VECTOR, SIMPLE_VECTOR, BLOCKED, PSEUDO, SIMPLE):
        yield FIVE[name](16384)
    best = fastest(results)
    if best is not None:
        yield at(best)(LARGEST)


def champion(results: Results) -> Answer:
    """CA2: his five at the largest size that all ran at, and the CPU extrapolated."""
    n = results.sizes(*FIVE.values())[-1]
    seconds = {name: results.seconds(make(n)) for name, make in FIVE.items()}
    best = min(seconds, key=lambda name: seconds[name])
    cpu = results.time(at(CPU), n)
    ratio = cpu.seconds / seconds[BLOCKED_VECTOR]
    value = f"{best} is fastest; {BLOCKED_VECTOR} {times(ratio)} the CPU (n {n}, CPU {cpu.words})"
    return judged(best == BLOCKED_VECTOR and near(ratio, OVER_CPU), value)


def beyond_memory(results: Results) -> Answer:
    """CA3: the naive kernel's model bandwidth against the memory's peak, hit rates where counters were measured."""
    n = results.sizes(at(SIMPLE))[-1]
    wanted = at(SIMPLE)(n)
    run = results.find(wanted)
    peak = results.device.peak_bytes_per_second
    if not peak or not run.bandwidth:
        raise Missing("the peak bandwidth of this device is not known")
    value = f"{units.percent(run.bandwidth / peak)} of {units.bandwidth(peak)} (n {n})"
    with suppress(Missing):
        hits = [results.counter(at(SIMPLE), "relax", name) for name in ("l1_hit_rate", "l2_hit_rate")]
        value += f", hits L1 {units.percent(hits[0])}, L2 {units.percent(hits[1])}"
    return judged(run.bandwidth > peak, value)


def heights(results: Results) -> Answer:
    """CA4: the sweep over h x h results per thread, and h = 1 against the simple kernel."""
    makes = {h: at(PSEUDO, results=h) for h in HEIGHTS}
    n = results.sizes(*makes.values(), at(SIMPLE))[-1]
    seconds = {h: results.seconds(make(n)) for h, make in makes.items()}
    best = min(seconds, key=lambda h: seconds[h])
    one = seconds[1] / results.seconds(at(SIMPLE)(n))
    value = f"best at {best}, 1 is {times(one)} simple's time, 32 takes {units.duration(seconds[32])} (n {n})"
    # a height within noise of the best is as good
    holds = seconds[BEST_HEIGHT] <= NOISE * seconds[best] and 1 / TOLERANCE <= one <= TOLERANCE
    return judged(holds, value)


def threads(results: Results) -> Answer:
    """CA5: three kernels by threads per block, at every size that all were run at."""
    kernels = (SIMPLE, BLOCKED, BLOCKED_VECTOR)
    sizes = results.sizes(*(by_threads(kernel, count) for kernel in kernels for count in THREADS))
    words, otherwise = [], []
    for kernel in kernels:
        n = sizes[-1]
        base = results.seconds(by_threads(kernel, 256)(n))
        small, many = (results.seconds(by_threads(kernel, count)(n)) / base for count in (64, 1024))
        words.append(f"{kernel} {times(small)}, {times(many)}")
        for size in sizes:
            found = {count: results.seconds(by_threads(kernel, count)(size)) for count in THREADS}
            if found[256] > NOISE * min(found.values()):
                otherwise.append(f"{kernel} is best at {min(found, key=lambda c: found[c])} (n {size})")
        if kernel == BLOCKED and small < DRASTIC:
            otherwise.append(f"64 costs {kernel} only {times(small)}")
        if kernel == BLOCKED_VECTOR and small >= DRASTIC:
            otherwise.append(f"64 costs {kernel} {times(small)}")
    return judged(not otherwise, f"64 and 1024 over 256: {'; '.join(words)} (n {sizes[-1]})", ", ".join(otherwise))


def limit(results: Results) -> Answer:
    """CA8: that many vertices; where the time did not allow it, what it would have taken."""
    needed = MATRICES * CELL * LARGEST**2
    memory = results.device.memory_bytes
    best = fastest(results)
    if best is None:
        raise Missing("no int16 kernel was run")
    if results.sizes(at(best))[-1] == LARGEST:
        return judged(True, f"{best} in {units.duration(results.seconds(at(best)(LARGEST)))}")
    if memory is not None and needed > memory:
        raise Missing(f"needs {units.memory(needed)} of device memory, and there are {units.memory(memory)}")
    failed = [r for r in results.model.runs.values() if r.n == LARGEST and r.wrong]
    if failed:
        return judged(False, f"{failed[-1].experiment.kernel} is wrong there")
    raise Missing(f"{units.memory(needed)} fit; {best} would take {results.time(at(best), LARGEST).words}")


def pitched(results: Results) -> Answer:
    """CA9: rows padded to whole transactions against rows that begin anywhere."""
    plain, padded = at(SIMPLE, pitch=0), at(SIMPLE, pitch=1)
    sizes = [n for n in results.sizes(plain, padded) if n % 32]
    if not sizes:
        raise Missing("both were run only at multiples of 32")
    n = sizes[-1]
    ratio = results.seconds(plain(n)) / results.seconds(padded(n))
    value = f"plain rows take {times(ratio)} the time (n {n})"
    with suppress(Missing):
        sectors = [results.counter(make, "relax", "global_load_sectors") for make in (plain, padded)]
        return judged(sectors[0] > sectors[1], f"{times(sectors[0] / sectors[1])} the sectors, {value}")
    return judged(ratio > NOISE, value, "transactions themselves need counters")


def density(results: Results) -> Answer:
    """CA10: the share of pairs with an edge, in a graph of density 0.3."""
    for run in results.model.runs.values():
        asked = run.experiment
        if run.graph is not None and run.n > 1 and not asked.file and not asked.exact and asked.density == DENSITY:
            share = run.graph.edges / (run.n * (run.n - 1))
            return judged(abs(share - DENSITY) < abs(share - (1 - DENSITY)), f"{units.percent(share)} of pairs at density 30 %")
    raise Missing("no graph of density 0.3 was generated")


CLAIMS = (
    Claim(
        "CA1",
        "below that many vertices the GPU does not pay",
        "about 70",
        "bisection on end-to-end time: load, compute, unload",
        break_even.break_even(at(CPU), at(SIMPLE), BREAK_EVEN),
        "Launching a captured graph of n kernels costs far less than n single launches did",
    ),
    Claim(
        "CA2",
        "blocked vectorised is the fastest of his five",
        "570x the CPU at n = 16384",
        "his five at n = 16384; CPU extrapolated by n^3",
        champion,
        "A GPU has gained more since than one core",
    ),
    Claim(
        "CA3",
        "the naive kernel's effective bandwidth exceeds the memory's limit",
        "over 100 % of 448 GB/s",
        "model bandwidth against peak; hit rates from counters",
        beyond_memory,
        "Larger and faster memory is harder to exceed by cache hits alone",
    ),
    Claim(
        "CA4",
        "pseudo-blocked is best at 4, as simple at 1",
        f"4; {SECONDS_AT_32:g} s at 32 (n = 4096)",
        "h = 1, 2, 4, 8, 16, 32 at n = 4096",
        heights,
        "More results per thread leave fewer threads to hide the latency of memory, so the best height depends on the GPU",
    ),
    Claim(
        "CA5",
        "256 threads are best; 64 drastic for blocked, mild for vectorised; 1024 worse",
        "256",
        "simple, blocked, blocked vectorised by 64, 256, 1024 threads, several n",
        threads,
        "The best block depends on how many blocks and registers a multiprocessor holds",
    ),
    Claim(
        "CA6",
        "two matrices for input and output are slower",
        "slower",
        "blocked with two matrices against one",
        slower(at(TWO), at(BLOCKED)),
    ),
    Claim(
        "CA7",
        "the three phases in one kernel gain nothing",
        "no gain",
        "blocked in one cooperative kernel against three launches a round",
        no_faster(at(ONE), at(BLOCKED)),
        "A barrier across the grid can cost less than a launch",
    ),
    Claim(
        "CA8",
        "only memory limits n",
        f"n = {LARGEST} as int16 in 8 GB",
        "that n with the fastest int16 kernel, where memory and 60 s allow it",
        limit,
    ),
    Claim(
        "CA9",
        "rows that are not aligned cost transactions",
        "pitched",
        f"pitched and plain at n = {UNALIGNED}; transactions from counters",
        pitched,
        "Caches join the two halves of an unaligned row, so that only its edges cost",
    ),
    Claim(
        "CA10",
        "his pseudo-code draws an edge when perc >= p, which inverts his density; the text wins",
        "density p",
        "edges of a graph of density 0.3",
        density,
    ),
)
COUNTED = (at(SIMPLE, pitch=0), at(SIMPLE, pitch=1))
PRESET = Preset(
    *("catinello", "Catinello 2023", CLAIMS, runs),
    seconds=200,
    stages=("load", "unload"),
    stages_up_to=break_even.LARGEST,
    counted=COUNTED,
    counted_at=UNALIGNED,
)
