"""The first two phases of the optimised rungs, on a row-major matrix or on one whose tiles lie one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernels.plan import Shape

if TYPE_CHECKING:
    from kernels.programs.cuda_program import Op, Order

cuda: Any
position: Any
RESULTS = 4  # cells per thread


def place(q: Any, tile: Any) -> Any:
    """Where cell q of a tile in 4x4 order stands in the same tile in row-major order."""
    small, inside = q >> 4, q & 15
    across = tile >> 2  # 4x4 blocks in a row of blocks
    return ((small // across << 2) + (inside >> 2)) * tile + (small % across << 2) + (inside & 3)


def pivot_and_panels(shape: Shape, tiled: bool = False) -> dict[str, Op]:
    """Pivot and panels with trip counts that the compiler knows and 32-bit addresses.

    `tiled`: in global memory each tile is contiguous, and so is each 4x4 block in it; in shared memory tiles are row-major.
    """
    global cuda, position
    from kernels.numba_door.device import ALIGN16, NUMBER, cuda, jit, uint32
    from kernels.programs.cuda_program import Op

    number = NUMBER[shape.dtype]
    tile = shape.tile
    cells = tile * tile
    rows = tile // RESULTS
    step = rows * tile
    position = jit(device=True, inline="always")(place)

    @jit
    def pivot(distance, p):
        own = cuda.shared.array(cells, number, ALIGN16)
        matrix = distance.flat
        n = uint32(distance.shape[1])
        x = uint32(cuda.threadIdx.x)
        y = uint32(cuda.threadIdx.y)
        mine = uint32(y * tile + x)
        here = uint32(uint32(p) * tile * n + y * n + uint32(p) * tile + x)
        down = uint32(rows * n)
        if tiled:
            here = uint32(uint32(p) * (n // tile + 1) * cells + mine)
            down = uint32(step)
        for m in range(RESULTS):
            q = position(mine + m * step, tile) if tiled else mine + m * step
            own[q] = matrix[here + m * down]
        cuda.syncthreads()
        k = uint32(0)
        while k < tile:
            middle = own[k * tile + x]
            for m in range(RESULTS):
                via = number(own[(y + m * rows) * tile + k] + middle)
                # row k and column k do not change in step k, so nobody reads what another writes
                if via < own[mine + m * step]:
                    own[mine + m * step] = via
            cuda.syncthreads()
            k = uint32(k + 1)
        for m in range(RESULTS):
            q = position(mine + m * step, tile) if tiled else mine + m * step
            matrix[here + m * down] = own[q]

    @jit
    def panels(distance, p):
        own = cuda.shared.array(cells, number, ALIGN16)
        closed = cuda.shared.array(cells, number, ALIGN16)
        matrix = distance.flat
        n = uint32(distance.shape[1])
        x = uint32(cuda.threadIdx.x)
        y = uint32(cuda.threadIdx.y)
        mine = uint32(y * tile + x)
        base = uint32(p)
        at = uint32(cuda.blockIdx.x)
        if at >= base:
            at = uint32(at + 1)
        across = cuda.blockIdx.y == 0
        row = base if across else at
        column = at if across else base
        there = uint32(base * tile * n + y * n + base * tile + x)
        here = uint32(row * tile * n + y * n + column * tile + x)
        down = uint32(rows * n)
        if tiled:
            there = uint32(base * (n // tile + 1) * cells + mine)
            here = uint32((row * (n // tile) + column) * cells + mine)
            down = uint32(step)
        for m in range(RESULTS):
            q = position(mine + m * step, tile) if tiled else mine + m * step
            closed[q] = matrix[there + m * down]
            own[q] = matrix[here + m * down]
        cuda.syncthreads()
        # the question which panel this is, asked once and not for each k
        if across:
            k = uint32(0)
            while k < tile:
                middle = own[k * tile + x]
                for m in range(RESULTS):
                    via = number(closed[(y + m * rows) * tile + k] + middle)
                    if via < own[mine + m * step]:
                        own[mine + m * step] = via
                cuda.syncthreads()
                k = uint32(k + 1)
        else:
            k = uint32(0)
            while k < tile:
                middle = closed[k * tile + x]
                for m in range(RESULTS):
                    via = number(own[(y + m * rows) * tile + k] + middle)
                    if via < own[mine + m * step]:
                        own[mine + m * step] = via
                cuda.syncthreads()
                k = uint32(k + 1)
        for m in range(RESULTS):
            q = position(mine + m * step, tile) if tiled else mine + m * step
            matrix[here + m * down] = own[q]

    others = shape.padded // tile - 1
    return {"pivot": Op(pivot, (tile, rows), lambda args: (1, 1)), "panels": Op(panels, (tile, rows), lambda args: (others, 2))}


def shares(tile: int) -> tuple[int, int, int, int]:
    """How 16 results for each of tile^2 / 16 threads lie in a tile: rows, columns, and the steps between them."""
    threads = tile * tile // 16
    across = min(4, threads) * max(1, threads // 16)
    columns = tile // across
    rows = 16 // columns
    return rows, columns, tile // rows, across


def order_of(shape: Shape) -> Order:
    """To and from the doubly tiled order: tiles in row-major order, in each of them its 4x4 blocks in row-major order."""
    global cuda, position
    from kernels.numba_door.device import cuda, jit, uint32
    from kernels.programs.cuda_program import Order

    tile = shape.tile
    cells = tile * tile
    rows = tile // RESULTS
    side = shape.padded // tile
    position = jit(device=True, inline="always")(place)

    @jit
    def pack(source, to):
        n = uint32(source.shape[1])
        start = uint32((cuda.blockIdx.y * (n // tile) + cuda.blockIdx.x) * cells)
        corner = uint32(cuda.blockIdx.y * tile * n + cuda.blockIdx.x * tile)
        for m in range(RESULTS):
            q = uint32(cuda.threadIdx.y * tile + cuda.threadIdx.x + m * rows * tile)
            at = position(q, tile)
            to.flat[start + q] = source.flat[corner + at // tile * n + at % tile]

    @jit
    def unpack(source, to):
        n = uint32(source.shape[1])
        start = uint32((cuda.blockIdx.y * (n // tile) + cuda.blockIdx.x) * cells)
        corner = uint32(cuda.blockIdx.y * tile * n + cuda.blockIdx.x * tile)
        for m in range(RESULTS):
            q = uint32(cuda.threadIdx.y * tile + cuda.threadIdx.x + m * rows * tile)
            at = position(q, tile)
            to.flat[corner + at // tile * n + at % tile] = source.flat[start + q]

    return Order(pack, unpack, (tile, rows), (side, side))
