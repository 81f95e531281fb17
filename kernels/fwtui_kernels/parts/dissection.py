"""The order of a graph's vertices in which Floyd-Warshall has least to do: METIS finds separators, which become supernodes.

METIS gives an order only. The elimination tree says which vertices have to do with each other (Liu, SIAM J. Matrix Anal. Appl.
11(1), 1990); small subtrees become one supernode each, as a tile is the least that a kernel works on, and so does a chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from fwtui_kernels.parts.supernodal import of_supernodes
from fwtui_kernels.plan import NO_EDGE, EliminationOrder, Shape, Supernode

MOST_DEGREE = 64  # on average; graphs with more have no small separators
MOST_SUPERNODES = 4096
CELLS = 1 << 24  # of a matrix that are looked at together
LEAVES = (1, 2, 4, 8, 16)  # tiles of a leaf, at most


def ordered(shape: Shape, graph: Any, launch: int) -> Shape:
    """The shape with the order that takes least time; unchanged where none takes less than the dense plan.

    `graph` is its matrix, or the ends of its arcs, two arrays of vertices.
    `launch` is the number of relaxations in the time that a launch of each phase costs at least.
    """
    pairs = linked(graph) if isinstance(graph, np.ndarray) else both_ways(shape.n, *graph)
    dense = of_supernodes((Supernode(shape.n, -1),), shape.tile)
    best, least = shape, dense.relaxations(shape.tile) + launch * len(dense.together)
    if len(pairs) <= MOST_DEGREE * shape.n and shape.n > 2 * shape.tile:
        vertices = dissected(shape.n, pairs)
        parents = elimination_tree(vertices, pairs)
        for leaf, small in product(LEAVES, (0, shape.tile // 4)):
            order = supernodes(vertices, parents, shape.tile * leaf, small)
            if len(order.supernodes) > MOST_SUPERNODES:
                continue
            eliminated = of_supernodes(order.supernodes, shape.tile)
            cost = eliminated.relaxations(shape.tile) + launch * len(eliminated.together)
            if cost < least:
                best, least = replace(shape, order=order), cost
    return best


def linked(matrix: Any) -> np.ndarray:
    """Pairs (i, j) of different vertices, one of which has an edge to the other, both ways and sorted."""
    n, no_edge = len(matrix), matrix.dtype.type(NO_EDGE[matrix.dtype.name])
    rows = max(1, CELLS // n)
    arcs = []
    for top in range(0, n, rows):
        # of one axis, which NumPy does forty times as fast as of two
        arcs.append(np.flatnonzero(matrix[top : top + rows] != no_edge) + top * n)
        if sum(map(len, arcs)) > MOST_DEGREE * n:
            break
    return both_ways(n, *np.divmod(np.concatenate(arcs), n))


def both_ways(n: int, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The same of arcs."""
    keys = np.unique(np.concatenate([sources * n + targets, targets * n + sources]))
    pairs = np.stack([keys // n, keys % n], axis=1)
    return pairs[pairs[:, 0] != pairs[:, 1]]


def dissected(n: int, pairs: np.ndarray) -> np.ndarray:
    """The vertices in METIS's order; first those without an edge, which it does not take."""
    import pymetis  # an extra

    names = np.unique(pairs[:, 0])
    small = np.searchsorted(names, pairs)
    begins = np.searchsorted(small[:, 0], np.arange(len(names) + 1))
    inside = pymetis.nested_dissection(pymetis.CSRAdjacency(begins, small[:, 1]))[0] if len(names) else []
    return np.concatenate([np.setdiff1d(np.arange(n), names), names[np.asarray(inside, dtype=np.int64)]])


def elimination_tree(vertices: np.ndarray, pairs: np.ndarray) -> list[int]:
    """The parent of each place in the order, a later place; -1 for none."""
    n = len(vertices)
    place = np.empty(n, dtype=np.int64)
    place[vertices] = np.arange(n)
    down = place[pairs]
    down = down[down[:, 0] > down[:, 1]]
    down = down[np.lexsort((down[:, 1], down[:, 0]))]
    parents, above = [-1] * n, [-1] * n  # `above` is a way up with shortcuts
    for later, earlier in down.tolist():
        at = earlier
        while above[at] not in (-1, later):
            above[at], at = later, above[at]
        if above[at] == -1:
            above[at] = parents[at] = later
    return parents


def supernodes(vertices: np.ndarray, parents: Sequence[int], leaf: int, small: int) -> EliminationOrder:
    """Subtrees of at most `leaf` vertices are leaves, several to one where they hang on the same separator; a separator of at
    most `small` vertices is merged into its parent.
    """
    n = len(parents)
    size, branches = [1] * n, [0] * n
    for v, parent in enumerate(parents):
        if parent >= 0:
            size[parent] += size[v]
    for v, parent in enumerate(parents):
        if parent >= 0 and size[v] > leaf:
            branches[parent] += 1
    node = [-1] * n  # of each place
    members: list[list[int]] = []
    above: list[int] = []
    roots: dict[int, list[int]] = {}  # the roots of the leaves, by what they hang on
    top = list(range(n))  # the root of a leaf's place
    for v in range(n - 1, -1, -1):
        parent = parents[v]
        over = node[parent] if parent >= 0 else -1
        if size[v] > leaf:
            if parent < 0 or branches[parent] > 1:
                members.append([])
                above.append(over)
                over = len(members) - 1
            node[v] = over
            members[over].append(v)
        elif parent < 0 or size[parent] > leaf:
            roots.setdefault(over, []).append(v)
        else:
            top[v] = top[parent]
    _merge(members, above, roots, small)
    inside: dict[int, list[int]] = {}
    for v in range(n):
        inside.setdefault(top[v], []).append(v)
    for over, children in roots.items():
        leaves: list[int] = []
        for root in sorted(children):
            if not leaves or len(leaves) + size[root] > leaf:
                leaves = []
                members.append(leaves)
                above.append(over)
            leaves += inside[root]
    numbers = _postorder(members, above)
    places = {number: place for place, number in enumerate(numbers)}
    nodes = tuple(Supernode(len(members[number]), places.get(above[number], -1)) for number in numbers)
    return EliminationOrder(nodes, tuple(vertices[[v for number in numbers for v in sorted(members[number])]].tolist()))


def _merge(members: list[list[int]], above: list[int], roots: dict[int, list[int]], small: int) -> None:
    """Put the vertices of small separators, and what hangs on them, to their parents, which come before their children."""
    into = list(range(len(members)))
    for number in range(len(members)):
        if above[number] >= 0:
            above[number] = into[above[number]]
            if len(members[number]) <= small:
                into[number] = above[number]
                members[into[number]] += members[number]
                members[number] = []
    for over in [over for over in roots if over >= 0 and into[over] != over]:
        roots.setdefault(into[over], []).extend(roots.pop(over))


def _postorder(members: list[list[int]], above: list[int]) -> list[int]:
    """The supernodes that have members, children first and a subtree's side by side."""
    children: dict[int, list[int]] = {}
    for number, over in enumerate(above):
        if members[number]:
            children.setdefault(over, []).append(number)
    in_order: list[int] = []
    left = children.get(-1, [])[:]
    while left:
        in_order.append(left.pop())
        left += children.get(in_order[-1], [])
    return in_order[::-1]
