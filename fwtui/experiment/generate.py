"""Generated graphs: G(n, p) or an exact number of edges, the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fwtui.experiment.experiment import Experiment
from fwtui.experiment.hashing import ONE, PLAIN, ZERO
from fwtui.experiment.recipe import Recipe, recipe_for
from fwtui.graphs.graph import GraphInput, blocks, graph_of

Fill = Callable[[np.ndarray, Recipe], None]


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


def generate(spec: Experiment, fill: Fill = fill_numpy) -> GraphInput:
    """The graph that is asked for. `fill` writes the matrix; compiled forms are in fwtui.engine.

    Raises Refused where the asked number of edges cannot connect the graph, or the weights do not fit the type.
    """
    recipe = recipe_for(spec)
    matrix = np.empty((recipe.n, recipe.n), dtype=recipe.dtype)
    fill(matrix, recipe)
    graph = replace(graph_of(matrix, not spec.real, f"G({recipe.n}, {spec.density:g})"), note=_note(spec, recipe))
    if not recipe.potential_range:
        return graph
    return replace(graph, potentials=recipe.weight(recipe.potentials), drift=recipe.weight(recipe.potential_range))


def _note(spec: Experiment, recipe: Recipe) -> str:
    notes = []
    if recipe.potential_range:
        widest = (recipe.potential_range - 1) / recipe.units
        notes.append(
            f"{spec.negative:.0%} negative by potentials below {recipe.potential_range / recipe.units:g}, "
            f"which widen the weights to {spec.low - widest:g}..{spec.high + widest:g}"
        )
    if recipe.connected:
        notes.append("strongly connected by i -> i + 1")
    if recipe.exact:
        notes.append("exact number of edges")
    return "; ".join(notes)
