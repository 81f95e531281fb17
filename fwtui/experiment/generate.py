"""Generated graphs: G(n, p) or an exact number of edges, the same bytes on every machine; checked beforehand for size."""

from __future__ import annotations

import shutil
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import isqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

from fwtui.common.errors import Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.common.text import clean
from fwtui.common.units import memory
from fwtui.experiment.experiment import KINDS, Experiment
from fwtui.experiment.hashing import ONE, PLAIN, ZERO
from fwtui.graphs import GRID
from fwtui.graphs.formats import written_as
from fwtui.graphs.graph import GraphInput, blocks, graph_of
from fwtui.graphs.opening import MAX_BYTES
from fwtui_kernels.plan import FLOATS, ITEMSIZE, NO_EDGE

SURELY = 0.9  # of the expected text: the number of edges is only known afterwards


class CellRule(NamedTuple):
    """Everything that decides a cell, as NumPy numbers, so that every generator computes in the same types.

    An edge is drawn by `threshold`, or is one of `drawn` out of `cells`. Weights count in units of 1 / `Recipe.units`.
    """

    key: np.uint64
    kind: np.int64  # of hashing.py
    threshold: np.uint64  # round(p x 2^32), p of an edge that is drawn at random
    across: np.uint64  # columns of a grid
    low: np.int64
    span: np.uint64  # number of different weights
    scale: np.int64 | np.float64  # weight of one unit
    no_edge: np.int64 | np.float64
    connected: bool  # edges i -> i + 1 are always there
    exact: bool
    shifted: bool  # by potentials
    drawn: np.uint64  # edges to draw, without the forced ones
    cells: np.uint64  # cells to draw them from
    half: np.uint64  # half the bits of the shuffled range
    shuffle_key: np.uint64


@dataclass(frozen=True)
class Recipe:
    """A graph's parameters as integers, for every generator."""

    n: int
    dtype: str
    rule: CellRule
    units: int  # 1, or 256 for real weights
    potential_range: int  # 0: no negative edges asked for
    potentials: np.ndarray  # int64 (n,) in units, or an unused (1,)

    def weight(self, units: Any) -> Any:
        """A number or an array of units as weights."""
        return units if self.units == 1 else units / self.units


def recipe_for(e: Experiment) -> Recipe:
    """The integers that make its graph. Raises Refused if no such graph exists or its weights do not fit."""
    units = GRID if e.real else 1
    low, high = round(e.low * units), round(e.high * units)
    forced = e.n if e.connected and e.n > 1 else 0
    edges = round(e.density * e.n * (e.n - 1))
    if e.exact and edges < forced:
        raise Refused(
            f"{edges} edges cannot connect {e.n} vertices strongly, which takes {forced}; "
            f"raise the density to {forced / (e.n * (e.n - 1)):.4g}, or ask for no connectivity"
        )
    reach = potential_range(e.negative, low, high)
    greatest = (high + max(0, reach - 1)) / units
    if greatest >= NO_EDGE[e.dtype]:
        raise Refused(f"weights up to {greatest:g} do not fit {e.dtype}, which ends at {NO_EDGE[e.dtype] - 1}; choose int32")
    cells = e.n * (e.n - 1) - forced
    with np.errstate(over="ignore"):  # NumPy warns when scalars wrap, but here they should
        key = PLAIN.graph_key(np.uint64(e.seed))
        shuffle_key = PLAIN.mix(key)
        vertices = np.arange(e.n if reach else 1, dtype=np.uint64)
        potentials = PLAIN.potential(key, vertices, np.uint64(reach)).astype(np.int64)
    number = np.float64 if e.dtype in FLOATS else np.int64
    rule = CellRule(
        key=key,
        kind=np.int64(KINDS.index(e.kind)),
        threshold=np.uint64(round(_probability(e) * 2**32)),
        across=np.uint64(isqrt(e.n - 1) + 1),
        low=np.int64(low),
        span=np.uint64(high - low + 1),
        scale=number(1 / units if number is np.float64 else 1),
        no_edge=number(NO_EDGE[e.dtype]),
        connected=forced > 0,
        exact=e.exact,
        shifted=reach > 0,
        drawn=np.uint64(max(0, edges - forced)),
        cells=np.uint64(cells),
        half=np.uint64(max(1, (max(0, cells - 1).bit_length() + 1) // 2)),
        shuffle_key=shuffle_key,
    )
    return Recipe(e.n, e.dtype, rule, units, reach, potentials)


def _probability(e: Experiment) -> float:
    """Of each edge that is drawn at random: all of a grid's are there, and a tenth of a road map's streets is missing.

    A small world is a ring of vertices that know their two neighbours on either side, and a tenth as many shortcuts (Newman,
    Watts 1999). A power law draws with a probability of its own for each pair, which gives a mean degree of 8 and as many
    vertices of degree d as 1 / d^3 says (Chung, Lu 2002).
    """
    shortcuts = min(1.0, 0.4 / max(1, e.n - 1))
    return {"random": e.density, "grid": 1.0, "road": 0.9, "small-world": shortcuts}.get(e.kind, 0.0)


def potential_range(share: float, low: int, high: int) -> int:
    """The number of potentials H that comes nearest to that share of negative edges; 0 for none.

    The difference of two uniform potentials is triangular: -d has probability (H - d) / H^2.
    """
    if share <= 0:
        return 0

    expected = partial(expected_share, low=low, high=high)
    above = 2
    while expected(above) < share:
        above *= 2
    above = bisect_left(range(above), share, lo=above // 2 + 1, key=expected)
    return min((above - 1, above), key=lambda reach: abs(expected(reach) - share))


def expected_share(reach: int, low: int, high: int) -> float:
    """Expected share of negative edges for weights low..high and potentials 0..reach - 1, all uniform."""

    def tetrahedral(x: int) -> int:
        return x * (x + 1) * (x + 2) // 6 if x > 0 else 0

    below = tetrahedral(reach - 1 - low) - tetrahedral(reach - 2 - high)
    return below / (reach * reach * (high - low + 1))


Fill = Callable[[np.ndarray, Recipe], None]


def fill_numpy(out: np.ndarray, recipe: Recipe) -> None:
    """Write the graph into out (n, n) with NumPy alone: the reference for the compiled generators."""
    n, rule = recipe.n, recipe.rule
    column = np.arange(n, dtype=np.uint64)[None, :]
    for rows in blocks(out):
        row = np.arange(rows.start, rows.stop, dtype=np.uint64)[:, None]
        hashed = PLAIN.cell_hash(rule.key, row, column)
        following = (column == (row + ONE) % np.uint64(n)) if rule.connected else np.zeros(hashed.shape, dtype=bool)
        diagonal = row == column
        if rule.exact:
            edge = np.zeros(hashed.shape, dtype=bool)
            free = ~(diagonal | following)
            forced = ONE if rule.connected else ZERO
            index = PLAIN.cell_index(row, column, np.uint64(n), forced)[free]
            edge[free] = _permuted(index, rule) < rule.drawn
        elif rule.kind:
            edge = PLAIN.linked(rule.kind, rule.key, rule.threshold, row, column, np.uint64(n), rule.across)
        else:
            edge = PLAIN.toss(hashed, rule.threshold)
        weight = rule.low + PLAIN.scaled(hashed, rule.span).astype(np.int64)
        if rule.shifted:
            weight += recipe.potentials[rows, None] - recipe.potentials[None, :]
        block = np.where(edge | following, weight * rule.scale, rule.no_edge)
        block[diagonal] = 0
        out[rows] = block


def _permuted(index: np.ndarray, rule: CellRule) -> np.ndarray:
    """Cycle walking: shuffle numbers outside the range again, which keeps a bijection of 0 .. cells - 1."""
    index = PLAIN.shuffle(index, rule.shuffle_key, rule.half)
    outside = np.flatnonzero(index >= rule.cells)
    while outside.size:
        index[outside] = PLAIN.shuffle(index[outside], rule.shuffle_key, rule.half)
        outside = outside[index[outside] >= rule.cells]
    return index


def generate(spec: Experiment, fill: Fill = fill_numpy) -> GraphInput:
    """Return the requested graph. `fill` writes the matrix; compiled versions are in fwtui.engine.

    Raises Refused if the number of edges cannot connect the graph or the weights do not fit the type.
    """
    recipe = recipe_for(spec)
    matrix = np.empty((recipe.n, recipe.n), dtype=recipe.dtype)
    fill(matrix, recipe)
    name = f"G({spec.n}, {spec.density:g})" if spec.kind == "random" else f"{spec.kind} {spec.n}"
    graph = replace(graph_of(matrix, not spec.real, name), note=_note(spec, recipe))
    if not recipe.potential_range:
        return graph
    return replace(graph, potentials=recipe.weight(recipe.potentials), potential_range=recipe.weight(recipe.potential_range))


def _note(spec: Experiment, recipe: Recipe) -> str:
    notes = []
    if recipe.potential_range:
        widest = (recipe.potential_range - 1) / recipe.units
        notes.append(
            f"{spec.negative:.0%} negative by potentials below {recipe.potential_range / recipe.units:g}, "
            f"which widen the weights to {spec.low - widest:g}..{spec.high + widest:g}"
        )
    if recipe.rule.connected:
        notes.append("strongly connected by i -> i + 1")
    if recipe.rule.exact:
        notes.append("exact number of edges")
    return "; ".join(notes)


def check_room(e: Experiment, out: Path) -> None:
    """Raises Refused if the generated graph does not fit into memory or its file."""
    form = written_as(out)
    needed = e.n**2 * ITEMSIZE[e.dtype]
    _check(e, needed, psutil.virtual_memory().available - KEPT_FREE, "memory")
    if form.says("ARRAYS") and out.parent.is_dir():
        _check(e, needed, shutil.disk_usage(out.parent).free, "disk space")
    text = text_bytes(e, form.says("ARC_BYTES"))
    if SURELY * text > MAX_BYTES:
        raise Refused(
            f"{clean(out.name)} would have about {text:,.0f} bytes of text, more than {MAX_BYTES:,}; "
            f"choose .npz, or a smaller or sparser graph"
        )


def _check(e: Experiment, needed: int, free: int, what: str) -> None:
    if needed > free:
        fits = isqrt(max(0, free) // ITEMSIZE[e.dtype])
        raise Refused(
            f"a graph of {e.n:,} vertices in {e.dtype} needs {memory(needed)} of {what} and {memory(max(0, free))} are "
            f"free; choose n up to {fits}"
        )


def _edges(e: Experiment) -> float:
    """The least number of edges to be expected."""
    n = e.n
    per_vertex = {"random": e.density * (n - 1), "grid": 3, "road": 2.5, "small-world": 3, "power-law": 4}[e.kind]
    return n * min(per_vertex, n - 1)


def text_bytes(e: Experiment, arc_bytes: int) -> float:
    """The least text size of the expected edges; 0 if their format gives none."""
    n = e.n
    digits = sum(n + 1 - 10**length for length in range(len(str(n)))) / n  # of a vertex, on average
    return _edges(e) * (2 * digits + arc_bytes) if arc_bytes else 0.0
