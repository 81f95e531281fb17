"""For small graphs: one cooperative launch whose blocks stay, and two barriers of the whole grid in a round.

    every block                     closes the pivot itself, in registers: nobody waits for one that does it for all;
                                    own tile of row p or column p x closed -> matrix, column p by columns as well -> panel
    ---- barrier of the grid ----
    every block                     tiles of the rest = min(itself, panel x row p)
    ---- barrier of the grid ----

At this size a round takes some twenty microseconds, and starting three kernels in a row would take a good part of that.
"""

from __future__ import annotations

from typing import Any

from kernels.forms import AMPERE, PLAIN, WORD_BYTES, older
from kernels.k53_one_cooperative import plan
from kernels.parts.pivot import close_helpers
from kernels.plan import NO_EDGE, Kernel, Option, Program, Shape, Target

close: Any
cuda: Any
load4: Any
load_words: Any
relax_tile: Any
four_lines: Any
store4: Any
store_words: Any
PART = 4  # rows and columns of a tile in a thread


def build(shape: Shape, target: Target) -> Program:
    global close, cuda, load4, load_words, relax_tile, four_lines, store4, store_words
    from kernels.numba_door.device import (
        ALIGN16,
        NUMBER,
        WORD,
        cuda,
        int32,
        jit,
        load4,
        load_words,
        relax_tile,
        store4,
        store_words,
        uint32,
    )
    from kernels.programs.cuda_program import CudaProgram, Op

    close = close_helpers()
    cell, word, tile = NUMBER[shape.dtype], WORD[shape.dtype], shape.tile
    no_edge = NO_EDGE[shape.dtype]
    # a word to a cell whatever the type: what counts here is the time from one load to the next, not the rate
    form = PLAIN["float32" if shape.dtype == "float32" else "int32"]
    side, both, cells, results, depth = tile // PART, 2 * tile, tile * tile, PART * PART, min(8, tile)
    threads = side * side
    resident = shape.option("resident")

    @jit(device=True, inline="always")
    def four_lines(array, at, apart, r0, r1, r2, r3):
        """Four times four words, `apart` words from each other."""
        store_words(array, at, r0[0], r0[1], r0[2], r0[3])
        store_words(array, at + apart, r1[0], r1[1], r1[2], r1[3])
        store_words(array, at + 2 * apart, r2[0], r2[1], r2[2], r2[3])
        store_words(array, at + 3 * apart, r3[0], r3[1], r3[2], r3[3])

    @jit(launch_bounds=(threads, resident))
    def rounds(matrix, panel, first, last):
        rows = cuda.shared.array(both, word, ALIGN16)
        columns = cuda.shared.array(both, word, ALIGN16)
        to = cuda.shared.array(cells, word, ALIGN16)
        middle = cuda.shared.array(cells, word, ALIGN16)
        best = cuda.local.array(results, word)
        grid = cuda.cg.this_grid()
        t = uint32(cuda.threadIdx.x)
        y = int32(t // side)
        x = int32(t % side)
        n = matrix.shape[1]
        block = cuda.blockIdx.x
        blocks = cuda.gridDim.x
        tiles = n // tile - 1  # beside the pivot's, in a row
        for p in range(first, last):
            base = p * tile
            here = (base + 4 * y) * n + base + 4 * x
            r0, r1, r2, r3 = close(matrix, here, n, rows, columns, tile, y, x, word)
            for job in range(block, 2 * tiles, blocks):
                at = job // 2 * tile
                if at >= base:
                    at += tile
                # somebody may still read what the last product was made of
                cuda.syncthreads()
                if job % 2 == 0:
                    c0 = (r0[0], r1[0], r2[0], r3[0])
                    c1 = (r0[1], r1[1], r2[1], r3[1])
                    c2 = (r0[2], r1[2], r2[2], r3[2])
                    c3 = (r0[3], r1[3], r2[3], r3[3])
                    four_lines(to, 4 * x * tile + 4 * y, tile, c0, c1, c2, c3)
                    for piece in range(PART):
                        q = t + piece * threads
                        k = q // side
                        j = q % side * 4
                        a, b, c, d = load4(matrix, (base + k) * n + at + j)
                        store_words(middle, k * tile + j, word(a), word(b), word(c), word(d))
                else:
                    # column p is made lying on its side, as closed' x column'
                    four_lines(to, 4 * y * tile + 4 * x, tile, r0, r1, r2, r3)
                    for piece in range(PART):
                        q = t + piece * threads
                        k = q // tile * 4
                        j = q % tile
                        a, b, c, d = load4(matrix, (at + j) * n + base + k)
                        middle[k * tile + j] = a
                        middle[(k + 1) * tile + j] = b
                        middle[(k + 2) * tile + j] = c
                        middle[(k + 3) * tile + j] = d
                # what was there is in the product too, as the pivot's diagonal is 0
                for i in range(results):
                    best[i] = no_edge
                cuda.syncthreads()
                for k in range(0, tile, depth):
                    relax_tile(best, to, k * tile + 4 * y, middle, k * tile + 4 * x, PART, PART, tile, tile, depth, form)
                for m in range(PART):
                    q = PART * m
                    if job % 2 == 0:
                        line = (base + 4 * y + m) * n + at + 4 * x
                        store4(matrix, line, cell(best[q]), cell(best[q + 1]), cell(best[q + 2]), cell(best[q + 3]))
                    else:
                        line = (at + 4 * x + m) * n + base + 4 * y
                        store4(matrix, line, cell(best[m]), cell(best[m + 4]), cell(best[m + 8]), cell(best[m + 12]))
                        line = (4 * y + m) * n + at + 4 * x
                        store_words(panel, line, best[q], best[q + 1], best[q + 2], best[q + 3])
            grid.sync()
            if block == 0:
                # not before: other blocks were still reading the tile to close it for themselves
                store4(matrix, here, cell(r0[0]), cell(r0[1]), cell(r0[2]), cell(r0[3]))
                store4(matrix, here + n, cell(r1[0]), cell(r1[1]), cell(r1[2]), cell(r1[3]))
                store4(matrix, here + 2 * n, cell(r2[0]), cell(r2[1]), cell(r2[2]), cell(r2[3]))
                store4(matrix, here + 3 * n, cell(r3[0]), cell(r3[1]), cell(r3[2]), cell(r3[3]))
            for job in range(block, tiles * tiles, blocks):
                top = job // tiles * tile
                left = job % tiles * tile
                if top >= base:
                    top += tile
                if left >= base:
                    left += tile
                for m in range(PART):
                    a, b, c, d = load4(matrix, (top + 4 * y + m) * n + left + 4 * x)
                    best[PART * m] = a
                    best[PART * m + 1] = b
                    best[PART * m + 2] = c
                    best[PART * m + 3] = d
                cuda.syncthreads()
                for piece in range(PART):
                    q = t + piece * threads
                    k = q // side
                    j = q % side * 4
                    a, b, c, d = load_words(panel, k * n + top + j)
                    store_words(to, k * tile + j, a, b, c, d)
                    e, f, g, h = load4(matrix, (base + k) * n + left + j)
                    store_words(middle, k * tile + j, word(e), word(f), word(g), word(h))
                cuda.syncthreads()
                for k in range(0, tile, depth):
                    relax_tile(best, to, k * tile + 4 * y, middle, k * tile + 4 * x, PART, PART, tile, tile, depth, form)
                for m in range(PART):
                    line = (top + 4 * y + m) * n + left + 4 * x
                    q = PART * m
                    store4(matrix, line, cell(best[q]), cell(best[q + 1]), cell(best[q + 2]), cell(best[q + 3]))
            grid.sync()

    # the simulator's grid barrier holds back one block only
    most = 1 if target.backend == "simulator" else max(1, target.multiprocessors) * resident
    others = shape.padded // tile - 1
    blocks = min(most, max(1, 2 * others, others * others))
    panel = (tile, shape.padded * WORD_BYTES // shape.itemsize)
    ops = {"rounds": Op(rounds, (threads, 1), lambda args: (blocks, 1), lambda args: (0, 1))}
    return CudaProgram(shape, target, ops, scratch=[panel])


KERNEL = Kernel(
    id="resident",
    title="Resident blocks",
    backend="cuda",
    papers=(
        "S. Xiao, W. Feng, Inter-Block GPU Communication via Fast Barrier Synchronization, IPDPS 2010",
        "A. S. Catinello, Parallel Floyd-Warshall, 2023, section 4",
    ),
    phases={"all": "all rounds"},
    plan=plan,
    build=build,
    summary="For small graphs: one launch, two barriers of the grid in a round, and every block closes the pivot for itself.",
    lesson=(
        "Up to some two thousand vertices the arithmetic of a round takes less time than getting from one phase to the next. So "
        "the launches go: blocks stay on the GPU and meet at barriers, which cost one or two microseconds each. And one of three "
        "barriers goes as well: instead of waiting for a block that closes the pivot, each block closes it for itself. That is "
        "the same work many times over, but on multiprocessors that had nothing else to do. Inside a block it is the "
        "register-tiled kernel again, with 4 x 4 results to a thread, so that the few tiles there are have many threads to hide "
        "their loads. Compare it with look-ahead: a captured graph starts a kernel in about the time of such a barrier, closes "
        "the next pivot meanwhile, and was faster on an H200 wherever both were measured, from a hundred vertices on."
    ),
    tiles=(32, 64),
    default_tile=64,
    simulator_tiles=(8,),
    options=(Option("resident", (1, 2), 1, "blocks on a multiprocessor"),),
    launch_modes=("eager", "graph"),
    memories=("device", "pinned"),
    off_gpu=False,
    lacks=lambda shape, target: older(shape, target, AMPERE),
)
