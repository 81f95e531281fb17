"""The blocked algorithm on a CPU, with a choice of memory layout, cores and vector instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numba import get_num_threads

from fwtui_kernels.compiled.all_cores import entry, on_all_cores
from fwtui_kernels.compiled.cpu_tiles import SMALL, pack, relax, solve_tile
from fwtui_kernels.compiled.cpu_vectors import claim, copy_cells, width_of
from fwtui_kernels.compiled.locked_njit import inner, njit
from fwtui_kernels.parts import blocked
from fwtui_kernels.plan import Kernel, Option, Program, Shape, Target
from fwtui_kernels.programs.cpu_program import CpuProgram

GROUP = 512  # maximum rows of a task, so that its tiles of column p stay in the L2 cache
TASKS = 4  # minimum tasks per thread in the phase `rest`
MAX_SINGLE = 1024  # up to this n one thread is faster than several threads on busy cores
# relative time of a relaxation by tile, measured with int16, int32 and float32
TILE_TIMES = {32: 1.6, 64: 1.15, 128: 1.0}


@inner(cache=True)
def place(row, column, side, tile, tiled):
    """Return the row and column of a tile's first cell, in the row-major or in the tiled layout."""
    if tiled:
        return (row * side + column) * tile, 0
    return row * tile, column * tile


@inner(cache=True)
def relax_row_scalar(row, middle, to, one):
    """Relax a row one column at a time. `one` is read in each iteration, so that the compiler cannot vectorise the loop."""
    number = row.dtype.type
    end = np.uint64(row.size)
    for k in range(0, to.size, 4):
        a0, a1, a2, a3 = to[k], to[k + 1], to[k + 2], to[k + 3]
        m0, m1, m2, m3 = middle[k], middle[k + 1], middle[k + 2], middle[k + 3]
        j = np.uint64(0)
        while j < end:
            best = row[j]
            via = number(a0 + m0[j])
            best = via if via < best else best
            via = number(a1 + m1[j])
            best = via if via < best else best
            via = number(a2 + m2[j])
            best = via if via < best else best
            via = number(a3 + m3[j])
            row[j] = via if via < best else best
            j += one[0]


@inner(cache=True)
def relax_scalar(distance, own, to, middle, tile, one):
    """Relax tile `own` through the tiles `to` (in its row) and `middle` (in its column), one of which may be `own`."""
    (own_top, own_left), (to_top, to_left), (top, left) = own, to, middle
    # a contiguous copy without aliases
    middle = distance[top : top + tile, left : left + tile].copy()
    row = np.empty(tile, distance.dtype)
    for i in range(tile):
        for j in range(tile):
            row[j] = distance[own_top + i, own_left + j]
        relax_row_scalar(row, middle, distance[to_top + i, to_left : to_left + tile], one)
        for j in range(tile):
            distance[own_top + i, own_left + j] = row[j]


@inner(cache=True, inline="always")
def relax_panel(distance, p, task, strips, side, tile, tiled, one, width):
    """Relax a tile of row p (even tasks) or column p: one product, because the pivot is solved."""
    solved = place(p, p, side, tile, tiled)
    other = task // 2
    if other == p:
        return
    own = place(p, other, side, tile, tiled) if task % 2 == 0 else place(other, p, side, tile, tiled)
    to, middle = (solved, own) if task % 2 == 0 else (own, solved)
    if one is not None:
        relax_scalar(distance, own, to, middle, tile, one)
    else:
        pack(strips, distance, middle[0], middle[1], tile, tile, width)
        relax(distance, own[0], own[1], distance, to[0], to[1], strips, tile, tile, tile, width, width)


@inner(cache=True, inline="always")
def relax_group(distance, p, top, left, group, legs, strips, side, tile, tiled, one, width):
    """Relax group x group tiles. Copy their tiles of column p once for all, and those of row p once per column of tiles."""
    end = min(side, top + group)
    for i in range(top, end):
        row, column = place(i, p, side, tile, tiled)
        for k in range(tile):
            copy_cells(legs, (i - top) * tile + k, 0, distance, row + k, column, tile)  # pyright: ignore[reportCallIssue]
    for j in range(left, min(side, left + group)):
        row, column = place(p, j, side, tile, tiled)
        pack(strips, distance, row, column, tile, tile, width)
        for i in range(top, end):
            if i == p or j == p:
                continue
            own_top, own_left = place(i, j, side, tile, tiled)
            if one is not None:
                relax_scalar(distance, (own_top, own_left), place(i, p, side, tile, tiled), (row, column), tile, one)
            else:
                next_top, next_left = place(i + 1, j, side, tile, tiled) if i + 1 < end else place(top, j + 1, side, tile, tiled)
                ahead = (next_top - own_top) * distance.shape[1] + next_left - own_left
                relax(distance, own_top, own_left, legs, (i - top) * tile, 0, strips, tile, tile, tile, width, ahead)


@inner(cache=True)
def work(_, distance, p, counter, group, side, tile, tiled, one, width):
    """Update tiles of a phase until the threads have claimed them all: the remainder, or the panels if `group` is 0."""
    legs = np.empty((group * tile, tile), distance.dtype)
    strips = np.empty((1, tile * tile), distance.dtype)
    across = (side + group - 1) // max(group, 1)
    tasks = across * across if group else 2 * side
    task = claim(counter)  # pyright: ignore[reportCallIssue]
    while task < tasks:
        if group:
            relax_group(
                distance, p, task // across * group, task % across * group, group, legs, strips, side, tile, tiled, one, width
            )
        else:
            relax_panel(distance, p, task, strips, side, tile, tiled, one, width)
        task = claim(counter)


@inner(cache=True)
def solve_scalar(own, one):
    """Solve a tile like `solve_tile`, one column at a time."""
    number = own.dtype.type
    end = np.uint64(len(own))
    for k in range(len(own)):
        middle = own[k].copy()
        for i in range(len(own)):
            row = own[i]
            to_k = row[k]
            j = np.uint64(0)
            while j < end:
                via = number(to_k + middle[j])
                row[j] = via if via < row[j] else row[j]
                j += one[0]


@njit(cache=True)
def pivot(distance, p, side, tile, tiled, one, width):
    top, left = place(p, p, side, tile, tiled)
    if one is not None:
        solve_scalar(distance[top : top + tile, left : left + tile], one)
    else:
        small, strips = np.empty((SMALL + 1, SMALL), distance.dtype), np.empty((1, SMALL * tile), distance.dtype)
        solve_tile(distance, top, left, tile, tile, small, strips, width)


@entry
def share(distance, p, side, tile, tiled, one, width, threads, group):
    on_all_cores(work, threads, (distance, p, np.zeros(1, np.int64), group, side, tile, tiled, one, width))  # pyright: ignore[reportCallIssue]


@njit(cache=True)
def single(distance, p, side, tile, tiled, one, width, group):
    """Update all tiles of a phase on this thread. Numba starts no threads, so the process may fork."""
    work(0, distance, p, np.zeros(1, np.int64), group, side, tile, tiled, one, width)


def build(shape: Shape, target: Target) -> Program:
    options = {"order": 1, "vector": 1, "cores": 1, **dict(shape.options)}
    tiled = bool(options["order"])
    # the step of the scalar loop; for None numba drops the scalar code
    one = None if options["vector"] else np.ones(1, np.uint64)
    width = width_of(shape.itemsize, shape.tile)
    threads = get_num_threads() if options["cores"] else 1
    named = {"side": shape.padded // shape.tile, "tile": shape.tile, "tiled": tiled, "one": one, "width": width}
    group = group_of(named["side"], shape.tile, threads)
    ops: dict[str, Callable[..., None]]
    if options["cores"]:
        ops = {
            "pivot": pivot,
            "panels": partial(share, threads=threads, group=0),
            "rest": partial(share, threads=threads, group=group),
        }
    else:
        ops = {"pivot": pivot, "panels": partial(single, group=0), "rest": partial(single, group=group)}
    ops = {name: partial(run, **named) for name, run in ops.items()}
    return CpuProgram(shape, ops, tiled)


def group_of(side: int, tile: int, threads: int) -> int:
    """Return the tiles in a row of a task: many, which share copied operands, but few enough to balance the threads."""
    group = 1
    while group * tile < GROUP and (side // (2 * group)) ** 2 >= TASKS * threads:
        group *= 2
    return group


def once(shape: Shape) -> Shape:
    """Return the shape with the fastest tile (larger ones are faster but pad more) and the layout by rows, in which the matrix
    can be the result. Small graphs get one thread, because barriers would take longer than the relaxations.
    """
    tile = min(TILE_TIMES, key=lambda tile: (-(-shape.n // tile) * tile) ** 3 * TILE_TIMES[tile])
    options = {**dict(shape.options), "order": 0, "cores": int(shape.n > MAX_SINGLE)}
    return replace(shape, tile=tile, options=tuple(sorted(options.items())))


KERNEL = Kernel(
    id="tiled-cpu",
    title="Tiled CPU",
    backend="cpu",
    papers=(
        "G. Venkataraman, S. Sahni, S. Mukhopadhyaya, A Blocked All-Pairs Shortest-Paths Algorithm, JEA 8, 2003",
        "S.-C. Han, F. Franchetti, M. Pueschel, Program Generation for the All-Pairs Shortest Path Problem, PACT 2006",
    ),
    phases=blocked.PHASES,
    plan=blocked.plan,
    build=build,
    summary="Three phases of tiles that fit the cache, on all cores, with vector instructions; each can be switched off.",
    lesson=(
        "The serial loop streams the whole matrix through the cache for every k. Tiling changes the order: `tile` values of k "
        "are processed together. Three tiles then stay in the cache for tile x tile x tile relaxations. The pivot tile comes "
        "first, because it depends only on itself. Its row and column follow, because they depend on the pivot. The remainder "
        "comes last; its tiles are independent of each other, so all cores share them. One vector instruction does several "
        "relaxations of a row. Eight rows by two vectors of results (four by two with only 16 vector registers) stay in "
        "registers for all k of a tile. Each loaded vector then serves eight relaxations without a store. Operands are packed "
        "once for many tiles, in the order in which they are read. While a tile is computed, the next one is prefetched from "
        "memory. Cores have no fixed share: one that has finished claims the next tiles. In the tiled layout the rows of a tile "
        "are contiguous instead of a whole matrix row apart, which avoids TLB misses and cache conflicts."
    ),
    tiles=(16, 32, 64, 128),
    default_tile=128,
    small_tile=(3072, 64),  # larger tiles read less from memory, but the pivot, on one core, takes longer
    options=(
        Option("order", (0, 1), 1, "memory layout: 0 = row by row, 1 = by tile", ("row by row", "by tile")),
        Option("cores", (0, 1), 1, "threads: 0 = one, 1 = one per core", ("one", "all")),
        Option("vector", (0, 1), 1, "vector instructions: 0 = no, 1 = yes", ("no", "yes")),
    ),
    preference=20,
    once=once,
)
