"""Compiled functions on tiles in shared memory, and the first two phases of the blocked rungs built from them.

A block is tile x stride threads, x across. A thread owns the cells (y, x), (y + stride, x), ... of every tile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwtui_kernels.compiled.device import NUMBER, cuda, int32, jit
from fwtui_kernels.parts.blocked import block_of
from fwtui_kernels.plan import Program, Shape, Target
from fwtui_kernels.programs.cuda_program import Args, CudaProgram, Op


@jit(device=True, inline="always")
def beside(at, p):
    """The tile that a block takes from a line without tile p."""
    at = int32(at)
    if at >= p:
        at += int32(1)
    return at


@jit(device=True, inline="always")
def rest_corner(row, column, p, tile):
    """The first row and column of a tile of the rest, counted without row p and column p of tiles."""
    row = beside(row, p)
    column = beside(column, p)
    return int32(row * tile), int32(column * tile)


@jit(device=True, inline="always")
def load(own, matrix, top, left, tile, stride):
    """A tile of the matrix to shared memory."""
    x = int32(cuda.threadIdx.x)
    y = int32(cuda.threadIdx.y)
    for s in range(tile // stride):
        r = int32(y + s * stride)
        own[r, x] = matrix[top + r, left + x]


@jit(device=True, inline="always")
def store(matrix, top, left, own, tile, stride):
    """A tile back to its place in the matrix."""
    x = int32(cuda.threadIdx.x)
    y = int32(cuda.threadIdx.y)
    for s in range(tile // stride):
        r = int32(y + s * stride)
        matrix[top + r, left + x] = own[r, x]


@jit(device=True, inline="always")
def relax_in_order(own, first, second, number, tile, stride):
    """The tile `own` through tile vertices, a barrier after each: `own` may be `first` or `second` too."""
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
    """Tile (p, p) of one matrix, solved, to another or the same."""
    base = int32(p * tile)
    load(own, source, base, base, tile, stride)
    cuda.syncthreads()
    relax_in_order(own, own, own, number, tile, stride)
    store(target, base, base, own, tile, stride)


@jit(device=True, inline="always")
def relax_panel_tile(own, solved, source, target, p, at, across, number, tile, stride):
    """Tile `at` of row p (`across`) or column p likewise, with the pivot that this round has made."""
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
    """Any other tile likewise, with the panels that this round has made, and `relax` (as relax_cell) for each cell and k.

    The panels do not change, so k may come in any order, and no barrier stands between the steps.
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
    """The functions of the first two phases, which the rungs that change the third one share."""
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
        at = beside(cuda.blockIdx.x, p)
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
    """The functions of pivot, panels and rest with a block for every tile: all like `block`, or the last like `rest_block`."""
    others = shape.padded // shape.tile - 1
    pivot, panels, rest = phases
    ops = {
        "pivot": Op(pivot, block, lambda args: (1, 1), buffers),
        "panels": Op(panels, block, lambda args: (others, 2), buffers),
        "rest": Op(rest, rest_block or block, lambda args: (others, others), buffers),
    }
    return CudaProgram(shape, target, ops, **more)


def builder(rest_of: Callable[[Any, int, int], Any], one_dimensional: bool = False) -> Callable[[Shape, Target], Program]:
    """The `build` of a rung whose file has the third phase alone: rest_of(number, tile, stride), after the first two above.

    `one_dimensional`: its threads form a line.
    """

    def build(shape: Shape, target: Target) -> Program:
        tile, stride = block = block_of(shape)
        phases = (*pivot_and_panels(shape), rest_of(NUMBER[shape.dtype], tile, stride))
        return three_phases(shape, target, phases, block, (tile * stride, 1) if one_dimensional else None)

    return build


def rest_in_shared(relax: Any) -> Callable[[Any, int, int], Any]:
    """The third phase for such a builder: three tiles in shared memory, and `relax` (as relax_cell) for each cell and k."""

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
