"""Many small graphs on a GPU: each is closed by one block, in registers, as a pivot tile is in parts/pivot.py.

The matrices lie one after the other in `cells`: graph g has `sizes[g]` vertices, its first cell is `first[g]`, and block b does
graph `chosen[b]`. Threads beyond a graph's vertices hold cells without edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwtui_kernels.compiled import device
from fwtui_kernels.compiled.device import ALIGN16, NUMBER, SIM, WORD, cuda, int32, jit, uint32
from fwtui_kernels.parts import pivot
from fwtui_kernels.plan import NO_EDGE, Buffers, Shape, Target
from fwtui_kernels.programs.cuda_program import CudaProgram, Op

# most vertices of a graph, and so of a block; each thread has 4 x 4 cells
TILES = (8, 32) if SIM else (32, 64, 128)


@jit(device=True, inline="always")
def load_row(array, start, n, i, j, outside, word):
    """Four words of row i from column j on; `outside` the matrix as said."""
    inside = i < n
    at = start + i * n + j
    return (
        word(array[at]) if inside and j < n else outside,
        word(array[at + 1]) if inside and j + 1 < n else outside,
        word(array[at + 2]) if inside and j + 2 < n else outside,
        word(array[at + 3]) if inside and j + 3 < n else outside,
    )


@jit(device=True, inline="always")
def store_row(array, start, n, i, j, row, number):
    """What of the four words lies inside the matrix."""
    if i < n:
        at = start + i * n + j
        if j < n:
            array[at] = number(row[0])
        if j + 1 < n:
            array[at + 1] = number(row[1])
        if j + 2 < n:
            array[at + 2] = number(row[2])
        if j + 3 < n:
            array[at + 3] = number(row[3])


@jit(device=True, inline="always")
def load_rows(array, start, n, i, j, outside, word):
    """Four rows of four words, from cell (i, j) on."""
    return (
        load_row(array, start, n, i, j, outside, word),
        load_row(array, start, n, i + 1, j, outside, word),
        load_row(array, start, n, i + 2, j, outside, word),
        load_row(array, start, n, i + 3, j, outside, word),
    )


@jit(device=True, inline="always")
def store_rows(array, start, n, i, j, rows, number):
    store_row(array, start, n, i, j, rows[0], number)
    store_row(array, start, n, i + 1, j, rows[1], number)
    store_row(array, start, n, i + 2, j, rows[2], number)
    store_row(array, start, n, i + 3, j, rows[3], number)


@jit(device=True, inline="always")
def relaxed(row, last, to, middle, last_from_k, word):
    """Four cells and the vertices before their ends, which only a shorter path replaces."""
    a, b, c, d = word(to + middle[0]), word(to + middle[1]), word(to + middle[2]), word(to + middle[3])
    return (min(row[0], a), min(row[1], b), min(row[2], c), min(row[3], d)), (
        last_from_k[0] if a < row[0] else last[0],
        last_from_k[1] if b < row[1] else last[1],
        last_from_k[2] if c < row[2] else last[2],
        last_from_k[3] if d < row[3] else last[3],
    )


@jit(device=True, inline="always")
def through(k, rows, columns, lasts, at, y, x, word, own_row, own_last, own_column, r0, r1, r2, r3, p0, p1, p2, p3):
    """As pivot.through, with predecessors."""
    if y == k:
        device.store_words(rows, at + 4 * x, own_row[0], own_row[1], own_row[2], own_row[3])
        device.store_words(lasts, at + 4 * x, own_last[0], own_last[1], own_last[2], own_last[3])
    if x == k:
        # one by one, as four together would need registers side by side, and there are none to spare
        columns[at + 4 * y] = own_column[0]
        columns[at + 4 * y + 1] = own_column[1]
        columns[at + 4 * y + 2] = own_column[2]
        columns[at + 4 * y + 3] = own_column[3]
    cuda.syncthreads()
    middle = device.load_words(rows, at + 4 * x)
    last = device.load_words(lasts, at + 4 * x)
    r0, p0 = relaxed(r0, p0, columns[at + 4 * y], middle, last, word)
    r1, p1 = relaxed(r1, p1, columns[at + 4 * y + 1], middle, last, word)
    r2, p2 = relaxed(r2, p2, columns[at + 4 * y + 2], middle, last, word)
    r3, p3 = relaxed(r3, p3, columns[at + 4 * y + 3], middle, last, word)
    return r0, r1, r2, r3, p0, p1, p2, p3


def closing(dtype: str, tile: int) -> Any:
    """(cells, first, sizes, chosen): Floyd-Warshall in each matrix of at most `tile` vertices, in place."""
    cell, word, no_edge = NUMBER[dtype], WORD[dtype], WORD[dtype](NO_EDGE[dtype])
    side, both = tile // 4, 2 * tile

    @jit(launch_bounds=(side * side, 1))
    def close(cells, first, sizes, graphs):
        rows = cuda.shared.array(both, word, ALIGN16)
        columns = cuda.shared.array(both, word, ALIGN16)
        t = uint32(cuda.threadIdx.x)
        y, x = int32(t // side), int32(t % side)
        graph = graphs[cuda.blockIdx.x]
        start, n = first[graph], sizes[graph]
        r = load_rows(cells, start, n, 4 * y, 4 * x, no_edge, word)
        r = pivot.rounds(int32((n + 3) // 4), rows, columns, tile, y, x, word, r)
        # recomputed: keeping the addresses would not leave 1024 threads enough registers
        t = device.anew(t)
        graph = graphs[device.anew(uint32(cuda.blockIdx.x))]
        store_rows(cells, first[graph], sizes[graph], 4 * int32(t // side), 4 * int32(t % side), r, cell)

    return close


def closing_with_predecessors(dtype: str, tile: int) -> Any:
    """(cells, before, first, sizes, chosen): the same, and the vertex before j on the path from i to j."""
    cell, word, no_edge = NUMBER[dtype], WORD[dtype], WORD[dtype](NO_EDGE[dtype])
    index = WORD["int32"]
    none = index(-1)
    side, both = tile // 4, 2 * tile

    @jit(launch_bounds=(side * side, 1))
    def close_with_predecessors(cells, before, first, sizes, graphs):
        rows = cuda.shared.array(both, word, ALIGN16)
        columns = cuda.shared.array(both, word, ALIGN16)
        lasts = cuda.shared.array(both, index, ALIGN16)
        t = uint32(cuda.threadIdx.x)
        y, x = int32(t // side), int32(t % side)
        graph = graphs[cuda.blockIdx.x]
        start, n = first[graph], sizes[graph]
        r0, r1, r2, r3 = load_rows(cells, start, n, 4 * y, 4 * x, no_edge, word)
        p0, p1, p2, p3 = load_rows(before, start, n, 4 * y, 4 * x, none, index)
        for k in range(int32((n + 3) // 4)):
            own = (r0[0], r1[0], r2[0], r3[0])
            r0, r1, r2, r3, p0, p1, p2, p3 = through(
                k, rows, columns, lasts, 0, y, x, word, r0, p0, own, r0, r1, r2, r3, p0, p1, p2, p3
            )
            own = (r0[1], r1[1], r2[1], r3[1])
            r0, r1, r2, r3, p0, p1, p2, p3 = through(
                k, rows, columns, lasts, tile, y, x, word, r1, p1, own, r0, r1, r2, r3, p0, p1, p2, p3
            )
            own = (r0[2], r1[2], r2[2], r3[2])
            r0, r1, r2, r3, p0, p1, p2, p3 = through(
                k, rows, columns, lasts, 0, y, x, word, r2, p2, own, r0, r1, r2, r3, p0, p1, p2, p3
            )
            own = (r0[3], r1[3], r2[3], r3[3])
            r0, r1, r2, r3, p0, p1, p2, p3 = through(
                k, rows, columns, lasts, tile, y, x, word, r3, p3, own, r0, r1, r2, r3, p0, p1, p2, p3
            )
        t = device.anew(t)
        graph = graphs[device.anew(uint32(cuda.blockIdx.x))]
        start, n = first[graph], sizes[graph]
        y, x = int32(t // side), int32(t % side)
        store_rows(cells, start, n, 4 * y, 4 * x, (r0, r1, r2, r3), cell)
        store_rows(before, start, n, 4 * y, 4 * x, (p0, p1, p2, p3), index)

    return close_with_predecessors


# buffers between the working matrices and the kept input: the same cells in one line, then where each graph begins, its
# vertices, and which graph each block does
CELLS, FIRST, SIZES, CHOSEN = 1, 2, 3, 4


class CudaStack(CudaProgram):
    """Launches closing for a shape of several graphs."""

    def __init__(self, shape: Shape, target: Target):
        tile = next(tile for tile in TILES if shape.n <= tile)
        close = Op(
            closing(shape.dtype, tile),
            ((tile // 4) ** 2, 1),
            lambda args: (shape.graphs, 1),
            lambda args: (CELLS, FIRST, SIZES, CHOSEN),
            tuple(f"array({dtype}, 1d, C)" for dtype in (shape.dtype, "int64", "int32", "int32")),
        )
        super().__init__(shape, target, {"close": close})
        self._rows_of_n = shape.graphs * shape.n
        self._size = (self._rows_of_n, shape.n)

    def allocate(self) -> Buffers:
        matrices, copy = super().allocate()
        graphs, n = self.shape.graphs, self.shape.n
        first = np.arange(graphs, dtype=np.int64) * n**2
        tables = (first, np.full(graphs, n, np.int32), np.arange(graphs, dtype=np.int32))
        return [matrices, matrices.reshape(matrices.size), *map(cuda.to_device, tables), copy]
