"""Tiles of a distance matrix on a CPU, solved in place or relaxed through two others. Compiled once for all shapes.

The functions release the GIL.
"""

from __future__ import annotations

from fwtui_kernels.compiled.cpu_vectors import ROWS, copy_cells, relax_registers
from fwtui_kernels.compiled.locked_njit import inner

SMALL = 16


@inner(cache=True, nogil=True)
def solve_tile(own, top, left, tile, pivots, small, strips, width):
    """Solve one tile of a C-contiguous array over its first `pivots` vertices.

    `small` is scratch space for a SMALL tile and one row, and `strips` for SMALL rows.
    """
    size = small.shape[1]
    narrow = width if width <= size else size
    for base in range(0, pivots, size):
        at, column = top + base, left + base
        for i in range(size):
            copy_cells(small, i, 0, own, at + i, column, size)  # pyright: ignore[reportCallIssue]
        solve_small(small)
        for i in range(size):
            copy_cells(own, at + i, column, small, i, 0, size)  # pyright: ignore[reportCallIssue]
        # the column first; with a solved factor, the row may hold old values
        pack(strips, own, at, column, size, size, narrow)
        relax(own, top, column, own, top, column, strips, tile, size, size, narrow, width)
        pack(strips, own, at, left, size, tile, width)
        relax(own, top, left, own, top, column, strips, tile, size, tile, width, width)


@inner(cache=True, nogil=True)
def solve_small(own):
    """Solve a contiguous square tile in place. One additional row is scratch space for row k."""
    number = own.dtype.type
    size = own.shape[1]
    middle = own[size]
    for k in range(size):
        row = own[k]
        for j in range(size):
            middle[j] = row[j]
        for i in range(size):
            row = own[i]
            to_k = row[k]
            for j in range(size):
                via = number(to_k + middle[j])
                row[j] = via if via < row[j] else row[j]


@inner(cache=True, nogil=True)
def pack(strips, source, top, left, depth, columns, width):
    """Copy depth x columns cells as strips of `width` columns; a block reads one strip, whose rows are contiguous."""
    for k in range(depth):
        for begin in range(0, columns, width):
            copy_cells(strips, 0, begin * depth + k * width, source, top + k, left + begin, width)  # pyright: ignore[reportCallIssue]


@inner(cache=True, nogil=True)
def relax(own, top, left, to, to_top, to_left, strips, rows, depth, columns, width, ahead):
    """Relax rows x columns of `own` through rows x depth of `to` and depth x columns in `strips`, all C-contiguous.

    `strips` is one row of cells without aliases. `to` may be in `own`, because with a solved factor old and new values give the
    same minimum. `width` comes from width_of(). The cells of `own` that are `ahead` further are prefetched.
    """
    first = 0
    for begin in range(left, left + columns, width):
        for i in range(0, rows, ROWS):
            relax_registers(own, top + i, begin, to, to_top + i, to_left, strips, first, depth, width, ahead)  # pyright: ignore[reportCallIssue]
        first += depth


@inner(cache=True, nogil=True)
def copy_tile(to, to_top, to_left, source, top, left, tile):
    for i in range(tile):
        copy_cells(to, to_top + i, to_left, source, top + i, left, tile)  # pyright: ignore[reportCallIssue]
