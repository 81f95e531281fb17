"""Generated graphs: G(n, p) or an exact number of edges, the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fwtui.experiment.experiment import Experiment, changed
from fwtui.graphs.graph import GraphInput, survey
from fwtui.graphs.recipe import Recipe, recipe_for

Fill = Callable[[np.ndarray, Recipe], None]


def generate(experiment: Experiment, fill: Fill | None = None) -> GraphInput:
    """The experiment's graph. `fill` writes the matrix (compiled for the CPU unless told otherwise).

    Raises Refused where the asked number of edges cannot connect the graph, or the weights do not fit the type.
    """
    recipe = recipe_for(experiment)
    if fill is None:
        from fwtui.engine.generate_cpu import fill
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
