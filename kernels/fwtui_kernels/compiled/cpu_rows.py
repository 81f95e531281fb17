"""The steps of a CPU rank on its rows of tiles, on all its threads; parts.distributed describes the arguments."""

from __future__ import annotations

import numpy as np

from fwtui_kernels.compiled.all_cores import entry, on_all_cores
from fwtui_kernels.compiled.cpu_tiles import SMALL, copy_tile, pack, relax, solve_tile
from fwtui_kernels.compiled.locked_njit import inner, njit

SHARED = 8  # tiles of a column that one thread relaxes with the same packed tile of the panel


@njit(cache=True, nogil=True)
def pivot(matrix, square, p, line, width):
    """Solve tile (p, p), which is the process's tile (line, p), and copy it to `square`."""
    tile = len(square)
    top, left = line * tile, p * tile
    small, strips = np.empty((SMALL + 1, SMALL), matrix.dtype), np.empty((1, SMALL * tile), matrix.dtype)
    solve_tile(matrix, top, left, tile, tile, small, strips, width)
    copy_tile(square, 0, 0, matrix, top, left, tile)


@entry
def row(matrix, square, panel, p, line, width):
    """Multiply row p with the solved pivot, and copy it to `panel`."""
    on_all_cores(_tile_of_row, matrix.shape[1] // len(square), (matrix, square, panel, p, line, width))  # pyright: ignore[reportCallIssue]


@inner(cache=True, nogil=True)
def _tile_of_row(t, matrix, square, panel, p, line, width):
    tile, top, left = len(square), line * len(square), t * len(square)
    if t != p:
        strips = np.empty((1, tile * tile), matrix.dtype)
        pack(strips, matrix, top, left, tile, tile, width)
        relax(matrix, top, left, square, 0, 0, strips, tile, tile, tile, width, width)
    copy_tile(panel, 0, left, matrix, top, left, tile)


@entry
def column(matrix, square, p, first, gap, skipped, count, width):
    """Multiply column p of `count` rows of tiles with the solved pivot."""
    tile = len(square)
    strips = np.empty((1, tile * tile), matrix.dtype)
    pack(strips, square, 0, 0, tile, tile, width)
    on_all_cores(_tile_of_column, count, (matrix, strips, tile, p, first, gap, skipped, width))  # pyright: ignore[reportCallIssue]


@inner(cache=True, nogil=True)
def _tile_of_column(t, matrix, strips, tile, p, first, gap, skipped, width):
    top, left = (first + t if first + t < gap else first + t + skipped) * tile, p * tile
    relax(matrix, top, left, matrix, top, left, strips, tile, tile, tile, width, width)


@entry
def rest(matrix, panel, p, first, gap, skipped, count, width):
    """Relax all other tiles of those rows: min(tile, column p x row p)."""
    parts = (count + SHARED - 1) // SHARED * (matrix.shape[1] // len(panel))
    on_all_cores(_tiles_of_rest, parts, (matrix, panel, p, first, gap, skipped, count, width))  # pyright: ignore[reportCallIssue]


@inner(cache=True, nogil=True)
def _tiles_of_rest(t, matrix, panel, p, first, gap, skipped, count, width):
    tile, side = len(panel), matrix.shape[1] // len(panel)
    begin, left = t // side * SHARED, t % side * tile
    if left != p * tile:
        strips = np.empty((1, tile * tile), matrix.dtype)
        pack(strips, panel, 0, left, tile, tile, width)
        for piece in range(begin, min(begin + SHARED, count)):
            top = (first + piece if first + piece < gap else first + piece + skipped) * tile
            relax(matrix, top, left, matrix, top, p * tile, strips, tile, tile, tile, width, tile * matrix.shape[1])
