"""Measures this CPU's relaxation limit: c = min(c, a + b) on whole vector registers, on every core.

Only the inner loop of a tile product. A tile of c stays in registers; a row of b comes from the first-level cache
as whole vectors, one value of a for each row of the tile is spread over a vector:

        b b b b        depth times: every c[i][j] = min(c[i][j], a[i] + b[j]),
    a   c c c c        so each vector that is loaded serves several relaxations
    a   c c c c

The vectors are written out in LLVM's own vector types, because a compiled plain loop is what kernels use,
not the limit to compare them with.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from fwtui_kernels.forms import RelaxForm


class Tile(NamedTuple):
    """Vectors of c that are kept in registers, and k per iteration of the loop."""

    rows: int
    columns: int
    depth: int = 2


class ProbeLoop(NamedTuple):
    """A compiled loop for one form and tile. Arrays have one row for each thread."""

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
        """Of one thread in one turn."""
        return self.tile.depth * self.tile.rows * self.width


def tiles() -> tuple[Tile, ...]:
    """Tiles worth trying: with 32 registers, or with the 16 of older x86. The kernels' own is among them."""
    from fwtui_kernels.compiled.cpu_vectors import features_of_cpu

    features = features_of_cpu()
    if features.get("sse2") and not features.get("avx512vl"):
        return (Tile(4, 2), Tile(6, 2), Tile(4, 2, 8))
    return (Tile(4, 4), Tile(8, 2), Tile(4, 4, 8))


def build(form: RelaxForm, tile: Tile) -> ProbeLoop:
    """The loop for a form of fwtui_kernels.probes.probe_forms, compiled when it first runs."""
    from numba import njit, prange

    from fwtui_kernels.compiled.probe_loop import probe_loop

    # the order of the bits is that of the numbers from 0 up
    turn, lanes = probe_loop(form.dtype, *tile, by_bits=form.nonnegative)

    @njit(parallel=True)
    def run(c, a, b, turns, stride):
        for thread in prange(c.shape[0]):
            turn(c[thread], a[thread], b[thread], turns, stride)

    return ProbeLoop(run, form.dtype, tile, lanes)


def build_copy() -> Callable[[Any, Any], None]:
    """Copies one array to another of the same size, every core a part of it."""
    from numba import prange

    from fwtui_kernels.compiled.locked_njit import njit

    @njit(cache=True, parallel=True)
    def copy(source, to):
        parts = 64
        for part in prange(parts):
            first, end = source.size * part // parts, source.size * (part + 1) // parts
            for i in range(first, end):  # an assignment of slices takes numba a second longer
                to[i] = source[i]

    return copy


def build_update() -> Callable[[Any, int, int], None]:
    """Adds a number to each of its cells, `turns` times in each row before the next: every thread has a row."""
    from numba import prange

    from fwtui_kernels.compiled.locked_njit import njit

    @njit(cache=True, parallel=True)
    def update(cells, turns, number):
        for thread in prange(cells.shape[0]):
            row = cells[thread]
            for _ in range(turns):
                for i in range(row.size):
                    row[i] += number

    return update


LINKS = 200_000  # about 0.1 ms: shorter than another process's usual time slice
CYCLES = 2  # of a link: an addition and an exclusive or, of registers


def clock_mhz() -> float:
    """A core's clock, by a chain of instructions of which each needs the result before it and takes one cycle.

    The best of several short looks: a core that waits counts no cycles.
    """
    chain = _chain()
    chain(1, 3, 5)
    best = float("inf")
    for _ in range(20):
        begin = time.perf_counter()
        chain(LINKS, 0x5555_5555_5555, 0x1234_5678_9ABC)
        best = min(best, time.perf_counter() - begin)
    return LINKS * CYCLES / best / 1e6


@cache
def _chain() -> Callable[[int, int, int], int]:
    from fwtui_kernels.compiled.locked_njit import njit

    @njit(cache=True, nogil=True)
    def chain(links, one, other):
        value = one
        for _ in range(links):
            value = (value ^ one) + other
        return value

    return chain
