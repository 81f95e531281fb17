"""A core's clock, by a chain of instructions of which each needs the result before it and takes one cycle."""

from __future__ import annotations

import time

from fwtui_kernels.compiled.locked_njit import njit

LINKS = 200_000  # about 0.1 ms: shorter than another process's usual time slice
CYCLES = 2  # of a link: an addition and an exclusive or, of registers
LOOKS = 20


@njit(cache=True, nogil=True)
def chain(links, one, other):
    value = one
    for _ in range(links):
        value = (value ^ one) + other
    return value


def clock_mhz() -> float:
    """The best of several short looks: a core that waits counts no cycles."""
    chain(1, 3, 5)
    best = float("inf")
    for _ in range(LOOKS):
        begin = time.perf_counter()
        chain(LINKS, 0x5555_5555_5555, 0x1234_5678_9ABC)
        best = min(best, time.perf_counter() - begin)
    return LINKS * CYCLES / best / 1e6
