"""Tiles of a distance matrix on a CPU: one closed in place, one relaxed through two others. Compiled once for all shapes.

They release Python's lock, so that other threads of a process go on meanwhile.
"""

from __future__ import annotations

from numba import njit

from kernels.numba_door.cpu_vectors import REGISTERS, relax_registers, vector_bytes

in_registers = REGISTERS * vector_bytes()  # bytes of a row


@njit(cache=True, nogil=True)
def close(own):
    """Floyd-Warshall within one contiguous square tile."""
    number = own.dtype.type
    tile = len(own)
    for k in range(tile):
        middle = own[k].copy()
        for i in range(tile):
            row = own[i]
            to_k = row[k]
            for j in range(tile):
                via = number(to_k + middle[j])
                row[j] = via if via < row[j] else row[j]


@njit(cache=True, nogil=True)
def relax_tile(own, top, left, to, to_top, to_left, middle, width):
    """own tile = min(itself, `to` tile x middle), all C-contiguous; `middle` is one tile, and nothing else may change it.

    `to` may be the tile itself: with a closed `middle` old and new values give the same minimum. `width` is of width_of().
    """
    tile = len(middle)
    for i in range(0, tile, 4):
        at, leg = top + i, to_top + i
        for j in range(0, tile, width):
            # the width is part of the instructions, so each has its own code; those beyond the registers are left out
            if width == 64 and in_registers >= 64 * own.itemsize:
                relax_registers(own, at, left + j, to, leg, to_left, middle, j, tile, 64)  # pyright: ignore[reportCallIssue]
            elif width == 32 and in_registers >= 32 * own.itemsize:
                relax_registers(own, at, left + j, to, leg, to_left, middle, j, tile, 32)  # pyright: ignore[reportCallIssue]
            elif width == 16 and in_registers >= 16 * own.itemsize:
                relax_registers(own, at, left + j, to, leg, to_left, middle, j, tile, 16)  # pyright: ignore[reportCallIssue]
            elif in_registers < 16 * own.itemsize:
                relax_registers(own, at, left + j, to, leg, to_left, middle, j, tile, 8)  # pyright: ignore[reportCallIssue]


@njit(cache=True, nogil=True)
def copy_tile(to, to_top, to_left, source, top, left, tile):
    """Cell by cell: with an assignment of slices numba compiles the words of an error too, for seconds."""
    for i in range(tile):
        for j in range(tile):
            to[to_top + i, to_left + j] = source[top + i, left + j]
