"""Blocked, with one-dimensional thread blocks in the third phase: row and column by division (CS542200, its first version)."""

from __future__ import annotations

from fwtui_kernels.compiled.device import cuda, int32, jit
from fwtui_kernels.parts import blocked
from fwtui_kernels.parts import blocked_tiles as tiles


def rest_of(number, tile, stride):
    """Return the third phase for cells of type `number`, in blocks of tile * stride threads."""
    cells, threads = tile * tile, tile * stride
    results = cells // threads

    @jit
    def rest(distance, p):
        own = cuda.shared.array(cells, number)
        to = cuda.shared.array(cells, number)
        middle = cuda.shared.array(cells, number)
        t = int32(cuda.threadIdx.x)
        base = int32(p * tile)
        top, left = tiles.rest_corner(cuda.blockIdx.y, cuda.blockIdx.x, p, tile)
        for s in range(results):
            q = int32(t + s * threads)
            to[q] = distance[top + q // tile, base + q % tile]
            middle[q] = distance[base + q // tile, left + q % tile]
            own[q] = distance[top + q // tile, left + q % tile]
        cuda.syncthreads()
        for k in range(tile):
            for s in range(results):
                q = int32(t + s * threads)
                # two-dimensional thread indices would give the row and the column without a division
                own[q] = min(own[q], number(to[q // tile * tile + k] + middle[k * tile + q % tile]))
        for s in range(results):
            q = int32(t + s * threads)
            distance[top + q // tile, left + q % tile] = own[q]

    return rest


KERNEL = blocked.rung(
    id="blocked-one-dimensional",
    title="Blocked, 1-D threads",
    papers=("CS542200 Parallel Programming, Homework 4-1, section 1b",),
    build=tiles.builder(rest_of, one_dimensional=True),
    summary="In the third phase the threads of a block form a line; each computes row and column of its cells by division.",
    lesson=(
        "The hardware numbers the threads of a block linearly anyway; two-dimensional blocks only define how to read the number. "
        "So the same thread does the same work here, and the difference is in the arithmetic: row and column come from a "
        "division and a remainder. Integer division is slow on a GPU, which has no instruction for it. But the tile width is a "
        "power of two that the compiler knows, so shifts and masks suffice. A few of these instructions remain for each "
        "relaxation, which itself is only an addition and a minimum. The first two phases are those of the next rungs, so that a "
        "comparison shows this one change."
    ),
)
