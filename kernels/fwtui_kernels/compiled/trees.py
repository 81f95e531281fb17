"""The symbolic factorization of a sparse graph: its adjacency, and the vertices above each supernode."""

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
