"""Catinello's five kernels and two further ones, as he varies them: int16, the tile with the threads."""

from __future__ import annotations

from functools import partial

from fwtui.campaigns.reproduce.runs import Make, ask
from kernels import registry

CPU, SIMPLE, SIMPLE_VECTOR, PSEUDO = "serial", "naive", "naive-vector", "pseudo-blocked"
BLOCKED, BLOCKED_VECTOR = "katz-kider", "blocked-vector"
TWO, ONE = "two-matrix-blocked", "one-cooperative"
HEIGHTS = (1, 2, 4, 8, 16, 32)
BEST_HEIGHT, SECONDS_AT_32 = 4, 2.0
THREADS = (64, 256, 1024)
# his blocks are squares of threads, one for each cell of a tile, or for each four of a row
SIDES = {BLOCKED: {64: 8, 256: 16, 1024: 32}, BLOCKED_VECTOR: {64: 16, 256: 32, 1024: 64}}


def at(kernel: str, **more: object) -> Make:
    return partial(ask, kernel, dtype="int16", **more)


IN_ONE = at(ONE, launch="eager")  # as he launches it


def by_threads(kernel: str, threads: int) -> Make:
    """The kernel as he varies it: the threads of a block decide its tile too (section 3.4)."""
    tile = {"tile": SIDES[kernel][threads]} if kernel in SIDES else {}
    return at(kernel, threads=threads, **tile)


def offered(kernel: str, threads: int) -> bool:
    """Whether the kernel has a tile for so many threads."""
    return kernel not in SIDES or kernel not in registry() or SIDES[kernel][threads] in registry()[kernel].tiles


FIVE = {
    SIMPLE: at(SIMPLE),
    SIMPLE_VECTOR: at(SIMPLE_VECTOR),
    PSEUDO: at(PSEUDO, results=BEST_HEIGHT),
    BLOCKED: by_threads(BLOCKED, 256),
    BLOCKED_VECTOR: by_threads(BLOCKED_VECTOR, 256),
}
