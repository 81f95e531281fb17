"""The generator compiled for the CPU. Only the worker imports this: it brings numba.

Numba's disk cache watches this file alone: touch it after a change to hashing.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from fwtui.experiment.generate import Recipe
from fwtui.experiment.hashing import ONE, ZERO, functions

_compiled = functions(njit(inline="always"))
cell_hash, toss, scaled = _compiled.cell_hash, _compiled.toss, _compiled.scaled
cell_index, shuffle = _compiled.cell_index, _compiled.shuffle


def fill(out: np.ndarray, recipe: Recipe) -> None:
    """Write the graph into out (n, n) of the recipe's type, on all cores."""
    _fill(out, *arguments(recipe))


def arguments(recipe: Recipe) -> tuple[Any, ...]:
    """What the compiled forms take besides the matrix, in their order: first the potentials and whether there are any."""
    number = np.float64 if recipe.dtype == "float32" else np.int64
    shifted = recipe.potential_range > 0
    return (
        recipe.potentials if shifted else np.zeros(1, dtype=np.int64),
        shifted,
        recipe.key,
        recipe.threshold,
        np.int64(recipe.low),
        recipe.span,
        number(recipe.scale),
        number(recipe.no_edge),
        recipe.connected,
        recipe.exact,
        recipe.drawn,
        recipe.cells,
        recipe.half,
        recipe.shuffle_key,
    )


@njit(inline="always")
def set_cell(
    out, row, column, potentials, shifted, key, threshold, low, span, scale, no_edge, connected, exact, drawn, cells, half,
    shuffle_key,
):  # fmt: skip
    """One cell of the matrix; numba compiles it for GPUs as well."""
    n = np.int64(out.shape[0])
    i, j = np.uint64(row), np.uint64(column)
    following = (row + np.int64(1)) % n if connected else np.int64(-1)
    if column == row or column == following:
        edge = column == following
    elif exact:
        index = shuffle(cell_index(i, j, np.uint64(n), ONE if connected else ZERO), shuffle_key, half)
        while index >= cells:
            index = shuffle(index, shuffle_key, half)
        edge = index < drawn
    else:
        edge = toss(cell_hash(key, i, j), threshold)
    if column == row:
        out[row, column] = 0
    elif edge:
        weight = low + np.int64(scaled(cell_hash(key, i, j), span))
        if shifted:
            weight += potentials[row] - potentials[column]
        out[row, column] = weight * scale
    else:
        out[row, column] = no_edge


@njit(parallel=True, cache=True)
def _fill(out, potentials, shifted, key, threshold, low, span, scale, no_edge, connected, exact, drawn, cells, half, shuffle_key):
    n = out.shape[0]
    for row in prange(n):
        for column in range(n):
            set_cell(
                out, row, column, potentials, shifted, key, threshold, low, span, scale, no_edge, connected, exact, drawn,
                cells, half, shuffle_key,
            )  # fmt: skip
