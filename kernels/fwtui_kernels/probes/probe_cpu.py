"""Microbenchmark of this CPU's peak relaxation rate: the inner loop of the fast kernels, on every core.

The operands of a block of vector registers (cpu_vectors.py) are in the L1 cache, and a block is loaded and stored only once in
DEPTH values of k. Imports numba.
"""

from __future__ import annotations

import time

from numba import prange

from fwtui_kernels.compiled.all_cores import entry, on_all_cores
from fwtui_kernels.compiled.cpu_vectors import ROWS, relax_registers
from fwtui_kernels.compiled.locked_njit import inner, njit

DEPTH = 64  # values of k in a turn
TILE = 128  # the tile of the kernels, whose rows are at least as long as a block's


@entry
def relax(cells, to, strips, turns, width):
    """Relax ROWS x `width` cells per thread `turns` times, through ROWS x DEPTH cells `to` and DEPTH x `width` cells `strips`."""
    on_all_cores(_relax_block, len(cells) // ROWS, (cells, to, strips, turns, width))  # pyright: ignore[reportCallIssue]


@inner(cache=True, nogil=True)
def _relax_block(thread, cells, to, strips, turns, width):
    top = thread * ROWS
    for _ in range(turns):
        relax_registers(cells, top, 0, to, top, 0, strips, thread * DEPTH, DEPTH, width, 0)  # pyright: ignore[reportCallIssue]


@njit(cache=True, parallel=True)
def copy(source, to):
    """Copy an array to another of the same size on all cores."""
    for part in prange(64):
        first, end = source.size * part // 64, source.size * (part + 1) // 64
        for i in range(first, end):  # a slice assignment takes numba a second longer to compile
            to[i] = source[i]


@njit(cache=True, parallel=True)
def update(cells, turns, number):
    """Add a number to each cell `turns` times; every thread has a row."""
    for thread in prange(cells.shape[0]):
        row = cells[thread]
        for _ in range(turns):
            for i in range(row.size):
                row[i] += number


LINKS = 200_000  # about 0.1 ms, which is shorter than a time slice
CYCLES = 2  # per link: an addition and an exclusive or in registers


def clock_mhz() -> float:
    """Return a core's clock rate, from a chain of dependent instructions that take one cycle each.

    The fastest of several short measurements counts, because other processes only slow it down.
    """
    _chain(1, 3, 5)
    best = float("inf")
    for _ in range(20):
        begin = time.perf_counter()
        _chain(LINKS, 0x5555_5555_5555, 0x1234_5678_9ABC)
        best = min(best, time.perf_counter() - begin)
    return LINKS * CYCLES / best / 1e6


@njit(cache=True, nogil=True)
def _chain(links, one, other):
    value = one
    for _ in range(links):
        value = (value ^ one) + other
    return value
