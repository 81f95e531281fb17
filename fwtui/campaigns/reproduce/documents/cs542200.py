"""CS542200 Parallel Programming, Homework 4-1, Blocked All-Pairs Shortest Path: int32."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from fwtui.campaigns.queue import TOO_LONG
from fwtui.campaigns.reproduce import evidence
from fwtui.campaigns.reproduce.claim import (
    NOISE,
    TOLERANCE,
    ClaimAnswer,
    always,
    claim,
    judged,
    near,
    ratio_words,
    ratios,
    slower,
    time_ratio,
)
from fwtui.campaigns.reproduce.preset import CountedKernel, DocumentFigure, LeftOut, Preset, RunScale
from fwtui.campaigns.reproduce.results import Make, Missing, Results, asking, first_of, label, needed
from fwtui.common import units
from fwtui.common.child_process import ChildProcess, ModuleProcess
from fwtui.common.units import gain as times
from fwtui.experiment.experiment import Experiment, changed
from fwtui.stream.requests import SaveRequest
from fwtui.stream.run import same
from fwtui_kernels import registry

KATZ, GLOBAL, BRANCH = "katz-kider", "blocked-global", "blocked-branch"
MANY, FLAT = "blocked-many-launches", "blocked-one-dimensional"
# "Blocking Factor": (integer instructions, seconds, "GOPS") by tile, as printed
TABLE: Mapping[int, tuple[int, float, int]] = {
    8: (15829, 0.44, 35975),
    16: (37632, 0.37, 101708),
    32: (147456, 0.28, 526628),
}
CHANGED = (GLOBAL, BRANCH, MANY, FLAT)
TILES = (2, 4, 8, 16, 32)
SLOW, WRONG = (2, 4), 8  # tiles that timed out in the document, and the one with wrong answers
WITHOUT_GPU = (4, 8)  # tiles and size for the simulator
SIMULATED = 13
NO_BRANCH = "Here the compiler turns the if into a comparison and a predicated store, without a branch"
NEARLY_ALL = 0.9
INTEGERS = "integer_instructions_per_relaxation"
SAVING = partial(ModuleProcess, "fwtui.measure.save_graph")
MOST_WRITING_SECONDS = 120.0  # of a graph's file

at = asking("int32")


def runs(results: Results, scale: RunScale) -> Iterator[Experiment | LeftOut | None]:
    if not scale.gpu:
        for tile in WITHOUT_GPU:
            yield at(KATZ, tile=tile, device="simulator")(SIMULATED)
    sizes = (1024, 2048) if scale.quick or not scale.gpu else (1024, 2048, 4096)
    for n in sizes:
        yield at(KATZ)(n)
        for kernel in CHANGED if n > sizes[0] else ():
            yield at(kernel)(n)
    for n in sizes[1:] if scale.gpu else ():
        for tile in TILES if n <= 2048 else TILES[2:]:
            yield at(KATZ, tile=tile)(n)
    yield from _from_files(KATZ, 256, 512, 1024) if scale.gpu else _from_files("tiled-cpu", 128, 256)
    if scale.gpu and not scale.quick:
        for kernel in (KATZ, *CHANGED):
            yield at(kernel)(8192)
        yield from _from_files(KATZ, 4096)


def _from_files(kernel: str, *sizes: int) -> Iterator[Experiment | LeftOut | None]:
    with tempfile.TemporaryDirectory(prefix="fwtui-", ignore_cleanup_errors=True) as folder:
        for n in sizes:
            path = Path(folder) / f"graph-{n}.gr"
            experiment = changed(at(kernel)(n), file=str(path))
            for why in write_graph(at("serial")(n), path):
                if why is None:
                    yield None
                else:
                    yield LeftOut(label(experiment), why) if why else experiment


def write_graph(
    graph: Experiment, path: Path, start: Callable[[], ChildProcess] = SAVING, most: float = MOST_WRITING_SECONDS
) -> Iterator[str | None]:
    """None while a child process writes the graph file, then why it failed; empty if it succeeded. `most`: seconds."""
    deadline = time.monotonic() + most
    try:
        child = start()
    except OSError as error:
        yield f"its graph cannot be written: {error.strerror or error}"
        return
    child.send(SaveRequest(graph, str(path)))
    child.hang_up()
    try:
        while child.exit_code is None:
            if time.monotonic() > deadline:
                yield f"its graph was not written within {most:.0f} s"
                return
            yield None
    finally:
        child.kill()
        ended = child.finish(most)
    yield f"its graph was not written: {ended.last_words}" if ended.code else ""


@claim("CS1", "phase 3 is nearly all of the computing time", "98 %")
def rest(results: Results) -> ClaimAnswer:
    """phase pass at the largest n"""
    n = results.sizes(at(KATZ))[-1]
    shares = [p.share for p in results.find(at(KATZ)(n)).phases if p.key == "rest"]
    share = needed(shares, "the session holds no phases of katz-kider")[0]
    return judged(share >= NEARLY_ALL, f"{units.percent(share)} (n {n})")


@claim("CS2", "larger tiles are faster", '8: 0.44 s, 16: 0.37 s, 32: 0.28 s; "GOPS" 35,975, 101,708, 526,628')
def tiles(results: Results) -> ClaimAnswer:
    """time by tile, and integer instructions from counters over time; the printed units are not plausible"""
    makes = {tile: at(KATZ, tile=tile) for tile in TABLE}
    n = results.sizes(*makes.values())[-1]
    no_faster = [(a, b) for a, b in pairwise(TABLE) if not time_ratio(results, makes[a](n), makes[b](n)).slower]
    ratio, there = time_ratio(results, makes[8](n), makes[32](n)).value, TABLE[8][1] / TABLE[32][1]
    value = ", ".join(f"{tile}: {units.duration(results.seconds(make(n)))}" for tile, make in makes.items()) + f" (n {n})"
    holds = not no_faster and near(ratio, there)
    reason = f"tile 32 is {times(ratio)} as fast as tile 8"
    reason += "".join(f", {b} is no faster than {a}" for a, b in no_faster)
    cause = _results_a_thread(results, makes) if ratio > there * TOLERANCE else ""
    try:
        gops = dict(zip(makes, evidence.counter_values(results, "gops", *makes.values())[1], strict=True))
    except Missing:
        return judged(holds, value, reason, "the GOPS need counters", cause)
    value += "; " + ", ".join(f"{tile}: {units.digits(g)} GOPS" for tile, g in gops.items())
    rise = all(gops[b] > NOISE * gops[a] for a, b in pairwise(TABLE))
    return judged(holds and rise, value, reason + ". GOPS do not rise with the tile" * (not rise), cause=cause)


def _results_a_thread(results: Results, makes: Mapping[int, Make]) -> str:
    """What changes with the tile besides the reuse of loaded numbers, and the effect in counters."""
    threads = next(option.default for option in registry()[KATZ].options if option.name == "threads")
    each = ", ".join(f"{max(1, tile * tile // threads)} at {tile}" for tile in TABLE)
    words = f"A tile uses each loaded number once per row; several results per thread ({each}) share indices"
    with suppress(Missing):
        _, counts = evidence.counter_values(results, INTEGERS, *makes.values())
        listed = ", ".join(f"{count:.3g} at {tile}" for tile, count in zip(makes, counts, strict=True))
        return f"{words}: {listed} integer instructions a relaxation"
    return f"{words}; counters are needed to separate these gains"


@claim("CS5", "replacing if by min is a further gain", "faster")
def branches(results: Results) -> ClaimAnswer:
    """that one change, with instruction counts if there are counters"""
    answer = slower(results, at(BRANCH), at(KATZ), same=always(NO_BRANCH))
    try:
        n, (with_if, with_min) = evidence.counter_values(results, INTEGERS, at(BRANCH), at(KATZ))
    except Missing:
        return replace(answer, note="the instruction counts need counters")
    words = f"{with_if:.3g} integer instructions a relaxation, {with_min:.3g} with min (n {n})"
    return replace(answer, value=f"{answer.value}; {words}")


@claim("CS3", "tiles 2 and 4 time out, 8 gives wrong answers, 16 is most stable", "wrong at 8")
def correct(results: Results) -> ClaimAnswer:
    """all five verified in every cell and timed; holds if 8 is wrong or 2 or 4 take too long"""
    runs = [r for r in results.runs if r.experiment.kernel == KATZ and r.experiment.tile in TILES]
    runs = [r for r in runs if same(r, at(KATZ, tile=r.experiment.tile, device=r.experiment.device)(r.n), registry()[KATZ])]
    wrong = sorted({r.experiment.tile for r in runs if r.wrong})
    if WRONG in wrong:
        return judged(True, f"wrong: tile {', '.join(map(str, wrong))}")
    if slow := [t for t in SLOW if any(f" tile {t}:" in text and text.endswith(TOO_LONG) for text in results.left_out)]:
        return judged(True, f"too slow: tile {', '.join(map(str, slow))}")
    right = sorted({r.experiment.tile for r in runs if r.verified and r.state == "done"} - set(wrong))
    if not right:
        results.sizes(at(KATZ))  # says why there are none
    for tile in TILES:
        if tile not in right:
            simulated = " (simulated)" * all(r.simulated for r in runs)
            words = f"tiles {', '.join(map(str, right)) or 'none'} are right{simulated}"
            try:
                results.sizes(at(KATZ, tile=tile))
            except Missing as missing:
                raise Missing(f"{words}; tile {tile}: {missing}") from None
    n = results.sizes(*(at(KATZ, tile=tile) for tile in right))[-1]
    took = ", ".join(f"{tile}: {units.duration(results.seconds(at(KATZ, tile=tile)(n)))}" for tile in right)
    cause = "Nothing in the algorithm depends on the tile; why theirs failed is not known"
    return judged(False, f"all of {took} verified (n {n})", "every tile gives right answers within its time", cause=cause)


@claim("CS4", "keeping dij out of global memory in phase 3 is the big win", "big")
def big_win(results: Results) -> ClaimAnswer:
    """that one change, at least the usual factor"""
    by_size = ratios(results, at(GLOBAL), at(KATZ))
    cause = "On current GPUs a cell that only one thread uses can stay in the L1 cache; only counters can show whether it does"
    return judged(min(r.value for r in by_size.values()) >= TOLERANCE, ratio_words(by_size), cause=cause)


@claim("CS6", "copies and I/O besides computing: computing's share grows", "shares")
def io_shares(results: Results) -> ClaimAnswer:
    """phase split with file input"""
    make, sizes = first_of((at(kernel, file="graph.gr") for kernel in (KATZ, "tiled-cpu")), results.sizes)
    needed(sizes[1:], "a single file shows no growth")
    words, computing = [], []
    for n in (sizes[0], sizes[-1]):
        reading, computed = results.stage(make(n), "read", "graph"), results.seconds(make(n))
        copies = results.end_to_end(make(n)) - computed
        total = reading + copies + computed
        words.append(f"n {n}: file {units.percent(reading / total)}, copies {units.percent(copies / total)}")
        computing.append(computed / total)
    reason = "computing's share does not grow with the graph"
    cause = _text(results, make, sizes[0], sizes[-1])
    return judged(computing[1] > NOISE * computing[0], "; ".join(words), reason, cause=cause)


def _text(results: Results, make: Make, small: int, large: int) -> str:
    """How reading and computing time grow; computing grows by less than n^3 if a small graph does not fill the GPU."""
    reading, computed = (
        measure(make(large)) / (measure(make(small)) or 1.0)
        for measure in (lambda experiment: results.stage(experiment, "read", "graph"), results.seconds)
    )
    cube = (large / small) ** 3
    took = f"takes {times(reading)} as long at n = {large} as at {small}, computing"
    if computed * TOLERANCE > cube:
        return f"Reading the text format {took} {times(computed)}"
    why = f"instead of n^3 = {times(cube)}: such small graphs do not fill the GPU"
    return f"The file is text: reading it {took} only {times(computed)}, {why}"


@claim("CS7", "2-D blocks are needed for performance; several launches per phase", "2-D faster")
def shape_of_launches(results: Results) -> ClaimAnswer:
    """both pairs: 1-D against 2-D, several launches against one"""
    flat, many = (ratios(results, at(kernel), at(KATZ), most=1) for kernel in (FLAT, MANY))
    (n, one), (_, several) = next(iter(flat.items())), next(iter(many.items()))
    value = f"1-D {times(one.value)} the time, several launches {times(several.value)} (n {n})"
    cause = "Division by a constant tile compiles to a shift, so the block's shape no longer matters"
    return judged(one.slower, value, note="the document says which blocks are faster, but not which launches", cause=cause)


def table(results: Results) -> Iterator[DocumentFigure]:
    """The blocking-factor table with this machine's times."""
    rows = [("tile", "seconds there", "here", "GOPS there", "here")]
    for tile, (_, seconds, gops) in TABLE.items():
        make = at(KATZ, tile=tile)
        here = rate = "-"
        with suppress(Missing):
            n = results.sizes(make)[-1]
            here = f"{units.duration(results.seconds(make(n)))} (n {n})"
            rate = units.digits(evidence.counter_values(results, "gops", make)[1][0])
        rows.append((str(tile), f"{seconds:g}", here, f"{gops:,}", rate))
    yield DocumentFigure("Blocking factor", rows)


CLAIMS = (rest, tiles, correct, big_win, branches, io_shares, shape_of_launches)
COUNTED = tuple(CountedKernel(make, 2048) for make in (*(at(KATZ, tile=tile) for tile in TABLE), *map(at, CHANGED)))
PRESET = Preset("cs542200", "CS542200 Homework 4-1", CLAIMS, runs, seconds=52, figures=table, counted=COUNTED)
