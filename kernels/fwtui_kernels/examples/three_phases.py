"""Three phases of tiles in shared memory, one thread for each cell of a tile."""

from __future__ import annotations

from collections.abc import Iterator

from fwtui_kernels.compiled.device import NUMBER, cuda, int32, jit
from fwtui_kernels.own import own
from fwtui_kernels.plan import Cost, Program, Rect, Shape, Step, Target
from fwtui_kernels.programs.cuda_program import CudaProgram, Op


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """Yield the steps of each round: the pivot tile, then the tiles of its row and column, then all others."""
    n, tile = shape.padded, shape.tile  # n rounded up to whole tiles
    others, cell_bytes = n // tile - 1, tile * tile * shape.itemsize
    for p in range(n // tile):
        low, high = p * tile, (p + 1) * tile
        pivot = Rect(low, low, high, high)
        yield Step("pivot", "pivot", (p,), Cost(tile**3, 2 * cell_bytes), reads=(pivot,), writes=(pivot,))
        if not others:  # rectangles must not be empty, and every step must write
            return
        spans = [(first, end) for first, end in ((0, low), (high, n)) if first < end]
        panels = (*[Rect(low, a, high, b) for a, b in spans], *[Rect(a, low, b, high) for a, b in spans])
        cost = Cost(2 * others * tile**3, 6 * others * cell_bytes)
        yield Step("panels", "panels", (p,), cost, reads=(pivot, *panels), writes=panels)
        rest = tuple(Rect(a, c, b, d) for a, b in spans for c, d in spans)
        cost = Cost(others**2 * tile**3, 4 * others**2 * cell_bytes)
        yield Step("rest", "rest", (p,), cost, reads=(*panels, *rest), writes=rest)


def build(shape: Shape, target: Target) -> Program:
    number, tile = NUMBER[shape.dtype], shape.tile

    @jit
    def pivot(distance, p):
        own = cuda.shared.array((tile, tile), number)
        x, y = int32(cuda.threadIdx.x), int32(cuda.threadIdx.y)
        i, j = int32(p * tile + y), int32(p * tile + x)
        own[y, x] = distance[i, j]
        cuda.syncthreads()
        for k in range(tile):
            via = number(own[y, k] + own[k, x])  # row k and column k do not change in step k
            if via < own[y, x]:
                own[y, x] = via
            cuda.syncthreads()
        distance[i, j] = own[y, x]

    @jit
    def panels(distance, p):
        own = cuda.shared.array((tile, tile), number)
        solved = cuda.shared.array((tile, tile), number)
        x, y = int32(cuda.threadIdx.x), int32(cuda.threadIdx.y)
        other = int32(cuda.blockIdx.x)
        if other >= p:
            other += int32(1)
        in_row = cuda.blockIdx.y == 0
        top, left = (p, other) if in_row else (other, p)
        i, j = int32(top * tile + y), int32(left * tile + x)
        own[y, x] = distance[i, j]
        solved[y, x] = distance[p * tile + y, p * tile + x]
        cuda.syncthreads()
        for k in range(tile):
            via = number(solved[y, k] + own[k, x]) if in_row else number(own[y, k] + solved[k, x])
            if via < own[y, x]:
                own[y, x] = via
            cuda.syncthreads()
        distance[i, j] = own[y, x]

    @jit
    def rest(distance, p):
        to = cuda.shared.array((tile, tile), number)
        after = cuda.shared.array((tile, tile), number)
        x, y = int32(cuda.threadIdx.x), int32(cuda.threadIdx.y)
        row, column = int32(cuda.blockIdx.y), int32(cuda.blockIdx.x)
        if row >= p:
            row += int32(1)
        if column >= p:
            column += int32(1)
        i, j = int32(row * tile + y), int32(column * tile + x)
        to[y, x] = distance[i, p * tile + x]
        after[y, x] = distance[p * tile + y, j]
        cuda.syncthreads()
        best = distance[i, j]
        for k in range(tile):
            best = min(best, number(to[y, k] + after[k, x]))
        distance[i, j] = best

    others, block = shape.padded // tile - 1, (tile, tile)
    ops = {
        "pivot": Op(pivot, block, lambda args: (1, 1)),
        "panels": Op(panels, block, lambda args: (others, 2)),
        "rest": Op(rest, block, lambda args: (others, others)),
    }
    return CudaProgram(shape, target, ops)


PHASES = {"pivot": "pivot", "panels": "panels", "rest": "remainder"}
# simulator_tiles: the default is the smallest of the tiles
KERNEL = own(plan, build, phases=PHASES, tiles=(8, 16, 32), default_tile=32, simulator_tiles=(4, 8))
