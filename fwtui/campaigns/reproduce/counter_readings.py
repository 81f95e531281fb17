"""What hardware counters of a kernel's main op say, at the largest size at which they were read."""

from __future__ import annotations

from contextlib import suppress

from fwtui.campaigns.reproduce.causes import FULL
from fwtui.campaigns.reproduce.runs import Make, Missing, Results
from fwtui.common import units

OP = "rest"


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
