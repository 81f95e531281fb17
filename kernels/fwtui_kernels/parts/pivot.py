"""The pivot tile of the top rungs: closed in the registers of one block, with one barrier for each k.

threads      each keeps 4 x 4 cells of the tile in registers from the first k to the last
k            the threads that hold row k and column k pass them to all others through shared memory
             barrier; every thread loads 4 + 4 words and does 16 relaxations
k + 1        the same through another part of shared memory: late threads still find the words of k
in the end   the tile to its place, and twice to `closed`, by columns and by rows, one word per cell
"""

from __future__ import annotations

from fwtui_kernels.compiled import device
from fwtui_kernels.compiled.device import ALIGN16, NUMBER, WORD, cuda, int32, jit, uint32
from fwtui_kernels.parts.tuning import CLOSED, MATRIX
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
def through(k, rows, columns, at, y, x, word, own_row, own_column, r0, r1, r2, r3):
    """One k of the pivot: the owners pass row k and column k to all. The next k uses other words, so one barrier suffices."""
    if y == k:
        device.store_words(rows, at + 4 * x, own_row[0], own_row[1], own_row[2], own_row[3])
    if x == k:
        device.store_words(columns, at + 4 * y, own_column[0], own_column[1], own_column[2], own_column[3])
    cuda.syncthreads()
    to = device.load_words(columns, at + 4 * y)
    middle = device.load_words(rows, at + 4 * x)
    return (
        relaxed(r0, to[0], middle, word),
        relaxed(r1, to[1], middle, word),
        relaxed(r2, to[2], middle, word),
        relaxed(r3, to[3], middle, word),
    )


@jit(device=True, inline="always")
def close(matrix, here, n, rows, columns, tile, y, x, word):
    """Four rows of four words of the closed tile, of which this thread's part begins at cell `here`."""
    a, b, c, d = device.load4(matrix, here)
    r0 = (word(a), word(b), word(c), word(d))
    a, b, c, d = device.load4(matrix, here + n)
    r1 = (word(a), word(b), word(c), word(d))
    a, b, c, d = device.load4(matrix, here + 2 * n)
    r2 = (word(a), word(b), word(c), word(d))
    a, b, c, d = device.load4(matrix, here + 3 * n)
    r3 = (word(a), word(b), word(c), word(d))
    return rounds(int32(tile // 4), rows, columns, tile, y, x, word, r0, r1, r2, r3)


@jit(device=True, inline="always")
def rounds(fours, rows, columns, tile, y, x, word, r0, r1, r2, r3):
    """This thread's part of a tile after four rounds, `fours` times."""
    # row 4 k + i is row i of the threads (k, x); written out, because an index of registers must be a constant
    for k in range(fours):
        column = (r0[0], r1[0], r2[0], r3[0])
        r0, r1, r2, r3 = through(k, rows, columns, 0, y, x, word, r0, column, r0, r1, r2, r3)
        column = (r0[1], r1[1], r2[1], r3[1])
        r0, r1, r2, r3 = through(k, rows, columns, tile, y, x, word, r1, column, r0, r1, r2, r3)
        column = (r0[2], r1[2], r2[2], r3[2])
        r0, r1, r2, r3 = through(k, rows, columns, 0, y, x, word, r2, column, r0, r1, r2, r3)
        column = (r0[3], r1[3], r2[3], r3[3])
        r0, r1, r2, r3 = through(k, rows, columns, tile, y, x, word, r3, column, r0, r1, r2, r3)
    return r0, r1, r2, r3


@jit(device=True, inline="always")
def store_closed(matrix, here, n, cell, r0, r1, r2, r3):
    """The four rows to their place in the matrix."""
    device.store4(matrix, here, cell(r0[0]), cell(r0[1]), cell(r0[2]), cell(r0[3]))
    device.store4(matrix, here + n, cell(r1[0]), cell(r1[1]), cell(r1[2]), cell(r1[3]))
    device.store4(matrix, here + 2 * n, cell(r2[0]), cell(r2[1]), cell(r2[2]), cell(r2[3]))
    device.store4(matrix, here + 3 * n, cell(r3[0]), cell(r3[1]), cell(r3[2]), cell(r3[3]))


@jit(device=True, inline="always")
def store_rows(array, at, apart, r0, r1, r2, r3):
    """The four rows as words, `apart` words from each other."""
    device.store_words(array, at, r0[0], r0[1], r0[2], r0[3])
    device.store_words(array, at + apart, r1[0], r1[1], r1[2], r1[3])
    device.store_words(array, at + 2 * apart, r2[0], r2[1], r2[2], r2[3])
    device.store_words(array, at + 3 * apart, r3[0], r3[1], r3[2], r3[3])


@jit(device=True, inline="always")
def store_columns(array, at, apart, r0, r1, r2, r3):
    """Their four columns likewise."""
    device.store_words(array, at, r0[0], r1[0], r2[0], r3[0])
    device.store_words(array, at + apart, r0[1], r1[1], r2[1], r3[1])
    device.store_words(array, at + 2 * apart, r0[2], r1[2], r2[2], r3[2])
    device.store_words(array, at + 3 * apart, r0[3], r1[3], r2[3], r3[3])


def pivot_of(shape: Shape) -> Op:
    """Closes tile (p, p): each of (tile / 4)^2 threads keeps 4 x 4 cells in registers from the first k to the last."""
    cell, word, tile = NUMBER[shape.dtype], WORD[shape.dtype], shape.tile
    side = tile // 4
    both = 2 * tile

    @jit(launch_bounds=(side * side, 1))
    def pivot(matrix, closed, p):
        rows = cuda.shared.array(both, word, ALIGN16)
        columns = cuda.shared.array(both, word, ALIGN16)
        t = uint32(cuda.threadIdx.x)
        y = int32(t // side)
        x = int32(t % side)
        n = matrix.shape[1]
        here = (p * tile + 4 * y) * n + p * tile + 4 * x
        r0, r1, r2, r3 = close(matrix, here, n, rows, columns, tile, y, x, word)
        # recomputed: keeping the addresses would not leave 1024 threads enough registers
        t = device.anew(t)
        y = int32(t // side)
        x = int32(t % side)
        here = (p * tile + 4 * y) * n + p * tile + 4 * x
        store_closed(matrix, here, n, cell, r0, r1, r2, r3)
        # by columns for the row panel, then by rows for the column panel: each finds its four words side by side
        store_columns(closed, 4 * x * tile + 4 * y, tile, r0, r1, r2, r3)
        store_rows(closed, (tile + 4 * y) * tile + 4 * x, tile, r0, r1, r2, r3)

    return Op(pivot, (side * side, 1), lambda args: (1, 1), lambda args: (MATRIX, CLOSED))
