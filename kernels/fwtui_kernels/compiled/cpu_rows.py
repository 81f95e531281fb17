"""The steps of a CPU rank on its rows of tiles, on all its threads; parts.distributed describes the arguments."""

from __future__ import annotations

import numpy as np
from numba import prange

from fwtui_kernels.compiled.cpu_tiles import SMALL, copy_tile, pack, relax, solve_tile
from fwtui_kernels.compiled.locked_njit import njit

SHARED = 8  # tiles of a column that one thread relaxes with the same packed tile of the panel


@njit(cache=True, nogil=True)
def pivot(matrix, square, p, line, width):
    """Solve tile (p, p), which is the process's tile (line, p), and copy it to `square`."""
    tile = len(square)
    top, left = line * tile, p * tile
    small, strips = np.empty((SMALL + 1, SMALL), matrix.dtype), np.empty((1, SMALL * tile), matrix.dtype)
    solve_tile(matrix, top, left, tile, tile, small, strips, width)
    copy_tile(square, 0, 0, matrix, top, left, tile)


@njit(cache=True, nogil=True, parallel=True)
def row(matrix, square, panel, p, line, width):
    """Multiply row p with the solved pivot, and copy it to `panel`."""
    tile = len(square)
    top = line * tile
    for t in prange(matrix.shape[1] // tile):
        left = t * tile
        if t != p:
            strips = np.empty((1, tile * tile), matrix.dtype)
            pack(strips, matrix, top, left, tile, tile, width)
            relax(matrix, top, left, square, 0, 0, strips, tile, tile, tile, width, width)
        copy_tile(panel, 0, left, matrix, top, left, tile)


@njit(cache=True, nogil=True, parallel=True)
def column(matrix, square, p, first, gap, skipped, count, width):
    """Multiply column p of `count` rows of tiles with the solved pivot."""
    tile = len(square)
    strips = np.empty((1, tile * tile), matrix.dtype)
    pack(strips, square, 0, 0, tile, tile, width)
    for t in prange(count):
        line = first + t
        if line >= gap:
            line += skipped
        top, left = line * tile, p * tile
        relax(matrix, top, left, matrix, top, left, strips, tile, tile, tile, width, width)


@njit(cache=True, nogil=True, parallel=True)
def rest(matrix, panel, p, first, gap, skipped, count, width):
    """Relax all other tiles of those rows: min(tile, column p x row p)."""
    tile = len(panel)
    side = matrix.shape[1] // tile
    for t in prange((count + SHARED - 1) // SHARED * side):
        begin, other = t // side * SHARED, t % side
        if other != p:
            left = other * tile
            strips = np.empty((1, tile * tile), matrix.dtype)
            pack(strips, panel, 0, left, tile, tile, width)
            for piece in range(begin, min(begin + SHARED, count)):
                line = first + piece
                if line >= gap:
                    line += skipped
                top = line * tile
                relax(matrix, top, left, matrix, top, p * tile, strips, tile, tile, tile, width, tile * matrix.shape[1])
