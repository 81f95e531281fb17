"""The pivot tile of the register-tiled rungs, solved in the registers of one thread block with one barrier per k.

threads      each holds 4 x 4 cells of the tile in registers from the first k to the last
k            the threads that hold row k and column k share them through shared memory
             barrier; every thread loads 4 + 4 words and does 16 relaxations
k + 1        uses another part of shared memory, because slow threads may still read the words of k
end          the tile is stored to its place, and twice to `solved`, by columns and by rows, one word per cell
"""

from __future__ import annotations

from typing import Any

from fwtui_kernels.compiled import device
from fwtui_kernels.compiled.device import ALIGN16, NUMBER, WORD, cuda, int32, jit, uint32
from fwtui_kernels.parts.tuning import MATRIX, SOLVED
from fwtui_kernels.plan import Shape
from fwtui_kernels.programs.cuda_program import Op


@jit(device=True, inline="always")
def relaxed(row, to, middle, word):
    return (
        min(row[0], word(to + middle[0])),
        min(row[1], word(to + middle[1])),
        min(row[2], word(to + middle[2])),
        min(row[3], word(to + middle[3])),
    )


@jit(device=True, inline="always")
def through(k, rows, columns, at, y, x, word, own_row, own_column, cells):
    """Relax the tile through one k. The next k uses other shared words, so one barrier suffices."""
    if y == k:
        device.store_words(rows, at + 4 * x, own_row[0], own_row[1], own_row[2], own_row[3])
    if x == k:
        device.store_words(columns, at + 4 * y, own_column[0], own_column[1], own_column[2], own_column[3])
    cuda.syncthreads()
    to = device.load_words(columns, at + 4 * y)
    middle = device.load_words(rows, at + 4 * x)
    return (
        relaxed(cells[0], to[0], middle, word),
        relaxed(cells[1], to[1], middle, word),
        relaxed(cells[2], to[2], middle, word),
        relaxed(cells[3], to[3], middle, word),
    )


@jit(device=True, inline="always")
def rounds(fours, rows, columns, tile, y, x, word, r):
    """Return this thread's four rows of four words after 4 x `fours` values of k."""
    # row 4 k + i is row i of the threads (k, x); unrolled, because register indices must be constants
    for k in range(fours):
        r = through(k, rows, columns, 0, y, x, word, r[0], (r[0][0], r[1][0], r[2][0], r[3][0]), r)
        r = through(k, rows, columns, tile, y, x, word, r[1], (r[0][1], r[1][1], r[2][1], r[3][1]), r)
        r = through(k, rows, columns, 0, y, x, word, r[2], (r[0][2], r[1][2], r[2][2], r[3][2]), r)
        r = through(k, rows, columns, tile, y, x, word, r[3], (r[0][3], r[1][3], r[2][3], r[3][3]), r)
    return r


@jit(device=True, inline="always")
def load_row(matrix, at, word):
    a, b, c, d = device.load4(matrix, at)
    return word(a), word(b), word(c), word(d)


@jit(device=True, inline="always")
def solve_in_registers(matrix, here, n, rows, columns, tile, y, x, word):
    """Return this thread's four rows of four words of the solved tile; its part begins at cell `here`."""
    r0, r1 = load_row(matrix, here, word), load_row(matrix, here + n, word)
    r2, r3 = load_row(matrix, here + 2 * n, word), load_row(matrix, here + 3 * n, word)
    return rounds(int32(tile // 4), rows, columns, tile, y, x, word, (r0, r1, r2, r3))


@jit(device=True, inline="always")
def store_solved(matrix, here, n, cell, r):
    """Store the four rows in the matrix."""
    device.store4(matrix, here, cell(r[0][0]), cell(r[0][1]), cell(r[0][2]), cell(r[0][3]))
    device.store4(matrix, here + n, cell(r[1][0]), cell(r[1][1]), cell(r[1][2]), cell(r[1][3]))
    device.store4(matrix, here + 2 * n, cell(r[2][0]), cell(r[2][1]), cell(r[2][2]), cell(r[2][3]))
    device.store4(matrix, here + 3 * n, cell(r[3][0]), cell(r[3][1]), cell(r[3][2]), cell(r[3][3]))


@jit(device=True, inline="always")
def store_rows(array, at, stride, r):
    """Store the four rows as words, `stride` words from each other."""
    device.store_words(array, at, r[0][0], r[0][1], r[0][2], r[0][3])
    device.store_words(array, at + stride, r[1][0], r[1][1], r[1][2], r[1][3])
    device.store_words(array, at + 2 * stride, r[2][0], r[2][1], r[2][2], r[2][3])
    device.store_words(array, at + 3 * stride, r[3][0], r[3][1], r[3][2], r[3][3])


@jit(device=True, inline="always")
def store_columns(array, at, stride, r):
    """Store the four columns as words, `stride` words from each other."""
    device.store_words(array, at, r[0][0], r[1][0], r[2][0], r[3][0])
    device.store_words(array, at + stride, r[0][1], r[1][1], r[2][1], r[3][1])
    device.store_words(array, at + 2 * stride, r[0][2], r[1][2], r[2][2], r[3][2])
    device.store_words(array, at + 3 * stride, r[0][3], r[1][3], r[2][3], r[3][3])


def solve_tile_of(shape: Shape) -> Any:
    """Return the device function solve_tile(matrix, row, at, by_columns, columns_at, by_rows, rows_at).

    A block of (tile / 4)^2 threads solves the tile that begins `at` cells after the start of a row of cells, and stores its two
    copies from the words `columns_at` and `rows_at` on.
    """
    cell, word, tile = NUMBER[shape.dtype], WORD[shape.dtype], shape.tile
    side = tile // 4
    both = 2 * tile

    @jit(device=True, inline="always")
    def solve_tile(matrix, row, at, by_columns, columns_at, by_rows, rows_at):
        rows = cuda.shared.array(both, word, ALIGN16)
        columns = cuda.shared.array(both, word, ALIGN16)
        t = uint32(cuda.threadIdx.x)
        y = int32(t // side)
        x = int32(t % side)
        n = matrix.shape[1]
        here = (row + 4 * y) * n + at + 4 * x
        r = solve_in_registers(matrix, here, n, rows, columns, tile, y, x, word)
        # recomputed, because addresses in registers would exceed the registers of 1024 threads
        t = device.rematerialize(t)
        y = int32(t // side)
        x = int32(t % side)
        here = (row + 4 * y) * n + at + 4 * x
        store_solved(matrix, here, n, cell, r)
        # the panels read four neighbouring words
        store_columns(by_columns, columns_at + 4 * x * tile + 4 * y, tile, r)
        store_rows(by_rows, rows_at + 4 * y * tile + 4 * x, tile, r)

    return solve_tile


def pivot_of(shape: Shape) -> Op:
    """Return the op that solves tile (p, p). One array holds both copies: by columns for the row panel, then by rows."""
    solve_tile, tile = solve_tile_of(shape), shape.tile
    threads, cells = (tile // 4) ** 2, tile**2

    @jit(launch_bounds=(threads, 1))
    def pivot(matrix, solved, p):
        solve_tile(matrix, p * tile, p * tile, solved, 0, solved, cells)

    return Op(pivot, (threads, 1), lambda args: (1, 1), lambda args: (MATRIX, SOLVED))
