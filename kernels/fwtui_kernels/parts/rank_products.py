"""The ops of one rank of `distributed` on a GPU: those of products.py on some rows of the matrix, with row p from a panel.

    pivot    tile (p, p) closed, with copies by columns (for row) and by rows (`square`, which is broadcast)
    row      row p = closed x row p, and a copy in `panel`, which is broadcast
    column   column p of the rank's rows = itself x closed; once more by columns, as rest's left operand
    rest     every other tile = min(itself, column p x row p)

`matrix` holds the rank's rows of tiles one below the other. first, gap, skipped: the first of its rows of tiles that a launch
takes, the one before which some are left out, and how many.
"""

from __future__ import annotations

from fwtui_kernels.compiled import device
from fwtui_kernels.compiled.device import ALIGN16, NUMBER, WORD, cuda, int32, jit, uint32
from fwtui_kernels.forms import FORMS, PLAIN, WORD_BYTES, form_of
from fwtui_kernels.parts.distributed import CLOSED, COLUMN, MATRIX, ROW, SQUARE
from fwtui_kernels.parts.pivot import close, store_closed, store_columns, store_rows
from fwtui_kernels.parts.products import (
    column_as_words,
    first_of_closed,
    place,
    relax_block,
    row_as_words,
    store_best,
    store_spread,
    times_closed,
)
from fwtui_kernels.parts.tuning import STAGES, Product, tuning_of
from fwtui_kernels.plan import NO_EDGE, Shape, Target
from fwtui_kernels.programs.cuda_program import Op


def ops_of(shape: Shape, target: Target) -> dict[str, Op]:
    tuning = tuning_of(shape)
    return {
        "pivot": pivot_of(shape),
        **panels_of(shape, tuning.panels),
        "rest": rest_of(shape, target, tuning.rest),
    }


def pivot_of(shape: Shape) -> Op:
    """Closes tile (p, p), the rank's tile (top, p): each thread keeps 4 x 4 cells in registers."""
    cell, word, tile = NUMBER[shape.dtype], WORD[shape.dtype], shape.tile
    side = tile // 4
    both = 2 * tile

    @jit(launch_bounds=(side * side, 1))
    def pivot(matrix, closed, square, p, top):
        rows = cuda.shared.array(both, word, ALIGN16)
        columns = cuda.shared.array(both, word, ALIGN16)
        t = uint32(cuda.threadIdx.x)
        y = int32(t // side)
        x = int32(t % side)
        n = matrix.shape[1]
        here = (top * n + p) * tile + 4 * (y * n + x)
        r0, r1, r2, r3 = close(matrix, here, n, rows, columns, tile, y, x, word)
        # recomputed: keeping the addresses would not leave 1024 threads enough registers
        t = device.anew(t)
        y = int32(t // side)
        x = int32(t % side)
        here = (top * n + p) * tile + 4 * (y * n + x)
        store_closed(matrix, here, n, cell, r0, r1, r2, r3)
        store_columns(closed, 4 * x * tile + 4 * y, tile, r0, r1, r2, r3)
        store_rows(square, 4 * y * tile + 4 * x, tile, r0, r1, r2, r3)

    return Op(pivot, (side * side, 1), lambda args: (1, 1), lambda args: (MATRIX, CLOSED, SQUARE + args[0] % 2))


def panels_of(shape: Shape, cut: Product) -> dict[str, Op]:
    """Row p, a rank's row `top` of tiles, and column p of `count` rows of tiles times the closed pivot, one word per cell for
    any type. The column is computed transposed, as closed' x column'.
    """
    cut.covers(shape.tile, shape.tile)
    cut.copies(shape.tile, shape.tile)
    cell, word, tile = NUMBER[shape.dtype], WORD[shape.dtype], shape.tile
    no_edge = NO_EDGE[shape.dtype]
    form = PLAIN["float32" if shape.dtype == "float32" else "int32"]
    wide, rows, columns, slab, depth = cut.wide, cut.rows, cut.columns, cut.slab, cut.depth
    threads, down, across = cut.threads, tile // rows, wide // columns
    row_gap, column_gap = 4 * tile // rows, 4 * wide // columns
    ring, whole, cells = STAGES * slab * tile, tile * wide, rows * columns
    pieces, per_tile = whole // 4 // threads, tile // wide

    @jit(launch_bounds=cut.bounds)
    def row(matrix, closed, panel, p, top):
        to = cuda.shared.array(ring, word, ALIGN16)
        middle = cuda.shared.array(whole, word, ALIGN16)
        best = cuda.local.array(cells, word)
        t = uint32(cuda.threadIdx.x)
        y, x = place(t, down, across)
        n = matrix.shape[1]
        base = top * tile
        at = cuda.blockIdx.x * wide
        if at >= p * tile:
            at += tile
        first_of_closed(best, cells, no_edge, to, closed, 0, tile, slab, threads, t)
        row_as_words(middle, matrix, base, at, n, wide, wide // 4, pieces, threads, t, word)
        times_closed(best, to, middle, closed, 0, tile, wide, rows, columns, slab, depth, form, threads, t, y, x)
        for r in range(0, rows, 4):
            i = r // 4 * row_gap + 4 * y
            for c in range(0, columns, 4):
                j = at + c // 4 * column_gap + 4 * x
                for m in range(4):
                    q = (r + m) * columns + c
                    store_best(matrix, (base + i + m) * n + j, best, q, 1, cell)
                    store_best(panel, (i + m) * n + j, best, q, 1, cell)

    @jit(launch_bounds=cut.bounds)
    def column(matrix, square, by_columns, p, first, gap, skipped, count):
        to = cuda.shared.array(ring, word, ALIGN16)
        middle = cuda.shared.array(whole, word, ALIGN16)
        best = cuda.local.array(cells, word)
        t = uint32(cuda.threadIdx.x)
        y, x = place(t, down, across)
        n = matrix.shape[1]
        height = matrix.shape[0]
        base = p * tile
        line = first + int32(cuda.blockIdx.x) // per_tile
        if line >= gap:
            line += skipped
        at = line * tile + int32(cuda.blockIdx.x) % per_tile * wide
        first_of_closed(best, cells, no_edge, to, square, 0, tile, slab, threads, t)
        column_as_words(middle, matrix, at, base, n, wide, pieces, threads, t)
        times_closed(best, to, middle, square, 0, tile, wide, rows, columns, slab, depth, form, threads, t, y, x)
        for r in range(0, rows, 4):
            i = r // 4 * row_gap + 4 * y
            for c in range(0, columns, 4):
                j = at + c // 4 * column_gap + 4 * x
                for m in range(4):
                    store_best(matrix, (j + m) * n + base + i, best, r * columns + c + m, columns, cell)
                    store_spread(by_columns, (i + m) * height + j, best, (r + m) * columns + c, cell)

    blocks = (shape.padded - tile) // wide
    size = (threads, 1)
    return {
        "row": Op(row, size, lambda args: (blocks, 1), lambda args: (MATRIX, CLOSED, ROW + args[0] % 2)),
        "column": Op(column, size, lambda args: (args[4] * per_tile, 1), lambda args: (MATRIX, SQUARE + args[0] % 2, COLUMN)),
    }


def rest_of(shape: Shape, target: Target, cut: Product) -> Op:
    """C = min(C, column p x row p) in blocks of high x wide words, over `count` rows of tiles."""
    cut.covers(shape.tile, shape.tile // FORMS[PLAIN[shape.dtype]].lanes)
    cut.copies(shape.tile, cut.high, cut.wide)
    word, tile, form = WORD[shape.dtype], shape.tile, form_of(shape, target.cc)
    lanes = FORMS[form].lanes
    high, wide, rows, columns, slab = cut.high, cut.wide, cut.rows, cut.columns, cut.slab
    depth, threads, down, across = cut.depth, cut.threads, high // rows, wide // columns
    row_gap, column_gap = 4 * high // rows, 4 * wide // columns
    to_ring, middle_ring, cells, slabs = STAGES * slab * high, STAGES * slab * wide, rows * columns, tile // slab
    per_row, per_column = tile // high, tile // lanes // wide  # blocks to a tile

    @jit(launch_bounds=cut.bounds)
    def rest(matrix, panel, by_columns, p, first, gap, skipped, count):
        n = matrix.shape[1]
        height = matrix.shape[0]
        pitch = n // lanes
        row = int32(cuda.blockIdx.y) + first * per_row
        if row >= gap * per_row:
            row += int32(skipped * per_row)
        column = int32(cuda.blockIdx.x)
        if column >= p * per_column:
            column += int32(per_column)
        relax_block(
            matrix, row, column, by_columns, row * high, height, panel, column * wide, pitch, word, to_ring, middle_ring, cells,
            rows, columns, high, wide, slab, depth, slabs, form, threads, down, across, row_gap, column_gap,
        )  # fmt: skip

    others = shape.padded // tile - 1
    return Op(
        rest,
        (threads, 1),
        lambda args: (others * per_column, args[4] * per_row),
        lambda args: (MATRIX, ROW + args[0] % 2, COLUMN),
    )


def buffer_sizes(shape: Shape, rows: int) -> list[tuple[int, int]]:
    """Rows and cells of each array of a rank with that many rows, as fwtui_kernels.parts.distributed numbers them."""
    words = WORD_BYTES // shape.itemsize
    closed = (shape.tile, shape.tile * words)
    panel = (shape.tile, shape.padded)
    lanes = FORMS[PLAIN[shape.dtype]].lanes
    return [(rows, shape.padded), closed, panel, panel, closed, closed, (shape.tile, rows * lanes)]
