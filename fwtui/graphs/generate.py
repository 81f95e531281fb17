"""Generated graphs: G(n, p) or an exact number of edges, the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fwtui.experiment import Experiment, changed
from fwtui.graphs.graph import GraphInput, blocks, survey
from fwtui.graphs.hashing import ONE, PLAIN, ZERO
from fwtui.graphs.recipe import Recipe, recipe_for

Fill = Callable[[np.ndarray, Recipe], None]


def generate(experiment: Experiment, fill: Fill | None = None) -> GraphInput:
    """The experiment's graph. `fill` writes the matrix (compiled for the CPU unless told otherwise).

    Raises Refused where the asked number of edges cannot connect the graph, or the weights do not fit the type.
    """
    recipe = recipe_for(experiment)
    if fill is None:
        from fwtui.graphs.compiled import fill
    matrix = np.empty((recipe.n, recipe.n), dtype=recipe.dtype)
    fill(matrix, recipe)
    edges, negative, low, high = survey(matrix)
    potentials: np.ndarray | None = None
    drift: int | float = 0
    if recipe.potential_range:
        potentials = recipe.potentials if recipe.units == 1 else recipe.potentials / recipe.units
        drift = recipe.potential_range if recipe.units == 1 else recipe.potential_range / recipe.units
    elif low is not None and low < 0:
        drift = (recipe.n - 1) * (-low if experiment.real else int(-low))
    return GraphInput(
        matrix=matrix,
        integer=not experiment.real,
        edges=edges,
        low=low,
        high=high,
        negative_share=negative / edges if edges else None,
        drift=drift,
        potentials=potentials,
        name=f"G({recipe.n}, {experiment.density:g})",
        note=_note(experiment, recipe),
    )


def warm_up(experiment: Experiment, fill: Fill | None = None) -> None:
    """Compile whatever generates such graphs, so that the next one's time is the time of generating."""
    generate(changed(experiment, n=2, density=1.0), fill)


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


def _note(experiment: Experiment, recipe: Recipe) -> str:
    notes = []
    if recipe.potential_range:
        widest = (recipe.potential_range - 1) / recipe.units
        notes.append(
            f"{experiment.negative:.0%} negative by potentials below {recipe.potential_range / recipe.units:g}, "
            f"which widen the weights to {experiment.low - widest:g}..{experiment.high + widest:g}"
        )
    if recipe.connected:
        notes.append("strongly connected by i -> i + 1")
    if recipe.exact:
        notes.append("exact number of edges")
    return "; ".join(notes)
