"""The graph generator, compiled for the CPU. Only the worker imports this module, because it imports numba.

Numba's disk cache checks only this file: touch it after a change to hashing.py.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from fwtui.experiment.generate import Recipe
from fwtui.experiment.hashing import ONE, ZERO, functions
from fwtui_kernels.compiled.locked_njit import njit

MAX_SINGLE_CORE = 1024  # vertices up to which one core takes at most 30 ms; a loop on all cores compiles for a second longer
_compiled = functions(njit(inline="always"))
cell_hash, toss, scaled = _compiled.cell_hash, _compiled.toss, _compiled.scaled
cell_index, shuffle, linked = _compiled.cell_index, _compiled.shuffle, _compiled.linked


def fill(out: np.ndarray, recipe: Recipe) -> None:
    """Write the graph into out (n, n) of the recipe's type, on all cores if it is large."""
    (_fill if len(out) > MAX_SINGLE_CORE else _fill_small)(out, recipe.potentials, recipe.rule)


@njit(inline="always")
def set_cell(out, row, column, potentials, rule):
    """Compute one cell of the matrix; numba also compiles this function for GPUs."""
    n = np.int64(out.shape[0])
    i, j = np.uint64(row), np.uint64(column)
    following = (row + np.int64(1)) % n if rule.connected else np.int64(-1)
    if column == row or column == following:
        edge = column == following
    elif rule.exact:
        index = shuffle(cell_index(i, j, np.uint64(n), ONE if rule.connected else ZERO), rule.shuffle_key, rule.half)
        while index >= rule.cells:
            index = shuffle(index, rule.shuffle_key, rule.half)
        edge = index < rule.drawn
    elif rule.kind:
        edge = linked(rule.kind, rule.key, rule.threshold, i, j, np.uint64(n), rule.across)
    else:
        edge = toss(cell_hash(rule.key, i, j), rule.threshold)
    if column == row:
        out[row, column] = 0
    elif edge:
        weight = rule.low + np.int64(scaled(cell_hash(rule.key, i, j), rule.span))
        if rule.shifted:
            weight += potentials[row] - potentials[column]
        out[row, column] = weight * rule.scale
    else:
        out[row, column] = rule.no_edge


@njit(parallel=True, cache=True)
def _fill(out, potentials, rule):
    n = out.shape[0]
    for row in prange(n):
        for column in range(n):
            set_cell(out, row, column, potentials, rule)


@njit(cache=True)
def _fill_small(out, potentials, rule):
    for row in range(out.shape[0]):
        for column in range(out.shape[0]):
            set_cell(out, row, column, potentials, rule)
