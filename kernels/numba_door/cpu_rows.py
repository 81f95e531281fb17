"""What a process does with its rows of tiles on a CPU, on all its threads; arguments as in kernels.parts.distributed."""

from __future__ import annotations

from numba import njit, prange

from kernels.numba_door.cpu_tiles import close, copy_tile, relax_tile


@njit(cache=True, nogil=True)
def pivot(matrix, square, p, line, width):
    """Closes tile (p, p), the process's tile (line, p), and copies it to `square`."""
    tile = len(square)
    top, left = line * tile, p * tile
    copy_tile(square, 0, 0, matrix, top, left, tile)
    close(square)
    copy_tile(matrix, top, left, square, 0, 0, tile)


@njit(cache=True, nogil=True, parallel=True)
def row(matrix, square, panel, p, line, width):
    """Row p = closed pivot x row p, and a copy in `panel`."""
    tile = len(square)
    top = line * tile
    for t in prange(matrix.shape[1] // tile):
        left = t * tile
        if t != p:
            relax_tile(matrix, top, left, square, 0, 0, matrix[top : top + tile, left : left + tile].copy(), width)
        copy_tile(panel, 0, left, matrix, top, left, tile)


@njit(cache=True, nogil=True, parallel=True)
def column(matrix, square, p, first, gap, skipped, count, width):
    """Column p of `count` rows of tiles = itself x closed pivot."""
    tile = len(square)
    for t in prange(count):
        line = first + t
        if line >= gap:
            line += skipped
        relax_tile(matrix, line * tile, p * tile, matrix, line * tile, p * tile, square, width)


@njit(cache=True, nogil=True, parallel=True)
def rest(matrix, panel, p, first, gap, skipped, count, width):
    """All other tiles of those rows = min(themselves, column p x row p)."""
    tile = len(panel)
    side = matrix.shape[1] // tile
    for t in prange(count * side):
        line, other = first + t // side, t % side
        if line >= gap:
            line += skipped
        if other != p:
            left = other * tile
            # contiguous, and nothing else can change it
            middle = panel[:, left : left + tile].copy()
            relax_tile(matrix, line * tile, left, matrix, line * tile, p * tile, middle, width)
