"""The symbolic factorization of a sparse graph: adjacency, elimination tree, groups of vertices, and the vertices above each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
    no_edge = np.dtype(dtype).type(NO_EDGE[dtype])
    return Neighbours(*_both_ways(n, sources, targets, weights, no_edge))


@njit(cache=True)
def _both_ways(n, sources, targets, weights, no_edge):
    count, number = len(sources), type(no_edge)
    # an arc has two halves: `arc` at its source and `count + arc` at its target. They are sorted by the other end, then by vertex
    first = np.zeros(n + 1, np.int64)
    for arc in range(count):
        first[sources[arc] + 1] += 1
        first[targets[arc] + 1] += 1
    first = np.cumsum(first)
    by_other, halves, at = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64), first.copy()
    for half in range(2 * count):
        other = targets[half] if half < count else sources[half - count]
        by_other[at[other]] = half
        at[other] += 1
    at = first.copy()
    for half in by_other:
        vertex = sources[half] if half < count else targets[half - count]
        halves[at[vertex]] = half
        at[vertex] += 1
    begins, others, filled = np.zeros(n + 1, np.int64), np.empty(2 * count, np.int32), 0
    there, back = np.full(2 * count, no_edge), np.full(2 * count, no_edge)
    for vertex in range(n):
        for half in halves[first[vertex] : first[vertex + 1]]:
            out, arc = half < count, half % count
            other, weight = targets[arc] if out else sources[arc], weights[arc]
            if weight < np.inf and (other != vertex or weight < 0):
                if filled == begins[vertex] or others[filled - 1] != other:
                    others[filled] = other
                    filled += 1
                side = there if out else back
                side[filled - 1] = min(side[filled - 1], number(weight))
        begins[vertex + 1] = filled
    return begins, others[:filled].copy(), there[:filled].copy(), back[:filled].copy()


@njit(cache=True)
def elimination_tree(begins, others, vertices, places):
    """Return the parent of each place in the order (a later place, -1 for a root) and the size of each subtree."""
    n = len(vertices)
    parents, ancestors, sizes = np.full(n, -1, np.int32), np.full(n, -1, np.int32), np.ones(n, np.int32)
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
    branches, group, fits = np.zeros(n, np.int32), np.full(n, -1, np.int32), sizes <= leaf
    above, counts, into = np.full(n, -1, np.int32), np.zeros(n, np.int32), np.arange(n).astype(np.int32)
    groups = 0
    for place in range(n):
        if parents[place] >= 0 and not fits[place]:
            branches[parents[place]] += 1
    for place in range(n - 1, -1, -1):
        if fits[place]:
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
        if not fits[place]:
            group[place] = into[group[place]]
    separators = groups
    current, filled = np.full(separators + 1, -1, np.int32), np.zeros(separators + 1, np.int32)
    for place in range(n):  # roots of leaves; small leaves of the same separator share a group
        parent = parents[place]
        if fits[place] and (parent < 0 or not fits[parent]):
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
    return group, above[:groups]


@njit(cache=True)
def touched(begins, others, vertices, ranks, firsts, parents):
    """Return the ranks of the vertices above that each supernode's subtree touches, and where those of each begin."""
    count = len(firsts) - 1
    found, room = np.empty(len(others) + 16, np.int32), len(others) + 16
    starts = np.zeros(count + 1, np.int64)
    mark, child, sibling = np.full(len(vertices), -1, np.int32), np.full(count, -1, np.int32), np.full(count, -1, np.int32)
    at = 0
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
        found[starts[number] : at].sort()
        starts[number + 1] = at
        if parents[number] >= 0:
            sibling[number] = child[parents[number]]
            child[parents[number]] = number
    return found[:at], starts
