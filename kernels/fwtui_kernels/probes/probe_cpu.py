"""Microbenchmark of this CPU's peak relaxation rate: c = min(c, a + b) in vector registers, on every core.

It is only the inner loop of a tile product. A tile of c stays in registers; a row of b is loaded from the L1 cache as whole
vectors, and one value of a per row of the tile is broadcast:

        b b b b        depth times: every c[i][j] = min(c[i][j], a[i] + b[j]),
    a   c c c c        so each loaded vector serves several relaxations
    a   c c c c

The loop uses LLVM's vector types, because a plain compiled loop might not reach the peak. Imports numba.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
from numba import prange

from fwtui_kernels.compiled.cpu_vectors import features_of_cpu
from fwtui_kernels.compiled.locked_njit import njit
from fwtui_kernels.compiled.probe_loop import probe_loop
from fwtui_kernels.forms import RelaxForm


class Tile(NamedTuple):
    """The vectors of c in registers, and the values of k per iteration."""

    rows: int
    columns: int
    depth: int = 2


class ProbeLoop(NamedTuple):
    """A compiled loop for one form and tile. Arrays have one row per thread."""

    run: Callable[[Any, Any, Any, int, int], None]  # (c, a, b, turns, stride); c is both input and result
    dtype: str
    tile: Tile
    lanes: int  # cells in a vector

    @property
    def width(self) -> int:
        """Cells in a row of the tile."""
        return self.tile.columns * self.lanes

    @property
    def relaxations(self) -> int:
        """Relaxations of one thread in one turn."""
        return self.tile.depth * self.tile.rows * self.width


def tiles() -> tuple[Tile, ...]:
    """Return the tiles to measure, for 32 vector registers or for the 16 of older x86, including that of the kernels."""
    features = features_of_cpu()
    if features.get("sse2") and not features.get("avx512vl"):
        return (Tile(4, 2), Tile(6, 2), Tile(4, 2, 8))
    return (Tile(4, 4), Tile(8, 2), Tile(4, 4, 8))


def build(form: RelaxForm, tile: Tile) -> ProbeLoop:
    """Return the loop for a form of probe_forms; the first run compiles it."""
    # non-negative floats are ordered like their bits
    turn, lanes = probe_loop(form.dtype, *tile, by_bits=form.nonnegative)

    @numba.njit(parallel=True)
    def run(c, a, b, turns, stride):
        for thread in prange(c.shape[0]):
            turn(c[thread], a[thread], b[thread], turns, stride)

    return ProbeLoop(run, form.dtype, tile, lanes)


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
