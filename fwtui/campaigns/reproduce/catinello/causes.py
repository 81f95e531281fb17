"""What holds Catinello's kernels back where it is not what he says."""

from __future__ import annotations

from contextlib import suppress

from fwtui.campaigns.reproduce import causes
from fwtui.campaigns.reproduce.catinello.kernels import BLOCKED, IN_ONE, SIMPLE, SIMPLE_VECTOR, at, by_threads
from fwtui.campaigns.reproduce.runs import Missing, Results
from fwtui.common import units
from kernels import registry


def starting(results: Results) -> str:
    """Whether the simple kernel's time may be that of starting its blocks."""
    return causes.starting(results, by_threads(SIMPLE, 64), by_threads(SIMPLE, 256))


def not_memory(results: Results, peak: float) -> str:
    """What holds the simple kernel below the memory's limit, and a kernel of the same session that is above it."""
    words = starting(results)
    with suppress(Missing):
        n = results.sizes(at(SIMPLE_VECTOR))[-1]
        asked = results.find(at(SIMPLE_VECTOR)(n)).bandwidth or 0.0
        if words and asked > peak:
            words += f"; {SIMPLE_VECTOR}, which starts fewer, asks for {units.percent(asked / peak)} of the peak (n {n})"
    return words


def room_for_two(results: Results, n: int) -> str:
    """CA6: whether the memory had time for a second matrix."""
    bound = causes.integer_bound(results, at(BLOCKED), by_threads(BLOCKED, 256)) or _little_asked(results, n)
    return f"{bound}: there is time for the accesses to a second matrix" if bound else ""


def _little_asked(results: Results, n: int) -> str:
    """That the blocked kernel asks for less than half of what the memory could move, by its model; empty where it does not."""
    with suppress(Missing):
        asked, peak = results.find(at(BLOCKED)(n)).bandwidth or 0.0, results.device.peak_bytes_per_second or 0.0
        if 0 < asked < peak / 2:
            return f"{BLOCKED} asks for {units.percent(asked / peak)} of the peak bandwidth (by its model, n {n})"
    return ""


def one_launch(results: Results, n: int) -> str:
    """CA7: whether what one kernel gains may be the launches that it saves."""
    rounds = -(-n // registry()[BLOCKED].tile_for(n))
    words = causes.saved_launches(results, IN_ONE, at(BLOCKED), at(SIMPLE), n, rounds)
    return ", and ".join(filter(None, (words, causes.integer_bound(results, at(BLOCKED), by_threads(BLOCKED, 256)))))
