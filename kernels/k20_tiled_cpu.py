"""Tiles and threads: the blocked algorithm on all cores of a CPU."""

from __future__ import annotations

from functools import partial

from kernels import blocked
from kernels.plan import Kernel, Program, Shape, Target


def build(shape: Shape, target: Target) -> Program:
    # a global, not a closure: numba's disk cache misses for ever where one closure calls another
    global relax_tile
    import numpy as np
    from numba import njit, prange

    from kernels.cpu_program import CpuProgram

    @njit(cache=True)
    def relax_tile(distance, top, left, low, tile):
        """Tile (top, left) through the vertices low .. low + tile, whose own tile is closed (or is not this one)."""
        number = distance.dtype.type
        # copies that nothing else can alias: the compiler then keeps whole vectors of them in registers
        middle = distance[low : low + tile, left : left + tile].copy()
        row = np.empty(tile, distance.dtype)
        for i in range(top, top + tile):
            row[:] = distance[i, left : left + tile]
            # four k at once: four relaxations for each load and store of the row
            for k in range(0, tile, 4):
                a0, a1 = distance[i, low + k], distance[i, low + k + 1]
                a2, a3 = distance[i, low + k + 2], distance[i, low + k + 3]
                for j in range(tile):
                    best = row[j]
                    via = number(a0 + middle[k, j])
                    best = via if via < best else best
                    via = number(a1 + middle[k + 1, j])
                    best = via if via < best else best
                    via = number(a2 + middle[k + 2, j])
                    best = via if via < best else best
                    via = number(a3 + middle[k + 3, j])
                    row[j] = via if via < best else best
            distance[i, left : left + tile] = row

    @njit(cache=True)
    def pivot(distance, p, tile):
        number = distance.dtype.type
        low = p * tile
        own = distance[low : low + tile, low : low + tile].copy()
        for k in range(tile):
            middle = own[k].copy()
            for i in range(tile):
                to_k = own[i, k]
                for j in range(tile):
                    via = number(to_k + middle[j])
                    own[i, j] = via if via < own[i, j] else own[i, j]
        distance[low : low + tile, low : low + tile] = own

    @njit(cache=True, parallel=True)
    def panels(distance, p, tile):
        for t in prange(2 * (distance.shape[0] // tile)):
            other = t // 2
            # with a closed pivot a panel is one product: no step depends on the one before
            if other != p and t % 2 == 0:
                relax_tile(distance, p * tile, other * tile, p * tile, tile)
            elif other != p:
                relax_tile(distance, other * tile, p * tile, p * tile, tile)

    @njit(cache=True, parallel=True)
    def rest(distance, p, tile):
        side = distance.shape[0] // tile
        for t in prange(side * side):
            if t // side != p and t % side != p:
                relax_tile(distance, t // side * tile, t % side * tile, p * tile, tile)

    ops = {"pivot": pivot, "panels": panels, "rest": rest}
    return CpuProgram(shape, {name: partial(run, tile=shape.tile) for name, run in ops.items()})


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
    summary="Three phases of tiles that fit the cache, on all cores, with vector instructions.",
    lesson=(
        "The serial loop drags the whole matrix through the cache for every k. Tiles change the order: `tile` values of k are "
        "taken at once, so three tiles stay in the cache while tile x tile x tile relaxations use them. First the pivot "
        "tile, which depends on itself alone; then its row and column, which depend on it; then all the rest, whose tiles "
        "are independent of each other, so every core takes some."
    ),
    tiles=(16, 32, 64, 128),
    default_tile=64,
)
