"""Device functions for tiles in shared memory, and the first two phases of the blocked rungs.

A thread block has tile x stride threads. Thread (x, y) owns the cells (y, x), (y + stride, x), ... of every tile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwtui_kernels.compiled.device import NUMBER, cuda, int32, jit
from fwtui_kernels.parts.blocked import block_of
from fwtui_kernels.plan import Program, Shape, Target
from fwtui_kernels.programs.cuda_program import Args, CudaProgram, Op


@jit(device=True, inline="always")
def skip_pivot(at, p):
    """Return the tile of block `at` in a row or column of tiles without tile p."""
    at = int32(at)
    if at >= p:
        at += int32(1)
    return at


@jit(device=True, inline="always")
def rest_corner(row, column, p, tile):
    """Return the first row and column of a tile of the remainder, numbered without row p and column p of tiles."""
    row = skip_pivot(row, p)
    column = skip_pivot(column, p)
    return int32(row * tile), int32(column * tile)


@jit(device=True, inline="always")
def load(own, matrix, top, left, tile, stride):
    """Load a tile of the matrix into shared memory."""
    x = int32(cuda.threadIdx.x)
    y = int32(cuda.threadIdx.y)
    for s in range(tile // stride):
        r = int32(y + s * stride)
        own[r, x] = matrix[top + r, left + x]


@jit(device=True, inline="always")
def store(matrix, top, left, own, tile, stride):
    """Store a tile in its place in the matrix."""
    x = int32(cuda.threadIdx.x)
    y = int32(cuda.threadIdx.y)
    for s in range(tile // stride):
        r = int32(y + s * stride)
        matrix[top + r, left + x] = own[r, x]


@jit(device=True, inline="always")
def relax_in_order(own, first, second, number, tile, stride):
    """Relax the tile `own` through each vertex of a tile, with a barrier after each; `own` may be `first` or `second`."""
    x = int32(cuda.threadIdx.x)
    y = int32(cuda.threadIdx.y)
    for k in range(tile):
        for s in range(tile // stride):
            r = int32(y + s * stride)
            via = number(first[r, k] + second[k, x])
            # row k and column k do not change in step k, so no thread reads what another writes
            if via < own[r, x]:
                own[r, x] = via
        cuda.syncthreads()


@jit(device=True, inline="always")
def relax_cell(own, to, middle, r, k, x, number):
    own[r, x] = min(own[r, x], number(to[r, k] + middle[k, x]))


@jit(device=True, inline="always")
def relax_pivot_tile(own, source, target, p, number, tile, stride):
    """Solve tile (p, p) of `source` and store it in `target`, which may be the same matrix."""
    base = int32(p * tile)
    load(own, source, base, base, tile, stride)
    cuda.syncthreads()
    relax_in_order(own, own, own, number, tile, stride)
    store(target, base, base, own, tile, stride)


@jit(device=True, inline="always")
def relax_panel_tile(own, solved, source, target, p, at, across, number, tile, stride):
    """Relax tile `at` of row p (`across`) or column p with this round's solved pivot."""
    base = int32(p * tile)
    top = base
    left = base
    if across:
        left = int32(at * tile)
    else:
        top = int32(at * tile)
    load(solved, target, base, base, tile, stride)
    load(own, source, top, left, tile, stride)
    cuda.syncthreads()
    if across:
        relax_in_order(own, solved, own, number, tile, stride)
    else:
        relax_in_order(own, own, solved, number, tile, stride)
    store(target, top, left, own, tile, stride)


@jit(device=True, inline="always")
def relax_rest_tile(own, to, middle, source, target, base, top, left, number, tile, stride, relax):
    """Relax any other tile with this round's panels; `relax` updates one cell for one k, as relax_cell does.

    The panels do not change, so k needs no order and no barriers.
    """
    x = int32(cuda.threadIdx.x)
    y = int32(cuda.threadIdx.y)
    for s in range(tile // stride):
        r = int32(y + s * stride)
        to[r, x] = target[top + r, base + x]
        middle[r, x] = target[base + r, left + x]
        own[r, x] = source[top + r, left + x]
    cuda.syncthreads()
    for k in range(tile):
        for s in range(tile // stride):
            r = int32(y + s * stride)
            relax(own, to, middle, r, k, x, number)
    store(target, top, left, own, tile, stride)


def pivot_and_panels(shape: Shape) -> tuple[Any, Any]:
    """Return the kernel functions of the first two phases, which many rungs share."""
    number = NUMBER[shape.dtype]
    tile, stride = block_of(shape)

    @jit
    def pivot(distance, p):
        own = cuda.shared.array((tile, tile), number)
        relax_pivot_tile(own, distance, distance, p, number, tile, stride)

    @jit
    def panels(distance, p):
        own = cuda.shared.array((tile, tile), number)
        solved = cuda.shared.array((tile, tile), number)
        at = skip_pivot(cuda.blockIdx.x, p)
        relax_panel_tile(own, solved, distance, distance, p, at, cuda.blockIdx.y == 0, number, tile, stride)

    return pivot, panels


def three_phases(
    shape: Shape,
    target: Target,
    phases: tuple[Any, Any, Any],
    block: tuple[int, int],
    rest_block: tuple[int, int] | None = None,
    buffers: Callable[[Args], tuple[int, ...]] = lambda args: (0,),
    **more: Any,
) -> Program:
    """Return the program of pivot, panels and rest, one thread block per tile, of size `block` (or `rest_block` for rest)."""
    others = shape.padded // shape.tile - 1
    pivot, panels, rest = phases
    ops = {
        "pivot": Op(pivot, block, lambda args: (1, 1), buffers),
        "panels": Op(panels, block, lambda args: (others, 2), buffers),
        "rest": Op(rest, rest_block or block, lambda args: (others, others), buffers),
    }
    return CudaProgram(shape, target, ops, **more)


def builder(rest_of: Callable[[Any, int, int], Any], one_dimensional: bool = False) -> Callable[[Shape, Target], Program]:
    """Return the `build` of a rung that defines only the third phase, rest_of(number, tile, stride).

    With `one_dimensional`, the third phase has one-dimensional blocks.
    """

    def build(shape: Shape, target: Target) -> Program:
        tile, stride = block = block_of(shape)
        phases = (*pivot_and_panels(shape), rest_of(NUMBER[shape.dtype], tile, stride))
        return three_phases(shape, target, phases, block, (tile * stride, 1) if one_dimensional else None)

    return build


def rest_in_shared(relax: Any) -> Callable[[Any, int, int], Any]:
    """Return the third phase for `builder`: three tiles in shared memory, and `relax` for each cell and k."""

    def rest_of(number: Any, tile: int, stride: int) -> Any:
        @jit
        def rest(distance, p):
            own = cuda.shared.array((tile, tile), number)
            to = cuda.shared.array((tile, tile), number)
            middle = cuda.shared.array((tile, tile), number)
            top, left = rest_corner(cuda.blockIdx.y, cuda.blockIdx.x, p, tile)
            base = int32(p * tile)
            relax_rest_tile(own, to, middle, distance, distance, base, top, left, number, tile, stride, relax)

        return rest

    return rest_of
