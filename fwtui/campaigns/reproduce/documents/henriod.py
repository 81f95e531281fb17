"""Henriod, Attempting to Improve APSP on the GPU: recursive in-place, float32 on a GTX 480."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product

from fwtui.campaigns.reproduce.claim import ClaimAnswer, Ratio, claim, judged, near, ratio_words, time_ratio
from fwtui.campaigns.reproduce.preset import Preset, RunScale
from fwtui.campaigns.reproduce.results import Make, Missing, Results, ask, needed, needed_kernel
from fwtui.common import units
from fwtui.common.units import gain as times
from fwtui.experiment.experiment import Experiment, changed
from fwtui_kernels import registry
from fwtui_kernels.plan import Rect, Shape, Step

KLEENE, BASE = "kleene", "kleene-base"
SMALL, LARGE = 256, 8192
TILE = 16  # the original width
EXAMPLE = 8  # the width of his access model's block
LOST_ABOVE = 8  # threads
RESULTS, KEEP = (1, 4, 16), (0, 1)
SIMULATED = 13
# his access model for one 8 x 8 block, "Assumed values for example analysis": cycles per access, threads, accesses
GLOBAL_CYCLES, SHARED_CYCLES, THREADS = 600, 6, 16
ORIGINAL = 4 * THREADS * (2 + 1) * 4 * GLOBAL_CYCLES
HIS = THREADS * (8 + 4) * 8 * SHARED_CYCLES + 8 * GLOBAL_CYCLES
CORRECTED = THREADS * (8 + 4) * 8 * SHARED_CYCLES + THREADS * 8 * GLOBAL_CYCLES  # every thread makes the 8 accesses
CHEAP = "Global memory takes far less than his 600 cycles if a cache holds the cells"
MULTIPLIES = ("sequential", "regular", "volkov")
NO_BASE_CASES = "the session holds no time of the base cases"


def plain(tile: int = 0) -> Make:
    return partial(ask, KLEENE, tile=tile)


def base(results: int, keep: int, tile: int = 0) -> Make:
    return partial(ask, BASE, results=results, keep=keep, tile=tile)


def widths(kernel: str) -> tuple[int, ...]:
    """Widths of the base case that the kernel offers; beta is twice the width."""
    return registry()[kernel].tiles if kernel in registry() else ()


def runs(results: Results, scale: RunScale) -> Iterator[Experiment]:
    if not scale.gpu:
        for count, keep in product(RESULTS, KEEP):
            yield changed(base(count, keep, tile=8)(SIMULATED), device="simulator")
    for n in (SMALL, 1024) if scale.quick or not scale.gpu else (SMALL, 1024, LARGE):
        for tile in widths(KLEENE) or (0,):
            yield plain(tile)(n)
        for count, keep in product(RESULTS, KEEP):
            yield base(count, keep)(n)
        for tile, count in product(widths(BASE), RESULTS) if n == SMALL else ():
            yield base(count, 0, tile)(n)


@claim("HE1", "more threads (larger beta) in the sequential kernel: no gain", "slightly worse than 16")
def more_threads(results: Results) -> ClaimAnswer:
    """sweep over the width of the base case at n = 256 and 8192"""
    wider = needed([tile for tile in needed_kernel(KLEENE).tiles if tile > TILE], f"{KLEENE} has no base wider than {TILE}")
    sizes = results.sizes(plain(TILE), *(plain(tile) for tile in wider))
    places = product(wider, dict.fromkeys((sizes[0], sizes[-1])))
    gains = {(tile, n): time_ratio(results, plain(TILE)(n), plain(tile)(n)) for tile, n in places}
    value = ", ".join(f"width {tile} {times(ratio.value)} (n {n})" for (tile, n), ratio in gains.items())
    holds = not any(ratio.slower for ratio in gains.values())
    cause = "Current multiprocessors run more threads at once, and a wider base case saves launches"
    return judged(holds, f"speed-up over {TILE}: {value}", "a wider base case is faster", cause=cause)


@claim("HE2", "fewer threads with 4 or 16 results each: faster on small inputs, not on large", "small only")
def fewer_threads(results: Results) -> ClaimAnswer:
    """the better of both in shared memory against the original base case of width 16"""
    makes = [base(count, 0) for count in RESULTS if count > 1]
    sizes = results.sizes(plain(TILE), *makes)
    needed(sizes[1:], "a small and a large graph are needed")
    gains = {n: max(time_ratio(results, plain(TILE)(n), make(n)) for make in makes) for n in (sizes[0], sizes[-1])}
    value = f"best speed-up {ratio_words(gains)}"
    if not gains[sizes[0]].slower:
        return judged(False, value, "no gain on the small graph", cause=_busy_threads(results, sizes[0]))
    return judged(not gains[sizes[-1]].slower, value, "a gain on the large graph too")


def _busy_threads(results: Results, n: int) -> str:
    """The time of the base cases with several results per thread, and their share of the total."""
    with suppress(Missing):
        whole = sum(part.seconds for part in results.find(plain(TILE)(n)).phases)
        one = results.phase_seconds(plain(TILE)(n), "base")
        ratio = {count: results.phase_seconds(base(count, 0)(n), "base") / one for count in RESULTS if count > 1 and one}
        if ratio and min(ratio.values()) > 1:
            words = ", ".join(f"{count} results a thread take {times(r)} the time of one" for count, r in ratio.items())
            share = units.percent(one / whole)
            return f"The base cases, {share} of the time, get slower (n {n}): {words}. Each thread does its own in sequence"
    return ""


@claim("HE3", "that variant lost correctness above 8 threads", "wrong")
def correctness(results: Results) -> ClaimAnswer:
    """thread counts below and above 8 verified; a labelled faulty variant in the tests shows one way to lose it"""
    runs = [r for r in results.runs if r.experiment.kernel == BASE and r.verified is not None]
    if not runs:
        results.find(base(4, 0)(SMALL))  # says why there are none
        raise Missing("none was checked")
    wrong = sorted({_threads(r.experiment) for r in runs if r.wrong})
    cause = "All results of all threads must finish a step before the next, which needs a barrier; what his lacked is not known"
    if wrong:
        value = f"wrong with {', '.join(map(str, wrong))} threads"
        return judged(wrong[-1] > LOST_ABOVE, value, f"not above {LOST_ABOVE} threads", cause=cause)
    right = sorted({_threads(r.experiment) for r in runs})
    if right[-1] <= LOST_ABOVE:
        raise Missing(f"none of more than {LOST_ABOVE} threads was checked")
    value = f"right with {', '.join(map(str, right))} threads{' (simulated)' * all(r.simulated for r in runs)}"
    return judged(False, value, "every thread count gives right answers", cause=cause)


def _threads(experiment: Experiment) -> int:
    return max(1, experiment.tile**2 // experiment.options.get("results", 1))


@claim("HE4", "the two half-size subproblems cannot run at the same time", "one needs the other")
def halves(results: Results) -> ClaimAnswer:
    """derived from the plan's reads and writes"""
    kernel = needed_kernel(KLEENE)
    tile = kernel.default_tile
    chain = dependency(kernel.plan(Shape(4 * tile, tile, kernel.dtypes[0], options=kernel.defaults), False), 2 * tile)
    if chain is None:
        return judged(False, "the second half does not depend on the first")
    return judged(True, " -> ".join(chain))


def dependency(plan: Iterable[Step], middle: int) -> list[str] | None:
    """The blocks through which data flows from A11's closure to A22's, or None if none arrives."""
    inside: tuple[Rect, ...] = ()
    chain: list[str] = []
    for step in plan:
        quadrants = {f"A{1 + (rect.top >= middle)}{1 + (rect.left >= middle)}" for rect in step.writes}
        touched = any(rect.overlaps(region) for rect in (*step.reads, *step.writes) for region in inside)
        if quadrants == {"A22"} and step.phase == "base":
            return [*dict.fromkeys(chain), "A22*"] if touched else None
        if quadrants == {"A11"} and (not chain or chain[-1] == "A11*"):
            inside += step.writes
            chain.append("A11*")
        elif touched:
            inside += step.writes
            chain += sorted(quadrants)
    return None


@claim("HE5", "his access model expects a large gain", f"{ORIGINAL:,} cycles against {HIS:,}: {ORIGINAL / HIS:.3g}x")
def access_model(results: Results) -> ClaimAnswer:
    """predicted and measured ratio side by side, for his 8 x 8 blocks (4860 in the big-O should be 4872)"""
    slow, fast = plain(EXAMPLE), base(4, 0, EXAMPLE)
    n = results.sizes(slow, fast)[0]
    ratio = results.phase_seconds(slow(n), "base") / needed(results.phase_seconds(fast(n), "base"), NO_BASE_CASES)
    value = f"predicted {times(ORIGINAL / HIS)}, measured {times(ratio)} (n {n})"
    note = f"with the factor {THREADS} that 8*600 leaves out, the model itself predicts {times(ORIGINAL / CORRECTED)}"
    cause = CHEAP if ratio < ORIGINAL / HIS else ""
    if ratio < 1:
        threads = EXAMPLE * EXAMPLE
        cause += f", and with 4 results each only {threads // 4} of {threads} threads are left, half a warp, "
        cause += "which do four times as much"
    return judged(near(ratio, ORIGINAL / HIS), value, f"measured {times(ratio)}", note, cause)


@claim("HE6", "results in a small array in registers beat results in shared memory", "asked of two multiplies, not answered")
def registers(results: Results) -> ClaimAnswer:
    """the base case with its results in registers or in shared memory"""
    makes = {(count, keep): base(count, keep) for count in RESULTS for keep in KEEP}
    n = results.sizes(*makes.values())[0]
    seconds = {key: results.phase_seconds(make(n), "base") for key, make in makes.items()}
    needed(all(seconds.values()), NO_BASE_CASES)
    noise = 2 * max(results.spread(make(n)) for make in makes.values())
    ratio = {count: Ratio(seconds[count, 0] / seconds[count, 1], noise) for count in RESULTS}
    words = ", ".join(f"{times(r.value)} with {count}" for count, r in ratio.items())
    value = f"shared takes this time of registers: {words} results a thread (n {n})"
    note = "he asks about the multiplies; both of ours keep their result in a register, so the base case is compared"
    return judged(all(r.slower for count, r in ratio.items() if count > 1), value, "not for every array", note)


@claim("HE7", "three multiplies by width; a larger beta may make one unnecessary", "may")
def needless(results: Results) -> ClaimAnswer:
    """share of time per multiply over beta"""
    tiles = needed_kernel(KLEENE).tiles
    n = results.sizes(*(plain(tile) for tile in tiles))[-1]
    words, absent = [], []
    for tile in tiles:
        seconds = {key: results.phase_seconds(plain(tile)(n), key) for key in MULTIPLIES}
        total = sum(seconds.values()) or 1.0
        absent += [f"{key} at beta {2 * tile}" for key, s in seconds.items() if not s]
        if tile in (tiles[0], tiles[-1]):
            shares = " / ".join(units.percent(s / total) for s in seconds.values())
            words.append(f"beta {2 * tile}: {shares}")
    value = f"{'; '.join(words)} (n {n})"
    return judged(bool(absent), f"unnecessary: {', '.join(absent)}; {value}" if absent else value, "each is used at every beta")


CLAIMS = (more_threads, fewer_threads, correctness, halves, access_model, registers, needless)
PRESET = Preset("henriod", "Henriod", CLAIMS, runs, seconds=48)
