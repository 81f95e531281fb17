"""The order of a graph's vertices in which its elimination has least to do: METIS finds separators, which become supernodes.

METIS gives an order only. The elimination tree says which vertices have to do with each other (Liu, SIAM J. Matrix Anal. Appl.
11(1), 1990); small subtrees become one supernode each, as a tile is the least that a kernel works on, and so does a chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from fwtui_kernels.parts.elimination import Work, work
from fwtui_kernels.plan import NO_EDGE, EliminationOrder, Shape, Supernode

MAX_DEGREE = 64  # on average; graphs with more have no small separators
MAX_SUPERNODES = 4096
CELLS = 1 << 24  # of a matrix that are searched at a time
LEAVES = (2, 4)  # tiles of a leaf, at most
DOUBT = 1.5  # times by which the dense plan must take longer, as small products take more time than large ones


class Arcs(NamedTuple):
    """Arcs, the least of parallel ones, vertex by vertex."""

    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray


class Factor(NamedTuple):
    """What of an order a program needs. A rank is a vertex's place in the order, supernode by supernode."""

    vertices: np.ndarray  # by rank
    begins: np.ndarray  # of each supernode in `above`, and the end of all
    above: np.ndarray  # ranks of the vertices above that each supernode's subtree touches, ascending
    arcs: Arcs


def ordered(shape: Shape, graph: Any, launch: int, eliminated: Callable[..., Iterator[Work]], cores: int = 1) -> Shape:
    """Return the shape with the order that takes least time; unchanged where none takes less than the dense plan.

    `graph` is its matrix, or its arcs' sources, targets and weights.
    `launch` is the number of relaxations in the time that a launch costs at least.
    """
    arcs = arcs_of(graph) if isinstance(graph, np.ndarray) else least_arcs(shape.n, *graph)
    if len(arcs.sources) > MAX_DEGREE * shape.n or shape.n < 4 * shape.tile:
        return shape
    from fwtui_kernels.compiled import trees  # which brings numba

    begins, others, directed = neighbours(shape.n, arcs)
    vertices = dissected(begins, others)
    parents, sizes = trees.elimination_tree(begins, others, vertices, inverse(vertices))
    best, least = shape, (-(-shape.n // shape.tile) * launch * 3 + shape.n**3) / DOUBT
    # subtrees of at most so many tiles are leaves, and a separator of at most `small` vertices is merged into its parent
    for leaf, small in product(LEAVES, (0, shape.tile // 2)):
        numbers, above = numbered(*trees.grouped(parents, sizes, leaf * shape.tile, small))
        if len(above) > MAX_SUPERNODES:
            continue
        by_number, members = vertices[np.argsort(numbers, kind="stable")], np.bincount(numbers)
        firsts = np.concatenate([[0], np.cumsum(members)])
        touched, starts = trees.touched(begins, others, by_number, inverse(by_number), firsts, above)
        nodes = tuple(map(Supernode, members.tolist(), above.tolist(), np.diff(starts).tolist()))
        tried = replace(shape, order=EliminationOrder(nodes, directed, Factor(by_number, starts, touched, arcs)))
        cost = sum(max(step.cost.relaxations, step.alone * cores) + launch for step in work(tried, eliminated))
        if cost < least:
            best, least = tried, cost
    return best


def inverse(vertices: np.ndarray) -> np.ndarray:
    """Return the place of each vertex."""
    places = np.empty(len(vertices), np.int32)
    places[vertices] = np.arange(len(vertices), dtype=np.int32)
    return places


def numbered(group: np.ndarray, above: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the groups that have vertices, children first; return the number of each place, and that of each one's parent."""
    used = np.unique(group)[::-1]
    numbers = np.full(len(above) + 1, -1, np.int32)  # the last: no group
    numbers[used] = np.arange(len(used))
    return numbers[group], numbers[above[used]]


def arcs_of(matrix: np.ndarray) -> Arcs:
    """Return those of a matrix; some of them, but too many, if it has too many."""
    n, no_edge = len(matrix), matrix.dtype.type(NO_EDGE[matrix.dtype.name])
    rows = max(1, CELLS // n)
    found: list[np.ndarray] = []
    for top in range(0, n, rows):
        # of one axis, which NumPy does forty times as fast as of two
        found.append(np.flatnonzero(matrix[top : top + rows] != no_edge) + top * n)
        if sum(map(len, found)) > (MAX_DEGREE + 1) * n:
            break
    sources, targets = np.divmod(np.concatenate(found), n)
    return _useful(Arcs(sources, targets, matrix[sources, targets]))


def least_arcs(n: int, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> Arcs:
    """Return the least of parallel arcs."""
    keys = sources.astype(np.int64) * n + targets
    if not (np.diff(keys) > 0).all():
        by_key = np.lexsort((weights, keys))
        by_key = by_key[np.diff(keys[by_key], prepend=-1) != 0]
        sources, targets, weights = sources[by_key], targets[by_key], weights[by_key]
    return _useful(Arcs(sources, targets, weights))


def _useful(arcs: Arcs) -> Arcs:
    """Return them without those of infinite weight, and without self-loops unless they are negative cycles."""
    useful = ((arcs.sources != arcs.targets) | (arcs.weights < 0)) & (arcs.weights < np.inf)
    return Arcs(*(part[useful] for part in arcs))


def neighbours(n: int, arcs: Arcs) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return both ways where those of each vertex begin, and the vertices; and whether an arc has no equal one back."""
    keys = arcs.sources.astype(np.int64) * n + arcs.targets
    back = arcs.targets.astype(np.int64) * n + arcs.sources
    by_back = np.argsort(back)
    directed = not (np.array_equal(keys, back[by_back]) and np.array_equal(arcs.weights, arcs.weights[by_back]))
    both = np.union1d(keys, back) if directed else keys
    sources, targets = np.divmod(both, n)
    apart = sources != targets
    sources, targets = sources[apart], targets[apart]
    return np.searchsorted(sources, np.arange(n + 1)).astype(np.int32), targets.astype(np.int32), directed


def dissected(begins: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the vertices in METIS's order; first those without an edge, which it does not take."""
    import pymetis  # an extra

    degrees = np.diff(begins)
    joined = np.flatnonzero(degrees)
    if not len(joined):
        return np.arange(len(degrees), dtype=np.int32)
    names = np.cumsum(degrees > 0, dtype=np.int32) - 1
    adjacency = pymetis.CSRAdjacency(np.append(begins[joined], begins[-1]).astype(np.int32), names[others].astype(np.int32))
    inside = np.asarray(pymetis.nested_dissection(adjacency)[0])
    return np.concatenate([np.flatnonzero(degrees == 0), joined[inside]]).astype(np.int32)
