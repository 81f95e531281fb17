"""Slices of four from a matrix in doubly tiled order, k in its natural order (Lund and Smith, section 4.3)."""

from __future__ import annotations

from functools import partial

from fwtui_kernels.compiled.device import ALIGN16, NUMBER, cuda, jit, uint32
from fwtui_kernels.k62_staged_row_major import RESULTS, SLICE, to_word
from fwtui_kernels.parts import blocked, flat_tiles
from fwtui_kernels.parts.flat_tiles import skip_pivot
from fwtui_kernels.plan import Program, Shape, Target


@jit(device=True, inline="always")
def first_cell(t):
    """Return the row and column of thread t's first cell: 16 threads share a 4x4 block, whose cells are contiguous."""
    return (t & 15) >> 2, (t & 3) + (t >> 4 << 2)


@jit(device=True, inline="always")
def middle_word(k, j):
    """Return the index of cell (k, j) in the slice of the row panel, whose 4x4 blocks are side by side."""
    return (j >> 2 << 4) + k * SLICE + (j & 3)


def program(shape: Shape, target: Target, cyclic: bool) -> Program:
    """Return the staged program; `cyclic` rotates each thread's order of k by its position in the 4x4 block."""
    number = NUMBER[shape.dtype]
    tile = shape.tile
    blocks = tile // SLICE  # 4x4 blocks side by side in a tile
    threads = tile * tile // RESULTS
    rows, columns, down, across = blocked.shares(tile)
    cells = SLICE * tile
    loads = cells // threads

    @jit
    def rest(distance, p):
        to = cuda.shared.array(cells, number, ALIGN16)
        middle = cuda.shared.array(cells, number, ALIGN16)
        own = cuda.local.array(RESULTS, number)
        matrix = distance.flat
        side = uint32(distance.shape[1] // tile)
        t = uint32(cuda.threadIdx.x)
        base = uint32(p)
        row = skip_pivot(cuda.blockIdx.y, base)
        column = skip_pivot(cuda.blockIdx.x, base)
        from_row = uint32((row * side + base) * tile * tile)
        from_column = uint32((base * side + column) * tile * tile)
        here = uint32((row * side + column) * tile * tile)
        i, j = first_cell(t)
        first = (i + j) & 3 if cyclic else 0
        for r in range(rows):
            for c in range(columns):
                block = ((i + r * down) >> 2) * blocks + ((j + c * across) >> 2)
                own[r * columns + c] = matrix[here + block * 16 + ((i + r * down) & 3) * 4 + ((j + c * across) & 3)]
        low = uint32(0)
        while low < tile:
            for m in range(loads):
                w = uint32(t + m * threads)
                # four columns of a tile are whole 4x4 blocks, and so are four rows
                to[w] = matrix[uint32(from_row + (w >> 4) * blocks * 16 + low * 4 + (w & 15))]
                middle[w] = matrix[uint32(from_column + low * tile + w)]
            cuda.syncthreads()
            turn = uint32(0)
            while turn < SLICE:
                k = (first + turn) & 3
                for r in range(rows):
                    leg = to[to_word(i + r * down, k)]
                    for c in range(columns):
                        own[r * columns + c] = min(own[r * columns + c], number(leg + middle[middle_word(k, j + c * across)]))
                turn = uint32(turn + 1)
            cuda.syncthreads()
            low = uint32(low + SLICE)
        for r in range(rows):
            for c in range(columns):
                block = ((i + r * down) >> 2) * blocks + ((j + c * across) >> 2)
                matrix[here + block * 16 + ((i + r * down) & 3) * 4 + ((j + c * across) & 3)] = own[r * columns + c]

    return flat_tiles.program(shape, target, rest, (threads, 1), tiled=True)


KERNEL = blocked.optimized(
    id="staged-natural",
    title="Staged load, 4x4 blocks",
    papers=("B. Lund, J. W. Smith, A Multi-Stage CUDA Kernel for Floyd-Warshall, 2010, section 4.3",),
    build=partial(program, cyclic=False),
    summary="The matrix is stored as 32x32 tiles of 4x4 blocks, so four rows and four columns both consist of whole blocks.",
    lesson=(
        "Cut every tile into 4x4 blocks and store each block contiguously. Four columns of a tile are then eight whole blocks, "
        "and so are four rows, and no transferred byte is wasted. The matrix is reordered once before the run and once after it. "
        "Sixteen threads work on one 4x4 block, so for a given k they need only four different words of each slice, each word "
        "for four threads. On the authors' GPU only one word at a time could be broadcast, so they counted four passes for such "
        "a load. Today shared memory broadcasts a word to all threads that need it, if different words are in different banks. "
        "So the conflict that the next rung avoids may no longer exist."
    ),
    matrices=2,
)
