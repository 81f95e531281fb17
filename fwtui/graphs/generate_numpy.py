"""Generated graphs by NumPy alone: what the compiled forms are compared with, and enough for small ones."""

from __future__ import annotations

import numpy as np

from fwtui.graphs.graph import blocks
from fwtui.graphs.hashing import ONE, PLAIN, ZERO
from fwtui.graphs.recipe import Recipe


def fill_numpy(out: np.ndarray, recipe: Recipe) -> None:
    """Write the graph into out (n, n) with NumPy alone: the definition that the compiled forms are compared with."""
    n = recipe.n
    column = np.arange(n, dtype=np.uint64)[None, :]
    for rows in blocks(out):
        row = np.arange(rows.start, rows.stop, dtype=np.uint64)[:, None]
        hashed = PLAIN.cell_hash(recipe.key, row, column)
        following = (column == (row + ONE) % np.uint64(n)) if recipe.connected else np.zeros(hashed.shape, dtype=bool)
        own = row == column
        if recipe.exact:
            edge = np.zeros(hashed.shape, dtype=bool)
            free = ~(own | following)
            forced = ONE if recipe.connected else ZERO
            index = PLAIN.cell_index(row, column, np.uint64(n), forced)[free]
            edge[free] = _permuted(index, recipe) < recipe.drawn
        else:
            edge = PLAIN.toss(hashed, recipe.threshold)
        weight = recipe.low + PLAIN.scaled(hashed, recipe.span).astype(np.int64)
        if recipe.potential_range:
            weight += recipe.potentials[rows, None] - recipe.potentials[None, :]
        block = np.where(edge | following, weight * recipe.scale, recipe.no_edge)
        block[own] = 0
        out[rows] = block


def _permuted(index: np.ndarray, recipe: Recipe) -> np.ndarray:
    """Cycle walking: shuffle again whatever left the range, which keeps it a bijection of 0 .. cells - 1."""
    index = PLAIN.shuffle(index, recipe.shuffle_key, recipe.half)
    outside = np.flatnonzero(index >= recipe.cells)
    while outside.size:
        index[outside] = PLAIN.shuffle(index[outside], recipe.shuffle_key, recipe.half)
        outside = outside[index[outside] >= recipe.cells]
    return index
