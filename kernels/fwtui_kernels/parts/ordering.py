"""The elimination ordering of a sparse graph: nested dissection finds small separators, which become supernodes.

A kernel works on whole tiles, so a small subtree of the separators becomes one supernode, and a small separator joins the one
above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from fwtui_kernels.parts.elimination import Work, work
from fwtui_kernels.plan import NO_EDGE, EliminationOrder, Shape, Supernode

MAX_DEGREE = 64  # distinct arcs from a vertex, on average; graphs with more have no small separators
MAX_SUPERNODES = 4096
CELLS = 1 << 24  # cells of a matrix that are searched for arcs at a time
LEAVES = (1, 2, 4)  # maximum tiles of a leaf, each of them tested
SMALL = (4, 2)  # a separator of up to a tile / SMALL joins the one above it; each tested
MIN_GAIN = 1.5  # the dense plan must be estimated to take this much longer, because small products run at a lower rate


class Arcs(NamedTuple):
    """Arcs sorted by source and target, the shortest one of parallel arcs."""

    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray


class Factor(NamedTuple):
    """The symbolic factorization. The rank of a vertex is its place in the elimination order, supernode by supernode."""

    vertices: np.ndarray  # vertex of each rank
    begins: np.ndarray  # the first item of each supernode in `above`, and the end
    above: np.ndarray  # ranks of the vertices above that each supernode's subtree touches, ascending
    arcs: Arcs


def ordered(
    shape: Shape, graph: Any, launch: int, eliminated: Callable[..., Iterator[Work]], cores: int = 1, per_byte: int = 0
) -> Shape:
    """Return the shape with the fastest elimination order, or unchanged if the dense plan is estimated to be faster.

    `graph` is the matrix, or the sources, targets and weights of the arcs. `launch` is the launch overhead in relaxations, and
    `per_byte` the relaxations in the time to move a byte between memory and device.
    """
    sources, targets, weights = arcs_of(graph) if isinstance(graph, np.ndarray) else graph
    cells = (sources.astype(np.int64) * shape.n + targets)[(sources != targets) | (weights < 0)]
    if shape.n < 4 * shape.tile or (len(cells) > MAX_DEGREE * shape.n and len(np.unique(cells)) > MAX_DEGREE * shape.n):
        return shape
    from fwtui_kernels.compiled import trees  # imports numba
    from fwtui_kernels.parts.dissection import dissect, merged

    near = trees.neighbours(shape.n, sources, targets, weights, "float64")
    begins, others, directed = near.begins, near.others, not np.array_equal(near.there, near.back)
    there = np.isfinite(near.there)
    arcs = Arcs(*(part[there] for part in (np.repeat(np.arange(shape.n), np.diff(begins)), others, near.there)))
    best, least = shape, (-(-shape.n // shape.tile) * launch * 3 + shape.n**3) / MIN_GAIN
    dissection = dissect(begins, others, shape.tile)
    for leaf, small in product(LEAVES, SMALL):
        vertices, firsts, parents = merged(dissection, leaf * shape.tile, shape.tile // small)
        if len(parents) > MAX_SUPERNODES:
            continue
        touched, starts = trees.touched(begins, others, vertices, inverse(vertices), firsts, parents)
        nodes = tuple(map(Supernode, np.diff(firsts).tolist(), parents.tolist(), np.diff(starts).tolist()))
        candidate = replace(shape, order=EliminationOrder(nodes, directed, Factor(vertices, starts, touched, arcs)))
        cost = sum(
            max(step.cost.relaxations, step.longest_task * cores, step.cost.device_bytes * per_byte) + launch
            for step in work(candidate, eliminated)
        )
        if cost < least:
            best, least = candidate, cost
    return best


def inverse(vertices: np.ndarray) -> np.ndarray:
    """Return the place of each vertex."""
    places = np.empty(len(vertices), np.int32)
    places[vertices] = np.arange(len(vertices), dtype=np.int32)
    return places


def arcs_of(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arcs of a matrix, with its diagonal. The search stops once the others are more than `ordered` accepts."""
    n, no_edge = len(matrix), matrix.dtype.type(NO_EDGE[matrix.dtype.name])
    rows = max(1, CELLS // n)
    found: list[np.ndarray] = []
    for top in range(0, n, rows):
        # NumPy finds nonzero cells of one axis 40 times faster than of two
        found.append(np.flatnonzero(matrix[top : top + rows] != no_edge) + top * n)
        if sum(map(len, found)) > (MAX_DEGREE + 1) * n:
            break
    sources, targets = np.divmod(np.concatenate(found)[: (MAX_DEGREE + 1) * n + 1], n)
    return sources, targets, matrix[sources, targets]
