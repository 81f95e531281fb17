"""Sing, Fürst and Lantavos-Stratigakis, Floyd-Warshall CUDA Implementation: int32 on an RTX 2070 SUPER."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import inf

from fwtui.analysis.data_sheet import fp32_lanes
from fwtui.campaigns.reproduce import break_even
from fwtui.campaigns.reproduce.claim import (
    ALIKE,
    NOISE,
    NOISY,
    TOLERANCE,
    ClaimAnswer,
    alike,
    always,
    claim,
    judged,
    near,
    slower,
)
from fwtui.campaigns.reproduce.preset import Preset, RunScale
from fwtui.campaigns.reproduce.results import Missing, Results, asking, first_of, needed
from fwtui.common import units
from fwtui.common.units import gain as times
from fwtui.experiment.experiment import Experiment
from fwtui.stream.model import Model
from fwtui.stream.run import same
from fwtui_kernels import registry

CPU, LIBRARY, NAIVE, DOUBLE = "serial", "scipy", "naive", "two-matrices"
DENSITIES = (0.1, 0.3, 0.5, 0.7, 0.9)
DENSITY = 0.3  # of every other graph
GENERATED = (0.1, 0.5, 0.9)
MEMORIES = ("device", "pinned", "mapped", "managed")
TINY = (64, 128)
BREAK_EVEN, ZERO_COPY_UP_TO, SERIAL_SLOWER = 100, 1000, 100
SCALES_FROM = 512
TWO_ADDRESSES = (
    "Two matrices need two addresses per cell, so more instructions, and twice the cache; only counters can show which costs more"
)
TINY_COMPUTING, LARGE_COMPUTING = 0.01, 0.9

at = asking("int32")


def runs(results: Results, scale: RunScale) -> Iterator[Experiment]:
    largest = 2048 if scale.quick else 8192
    if scale.gpu:
        yield from break_even.search(results, at(CPU), at(NAIVE))
        for n in (*TINY, 512, 1024, 2048):
            for memory in MEMORIES:
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
        # fully verified at one density, sampled at the others: SciPy would take most of the time
        verify = "auto" if density == DENSITY else "sample"
        yield at(kernel, density=density, verify=verify)(n)
        if density in GENERATED:
            yield at(kernel, density=density, exact=True, verify="sample")(n)


@claim("SF2", "zero-copy is the best GPU variant for small graphs, far behind for large", "up to about 1,000 vertices")
def zero_copy(results: Results) -> ClaimAnswer:
    """all kinds of memory over n, end to end"""
    makes = {memory: at(NAIVE, memory=memory) for memory in MEMORIES}
    mapped = makes.pop("mapped")
    sizes = results.sizes(mapped, *makes.values())
    ratio = {n: results.end_to_end(mapped(n)) / min(results.end_to_end(make(n)) for make in makes.values()) for n in sizes}
    best = [n for n in sizes if ratio[n] < 1 / NOISE]
    behind = ratio[sizes[-1]]
    value = f"fastest at {', '.join(map(str, best)) or 'no size'}; {times(behind)} the time at {sizes[-1]}"
    # the document's sizes are as coarse: its limit lies between the last win and the first loss
    last_win, first_loss = max(best, default=0), min((n for n in sizes if n not in best), default=inf)
    if first_loss < ZERO_COPY_UP_TO / TOLERANCE:
        reason = f"not the fastest up to about {ZERO_COPY_UP_TO:,} vertices"
        cause = "Every relaxation of every round crosses the link, while a copy crosses it once"
        return judged(False, value, reason, cause=cause)
    return judged(0 < last_win < first_loss < inf and last_win <= ZERO_COPY_UP_TO * TOLERANCE and behind > TOLERANCE, value)


@claim("SF3", "tiny graphs: computing is a small part of the total", "about 1 %")
def tiny(results: Results) -> ClaimAnswer:
    """computing against copies at n = 64 to 128"""
    sizes = [n for n in results.sizes(at(NAIVE)) if TINY[0] <= n <= TINY[-1]]
    needed(sizes, f"no graph of {TINY[0]} to {TINY[-1]} vertices was run on the GPU")
    shares = {n: results.computing_share(at(NAIVE)(n)) for n in (sizes[0], sizes[-1])}
    value = ", ".join(f"{units.percent(share)} (n {n})" for n, share in shares.items())
    more = all(share > TINY_COMPUTING for share in shares.values())
    cause = "Here only the copies are added to it; what else their total included is not known" if more else ""
    return judged(all(near(share, TINY_COMPUTING) for share in shares.values()), value, cause=cause)


@claim("SF4", "large graphs: nearly all is computing", "more than 90 %")
def large(results: Results) -> ClaimAnswer:
    """the same at the largest n, 8192"""
    n = results.sizes(at(NAIVE))[-1]
    share = results.computing_share(at(NAIVE)(n))
    return judged(share > LARGE_COMPUTING, f"{units.percent(share)} (n {n})")


@claim("SF5", "density has no effect on time", "flat")
def flat(results: Results) -> ClaimAnswer:
    """5 densities, spread against noise"""
    kernel, sizes = first_of((NAIVE, CPU), lambda name: results.sizes(*(at(name, density=density) for density in DENSITIES)))
    experiments = [at(kernel, density=density)(sizes[-1]) for density in DENSITIES]
    seconds = [results.seconds(experiment) for experiment in experiments]
    noise = max(results.spread(experiment) for experiment in experiments)
    apart = max(seconds) / min(seconds)
    value = f"{times(apart)} between densities, noise {units.spread(noise)} ({kernel}, n {sizes[-1]})"
    needed(2 * noise <= NOISY, f"{value}: too noisy to judge")
    return judged(apart <= ALIKE, value)


@claim("SF7", "serial is slower than the GPU at the largest size", "about 100x")
def hundredfold(results: Results) -> ClaimAnswer:
    """n = 2048, extrapolated by n^3"""
    n = results.sizes(at(NAIVE))[-1]
    cpu = results.time(at(CPU), n)
    ratio = cpu.seconds / results.end_to_end(at(NAIVE)(n))
    cause = break_even.GPUS_GAINED_MORE if ratio > SERIAL_SLOWER else ""
    return judged(near(ratio, SERIAL_SLOWER), f"{times(ratio)} (n {n}, CPU {cpu.words})", cause=cause)


@claim("SF8", "managed memory scales like device memory and gains little", "little gain")
def managed(results: Results) -> ClaimAnswer:
    """both over n, end to end"""
    makes = at(NAIVE), at(NAIVE, memory="managed")
    sizes = results.sizes(*makes)
    needed(sizes[1:], "a single size shows no scaling")
    # a small graph's time is the driver's one-time work
    begin = min(sizes[-2], next((n for n in sizes if n >= SCALES_FROM), sizes[-2]))
    ratio = {n: results.end_to_end(makes[1](n)) / results.end_to_end(makes[0](n)) for n in (begin, sizes[-1])}
    value = ", ".join(f"{times(r)} (n {n})" for n, r in ratio.items())
    value, last = f"time over device memory's: {value}", ratio[sizes[-1]]
    if not near(ratio[begin] / last, 1):
        return judged(False, value, "it does not grow alike")
    return judged(1 / ALIKE < last <= TOLERANCE, value, "it gains" if last < 1 else "it is slower at the largest size")


@claim("SF9", "exact-count generation can run very long for dense graphs", "very long")
def generators(results: Results) -> ClaimAnswer:
    """both generators at density 0.1, 0.5, 0.9"""
    seconds = {}
    for exact, p in product((False, True), GENERATED):
        makes = (at(kernel, density=p, exact=exact) for kernel in (NAIVE, CPU))
        seconds[exact, p] = first_of(makes, lambda make: results.stage(make(results.sizes(make)[-1]), "graph"))[1]
    growth = seconds[True, GENERATED[-1]] / seconds[True, GENERATED[0]]
    against = seconds[True, GENERATED[-1]] / seconds[False, GENERATED[-1]]
    value = f"density 0.9: {times(growth)} the time of 0.1, {times(against)} that of the coin toss"
    cause = "Drawing random pairs slows down as the graph fills, because most are taken; a bijection never draws a pair twice"
    return judged(growth > 2 and against > TOLERANCE, value, cause=cause if growth <= 2 else "")


@claim("SF11", "an older, larger GPU wins on small graphs and loses on large", "Titan X against 2070 SUPER")
def two_gpus(results: Results) -> ClaimAnswer:
    """recorded sessions of two GPUs; their age by compute capability, their size by lanes"""
    for other in results.others:
        mine, theirs = (_age_and_size(model) for model in (results.model, other))
        if mine is None or theirs is None:
            continue
        old, new = (results.model, other) if mine < theirs else (other, results.model)
        older, newer = sorted((mine, theirs))
        if older[0] == newer[0] or older[1] <= newer[1]:
            continue
        seconds = _naive_times(old), _naive_times(new)
        common = sorted(seconds[0].keys() & seconds[1].keys())
        if len(common) < 2 or old.gpu is None or new.gpu is None:
            continue
        small, big = (seconds[0][n] / seconds[1][n] for n in (common[0], common[-1]))
        value = f"{old.gpu.name} takes {times(small)} (n {common[0]}) and {times(big)} (n {common[-1]}) of {new.gpu.name}'s time"
        return judged(small < 1 / NOISE and big > NOISE, value)
    raise Missing(
        "needs recordings of an older, larger and a newer, smaller GPU: fwtui reproduce sing --from SESSION OTHER-SESSION"
    )


def _age_and_size(model: Model) -> tuple[tuple[int, int], int] | None:
    """A GPU's compute capability, as a measure of age, and its lanes."""
    gpu = model.gpu
    lanes = fp32_lanes(gpu)
    return (gpu.compute_capability, lanes) if gpu is not None and gpu.compute_capability is not None and lanes else None


def _naive_times(model: Model) -> dict[int, float]:
    alike = [r for r in model.runs.values() if r.verified and same(r, at(NAIVE)(r.n), registry()[NAIVE])]
    return {run.n: run.seconds for run in alike if run.seconds}


@claim("SF1", "GPU and serial CPU break even", "near 100 vertices")
def pays(results: Results) -> ClaimAnswer:
    """bisection on end-to-end time: load, compute, unload"""
    return break_even.break_even(results, at(CPU), at(NAIVE), BREAK_EVEN)


@claim("SF6", "the library routine is slower than a hand-written serial loop", "slower")
def library(results: Results) -> ClaimAnswer:
    """SciPy (for Boost) against the serial loop"""
    return slower(results, at(LIBRARY), at(CPU), most=1)


@claim("SF10", "double-buffered (Thrust) and in-place naive perform alike", "alike")
def double_buffered(results: Results) -> ClaimAnswer:
    """both, at the largest sizes"""
    return alike(results, at(NAIVE), at(DOUBLE), shorter=always(TWO_ADDRESSES))


CLAIMS = (pays, zero_copy, tiny, large, flat, library, hundredfold, managed, generators, double_buffered, two_gpus)
PRESET = Preset("sing", "Sing, Fürst, Lantavos-Stratigakis", CLAIMS, runs, seconds=76)
