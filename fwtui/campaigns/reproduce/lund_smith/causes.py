"""What makes the steps from Katz and Kider to the staged load larger or smaller than they were for Lund and Smith."""

from __future__ import annotations

from contextlib import suppress

from fwtui.campaigns.reproduce import causes, counter_readings
from fwtui.campaigns.reproduce.lund_smith.kernels import KATZ, NAIVE, NATURAL, OPTIMIZED, STAGED, at
from fwtui.campaigns.reproduce.runs import Missing, Results


def _bound(results: Results) -> str:
    """What keeps the plain kernel busy, by counters, or else by GPM."""
    return counter_readings.full(results, at(KATZ)) or causes.integer_bound(results, at(KATZ))


def fewer_instructions(results: Results, n: int) -> str:
    """LS2: what the plain kernel does for every k; that this bounds it is said where counters or GPM bear it out."""
    bound = _bound(results)
    words = f"{KATZ} looks for its cells, fetches and stores them for every k, which {OPTIMIZED} does not"
    return f"{words}, and {bound}" if bound else f"{words}; what that costs needs counters"


def both_steps(results: Results, n: int) -> str:
    """LS1 is LS2 and LS3 together."""
    parts = causes.gain(results, at(KATZ), at(OPTIMIZED), n), causes.gain(results, at(OPTIMIZED), at(STAGED), n)
    return f"That is {parts[0]} by {OPTIMIZED} (LS2) and {parts[1]} by the staged load (LS3)" if all(parts) else ""


def cyclic_order(results: Results, n: int) -> str:
    """LS3: what as little shared memory gains in the natural order."""
    with suppress(Missing):
        n = results.sizes(at(OPTIMIZED), at(NATURAL), at(STAGED))[-1]
        found, order = causes.gain(results, at(OPTIMIZED), at(NATURAL), n), causes.gain(results, at(STAGED), at(NATURAL), n)
        words = f"{NATURAL}, with as little shared memory, is {found} as fast as {OPTIMIZED} (n {n})"
        return f"{words} and {order} as fast as {STAGED}, which differs in its cyclic order of k only (LS11)"
    return ""


def slow_blocks(results: Results, n: int) -> str:
    """LS4: what the same algorithm gains with cheaper indices."""
    found = causes.gain(results, at(NAIVE), at(OPTIMIZED), n)
    bound = _bound(results)
    words = f"{OPTIMIZED}, the same algorithm with cheaper indices, is {found} as fast as {NAIVE} (n {n})" if found else ""
    words = ", and ".join(filter(None, (words, bound)))
    return f"{words}. What caches do for {NAIVE} needs counters" if bound else words
