"""A persistent kernel for small graphs: one cooperative launch with two grid-wide barriers per round.

    every block                     solves the pivot redundantly, in registers, instead of waiting for another block;
                                    multiplies its tiles of row p and column p with it -> matrix, column p transposed -> panel
    ---- grid-wide barrier ----
    every block                     tiles of the remainder = min(tile, panel x row p)
    ---- grid-wide barrier ----

At these sizes a round takes about twenty microseconds, and launching three kernels one after the other would take much of that.
"""

from __future__ import annotations

from fwtui_kernels.compiled import device
from fwtui_kernels.compiled.device import ALIGN16, NUMBER, WORD, cuda, int32, jit, uint32
from fwtui_kernels.forms import AMPERE, cell_form, too_old
from fwtui_kernels.parts import pivot, products
from fwtui_kernels.parts.blocked import plan_at_once
from fwtui_kernels.plan import NO_EDGE, Kernel, Option, Program, Shape, Target
from fwtui_kernels.programs.cuda_program import CudaProgram, Op

PART = 4  # rows and columns of a tile per thread


def build(shape: Shape, target: Target) -> Program:
    cell, word, tile = NUMBER[shape.dtype], WORD[shape.dtype], shape.tile
    no_edge = NO_EDGE[shape.dtype]
    # one word per cell for any data type, because latency matters here, not throughput
    form = cell_form(shape.dtype)
    side, both, cells, results, depth = tile // PART, 2 * tile, tile * tile, PART * PART, min(8, tile)
    threads = side * side
    resident = shape.option("resident")

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
        tiles = n // tile - 1  # tiles per row of tiles, excluding the pivot
        for p in range(first, last):
            base = p * tile
            here = (base + 4 * y) * n + base + 4 * x
            r = pivot.solve_in_registers(matrix, here, n, rows, columns, tile, y, x, word)
            for job in range(block, 2 * tiles, blocks):
                at = job // 2 * tile
                if at >= base:
                    at += tile
                # other threads may still read the operands of the previous product
                cuda.syncthreads()
                if job % 2 == 0:
                    pivot.store_columns(to, 4 * x * tile + 4 * y, tile, r)
                    products.row_as_words(middle, matrix, base, at, n, tile, side, PART, threads, t, word)
                else:
                    # column p is computed transposed: solved' x column'
                    pivot.store_rows(to, 4 * y * tile + 4 * x, tile, r)
                    products.column_as_words(middle, matrix, at, base, n, tile, PART, threads, t)
                # the product includes the old values, because the pivot's diagonal is 0
                for i in range(results):
                    best[i] = no_edge
                cuda.syncthreads()
                for k in range(0, tile, depth):
                    device.relax_tile(best, to, k * tile + 4 * y, middle, k * tile + 4 * x, PART, PART, tile, tile, depth, form)
                for m in range(PART):
                    q = PART * m
                    if job % 2 == 0:
                        products.store_best(matrix, (base + 4 * y + m) * n + at + 4 * x, best, q, 1, cell)
                    else:
                        products.store_best(matrix, (at + 4 * x + m) * n + base + 4 * y, best, m, PART, cell)
                        line = (4 * y + m) * n + at + 4 * x
                        device.store_words(panel, line, best[q], best[q + 1], best[q + 2], best[q + 3])
            grid.sync()
            if block == 0:
                # after the barrier, because other blocks read the unsolved tile before it
                pivot.store_solved(matrix, here, n, cell, r)
            for job in range(block, tiles * tiles, blocks):
                top = job // tiles * tile
                left = job % tiles * tile
                if top >= base:
                    top += tile
                if left >= base:
                    left += tile
                for m in range(PART):
                    q = PART * m
                    line = (top + 4 * y + m) * n + left + 4 * x
                    best[q], best[q + 1], best[q + 2], best[q + 3] = device.load4(matrix, line)
                cuda.syncthreads()
                for piece in range(PART):
                    q = t + piece * threads
                    k = q // side
                    j = q % side * 4
                    a, b, c, d = device.load_words(panel, k * n + top + j)
                    device.store_words(to, k * tile + j, a, b, c, d)
                    e, f, g, h = device.load4(matrix, (base + k) * n + left + j)
                    device.store_words(middle, k * tile + j, word(e), word(f), word(g), word(h))
                cuda.syncthreads()
                for k in range(0, tile, depth):
                    device.relax_tile(best, to, k * tile + 4 * y, middle, k * tile + 4 * x, PART, PART, tile, tile, depth, form)
                for m in range(PART):
                    products.store_best(matrix, (top + 4 * y + m) * n + left + 4 * x, best, PART * m, 1, cell)
            grid.sync()

    # two blocks are enough to show races in the simulator
    most = 2 if target.backend == "simulator" else max(1, target.multiprocessors) * resident
    others = shape.padded // tile - 1
    blocks = min(most, max(1, 2 * others, others * others))
    panel = (tile, shape.padded * shape.word_bytes // shape.itemsize)
    ops = {"rounds": Op(rounds, (threads, 1), lambda args: (blocks, 1), lambda args: (0, 1))}
    return CudaProgram(shape, target, ops, scratch=[panel])


KERNEL = Kernel(
    id="resident",
    title="Resident blocks",
    papers=(
        "S. Xiao, W. Feng, Inter-Block GPU Communication via Fast Barrier Synchronization, IPDPS 2010",
        "A. S. Catinello, Parallel Floyd-Warshall, 2023, section 4",
    ),
    plan=plan_at_once,
    build=build,
    summary="For small graphs: one launch, two grid-wide barriers per round, and every block solves the pivot redundantly.",
    lesson=(
        "Up to about two thousand vertices, the arithmetic of a round takes less time than the transition from one phase to the "
        "next. So the launches go: blocks stay on the GPU and meet at barriers, which cost one or two microseconds each. One of "
        "three barriers goes as well: each block solves the pivot redundantly instead of waiting for another block. That "
        "repeats the work many times, but on multiprocessors that would otherwise idle. Inside a block it is the register-tiled "
        "kernel again, with only 4 x 4 results per thread. So even a few tiles have many threads to hide the latency of their "
        "loads. Compare it with look-ahead: a CUDA graph starts a kernel in about the time of such a barrier and overlaps the "
        "next pivot. On an H200 look-ahead was faster at every size where both were measured, from a hundred vertices."
    ),
    tiles=(32, 64),
    default_tile=64,
    wide_tiles=(32,),
    simulator_tiles=(8,),
    options=(Option("resident", (1, 2), 1, "blocks per multiprocessor"),),
    launch_modes=("eager", "graph"),
    memories=("device", "pinned"),
    lacks=lambda shape, target: too_old(shape, target, AMPERE),
)
