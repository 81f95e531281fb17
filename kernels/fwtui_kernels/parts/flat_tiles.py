"""One-dimensional tiles with unsigned addresses for the optimised rungs: the first two phases, and the doubly tiled order.

Unsigned indices do not need a test for negative values. With 32 bits, an address is a base plus a compile-time constant.
"""

from __future__ import annotations

from typing import Any

from fwtui_kernels.compiled.device import ALIGN16, NUMBER, cuda, jit, uint32
from fwtui_kernels.parts.blocked import RESULTS, place
from fwtui_kernels.parts.blocked_tiles import three_phases
from fwtui_kernels.plan import Program, Shape, Target
from fwtui_kernels.programs.cuda_program import CellOrder

position = jit(device=True, inline="always")(place)


@jit(device=True, inline="always")
def skip_pivot(at, p):
    """Return the tile of block `at` in a row or column of tiles without tile p."""
    at = uint32(at)
    if at >= p:
        at = uint32(at + 1)
    return at


@jit(device=True, inline="always")
def rest_cells(p, n, tile, x, y):
    """Return the index of a thread's first cell in the tiles of column p and row p, and in its tile of the remainder."""
    base = uint32(p)
    row = skip_pivot(cuda.blockIdx.y, base)
    column = skip_pivot(cuda.blockIdx.x, base)
    from_row = uint32((row * tile + y) * n + base * tile + x)
    from_column = uint32((base * tile + y) * n + column * tile + x)
    here = uint32((row * tile + y) * n + column * tile + x)
    return from_row, from_column, here


@jit(device=True, inline="always")
def relax(own, to, through, number, tile, rows, x, y):
    """Relax the tile `own` through each vertex of a tile, with a barrier after each; `own` may be `to` or `through`."""
    mine = uint32(y * tile + x)
    k = uint32(0)
    while k < tile:
        middle = through[k * tile + x]
        for m in range(RESULTS):
            via = number(to[(y + m * rows) * tile + k] + middle)
            # row k and column k do not change in step k, so no thread reads what another writes
            if via < own[mine + m * rows * tile]:
                own[mine + m * rows * tile] = via
        cuda.syncthreads()
        k = uint32(k + 1)


@jit(device=True, inline="always")
def first_cell(row, column, n, tile, x, y, tiled):
    """Return the index of the thread's first cell of tile (row, column) in global memory."""
    if tiled:
        return uint32((row * (n // tile) + column) * tile * tile + y * tile + x)
    return uint32(row * tile * n + y * n + column * tile + x)


def pivot_and_panels(shape: Shape, tiled: bool) -> tuple[Any, Any]:
    """Return the kernel functions `pivot` and `panels`, with compile-time trip counts and 32-bit addresses.

    With `tiled`, each tile and each 4x4 block in it is contiguous in global memory. Tiles in shared memory are row-major.
    """
    number = NUMBER[shape.dtype]
    tile = shape.tile
    cells = tile * tile
    rows = tile // RESULTS
    step = rows * tile

    @jit
    def pivot(distance, p):
        own = cuda.shared.array(cells, number, ALIGN16)
        matrix = distance.flat
        n = uint32(distance.shape[1])
        x = uint32(cuda.threadIdx.x)
        y = uint32(cuda.threadIdx.y)
        mine = uint32(y * tile + x)
        here = first_cell(uint32(p), uint32(p), n, tile, x, y, tiled)
        down = uint32(step if tiled else rows * n)
        for m in range(RESULTS):
            q = position(mine + m * step, tile) if tiled else mine + m * step
            own[q] = matrix[here + m * down]
        cuda.syncthreads()
        relax(own, own, own, number, tile, rows, x, y)
        for m in range(RESULTS):
            q = position(mine + m * step, tile) if tiled else mine + m * step
            matrix[here + m * down] = own[q]

    @jit
    def panels(distance, p):
        own = cuda.shared.array(cells, number, ALIGN16)
        solved = cuda.shared.array(cells, number, ALIGN16)
        matrix = distance.flat
        n = uint32(distance.shape[1])
        x = uint32(cuda.threadIdx.x)
        y = uint32(cuda.threadIdx.y)
        mine = uint32(y * tile + x)
        base = uint32(p)
        at = skip_pivot(cuda.blockIdx.x, base)
        across = cuda.blockIdx.y == 0
        row = base if across else at
        column = at if across else base
        there = first_cell(base, base, n, tile, x, y, tiled)
        here = first_cell(row, column, n, tile, x, y, tiled)
        down = uint32(step if tiled else rows * n)
        for m in range(RESULTS):
            q = position(mine + m * step, tile) if tiled else mine + m * step
            solved[q] = matrix[there + m * down]
            own[q] = matrix[here + m * down]
        cuda.syncthreads()
        # one test here instead of one per k
        if across:
            relax(own, solved, own, number, tile, rows, x, y)
        else:
            relax(own, own, solved, number, tile, rows, x, y)
        for m in range(RESULTS):
            q = position(mine + m * step, tile) if tiled else mine + m * step
            matrix[here + m * down] = own[q]

    return pivot, panels


def program(shape: Shape, target: Target, rest: Any, block: tuple[int, int], tiled: bool = False) -> Program:
    """Return the program of the two phases above and `rest`, whose thread blocks have the size `block`."""
    phases, first_block = (*pivot_and_panels(shape, tiled), rest), (shape.tile, shape.tile // RESULTS)
    return three_phases(shape, target, phases, first_block, block, order=order_of(shape) if tiled else None)


@jit(device=True, inline="always")
def both_places(columns, m, tile):
    """Return the index of a thread's cell m of its block's tile, row by row and in the doubly tiled order."""
    n = uint32(columns)
    start = uint32((cuda.blockIdx.y * (n // tile) + cuda.blockIdx.x) * tile * tile)
    corner = uint32(cuda.blockIdx.y * tile * n + cuda.blockIdx.x * tile)
    q = uint32(cuda.threadIdx.y * tile + cuda.threadIdx.x + m * (tile // RESULTS) * tile)
    at = position(q, tile)
    return corner + at // tile * n + at % tile, start + q


def order_of(shape: Shape) -> CellOrder:
    """Return the doubly tiled order: row-major tiles of row-major 4x4 blocks."""
    tile = shape.tile
    side = shape.padded // tile

    @jit
    def pack(source, to):
        for m in range(RESULTS):
            here, there = both_places(source.shape[1], m, tile)
            to.flat[there] = source.flat[here]

    @jit
    def unpack(source, to):
        for m in range(RESULTS):
            here, there = both_places(source.shape[1], m, tile)
            to.flat[here] = source.flat[there]

    return CellOrder(pack, unpack, (tile, tile // RESULTS), (side, side))
