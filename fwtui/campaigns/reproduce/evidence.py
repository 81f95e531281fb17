"""What a session bears out of why a kernel takes its time: by its times, GPM and hardware counters.

Sentences are empty where it bears nothing out; numbers raise Missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from fwtui.campaigns.reproduce.claim import TOLERANCE
from fwtui.campaigns.reproduce.results import Make, Missing, Results
from fwtui.common import units
from fwtui.common.units import gain as times
from kernels.plan import WARP

FULL = 0.9  # of a unit's time
LAUNCHES = 3  # of a round of the blocked kernels
STARTED_ALIKE = 1.25  # rates of blocks of two sizes that the same thing may limit
MOST_RESIDENT = 2048  # threads that a multiprocessor of any GPU holds at most
ROWS = 8  # of threads in a block of 256
OP = "rest"  # the op that decides a blocked kernel's time, whose counters are read


def integer_bound(results: Results, *makes: Make) -> str:
    """How full GPM found the integer units and the memory in the largest run of these that it read, if the former were full."""
    for make in makes:
        for n in sorted({run.n for run in results.runs}, reverse=True):
            with suppress(Missing):
                integer, dram = busy(results, make, n)
                if integer >= FULL:
                    return (
                        f"{make(n).kernel} keeps the integer units {units.percent(integer)} busy "
                        f"and the memory {units.percent(dram)} (GPM, n {n}{f', tile {tile}' if (tile := make(n).tile) else ''})"
                    )
    return ""


def busy(results: Results, make: Make, n: int) -> tuple[float, float]:
    """Shares of the time in which GPM found the integer units and the memory at work. Raises Missing."""
    evidence = results.gpm(make(n))
    assert evidence.integer_utilisation is not None and evidence.dram_utilisation is not None
    return evidence.integer_utilisation, evidence.dram_utilisation


def blocks_a_second(results: Results, make: Make, n: int, side: int = 1) -> float:
    """Blocks that a kernel with side x side results a thread and one launch for each k starts in a second. Raises Missing."""
    threads = make(n).options.get("threads", WARP * ROWS)
    across, down = WARP * side, threads // WARP * side
    return -(-n // across) * -(-n // down) * n / results.seconds(make(n))


def billions(rate: float) -> str:
    """So many thousand millions, in words."""
    return f"{units.digits(rate / 1e9)} billion"


def starting(results: Results, small: Make, large: Make) -> str:
    """Whether small and large blocks are started at one rate, so that this, and not what they do, may be the limit."""
    with suppress(Missing):
        n = results.sizes(small, large)[-1]
        rates = [blocks_a_second(results, make, n) for make in (large, small)]
        if max(rates) <= min(rates) * STARTED_ALIKE:
            counts = [make(n).options["threads"] for make in (large, small)]
            words = f"{billions(rates[0])} blocks of {counts[0]} threads a second and {billions(rates[1])} of {counts[1]}"
            return f"{large(n).kernel} starts {words} (n {n}): starting blocks seems to be its limit, not memory"
    return ""


def smaller_squares(results: Results, makes: Mapping[int, Make], n: int, best: int, usual: int, starts: bool) -> str:
    """Why h x h results a thread may be best for a smaller h than the usual one; `starts`: whether starting blocks costs."""
    words = []
    if starts and best > 1:
        one, two = (blocks_a_second(results, makes[h], n, h) for h in (1, best))
        words.append(f"h = 1 starts {billions(one)} blocks a second, where that is a limit, and h = {best} {billions(two)}")
    threads = (n // usual) ** 2
    if threads > MOST_RESIDENT * (results.device.multiprocessors or threads):
        words.append(f"h = {usual} still has {threads:,} threads, more than this GPU holds at once, so it does not lack them")
    words.append(
        "a warp's threads lie h columns apart, so the larger h is the less their accesses join (counters would say how much)"
    )
    return "; ".join(words)


def saved_launches(results: Results, one: Make, many: Make, single: Make, n: int, rounds: int) -> str:
    """Whether what one launch gains over three a round may be these launches; what one takes is the smallest `single` run's."""
    each = (results.seconds(many(n)) - results.seconds(one(n))) / rounds
    words = f"It gains {units.duration(each)} in each of {rounds} rounds (n {n})"
    with suppress(Missing):
        small = results.sizes(single)[0]
        launches = LAUNCHES * results.seconds(single(small)) / small
        if each <= launches * TOLERANCE:
            return f"{words}, as much as {LAUNCHES} launches, which take {units.duration(launches)}"
        return f"{words}, and {LAUNCHES} launches take {units.duration(launches)}, so it is not they"
    return ""


def gain(results: Results, slow: Make, fast: Make, n: int) -> str:
    """How many times as fast, in words; empty where one was not run at that size."""
    with suppress(Missing):
        return times(results.seconds(slow(n)) / results.seconds(fast(n)))
    return ""


def ways(results: Results, make: Make) -> float:
    """Wavefronts that its reads of shared memory took for each one that they would take without bank conflicts."""
    taken, extra = _pair(results, make, "shared_load_wavefronts", "shared_load_conflicts")
    if taken <= extra:
        raise Missing("the counters of shared memory contradict each other")
    return taken / (taken - extra)


def sectors(results: Results, make: Make) -> float:
    """Sectors of 32 bytes that one load from global memory asks for."""
    asked, loads = _pair(results, make, "global_load_sectors", "global_load_requests")
    if not asked or not loads:
        raise Missing("the counters hold no load from global memory")
    return asked / loads


def gops(results: Results, *makes: Make) -> tuple[int, list[float]]:
    """The largest size at which all of them were counted, and integer instructions over time of each there, in 1e9 per second."""
    return _together(results, "gops", *makes)


def integers(results: Results, *makes: Make) -> tuple[int, list[float]]:
    """The largest size at which all of them were counted, and integer instructions a relaxation of each there."""
    return _together(results, "integer_instructions_per_relaxation", *makes)


def full(results: Results, make: Make) -> str:
    """What counters say of a kernel that keeps something on the chip busy all the time; empty otherwise."""
    with suppress(Missing):
        n = results.counted_at(OP, "memory_share", make)
        compute, moved, dram = (results.counter(make(n), OP, f"{what}_share") for what in ("compute", "memory", "dram"))
        if max(compute, moved) >= FULL:
            words = f"{make(n).kernel} keeps what computes {units.percent(compute)} busy, what fetches and stores"
            return f"{words} {units.percent(moved)}, and the memory outside the chip {units.percent(dram)} (counters, n {n})"
    return ""


def _together(results: Results, key: str, *makes: Make) -> tuple[int, list[float]]:
    n = results.counted_at(OP, key, *makes)
    return n, [results.counter(make(n), OP, key) for make in makes]


def _pair(results: Results, make: Make, first: str, second: str) -> tuple[float, float]:
    wanted = make(results.counted_at(OP, second, make))
    return results.counter(wanted, OP, first), results.counter(wanted, OP, second)
