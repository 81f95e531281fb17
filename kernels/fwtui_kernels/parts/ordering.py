"""The elimination ordering of a sparse graph: nested dissection finds small separators, which become supernodes.

The elimination tree (Liu, SIAM J. Matrix Anal. Appl. 11(1), 1990) shows the dependences of the vertices. A small subtree becomes
one supernode, because a kernel works on whole tiles, and so does a chain.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from fwtui_kernels.parts.elimination import Work, work
from fwtui_kernels.plan import NO_EDGE, EliminationOrder, Shape, Supernode

MAX_DEGREE = 64  # distinct arcs from a vertex, on average; graphs with more have no small separators
MAX_SUPERNODES = 4096
CELLS = 1 << 24  # cells of a matrix that are searched for arcs at a time
LEAVES = (2, 4)  # maximum tiles of a leaf, each of them tested
DISSECTED = 64  # vertices of a piece that is not cut further
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
    shape: Shape, graph: Any, launch: int, metis: int, eliminated: Callable[..., Iterator[Work]], cores: int = 1
) -> Shape:
    """Return the shape with the fastest elimination order, or unchanged if the dense plan is estimated to be faster.

    `graph` is the matrix, or the sources, targets and weights of the arcs. `launch` is the launch overhead in relaxations, and
    `metis` the time of METIS for one vertex, also in relaxations. METIS runs if it is installed and if half of the
    relaxations, which its separators save at most on meshes and road maps, would take longer than METIS.
    """
    sources, targets, weights = arcs_of(graph) if isinstance(graph, np.ndarray) else graph
    cells = (sources.astype(np.int64) * shape.n + targets)[(sources != targets) | (weights < 0)]
    if shape.n < 4 * shape.tile or (len(cells) > MAX_DEGREE * shape.n and len(np.unique(cells)) > MAX_DEGREE * shape.n):
        return shape
    from fwtui_kernels.compiled import trees  # imports numba
    from fwtui_kernels.parts.dissection import dissect

    near = trees.neighbours(shape.n, sources, targets, weights, "float64")
    begins, others, directed = near.begins, near.others, not np.array_equal(near.there, near.back)
    there = np.isfinite(near.there)
    arcs = Arcs(*(part[there] for part in (np.repeat(np.arange(shape.n), np.diff(begins)), others, near.there)))
    best, least = shape, (-(-shape.n // shape.tile) * launch * 3 + shape.n**3) / MIN_GAIN
    for by_metis in (False, True):
        if by_metis and (least < 2 * metis * shape.n or not metis_installed()):
            break
        vertices = ordered_by_metis(begins, others) if by_metis else dissect(begins, others, DISSECTED).vertices
        parents, sizes = trees.elimination_tree(begins, others, vertices, inverse(vertices))
        # a subtree of up to `leaf` tiles is a leaf, and a separator of up to `small` vertices is merged into its parent
        for leaf, small in product(LEAVES, (0, shape.tile // 2)):
            numbers, above = numbered(*trees.grouped(parents, sizes, leaf * shape.tile, small))
            if len(above) > MAX_SUPERNODES:
                continue
            by_number, members = vertices[np.argsort(numbers, kind="stable")], np.bincount(numbers)
            firsts = np.concatenate([[0], np.cumsum(members)])
            touched, starts = trees.touched(begins, others, by_number, inverse(by_number), firsts, above)
            nodes = tuple(map(Supernode, members.tolist(), above.tolist(), np.diff(starts).tolist()))
            candidate = replace(shape, order=EliminationOrder(nodes, directed, Factor(by_number, starts, touched, arcs)))
            cost = sum(max(step.cost.relaxations, step.longest_task * cores) + launch for step in work(candidate, eliminated))
            if cost < least:
                best, least = candidate, cost
    return best


def metis_installed() -> bool:
    return "pymetis" in sys.modules or find_spec("pymetis") is not None


def inverse(vertices: np.ndarray) -> np.ndarray:
    """Return the place of each vertex."""
    places = np.empty(len(vertices), np.int32)
    places[vertices] = np.arange(len(vertices), dtype=np.int32)
    return places


def numbered(group: np.ndarray, above: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the groups that have vertices, children first.

    Returns the number of each place's group, and the number of each group's parent, -1 for a root.
    """
    used = np.flatnonzero(np.bincount(group, minlength=len(above)))[::-1]
    numbers = np.full(len(above) + 1, -1, np.int32)  # the last item is for roots, whose parent is -1
    numbers[used] = np.arange(len(used))
    return numbers[group], numbers[above[used]]


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


def ordered_by_metis(begins: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the vertices in METIS's nested dissection order, after those without an edge: it rejects them, and self-loops."""
    import pymetis  # an optional dependency

    sources = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
    sources, others = sources[sources != others], others[sources != others]
    degrees = np.bincount(sources, minlength=len(begins) - 1)
    joined = np.flatnonzero(degrees)
    if not len(joined):
        return np.arange(len(degrees), dtype=np.int32)
    names = np.cumsum(degrees > 0, dtype=np.int32) - 1
    adjacency = pymetis.CSRAdjacency(np.append(0, np.cumsum(degrees[joined])).astype(np.int32), names[others])
    inside = np.asarray(pymetis.nested_dissection(adjacency)[0])
    return np.concatenate([np.flatnonzero(degrees == 0), joined[inside]]).astype(np.int32)
