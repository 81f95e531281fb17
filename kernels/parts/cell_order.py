"""Where the cells of a tile lie: in the doubly tiled order, and in which thread where each has sixteen. Plain Python."""

from __future__ import annotations

from typing import Any


def place(q: Any, tile: Any) -> Any:
    """Where cell q of a tile in 4x4 order stands in the same tile in row-major order."""
    small, inside = q >> 4, q & 15
    across = tile >> 2  # 4x4 blocks in a row of blocks
    return ((small // across << 2) + (inside >> 2)) * tile + (small % across << 2) + (inside & 3)


def shares(tile: int) -> tuple[int, int, int, int]:
    """How 16 results for each of tile^2 / 16 threads lie in a tile: rows, columns, and the steps between them."""
    threads = tile * tile // 16
    across = min(4, threads) * max(1, threads // 16)
    columns = tile // across
    rows = 16 // columns
    return rows, columns, tile // rows, across
