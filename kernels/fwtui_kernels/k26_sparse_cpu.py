"""Leave out what a sparse graph does not need: the tiled algorithm along the elimination tree, on all cores."""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import get_num_threads, prange

from fwtui_kernels.compiled.cpu_tiles import SMALL, close, pack, relax
from fwtui_kernels.compiled.cpu_vectors import claimed, width_of
from fwtui_kernels.compiled.locked_njit import njit
from fwtui_kernels.k20_tiled_cpu import relax_panel
from fwtui_kernels.parts import supernodal
from fwtui_kernels.parts.dissection import ordered
from fwtui_kernels.parts.supernodal_tables import SparseCpuProgram, tables
from fwtui_kernels.plan import Program, Shape, Target

LAUNCH = 10**6  # relaxations in the time that all cores wait for each other
AT_ONCE = 4  # tiles of the rest that a thread takes


@njit(cache=True, parallel=True)
def pivot(distance, first, count, tiles, side, tile, width, threads):
    for at in prange(first, first + count):
        small, strips = np.empty((SMALL + 1, SMALL), distance.dtype), np.empty((1, SMALL * tile), distance.dtype)
        close(distance, np.int64(tiles[at, 0]) * (side + 1) * tile, 0, tile, small, strips, width)


@njit(cache=True)
def some_panels(distance, rows, counter, side, tile, width):
    """One thread's share: tiles (p, i) and (i, p) that no other has taken."""
    strips = np.empty((1, tile * tile), distance.dtype)
    task = claimed(counter)  # pyright: ignore[reportCallIssue]
    while task < 2 * len(rows):
        row = rows[task // 2]
        relax_panel(distance, np.int64(row[0]), 2 * np.int64(row[1]) + task % 2, strips, side, tile, True, None, width)
        task = claimed(counter)  # pyright: ignore[reportCallIssue]


@njit(cache=True, parallel=True)
def panels(distance, first, count, tiles, side, tile, width, threads):
    counter = np.zeros(1, np.int64)
    for _ in prange(threads):
        some_panels(distance, tiles[first : first + count], counter, side, tile, width)


@njit(cache=True)
def some_rest(distance, rows, via, counter, side, tile, width):
    """One thread's share of the other tiles. The operand by rows is copied once for neighbours that have it in common."""
    strips = np.empty((1, tile * tile), distance.dtype)
    copied = np.int64(-1)
    first = claimed(counter) * AT_ONCE  # pyright: ignore[reportCallIssue]
    while first < len(rows):
        for task in range(first, min(first + AT_ONCE, len(rows))):
            i, j = np.int64(rows[task, 0]), np.int64(rows[task, 1])
            own = (i * side + j) * tile
            for at in range(rows[task, 2], rows[task, 2] + rows[task, 3]):
                p = np.int64(via[at, 0])
                middle = p * side + j
                if middle != copied:
                    pack(strips, distance, middle * tile, 0, tile, tile, width)
                    copied = middle
                relax(distance, own, 0, distance, (i * side + p) * tile, 0, strips, tile, tile, tile, width, width)
        first = claimed(counter) * AT_ONCE  # pyright: ignore[reportCallIssue]


@njit(cache=True, parallel=True)
def rest(distance, first, count, tiles, via, side, tile, width, threads):
    counter = np.zeros(1, np.int64)
    for _ in prange(threads):
        some_rest(distance, tiles[first : first + count], via, counter, side, tile, width)


def build(shape: Shape, target: Target) -> Program:
    it, tile = tables(shape), shape.tile
    named = {"side": shape.padded // tile, "tile": tile, "width": width_of(shape.itemsize, tile), "threads": get_num_threads()}
    ops = {
        "pivot": partial(pivot, tiles=it.pivots, **named),
        "panels": partial(panels, tiles=it.panels, **named),
        "rest": partial(rest, tiles=it.tasks, via=it.via, **named),
    }
    return SparseCpuProgram(shape, ops, it)


KERNEL = supernodal.rung(
    id="sparse-cpu",
    title="Sparse CPU",
    backend="cpu",
    build=build,
    ordered=partial(ordered, launch=LAUNCH),
    lacks=supernodal.lacks,
    summary="For graphs with small separators: a tile meets its descendants and ancestors in the elimination tree, and no other.",
    lesson=(
        "The fastest relaxation is the one that is not done. On a road map a few junctions separate north from south. Number "
        "all of the north first, then the south, then those junctions. While a vertex of the north is eliminated, no path "
        "through it leads to the south yet, so the tiles of the south need not be touched. Within each half the same is done "
        "again. So the vertices form a tree, the elimination tree, and a vertex is relaxed with its descendants and ancestors "
        "alone. On a grid about n^2.5 relaxations of n^3 are left. METIS finds the separators in milliseconds. Each separator "
        "is a supernode, and so is each part that is too small to be cut. A supernode begins with a tile, so the product of "
        "tiles is that of the dense algorithm. Supernodes of equal height in the tree do not depend on each other: all their "
        "pivots are closed at once, then all panels are made. Only tiles of their common ancestors go through several pivots. "
        "A graph without small separators stays one supernode, and the plan is the dense one."
    ),
    tiles=(16, 32, 64, 128),
    default_tile=64,
)
