"""What hardware counters of a kernel's main op say, at the largest size at which they were read."""

from __future__ import annotations

from fwtui.reproduce.runs import Make, Missing, Results

OP = "rest"
_INTEGERS = "integer_instructions_per_relaxation"


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


def gops(results: Results, make: Make) -> float:
    """Integer instructions over time, in 1e9 per second."""
    return results.counter(make(results.counted_at(OP, "gops", make)), OP, "gops")


def integers(results: Results, *makes: Make) -> tuple[int, list[float]]:
    """The largest size at which all of them were counted, and integer instructions a relaxation of each there."""
    n = results.counted_at(OP, _INTEGERS, *makes)
    return n, [results.counter(make(n), OP, _INTEGERS) for make in makes]


def _pair(results: Results, make: Make, first: str, second: str) -> tuple[float, float]:
    wanted = make(results.counted_at(OP, second, make))
    return results.counter(wanted, OP, first), results.counter(wanted, OP, second)
