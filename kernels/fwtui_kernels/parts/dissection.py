"""Nested dissection of a sparse graph: separators by breadth-first searches, all pieces of a depth in parallel.

A. George, J. W. H. Liu, An Automatic Nested Dissection Algorithm for Irregular Finite Element Problems, SINUM 15(5),
1978. Each separator is then refined. Imports numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fwtui_kernels.compiled.all_cores import entry, on_all_cores
from fwtui_kernels.compiled.locked_njit import inner

BELOW, ABOVE, SEPARATOR = range(3)  # sides of a cut
MAX_DEPTH = 64  # maximum depth of the tree
MIN_SHARE = 0.3  # minimum share of a piece's vertices on either side of its separator
SEARCHES, LARGE = 3, 1 << 17  # each from the last vertex of the one before: the last one begins at the rim; one less if large
PASSES, MAX_WORSE = 4, 100  # refinements of a separator, and consecutive moves in one that do not shorten it
MAX_SEPARATOR = 4  # separators that cut so many square grids of a piece's size are not refined: the dense plan is faster


class Dissection(NamedTuple):
    """A tree of supernodes, children first: leaves and separators, whose vertices are neighbours in the order."""

    vertices: np.ndarray  # (n,) in the order of elimination
    firsts: np.ndarray  # first index of each supernode in `vertices`, and the end
    parents: np.ndarray  # the supernode above, -1 for none


def dissect(begins: np.ndarray, others: np.ndarray, leaf: int) -> Dissection:
    """Dissect a graph whose neighbours are given both ways, until a piece has at most `leaf` vertices or cannot be cut."""
    n = len(begins) - 1
    vertices = np.arange(n, dtype=np.int32)
    piece_of, (levels, room, marks) = np.zeros(n, np.int32), np.empty((3, n), np.int32)
    spans, above = np.array([[0, n]], np.int64), np.array([-1], np.int64)
    nodes: list[tuple[np.ndarray, np.ndarray]] = []  # first vertex and end, and parent of nodes that are done
    count = 0
    for depth in range(MAX_DEPTH):
        cuts = np.empty((len(spans), 2), np.int64)
        most = leaf if depth + 1 < MAX_DEPTH else n
        _cut_all(len(spans), begins, others, vertices, piece_of, levels, room, marks, spans, most, count, cuts)
        low, high = cuts[:, 0], cuts[:, 1]  # beginnings of the second side and of the separator
        nodes.append((np.stack([high, spans[:, 1]], axis=1), above))
        numbers = np.arange(count, count + len(spans))
        count += len(spans)
        sides = np.stack([np.stack([spans[:, 0], low], 1), np.stack([low, high], 1)], 1).reshape(-1, 2)
        kept = sides[:, 1] > sides[:, 0]
        spans, above = sides[kept], np.repeat(numbers, 2)[kept]
        if not len(spans):
            break
    ends, parents = np.concatenate([part for part, _ in nodes]), np.concatenate([part for _, part in nodes])
    return _numbered(vertices, ends, parents)


def merged(dissection: Dissection, leaf: int, small: int) -> Dissection:
    """Merge each subtree of at most `leaf` vertices into one supernode, and separators of at most `small` into their parents."""
    vertices, firsts, parents = dissection
    sizes = np.diff(firsts)
    below, into = sizes.copy(), np.arange(len(sizes))
    for node, parent in enumerate(parents.tolist()):
        if parent >= 0:
            below[parent] += below[node]
    for node in range(len(sizes) - 1, -1, -1):  # parents first
        parent = parents[node]
        if parent >= 0 and (below[parent] <= leaf or (sizes[node] <= small and below[node] > leaf)):
            into[node] = into[parent]
    kept, numbers = np.unique(into, return_inverse=True)
    number_of_vertex, over = np.repeat(numbers, sizes), parents[kept]
    starts = np.append(0, np.cumsum(np.bincount(number_of_vertex)))
    order = np.argsort(number_of_vertex, kind="stable")
    return Dissection(vertices[order], starts, np.where(over < 0, -1, numbers[over]))


def _numbered(vertices: np.ndarray, spans: np.ndarray, parents: np.ndarray) -> Dissection:
    """Number the nodes in the order of their vertices; remove nodes without a vertex, and move their children up."""
    empty = spans[:, 1] == spans[:, 0]
    for node in np.flatnonzero(empty):  # parents come before their children
        parents[parents == node] = parents[node]
    order = np.flatnonzero(~empty)
    order = order[np.argsort(spans[order, 0])]
    numbers = np.full(len(spans) + 1, -1, np.int64)
    numbers[order] = np.arange(len(order))
    return Dissection(vertices, np.append(spans[order, 0], len(vertices)), numbers[parents[order]])


@entry
def _cut_all(pieces, *arguments):
    """Cut each piece; its vertices are reordered as one side, the other side, and the separator."""
    on_all_cores(_cut, pieces, arguments)  # pyright: ignore[reportCallIssue]


@inner(cache=True)
def _cut(piece, begins, others, vertices, piece_of, levels, room, sides, spans, leaf, number, cuts):
    """Cut vertices[low:high] by the smallest level set near the middle of a search from a vertex at the rim, and refine it.

    If it has more than sqrt(high - low) vertices, as many as cut a square grid, cut by the search tree if that takes fewer.
    """
    low, high, name, cut = spans[piece, 0], spans[piece, 1], number + piece, cuts[piece]
    mine, queue, size = vertices[low:high], room[low:high], high - low
    cut[0] = cut[1] = low
    if size <= leaf:
        return
    for vertex in mine:
        piece_of[vertex] = name
    first = mine[0]
    for _ in range(SEARCHES if size < LARGE else SEARCHES - 1):  # few pieces are large: most cores wait for their searches
        _search(begins, others, mine, piece_of, name, levels, queue, first)
        first = queue[size - 1]
    best, at, start = size + 1, levels[queue[size // 2]], 0
    if at == levels[queue[size - 1]] and at > 1:
        at -= 1  # the last level separates nothing
    while start < size:  # the queue is in the order of the levels
        level, end = levels[queue[start]], start
        while end < size and levels[queue[end]] == level:
            end += 1
        if end < size and levels[queue[end]] > level + 1 and min(end, size - end) >= MIN_SHARE * size:
            best, at = 0, level  # between components
        elif min(start, size - end) >= MIN_SHARE * size and end - start < best:
            best, at = end - start, level
        start = end
    if best * best > size and _cut_tree(begins, others, queue, piece_of, name, levels, sides) < best:
        for vertex in mine:
            levels[vertex] = sides[vertex]
    else:
        for vertex in mine:
            level = levels[vertex]
            levels[vertex] = SEPARATOR if level == at and best > 0 else BELOW if level <= at else ABOVE
    _refine(begins, others, mine, piece_of, name, levels, sides, queue)
    counts, places = np.empty(3, np.int64), np.empty(3, np.int64)
    counts[:] = 0
    for vertex in mine:
        counts[levels[vertex]] += 1
    if 2 * counts[SEPARATOR] > size or max(counts[BELOW], counts[ABOVE]) == size:
        return
    places[0], places[1], places[2] = 0, counts[BELOW], counts[BELOW] + counts[ABOVE]
    for vertex in mine:
        side = levels[vertex]
        queue[places[side]] = vertex
        places[side] += 1
    for place in range(size):  # an assignment of arrays would take seconds to compile, for the text of its error
        mine[place] = queue[place]
    cut[0] = low + counts[BELOW]
    cut[1] = cut[0] + counts[ABOVE]


@inner(cache=True)
def _search(begins, others, mine, piece_of, name, levels, queue, first):
    """Fill `queue` with the piece's vertices by their levels; between components one level is skipped."""
    for vertex in mine:
        levels[vertex] = -1
    levels[first] = 0
    queue[0] = first
    filled, at, next_start = 1, 0, 0
    while filled < len(mine):
        while at < filled:
            vertex = queue[at]
            at += 1
            for arc in range(begins[vertex], begins[vertex + 1]):
                other = others[arc]
                if piece_of[other] == name and levels[other] < 0:
                    levels[other] = levels[vertex] + 1
                    queue[filled] = other
                    filled += 1
        if filled < len(mine):
            while levels[mine[next_start]] >= 0:
                next_start += 1
            levels[mine[next_start]] = levels[queue[filled - 1]] + 2
            queue[filled] = mine[next_start]
            filled += 1


@inner(cache=True)
def _cut_tree(begins, others, queue, piece_of, name, levels, sides):
    """Set the sides of the vertices by the centroid of the search tree; return the size of the separator.

    The separator is the centroid, if a subtree has half of the vertices, and one end of each edge between the sides.
    """
    size, centroid, separator = len(queue), -1, 0
    parents, below = np.empty(size, np.int32), np.empty(size, np.int32)  # by place in the queue: parent, size of the subtree
    parents[:], below[:] = -1, 1
    for place in range(size):
        sides[queue[place]] = place
    for place in range(size - 1, -1, -1):
        vertex = queue[place]
        for arc in range(begins[vertex], begins[vertex + 1]):
            other = others[arc]
            if piece_of[other] == name and levels[other] < levels[vertex]:
                parents[place] = sides[other]
                below[sides[other]] += below[place]
                break
        if centroid < 0 and 2 * below[place] >= size:
            centroid = place
    over = parents[centroid] if centroid >= 0 else -1
    while over >= 0:
        below[over] -= below[centroid]
        over = parents[over]
    weights = np.empty(2, np.int64)
    weights[:] = 0
    for place in range(size):
        parent, side = parents[place], SEPARATOR
        if place != centroid and (parent < 0 or parent == centroid):  # of a part without the centroid
            side = BELOW if weights[BELOW] <= weights[ABOVE] else ABOVE
            weights[side] += below[place]
        elif place != centroid:
            side = sides[queue[parent]]
        sides[queue[place]] = side
    for vertex in queue:
        if sides[vertex] == BELOW:
            for arc in range(begins[vertex], begins[vertex + 1]):
                if piece_of[others[arc]] == name and sides[others[arc]] == ABOVE:
                    sides[vertex] = SEPARATOR
                    break
        separator += sides[vertex] == SEPARATOR
    return separator


@inner(cache=True)
def _refine(begins, others, mine, piece_of, name, sides, locked, separator):
    """Shorten a separator by moves of its vertices to a side; the neighbours on the other side enter the separator.

    In a pass each vertex moves at most once, the best one first, even if the separator grows. The shortest separator of the pass
    is restored at its end (C. M. Fiduccia, R. M. Mattheyses, A Linear-Time Heuristic for Improving Network Partitions, 1982).
    """
    size, counts = len(mine), np.empty(3, np.int64)
    trail, former = np.empty(3 * size, np.int32), np.empty(3 * size, np.int32)  # changed vertices, and their sides before
    for _ in range(PASSES):
        length = 0
        counts[:] = 0
        for vertex in mine:
            locked[vertex] = 0
            counts[sides[vertex]] += 1
            if sides[vertex] == SEPARATOR:
                separator[length] = vertex
                length += 1
        if length > MAX_SEPARATOR * np.sqrt(size):
            break
        shortest, changes, kept, worse, first = length, 0, 0, 0, length
        while worse < MAX_WORSE:
            place, to = _best_move(begins, others, piece_of, name, sides, locked, separator, length, counts, MIN_SHARE * size)
            if place < 0:
                break
            vertex = separator[place]
            length -= 1
            separator[place] = separator[length]
            trail[changes], former[changes] = vertex, SEPARATOR
            changes += 1
            sides[vertex], locked[vertex] = to, 1
            counts[to] += 1
            for arc in range(begins[vertex], begins[vertex + 1]):
                other = others[arc]
                if piece_of[other] == name and sides[other] == 1 - to:
                    trail[changes], former[changes] = other, 1 - to
                    changes += 1
                    sides[other] = SEPARATOR
                    separator[length] = other
                    length += 1
                    counts[1 - to] -= 1
            worse += 1
            if length < shortest:
                shortest, kept, worse = length, changes, 0
        for change in range(changes - 1, kept - 1, -1):
            sides[trail[change]] = former[change]
        if shortest == first:
            break


@inner(cache=True)
def _best_move(begins, others, piece_of, name, sides, locked, separator, length, counts, least):
    """Return the place of the separator's vertex whose move pulls the fewest vertices, and its new side; -1 if none may move.

    Of equal moves the one to the smaller side is best. A move that pulls vertices leaves at least `least` on their side.
    """
    best, to, fewest = -1, 0, len(locked)
    for place in range(length):
        vertex = separator[place]
        if locked[vertex]:
            continue
        below = above = 0
        for arc in range(begins[vertex], begins[vertex + 1]):
            other = others[arc]
            if piece_of[other] == name:
                below += sides[other] == BELOW
                above += sides[other] == ABOVE
        for side in (BELOW, ABOVE):
            pulled = above if side == BELOW else below
            better = pulled < fewest or (pulled == fewest and counts[side] < counts[to])
            if better and (pulled == 0 or counts[1 - side] - pulled >= least):
                best, to, fewest = place, side, pulled
    return best, to
