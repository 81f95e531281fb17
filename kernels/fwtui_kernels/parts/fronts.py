"""Lookup tables for the launches of an elimination and its sweep: int32, one row per item."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fwtui_kernels.parts.elimination import depth_of
from fwtui_kernels.parts.ordering import Arcs
from fwtui_kernels.plan import Shape, row_alignment

# columns of `nodes`: the first row of a node's front, the number of columns that are solved, and of all columns; the node's first
# row and its end in the matrix; its first item in `taken`, and the number of its items there
BASE, SOLVED, COLUMNS, START, END, INDEX, DEPTH = range(7)
# columns of `rows`: the width and the diagonal of a row of a front, and its first arc and first kid, which end at the next row's
WIDTH, DIAGONAL, ARCS, KIDS = range(4)
# columns of `kids`: a row of a child's front, the first column to take from it and the number of columns, and the first item in
# `to` of the columns that receive them
ROW, FROM, COUNT, TO = range(4)


class Fronts(NamedTuple):
    """All fronts in one array, the leaves first. The supernode of a front and the whole front are padded to whole tiles."""

    nodes: np.ndarray  # one row per supernode, level by level from the leaves, in a level most tiles to solve first
    taken: np.ndarray  # matrix rows of the vertices above each supernode, padded to whole slabs
    rows: np.ndarray  # one row per row of the fronts, and an end row
    columns: np.ndarray  # column of each arc in its front, in the order of `arcs`
    kids: np.ndarray
    to: np.ndarray
    arcs: Arcs  # sorted by row of the fronts
    levels: tuple[tuple[int, int], ...]  # first node and end of each level, from the root
    places: np.ndarray  # the matrix row of each vertex
    pitch: int  # columns of the array of fronts

    @property
    def height(self) -> int:
        return len(self.rows) - 1

    def span(self, level: int) -> tuple[int, int]:
        """Return the first row of a level's fronts and their number of rows."""
        first, end = self.levels[level]
        low = int(self.nodes[first, BASE])
        return low, (int(self.nodes[end, BASE]) if end < len(self.nodes) else self.height) - low


def fronts(shape: Shape) -> Fronts:
    """Lay out the fronts of the shape's elimination order and build their tables."""
    order, tile, n = shape.order, shape.tile, shape.n
    assert order is not None
    factor, levels = order.factor, order.levels(shape.tile, shape.itemsize)
    sizes, parents, above = (np.array(part, np.int64) for part in zip(*order.supernodes, strict=True))
    solved, beyond = -(-sizes // tile) * tile, -(-above // tile) * tile
    firsts = np.concatenate([[0], np.cumsum(sizes)])  # ranks
    starts = np.empty(len(sizes), np.int64)
    for level in levels:
        starts[list(level.members)] = level.starts
    # level by level from the leaves
    batches = [sorted(level.members, key=lambda number: -solved[number]) for level in reversed(levels)]
    batch = np.array([number for numbers in batches for number in numbers])
    ends = np.cumsum([len(numbers) for numbers in batches])
    base = np.empty(len(sizes), np.int64)
    base[batch] = np.concatenate([[0], np.cumsum((solved + beyond)[batch])[:-1]])
    height, pitch = int((solved + beyond).sum()), int((solved + beyond).max())
    # sorted keys (supernode, rank above it) locate a vertex in a front by binary search
    number = np.repeat(np.arange(len(sizes)), above)
    keys = number * n + factor.above

    def column(numbers: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        inside = ranks < firsts[numbers + 1]
        beyond = solved[numbers] + np.searchsorted(keys, numbers * n + ranks) - factor.begins[numbers]
        return np.where(inside, ranks - firsts[numbers], beyond)

    # children
    over = parents[number]
    to = column(over, factor.above)
    beyond_solved = base[number] + solved[number] + np.arange(len(number)) - factor.begins[number]
    kids = np.stack([beyond_solved, solved[number], above[number], factor.begins[number]], axis=1)
    row = base[over] + to
    by_row = np.argsort(row, kind="stable")
    # each arc belongs to the front of its endpoint that is eliminated first
    ranks = np.empty(n, np.int64)
    ranks[factor.vertices] = np.arange(n)
    of_rank = np.repeat(np.arange(len(sizes)), sizes)
    sources, targets = ranks[factor.arcs.sources], ranks[factor.arcs.targets]
    numbers = of_rank[np.minimum(sources, targets)]
    begins = base[numbers] + column(numbers, sources)
    by_begin = np.argsort(begins, kind="stable")
    # rows
    row_of = np.repeat(batch, (solved + beyond)[batch])
    at = np.arange(height)
    first_arc, first_kid = np.searchsorted(begins[by_begin], at), np.searchsorted(row[by_row], at)
    rows = np.stack([(solved + beyond)[row_of], at - base[row_of], first_arc, first_kid], axis=1)
    rows = np.concatenate([rows, [[0, 0, len(begins), len(row)]]])
    # the rows that a sweep reads
    places = starts[of_rank] + np.arange(n) - firsts[of_rank]  # row of each rank
    depths = depth_of(above, tile)
    taken_at = np.cumsum(depths) - depths
    taken = np.zeros(max(1, int(depths.sum())), np.int32)
    taken[np.repeat(taken_at, above) + np.arange(len(number)) - factor.begins[number]] = places[factor.above]
    alignment = row_alignment(shape.itemsize)
    ends_in_matrix = starts + -(-sizes // alignment) * alignment
    nodes = np.stack([base, solved, solved + beyond, starts, ends_in_matrix, taken_at, depths], axis=1)[batch]
    by_vertex = np.empty(n, np.int32)
    by_vertex[factor.vertices] = places
    return Fronts(
        _table(nodes),
        taken,
        _table(rows),
        _table(column(numbers, targets)[by_begin], 1),
        _table(kids[by_row], 4),
        _table(to, 1),
        Arcs(*(part[by_begin] for part in factor.arcs)),
        tuple(zip((ends - list(map(len, batches))).tolist()[::-1], ends.tolist()[::-1], strict=True)),
        by_vertex,
        pitch,
    )


def _table(rows: np.ndarray, columns: int = 0) -> np.ndarray:
    """Return the rows as int32; one row of zeros if there are none, because a device array cannot be empty."""
    if not len(rows):
        return np.zeros((1, columns), np.int32)
    return np.ascontiguousarray(rows.reshape(len(rows), -1), np.int32)
