"""The generator compiled for the CPU. Only the worker imports this: it brings numba.

Numba's disk cache watches this file alone: touch it after a change to hashing.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from fwtui.experiment.generate import Recipe
from fwtui.experiment.hashing import ONE, ZERO, functions

_compiled = functions(njit(inline="always"))
cell_hash, toss, scaled = _compiled.cell_hash, _compiled.toss, _compiled.scaled
cell_index, shuffle = _compiled.cell_index, _compiled.shuffle


def fill(out: np.ndarray, recipe: Recipe) -> None:
    """Write the graph into out (n, n) of the recipe's type, on all cores."""
    number = float if recipe.dtype == "float32" else int
    _fill(
        out,
        recipe.key,
        recipe.threshold,
        recipe.low,
        recipe.span,
        recipe.potentials,
        number(recipe.scale),
        number(recipe.no_edge),
        recipe.connected,
        recipe.exact,
        recipe.drawn,
        recipe.cells,
        recipe.half,
        recipe.shuffle_key,
    )


@njit(parallel=True, cache=True)
def _fill(out, key, threshold, low, span, potentials, scale, no_edge, connected, exact, drawn, cells, half, shuffle_key):
    n = out.shape[0]
    forced = ONE if connected else ZERO
    for row in prange(n):
        i = np.uint64(row)
        following = (row + 1) % n if connected else -1
        for column in range(n):
            j = np.uint64(column)
            if column == row or column == following:
                edge = column == following
            elif exact:
                index = shuffle(cell_index(i, j, np.uint64(n), forced), shuffle_key, half)
                while index >= cells:
                    index = shuffle(index, shuffle_key, half)
                edge = index < drawn
            else:
                edge = toss(cell_hash(key, i, j), threshold)
            if edge:
                weight = low + np.int64(scaled(cell_hash(key, i, j), span))
                if potentials.size:
                    weight += potentials[row] - potentials[column]
                out[row, column] = weight * scale
            else:
                out[row, column] = no_edge
        out[row, row] = 0
