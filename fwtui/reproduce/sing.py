"""Sing, Fürst and Lantavos-Stratigakis, Floyd-Warshall CUDA Implementation: int32 on an RTX 2070 SUPER."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fwtui import units
from fwtui.experiment import Experiment
from fwtui.model import Model
from fwtui.reproduce import break_even
from fwtui.reproduce.claim import ALIKE, NOISE, TOLERANCE, Answer, Claim, alike, judged, near, slower, times
from fwtui.reproduce.preset import Preset, Scale
from fwtui.reproduce.runs import Make, Missing, Results, ask
from fwtui.run import Run

CPU, LIBRARY, NAIVE, DOUBLE = "serial", "scipy", "naive", "two-matrices"
DENSITIES = (0.1, 0.3, 0.5, 0.7, 0.9)
GENERATED = (0.1, 0.5, 0.9)
NOISY = 0.1  # spread of one density's repeats, beyond which nothing can be said of several
TINY = (64, 128)
BREAK_EVEN, ZERO_COPY_UP_TO, SERIAL_SLOWER = 100, 1000, 100
TINY_COMPUTING, LARGE_COMPUTING = 0.01, 0.9


def at(kernel: str, **more: object) -> Make:
    return partial(ask, kernel, dtype="int32", **more)


def runs(results: Results, scale: Scale) -> Iterator[Experiment]:
    largest = 2048 if scale.quick else 8192
    if scale.gpu:
        yield from break_even.search(results, at(CPU), at(NAIVE), 2 if scale.quick else 4)
        for n in (*TINY, 512, 1024, 2048):
            for memory in ("device", "mapped", "managed"):
                yield at(NAIVE, memory=memory)(n)
        yield at(DOUBLE)(1024)
    yield at(NAIVE)(largest)
    yield at(DOUBLE)(2048)
    library = 1024 if scale.gpu and not scale.quick else 512
    for n in (library, *((2048,) if scale.gpu and not scale.quick else ())):
        yield at(CPU)(n)
    yield at(LIBRARY)(library)
    for density in DENSITIES:
        kernel, n = (NAIVE, 2048) if scale.gpu else (CPU, 512)
        yield at(kernel, density=density)(n)
        if density in GENERATED:
            yield at(kernel, density=density, exact=True)(n)


def zero_copy(results: Results) -> Answer:
    """SF2: up to which size the kernel that reaches into host memory is the fastest end to end, and how far behind it ends."""
    makes = [at(NAIVE, memory=memory) for memory in ("device", "mapped", "managed")]
    sizes = results.sizes(*makes)
    best = [n for n in sizes if min(makes, key=lambda make: results.end_to_end(make(n))) is makes[1]]
    last = sizes[-1]
    behind = results.end_to_end(makes[1](last)) / min(results.end_to_end(make(last)) for make in (makes[0], makes[2]))
    value = f"fastest at {', '.join(map(str, best)) or 'no size'}; {times(behind)} the time at {last}"
    # the document tested sizes as coarse as these: its limit lies between the last win and the first loss
    first_loss = next((n for n in sizes if n not in best), None)
    holds = bool(best) and first_loss is not None and best[-1] < first_loss and behind > TOLERANCE
    if holds and first_loss is not None:
        holds = best[-1] <= ZERO_COPY_UP_TO * TOLERANCE and first_loss >= ZERO_COPY_UP_TO / TOLERANCE
    return judged(holds, value)


def tiny(results: Results) -> Answer:
    """SF3: computing's share of computing and copies, for the smallest graphs."""
    sizes = [n for n in results.sizes(at(NAIVE)) if n <= TINY[-1]]
    if not sizes:
        raise Missing(f"no graph of up to {TINY[-1]} vertices was run on the GPU")
    shares = {n: results.computing_share(at(NAIVE)(n)) for n in (sizes[0], sizes[-1])}
    value = ", ".join(f"{units.percent(share)} (n {n})" for n, share in shares.items())
    return judged(all(near(share, TINY_COMPUTING) for share in shares.values()), value)


def large(results: Results) -> Answer:
    """SF4: the same share for the largest graph."""
    n = results.sizes(at(NAIVE))[-1]
    share = results.computing_share(at(NAIVE)(n))
    return judged(share > LARGE_COMPUTING, f"{units.percent(share)} (n {n})")


def flat(results: Results) -> Answer:
    """SF5: slowest against fastest density, compared with what the repeats of one density differ by."""
    reason = ""
    for kernel in (NAIVE, CPU):
        makes = [at(kernel, density=density) for density in DENSITIES]
        try:
            n = results.sizes(*makes)[-1]
        except Missing as missing:
            reason = reason or str(missing)
            continue
        seconds = [results.seconds(make(n)) for make in makes]
        dones = [results.find(make(n)).done for make in makes]
        noise = max((done.spread or 0.0 for done in dones if done is not None), default=0.0)
        apart = max(seconds) / min(seconds)
        value = f"{times(apart)} between densities, noise {units.spread(noise)} ({kernel}, n {n})"
        if apart > ALIKE and noise > NOISY:
            raise Missing(f"{value}: too noisy to tell")
        return judged(apart <= max(ALIKE, 1 + 2 * noise), value)
    raise Missing(reason)


def hundredfold(results: Results) -> Answer:
    """SF7: the serial loop, extrapolated, against the naive kernel at the largest size."""
    n = results.sizes(at(NAIVE))[-1]
    cpu = results.time(at(CPU), n)
    ratio = cpu.seconds / results.end_to_end(at(NAIVE)(n))
    return judged(near(ratio, SERIAL_SLOWER), f"{times(ratio)} (n {n}, CPU {cpu.words})")


def managed(results: Results) -> Answer:
    """SF8: managed against device memory end to end at the largest size that both ran at."""
    makes = at(NAIVE), at(NAIVE, memory="managed")
    n = results.sizes(*makes)[-1]
    ratio = results.end_to_end(makes[0](n)) / results.end_to_end(makes[1](n))
    return judged(1 / TOLERANCE <= ratio < ALIKE, f"{times(ratio)} as fast as device memory (n {n})")


def generators(results: Results) -> Answer:
    """SF9: whether the exact-count generator takes longer the denser the graph is."""
    seconds = {(exact, p): _generating(results, exact, p) for exact in (False, True) for p in GENERATED}
    growth = seconds[True, GENERATED[-1]] / seconds[True, GENERATED[0]]
    against = seconds[True, GENERATED[-1]] / seconds[False, GENERATED[-1]]
    value = f"density 0.9: {times(growth)} the time of 0.1, {times(against)} that of the coin toss"
    return judged(growth > 2 and against > TOLERANCE, value)


def _generating(results: Results, exact: bool, density: float) -> float:
    reason = ""
    for kernel in (NAIVE, CPU):
        make = at(kernel, density=density, exact=exact)
        try:
            return results.stage(make(results.sizes(make)[-1]), "graph")
        except Missing as missing:
            reason = reason or str(missing)
    raise Missing(reason)


def two_gpus(results: Results) -> Answer:
    """SF11: this session's GPU and another's, on the smallest and the largest size that both ran the naive kernel at."""
    for other in results.others:
        if other.gpu is None or results.model.gpu is None or other.gpu.name == results.model.gpu.name:
            continue
        mine, theirs = _naive_times(results.model), _naive_times(other)
        common = sorted(mine.keys() & theirs.keys())
        if len(common) < 2:
            continue
        small, big = (theirs[n] / mine[n] for n in (common[0], common[-1]))
        value = f"{other.gpu.name} takes {times(small)} (n {common[0]}) and {times(big)} (n {common[-1]}) the time"
        return judged(min(small, big) < 1 / NOISE and max(small, big) > NOISE, value)
    raise Missing("needs recordings of two GPUs: fwtui reproduce sing --from SESSION OTHER-SESSION")


def _naive_times(model: Model) -> dict[int, float]:
    def plain(run: Run) -> bool:
        asked = run.experiment
        return asked.kernel == NAIVE and asked.memory == "device" and bool(run.verified and run.seconds)

    return {run.n: run.seconds for run in model.runs.values() if plain(run) and run.seconds}


CLAIMS = (
    Claim(
        "SF1",
        "GPU and serial CPU break even",
        "near 100 vertices",
        "bisection on end-to-end time: load, compute, unload",
        break_even.break_even(at(CPU), at(NAIVE), BREAK_EVEN),
        "Launching a captured graph of n kernels costs far less than n single launches did",
    ),
    Claim(
        "SF2",
        "zero-copy is the best GPU variant for small graphs, far behind for large",
        "up to about 1,000 vertices",
        "memory kinds over n, end to end",
        zero_copy,
        "Every relaxation of every round crosses the link there, while a copy crosses it once",
    ),
    Claim(
        "SF3",
        "tiny graphs: computing is a small part of the total",
        "about 1 %",
        "computing against copies at n = 64 to 128",
        tiny,
        "Their total held what a program does once, such as creating a context; here only the copies are counted",
    ),
    Claim("SF4", "large graphs: nearly all is computing", "more than 90 %", "the same at the largest n, 8192", large),
    Claim("SF5", "density has no effect on time", "flat", "5 densities, spread against noise", flat),
    Claim(
        "SF6",
        "the library routine is slower than the own serial loop",
        "slower",
        "SciPy (for Boost) against the serial loop",
        slower(at(LIBRARY), at(CPU), most=1),
    ),
    Claim(
        "SF7",
        "serial is slower than the GPU at the largest size",
        "about 100x",
        "n = 2048, extrapolated by n^3",
        hundredfold,
        "A GPU has gained more since than one core",
    ),
    Claim("SF8", "managed memory scales like device memory and gains little", "little gain", "memory kinds over n", managed),
    Claim(
        "SF9",
        "exact-count generation can run very long for dense graphs",
        "very long",
        "both generators at density 0.1, 0.5, 0.9",
        generators,
        "Drawing pairs until enough are new slows down as the graph fills; a bijection on the pairs never draws one twice",
    ),
    Claim(
        "SF10",
        "double-buffered (Thrust) and in-place naive perform alike",
        "alike",
        "both, within the usual factor",
        alike(at(NAIVE), at(DOUBLE), within=TOLERANCE),
    ),
    Claim(
        "SF11",
        "an older, larger GPU wins on small graphs and loses on large",
        "Titan X against 2070 SUPER",
        "any two recorded sessions of different GPUs",
        two_gpus,
    ),
)
PRESET = Preset("sing", "Sing, Fürst, Lantavos-Stratigakis", CLAIMS, runs, seconds=65, stages=("graph", "load", "unload"))
