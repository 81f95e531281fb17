"""The panels are loaded into shared memory in slices of four, from a row-major matrix (Lund and Smith, section 4.2)."""

from __future__ import annotations

from fwtui_kernels.compiled.device import ALIGN16, NUMBER, cuda, jit, uint32
from fwtui_kernels.parts import blocked
from fwtui_kernels.parts.flat_tiles import program, skip_pivot
from fwtui_kernels.plan import Program, Shape, Target

SLICE = 4  # values of k in shared memory at once
RESULTS = 16  # cells per thread


@jit(device=True, inline="always")
def first_cell(t, width):
    """Return the row and column of thread t's first cell in the tile; a row of the block has `width` threads."""
    return t // width, t % width


@jit(device=True, inline="always")
def to_word(i, k):
    """Return the index of cell (i, k) in the slice of the column panel."""
    return i * SLICE + k


@jit(device=True, inline="always")
def middle_word(k, j, tile):
    """Return the index of cell (k, j) in the slice of the row panel."""
    return k * tile + j


def build(shape: Shape, target: Target) -> Program:
    number = NUMBER[shape.dtype]
    tile = shape.tile
    threads = tile * tile // RESULTS
    rows, columns, down, across = blocked.shares(tile)
    cells = SLICE * tile
    loads = cells // threads  # loads per thread and slice

    @jit
    def rest(distance, p):
        to = cuda.shared.array(cells, number, ALIGN16)
        middle = cuda.shared.array(cells, number, ALIGN16)
        own = cuda.local.array(RESULTS, number)
        matrix = distance.flat
        n = uint32(distance.shape[1])
        t = uint32(cuda.threadIdx.x)
        base = uint32(p)
        row = skip_pivot(cuda.blockIdx.y, base)
        column = skip_pivot(cuda.blockIdx.x, base)
        i, j = first_cell(t, across)
        here = uint32((row * tile + i) * n + column * tile + j)
        for r in range(rows):
            for c in range(columns):
                own[r * columns + c] = matrix[here + r * down * n + c * across]
        low = uint32(0)
        while low < tile:
            for m in range(loads):
                w = uint32(t + m * threads)
                # four cells of a row, then the next row: 16 bytes here, 16 bytes there
                to[w] = matrix[uint32((row * tile + w // SLICE) * n + base * tile + low + w % SLICE)]
                middle[w] = matrix[uint32((base * tile + low + w // tile) * n + column * tile + w % tile)]
            cuda.syncthreads()
            k = uint32(0)
            while k < SLICE:
                for r in range(rows):
                    first = to[to_word(i + r * down, k)]
                    for c in range(columns):
                        via = number(first + middle[middle_word(k, j + c * across, tile)])
                        own[r * columns + c] = min(own[r * columns + c], via)
                k = uint32(k + 1)
            # the next slice overwrites this one
            cuda.syncthreads()
            low = uint32(low + SLICE)
        for r in range(rows):
            for c in range(columns):
                matrix[here + r * down * n + c * across] = own[r * columns + c]

    return program(shape, target, rest, (threads, 1))


KERNEL = blocked.optimized(
    id="staged-row-major",
    title="Staged load, row-major",
    papers=("B. Lund, J. W. Smith, A Multi-Stage CUDA Kernel for Floyd-Warshall, 2010, section 4.2",),
    build=build,
    summary="Shared memory holds only four columns of one panel and four rows of the other at a time.",
    lesson=(
        "A relaxation through vertex k needs column k of one panel and row k of the other, and nothing else. So load four of "
        "each, do all relaxations through these four vertices, and load the next four. The panels then take 1,024 bytes of "
        "shared memory in float32, down from 8,192. A block is 64 threads with 16 results each in registers. Many blocks share "
        "a multiprocessor, and while one of them waits for memory, others compute. The price is two barriers per slice and poor "
        "coalescing. In a row-major matrix four columns are 16 bytes from each of 32 rows, and memory delivers sectors of 32 "
        "bytes."
    ),
)
