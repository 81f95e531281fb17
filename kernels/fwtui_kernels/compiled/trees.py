"""The symbolic factorization of a sparse graph: adjacency, elimination tree, groups of vertices, and the vertices above each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from fwtui_kernels.compiled.locked_njit import njit
from fwtui_kernels.plan import NO_EDGE


class Neighbours(NamedTuple):
    """Arcs both ways: the neighbours of vertex v, ascending, are begins[v] : begins[v + 1] of `others`."""

    begins: np.ndarray
    others: np.ndarray
    there: np.ndarray  # the least weight of an arc from v to the neighbour; no edge of its type if there is none
    back: np.ndarray  # weight of the arc from the neighbour to v


def neighbours(n: int, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray, dtype: str) -> Neighbours:
    """Return the arcs vertex by vertex, the least of parallel ones; self-loops only if negative, no arc of infinite weight."""
    kept = (weights < np.inf) & ((sources != targets) | (weights < 0))
    cells, weights = _sorted(sources[kept].astype(np.int64) * n + targets[kept], weights[kept].astype(dtype))
    begins, others, places, reverse = _transposed(n, cells)
    if not np.array_equal(reverse, cells):
        alone = cells[np.minimum(np.searchsorted(cells, reverse), len(cells) - 1)] != reverse  # no arc the other way
        nowhere = np.full(np.count_nonzero(alone), NO_EDGE[dtype], dtype)
        cells, weights = _sorted(np.concatenate([cells, reverse[alone]]), np.concatenate([weights, nowhere]))
        begins, others, places, _ = _transposed(n, cells)
    return Neighbours(begins, others.astype(np.int32), weights, weights[places])


def _sorted(cells: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cells, ascending, each once, and the least weight of each."""
    if not (cells[1:] > cells[:-1]).all():
        order = np.argsort(cells, kind="stable")  # the fastest kind if most are in order
        cells, weights = cells[order], weights[order]
        firsts = np.flatnonzero(np.append(True, cells[1:] > cells[:-1]))
        cells, weights = cells[firsts], np.minimum.reduceat(weights, firsts)
    return cells, weights


def _transposed(n: int, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the first arc of each source and the end, the targets, the places of the arcs by target, and their reverse cells."""
    sources = cells // max(n, 1)
    targets, begins = cells - sources * n, np.searchsorted(cells, np.arange(n + 1) * n)
    # SciPy transposes in linear time
    by_target: Any = csr_array((np.arange(len(cells)), targets, begins), shape=(n, n)).tocsc()
    places = by_target.data
    return begins, targets, places, targets[places] * n + sources[places]


@njit(cache=True)
def elimination_tree(begins, others, vertices, places):
    """Return the parent of each place in the order (a later place, -1 for a root) and the size of each subtree."""
    n = len(vertices)
    parents, ancestors, sizes = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    parents[:], ancestors[:], sizes[:] = -1, -1, 1  # functions such as np.full take longer to compile
    for later in range(n):
        vertex = vertices[later]
        for arc in range(begins[vertex], begins[vertex + 1]):
            at = places[others[arc]]
            if at >= later:
                continue
            while ancestors[at] != -1 and ancestors[at] != later:  # path compression
                above = ancestors[at]
                ancestors[at] = later
                at = above
            if ancestors[at] == -1:
                ancestors[at] = parents[at] = later
    for place in range(n):
        if parents[place] >= 0:
            sizes[parents[place]] += sizes[place]
    return parents, sizes


@njit(cache=True)
def grouped(parents, sizes, leaf, small):
    """Return the group of each place and the parent of each group. A group precedes the groups below it; some are empty."""
    n = len(parents)
    room = np.empty((7, n + 1), np.int32)
    group, above, current, branches, counts, filled, into = room[0], room[1], room[2], room[3], room[4], room[5], room[6]
    room[:3], room[3:6], groups = -1, 0, 0
    for place in range(n):
        into[place] = place
        if parents[place] >= 0 and sizes[place] > leaf:
            branches[parents[place]] += 1
    for place in range(n - 1, -1, -1):
        if sizes[place] <= leaf:
            continue
        parent = parents[place]
        if parent < 0 or branches[parent] > 1:
            above[groups] = group[parent] if parent >= 0 else -1
            group[place] = groups
            groups += 1
        else:
            group[place] = group[parent]
        counts[group[place]] += 1
    for number in range(groups):
        if above[number] >= 0:
            above[number] = into[above[number]]
            if counts[number] <= small:
                into[number] = above[number]
                counts[into[number]] += counts[number]
    for place in range(n):
        if sizes[place] > leaf:
            group[place] = into[group[place]]
    for place in range(n):  # roots of leaves; small leaves of the same separator share a group
        parent = parents[place]
        if sizes[place] <= leaf and (parent < 0 or sizes[parent] > leaf):
            over = group[parent] if parent >= 0 else -1
            if current[over] < 0 or filled[over] + sizes[place] > leaf:
                above[groups] = over
                current[over] = groups
                filled[over] = 0
                groups += 1
            filled[over] += sizes[place]
            group[place] = current[over]
    for place in range(n - 1, -1, -1):
        if group[place] < 0:
            group[place] = group[parents[place]]
    return group[:n], above[:groups]


def touched(begins: Any, others: Any, vertices: Any, ranks: Any, firsts: Any, parents: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks of the vertices above that each supernode's subtree touches, and where those of each begin."""
    found, starts = _touched(begins, others, vertices, ranks, firsts, parents)
    offsets = np.repeat(np.arange(len(parents)) * len(vertices), np.diff(starts))
    # NumPy's sort, as numba takes a second to compile its own
    return (np.sort(found + offsets) - offsets).astype(np.int32), starts


@njit(cache=True)
def _touched(begins, others, vertices, ranks, firsts, parents):
    count = len(firsts) - 1
    found, room, starts = np.empty(len(others) + 16, np.int32), len(others) + 16, np.empty(count + 1, np.int64)
    mark, child, sibling = np.empty(len(vertices), np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
    mark[:], child[:], sibling[:] = -1, -1, -1
    starts[0] = at = 0
    for number in range(count):
        if room - at < len(vertices):
            room = 2 * room + len(vertices)
            longer = np.empty(room, np.int32)
            for place in range(at):  # an assignment of arrays would take seconds to compile
                longer[place] = found[place]
            found = longer
        end = firsts[number + 1]
        for rank in range(firsts[number], end):
            for arc in range(begins[vertices[rank]], begins[vertices[rank] + 1]):
                other = ranks[others[arc]]
                if other >= end and mark[other] != number:
                    mark[other] = number
                    found[at] = other
                    at += 1
        below = child[number]
        while below >= 0:
            for place in range(starts[below], starts[below + 1]):
                other = found[place]
                if other >= end and mark[other] != number:
                    mark[other] = number
                    found[at] = other
                    at += 1
            below = sibling[below]
        starts[number + 1] = at
        if parents[number] >= 0:
            sibling[number] = child[parents[number]]
            child[parents[number]] = number
    return found[:at], starts
