"""The blocked algorithm with panels and remainder as min-plus products of tiles in registers.

    pivot   tile (p, p) solved (parts/pivot.py), with a copy `solved` by columns and one by rows
    panels  row p = solved x row p,  column p = column p x solved. The solved pivot's diagonal is 0, so these are plain products,
            without an order of k and without a barrier per k. Column p is also stored by columns in `panel`, so that the words
            that `rest` loads together are contiguous
    rest    every other tile = min(itself, panel x row p)

All products share one loop over slabs of k:

    global       to[k, i]          middle[k, j]        a slab: `slab` values of k
                    |  copy_async      |               asynchronously: the next slab arrives while this one is used
    shared       to[stage]         middle[stage]
                    |  rows words      |  columns words   per k and thread
    registers        best[rows, columns]               relax_tile: rows x columns relaxations

With int16 a word of `best` and of `middle` holds two neighbouring columns, and a word of `to` holds its cell twice.
"""

from __future__ import annotations

from typing import Any

from fwtui_kernels.compiled import device
from fwtui_kernels.compiled.device import ALIGN16, NUMBER, WORD, cuda, int32, jit, uint32
from fwtui_kernels.forms import cell_form, form_of, lanes_of
from fwtui_kernels.parts.pivot import pivot_of
from fwtui_kernels.parts.tuning import CROSS, MATRIX, PANEL, SOLVED, STAGES, Product, tuning_of
from fwtui_kernels.plan import NO_EDGE, Shape, Target
from fwtui_kernels.programs.cuda_program import CudaProgram, Op


def program(shape: Shape, target: Target, ahead: bool = False) -> CudaProgram:
    """Return the program over a row-major matrix, divided by tuning_of(); `ahead` adds a separate op for the cross."""
    tuning = tuning_of(shape)
    lanes = lanes_of(shape.dtype)
    ops = {"pivot": pivot_of(shape), "panels": panels_of(shape, tuning.panels), "rest": rest_of(shape, target, tuning.rest)}
    if ahead:
        ops["cross"] = rest_of(shape, target, tuning.cross)
    panel = (shape.tile, shape.padded * lanes)
    scratch = ((2 * shape.tile, shape.tile * shape.word_bytes // shape.itemsize), panel, panel)
    return CudaProgram(shape, target, ops, scratch=scratch)


@jit(device=True, inline="always")
def place(t, down, across):
    """Return the row and column of thread t in a grid of down x across threads: a warp is 4 x 8, and reads whole shared lines."""
    if down % 4 == 0 and across % 8 == 0:
        warp = t >> 5
        row = int32(warp // (across // 8) * 4 + (t >> 3 & 3))
        column = int32(warp % (across // 8) * 8 + (t & 7))
    else:
        row = int32(t // across)
        column = int32(t % across)
    return row, column


@jit(device=True, inline="always")
def fetch(shared, at, source, start, pitch, wide, slab, threads, t):
    """Copy `slab` lines of `wide` words to a shared array, asynchronously; a line of the source is `pitch` words long."""
    pieces = wide // 4
    lines = threads // pieces
    first = start + t // pieces * pitch + t % pieces * 4
    for i in range(slab // lines):
        device.copy_async(shared, at + 4 * (t + i * threads), source, first + i * lines * pitch)


@jit(device=True, inline="always")
def load_cells(best, source, here, pitch, rows, columns, row_gap, column_gap):
    """Load a thread's words of C: groups of four by four, whose strides are the gaps."""
    for r in range(rows):
        line = here + (r // 4 * row_gap + r % 4) * pitch
        for c in range(0, columns, 4):
            at = r * columns + c
            best[at], best[at + 1], best[at + 2], best[at + 3] = device.load_words(source, line + c // 4 * column_gap)


@jit(device=True, inline="always")
def store_cells(best, to, here, pitch, rows, columns, row_gap, column_gap):
    for r in range(rows):
        line = here + (r // 4 * row_gap + r % 4) * pitch
        for c in range(0, columns, 4):
            at = r * columns + c
            device.store_words(to, line + c // 4 * column_gap, best[at], best[at + 1], best[at + 2], best[at + 3])


@jit(device=True, inline="always")
def row_as_words(to, matrix, top, left, n, wide, fours, pieces, threads, t, word):
    """Copy `wide` columns (`fours` groups of four) of a row of tiles to shared memory, one word per cell."""
    for piece in range(pieces):
        q = t + piece * threads
        k = q // fours
        j = q % fours * 4
        a, b, c, d = device.load4(matrix, (top + k) * n + left + j)
        device.store_words(to, k * wide + j, word(a), word(b), word(c), word(d))


@jit(device=True, inline="always")
def column_as_words(to, matrix, top, left, n, wide, pieces, threads, t):
    """Copy `wide` rows of a column of tiles to shared memory, transposed; neighbouring threads write neighbouring words."""
    for piece in range(pieces):
        q = t + piece * threads
        k = q // wide * 4
        j = q % wide
        a, b, c, d = device.load4(matrix, (top + j) * n + left + k)
        to[k * wide + j] = a
        to[(k + 1) * wide + j] = b
        to[(k + 2) * wide + j] = c
        to[(k + 3) * wide + j] = d


@jit(device=True, inline="always")
def store_best(matrix, at, best, q, stride, cell):
    """Store four words of C, `stride` from each other, as neighbouring cells of the matrix."""
    device.store4(matrix, at, cell(best[q]), cell(best[q + stride]), cell(best[q + 2 * stride]), cell(best[q + 3 * stride]))


@jit(device=True, inline="always")
def store_spread(to, at, best, q, cell):
    """Store four words of C as neighbouring words of a copy; an int16 word holds its cell twice."""
    a, b = device.spread(cell(best[q])), device.spread(cell(best[q + 1]))
    c, d = device.spread(cell(best[q + 2])), device.spread(cell(best[q + 3]))
    device.store_words(to, at, a, b, c, d)


def panel_block_of(shape: Shape, cut: Product, copies_rows: bool = False) -> Any:
    """Return the device function panel_block(matrix, solved, solved_at, is_row, base, at, copy, copy_at, pitch).

    It multiplies `wide` columns of the row of tiles at row `base`, or `wide` rows of the column of tiles at column `base`, from
    `at` on, with the solved pivot at word `solved_at`. A column is computed transposed, as solved' x column', so that one loop
    serves both, with one word per cell for any data type. A column is also stored by columns, from word `copy_at` on in rows of
    `pitch` words; with `copies_rows`, a row is also stored as cells.
    """
    cell, word, tile, no_edge = NUMBER[shape.dtype], WORD[shape.dtype], shape.tile, NO_EDGE[shape.dtype]
    form = cell_form(shape.dtype)
    wide, rows, columns, slab, depth = cut.wide, cut.rows, cut.columns, cut.slab, cut.depth
    threads, down, across = cut.threads, cut.down, cut.across
    row_gap, column_gap = cut.gaps
    ring, whole, cells, slabs = STAGES * slab * tile, tile * wide, rows * columns, tile // slab
    pieces = whole // 4 // threads

    @jit(device=True, inline="always")
    def panel_block(matrix, solved, solved_at, is_row, base, at, copy, copy_at, pitch):
        to = cuda.shared.array(ring, word, ALIGN16)
        middle = cuda.shared.array(whole, word, ALIGN16)
        best = cuda.local.array(cells, word)
        t = uint32(cuda.threadIdx.x)
        y, x = place(t, down, across)
        n = matrix.shape[1]
        fetch(to, 0, solved, solved_at, tile, tile, slab, threads, t)
        device.commit_copies()
        # the product includes the old values, because the pivot's diagonal is 0
        for i in range(cells):
            best[i] = no_edge
        if is_row:
            row_as_words(middle, matrix, base, at, n, wide, wide // 4, pieces, threads, t, word)
        else:
            column_as_words(middle, matrix, at, base, n, wide, pieces, threads, t)
        for s in range(slabs):
            device.wait_copies(0)
            cuda.syncthreads()
            if s + 1 < slabs:
                k = (s + 1) * slab
                slot = (s + 1) % STAGES * slab
                fetch(to, slot * tile, solved, solved_at + k * tile, tile, tile, slab, threads, t)
            device.commit_copies()
            for k in range(0, slab, depth):
                to_at = (s % STAGES * slab + k) * tile + 4 * y
                middle_at = (s * slab + k) * wide + 4 * x
                device.relax_tile(best, to, to_at, middle, middle_at, rows, columns, tile, wide, depth, form)
        for r in range(0, rows, 4):
            i = r // 4 * row_gap + 4 * y
            for c in range(0, columns, 4):
                j = c // 4 * column_gap + 4 * x
                for m in range(4):
                    q = (r + m) * columns + c
                    if is_row:
                        store_best(matrix, (base + i + m) * n + at + j, best, q, 1, cell)
                        if copies_rows:
                            store_best(copy, copy_at + (i + m) * pitch + j, best, q, 1, cell)
                    else:
                        store_best(matrix, (at + j + m) * n + base + i, best, r * columns + c + m, columns, cell)
                        store_spread(copy, copy_at + (i + m) * pitch + j, best, q, cell)

    return panel_block


def panels_of(shape: Shape, cut: Product) -> Op:
    """Return the op that multiplies row p (grid row 0) and column p (grid row 1) with the solved pivot."""
    panel_block, tile, wide = panel_block_of(shape, cut), shape.tile, cut.wide

    @jit(launch_bounds=cut.bounds)
    def panels(matrix, solved, panel, p):
        base = p * tile
        at = cuda.blockIdx.x * wide
        if at >= base:
            at += tile
        is_row = cuda.blockIdx.y == 0
        panel_block(matrix, solved, 0 if is_row else tile * tile, is_row, base, at, panel, at, matrix.shape[1])

    blocks = (shape.padded - tile) // wide
    return Op(panels, (cut.threads, 1), lambda args: (blocks, 2), lambda args: (MATRIX, SOLVED, PANEL + args[0] % 2))


def relax_block_of(shape: Shape, target: Target, cut: Product) -> Any:
    """Return the device function relax_block(matrix, row, column, left, left_start, left_pitch, right, right_start, pitch).

    It sets block (row, column) of the matrix, high x wide words, to min(itself, left x right). `left` is stored by columns; a
    row of `right` and of the matrix is `pitch` words long.
    """
    word, form = WORD[shape.dtype], form_of(shape, target.cc)
    high, wide, rows, columns, slab = cut.high, cut.wide, cut.rows, cut.columns, cut.slab
    depth, threads, down, across = cut.depth, cut.threads, cut.down, cut.across
    row_gap, column_gap = cut.gaps
    to_ring, middle_ring, cells, slabs = STAGES * slab * high, STAGES * slab * wide, rows * columns, shape.tile // slab

    @jit(device=True, inline="always")
    def relax_block(matrix, row, column, left, left_start, left_pitch, right, right_start, pitch):
        to = cuda.shared.array(to_ring, word, ALIGN16)
        middle = cuda.shared.array(middle_ring, word, ALIGN16)
        best = cuda.local.array(cells, word)
        t = uint32(cuda.threadIdx.x)
        y, x = place(t, down, across)
        here = (row * high + 4 * y) * pitch + column * wide + 4 * x
        for s in range(STAGES - 1):
            fetch(to, s * slab * high, left, left_start + s * slab * left_pitch, left_pitch, high, slab, threads, t)
            fetch(middle, s * slab * wide, right, right_start + s * slab * pitch, pitch, wide, slab, threads, t)
            device.commit_copies()
        load_cells(best, matrix, here, pitch, rows, columns, row_gap, column_gap)
        for s in range(slabs):
            device.wait_copies(0)
            # all copies have arrived, and no thread still reads the slab that the next copies overwrite
            cuda.syncthreads()
            if s + 1 < slabs:
                k = (s + 1) * slab
                slot = (s + 1) % STAGES * slab
                # recomputed for each slab, because addresses in registers would displace the tile
                again = device.rematerialize(t)
                fetch(to, slot * high, left, left_start + k * left_pitch, left_pitch, high, slab, threads, again)
                fetch(middle, slot * wide, right, right_start + k * pitch, pitch, wide, slab, threads, again)
            device.commit_copies()
            for k in range(0, slab, depth):
                k_at = s % STAGES * slab + k
                to_at, middle_at = k_at * high + 4 * y, k_at * wide + 4 * x
                device.relax_tile(best, to, to_at, middle, middle_at, rows, columns, high, wide, depth, form)
        # the addresses of C are recomputed too
        y, x = place(device.rematerialize(t), down, across)
        here = (row * high + 4 * y) * pitch + column * wide + 4 * x
        store_cells(best, matrix, here, pitch, rows, columns, row_gap, column_gap)

    return relax_block


def rest_of(shape: Shape, target: Target, cut: Product) -> Op:
    """Return the op C = min(C, panel x row p) in blocks of high x wide words, over a part of the remainder."""
    relax_block = relax_block_of(shape, target, cut)
    tile, high, wide, lanes = shape.tile, cut.high, cut.wide, lanes_of(shape.dtype)
    per_row, per_column = tile // high, tile // lanes // wide  # blocks to a tile

    @jit(launch_bounds=cut.bounds)
    def rest(matrix, panel, p, part):
        n = matrix.shape[1]
        pitch = n // lanes
        row = int32(cuda.blockIdx.y)
        column = int32(cuda.blockIdx.x)
        others = int32(n // tile - 1)
        if part == CROSS:
            across_tile = column
            down_tile = int32(p + 1)
            if column >= others:
                across_tile = int32(p + 1)
                down_tile = int32(column - others)
                if down_tile >= p:
                    down_tile += int32(2)
            elif column >= p:
                across_tile += int32(1)
            column = int32(across_tile * per_column + row % per_column)
            row = int32(down_tile * per_row + row // per_column)
        else:
            if row >= p * per_row:
                row += int32(part * per_row)
            if column >= p * per_column:
                column += int32(part * per_column)
        start = p * tile * pitch + column * wide
        relax_block(matrix, row, column, panel, row * high, n, matrix, start, pitch)

    side = shape.padded // tile

    def grid(args: tuple[int, ...]) -> tuple[int, int]:
        part = args[1]
        if part == CROSS:
            return 2 * side - 3, per_row * per_column
        tiles = side - part
        return tiles * per_column, tiles * per_row

    return Op(rest, (cut.threads, 1), grid, lambda args: (MATRIX, PANEL + args[0] % 2))
