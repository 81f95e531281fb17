"""Tiles and threads: the blocked algorithm on a CPU, with a choice of data order, cores and vector instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from kernels.parts import blocked
from kernels.plan import Kernel, Option, Program, Shape, Target

close: Any
copy_tile: Any
product: Any
# relative time of a relaxation, by tile (measured, int16 to float32)
TILE_TIMES = {32: 1.6, 64: 1.15, 128: 1.0}


@cache
def loops() -> dict[str, Callable[..., None]]:
    """The loop of each op; made once, because numba never frees what it has compiled."""
    # globals, not closures: numba's disk cache always misses if one closure calls another
    global close, close_scalar, copy_tile, place, product, relax_row_scalar, relax_tile
    import numpy as np
    from numba import njit, prange

    from kernels.numba_door.cpu_tiles import close, copy_tile
    from kernels.numba_door.cpu_tiles import relax_tile as product

    @njit(cache=True)
    def place(row, column, side, tile, tiled):
        """The start of a tile: in the row-major matrix, or in tiles stored one after the other."""
        if tiled:
            return (row * side + column) * tile, 0
        return row * tile, column * tile

    @njit(cache=True)
    def relax_row_scalar(row, middle, to, one):
        """Like the vector loop, one column at a time: `one` is read each time, so the compiler cannot vectorise the loop."""
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

    @njit(cache=True)
    def relax_tile(distance, own, to, middle, tile, one, width):
        """Tile `own` through the tiles `to` (in its row) and `middle` (in its column), one of which may be itself.

        It may read old or new values of itself: with a closed pivot in the product both give the same minimum.
        """
        own_top, own_left = own
        to_top, to_left = to
        top, left = middle
        # contiguous, and nothing else can change it
        middle = distance[top : top + tile, left : left + tile].copy()
        if one.size:
            row = np.empty(tile, distance.dtype)
            for i in range(tile):
                for j in range(tile):
                    row[j] = distance[own_top + i, own_left + j]
                relax_row_scalar(row, middle, distance[to_top + i, to_left : to_left + tile], one)
                for j in range(tile):
                    distance[own_top + i, own_left + j] = row[j]
            return
        product(distance, own_top, own_left, distance, to_top, to_left, middle, width)

    @njit(cache=True)
    def close_scalar(own, one):
        """Like `close`, one column at a time."""
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
        own = distance[top : top + tile, left : left + tile].copy()
        if one.size:
            close_scalar(own, one)
        else:
            close(own)
        copy_tile(distance, top, left, own, 0, 0, tile)

    @njit(cache=True, parallel=True)
    def panels(distance, p, side, tile, tiled, one, width):
        closed = place(p, p, side, tile, tiled)
        for t in prange(2 * side):
            other = t // 2
            # with a closed pivot a panel is one product: no step depends on the one before
            if other != p:
                in_row = t % 2 == 0
                own = place(p, other, side, tile, tiled) if in_row else place(other, p, side, tile, tiled)
                # one call: it is compiled into each place that calls it
                relax_tile(distance, own, closed if in_row else own, own if in_row else closed, tile, one, width)

    @njit(cache=True, parallel=True)
    def rest(distance, p, side, tile, tiled, one, width):
        for t in prange(side * side):
            i, j = t // side, t % side
            if i != p and j != p:
                own = place(i, j, side, tile, tiled)
                relax_tile(distance, own, place(i, p, side, tile, tiled), place(p, j, side, tile, tiled), tile, one, width)

    return {"pivot": pivot, "panels": panels, "rest": rest}


def build(shape: Shape, target: Target) -> Program:
    import numpy as np

    from kernels.numba_door.cpu_vectors import width_of
    from kernels.programs.cpu_program import CpuProgram

    chosen = {"order": 1, "vector": 1, "cores": 1, **dict(shape.options)}
    tiled = bool(chosen["order"])
    # the step of the scalar loop; empty: the vector loop
    one = np.ones(0 if chosen["vector"] else 1, np.uint64)
    width = width_of(shape.itemsize, shape.tile)
    named = {"side": shape.padded // shape.tile, "tile": shape.tile, "tiled": tiled, "one": one, "width": width}
    ops: dict[str, Callable[..., None]] = {name: partial(run, **named) for name, run in loops().items()}
    if not chosen["cores"]:
        ops = {name: on_one_core(run) for name, run in ops.items()}
    return CpuProgram(shape, ops, tiled)


def once(shape: Shape) -> Shape:
    """The fastest tile, as larger ones are faster but pad more; row by row, so that the matrix can be the result."""
    tile = min(TILE_TIMES, key=lambda tile: (-(-shape.n // tile) * tile) ** 3 * TILE_TIMES[tile])
    return replace(shape, tile=tile, options=tuple(sorted({**dict(shape.options), "order": 0}.items())))


def on_one_core(run: Callable[..., None]) -> Callable[..., None]:
    """The same compiled loop on one thread."""
    from numba import get_num_threads, set_num_threads

    def alone(*args: Any) -> None:
        before = get_num_threads()
        set_num_threads(1)
        try:
            run(*args)
        finally:
            set_num_threads(before)

    return alone


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
    code=("kernels.numba_door.cpu_tiles",),
    summary="Three phases of tiles that fit the cache, on all cores, with vector instructions; each can be switched off.",
    lesson=(
        "The serial loop drags the whole matrix through the cache for every k. Tiles change the order: `tile` values of k are "
        "taken at once. So three tiles stay in the cache while tile x tile x tile relaxations use them. First comes the pivot "
        "tile, which depends on itself alone, then its row and column, which depend on it. Last comes the rest; its tiles are "
        "independent of each other, so every core takes some. A vector instruction does several relaxations of a row at once. "
        "Four rows by two vectors of results stay in registers through all k of a tile. So a loaded vector serves four times, "
        "and nothing is stored in between. Stored tile by tile, a tile's rows lie side by side instead of a whole row of the "
        "matrix apart. That spares page lookups and cache conflicts; but tiles are copied before use, so little is left to "
        "gain."
    ),
    tiles=(16, 32, 64, 128),
    default_tile=64,
    options=(
        Option("order", (0, 1), 1, "order of the cells in memory: 0 = row by row, 1 = by tile", ("row by row", "by tile")),
        Option("cores", (0, 1), 1, "0 = one thread, 1 = a thread on every core", ("one", "all")),
        Option("vector", (0, 1), 1, "0 = one relaxation per instruction, 1 = as many as a vector register holds", ("no", "yes")),
    ),
    preference=20,
    once=once,
)
