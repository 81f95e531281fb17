"""Generated graphs: G(n, p) or an exact number of edges, the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fwtui.graphs.generate_numpy import fill_numpy
from fwtui.graphs.graph import GraphInput, survey
from fwtui.graphs.recipe import Recipe, recipe_for
from fwtui.graphs.spec import GraphSpec

Fill = Callable[[np.ndarray, Recipe], None]


def generate(spec: GraphSpec, fill: Fill = fill_numpy) -> GraphInput:
    """The graph that is asked for. `fill` writes the matrix; compiled forms are in fwtui.engine.

    Raises Refused where the asked number of edges cannot connect the graph, or the weights do not fit the type.
    """
    recipe = recipe_for(spec)
    matrix = np.empty((recipe.n, recipe.n), dtype=recipe.dtype)
    fill(matrix, recipe)
    edges, negative, low, high = survey(matrix)
    potentials: np.ndarray | None = None
    drift: int | float = 0
    if recipe.potential_range:
        potentials = recipe.potentials if recipe.units == 1 else recipe.potentials / recipe.units
        drift = recipe.potential_range if recipe.units == 1 else recipe.potential_range / recipe.units
    elif low is not None and low < 0:
        drift = (recipe.n - 1) * (-low if spec.real else int(-low))
    return GraphInput(
        matrix=matrix,
        integer=not spec.real,
        edges=edges,
        low=low,
        high=high,
        negative_share=negative / edges if edges else None,
        drift=drift,
        potentials=potentials,
        name=f"G({recipe.n}, {spec.density:g})",
        note=_note(spec, recipe),
    )


def _note(spec: GraphSpec, recipe: Recipe) -> str:
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
