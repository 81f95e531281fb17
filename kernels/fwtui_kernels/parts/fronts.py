"""The tables that tell a launch of an elimination, and of the sweep after it, where everything is: int32, a row for each item."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fwtui_kernels.parts.elimination import depth_of
from fwtui_kernels.parts.ordering import Arcs
from fwtui_kernels.plan import Shape

# columns of `nodes`: the first row of its front, how many of the front's columns are solved, and how many there are; its first
# row and its end in the matrix; its first item of `taken`, and how many of those it has
BASE, SOLVED, COLUMNS, START, END, INDEX, DEPTH = range(7)
# columns of `rows`, items that end where those of the next row begin
WIDTH, DIAGONAL, ARCS, KIDS = range(4)
# columns of `kids`: a row of a child's front, the first of its columns that are taken and their number, and where in `to` are the
# columns to which they go
ROW, FROM, COUNT, TO = range(4)


class Fronts(NamedTuple):
    """All fronts lie one below the other, the leaves' first, each with a tile's padding after its supernode and at its end."""

    nodes: np.ndarray  # a row for each supernode, level by level from the leaves, those with most tiles to solve first
    taken: np.ndarray  # rows of the matrix: those of the vertices above a supernode, padded to whole slabs
    rows: np.ndarray  # of the fronts, and one more
    columns: np.ndarray  # of the arcs, row by row
    kids: np.ndarray
    to: np.ndarray
    arcs: Arcs  # in that order
    levels: tuple[tuple[int, int], ...]  # of the nodes, from the root: first and end
    places: np.ndarray  # the matrix row of each vertex
    pitch: int  # columns of the fronts

    @property
    def height(self) -> int:
        return len(self.rows) - 1

    def span(self, level: int) -> tuple[int, int]:
        """Return the first of the fronts' rows of a level, and how many there are."""
        first, end = self.levels[level]
        low = int(self.nodes[first, BASE])
        return low, (int(self.nodes[end, BASE]) if end < len(self.nodes) else self.height) - low


def fronts(shape: Shape) -> Fronts:
    """Lay out the fronts of the shape's order, and the tables that say where their arcs and their children's fronts go."""
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
    # the ranks above each supernode, as sorted keys: where in its front is a vertex?
    number = np.repeat(np.arange(len(sizes)), above)
    keys = number * n + factor.above

    def column(numbers: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        inside = ranks < firsts[numbers + 1]
        beyond = solved[numbers] + np.searchsorted(keys, numbers * n + ranks) - factor.begins[numbers]
        return np.where(inside, ranks - firsts[numbers], beyond)

    # children
    over = parents[number]
    to = column(over, factor.above)
    kids = np.stack(
        [
            base[number] + solved[number] + np.arange(len(number)) - factor.begins[number],
            solved[number],
            above[number],
            factor.begins[number],
        ],
        axis=1,
    )
    row = base[over] + to
    by_row = np.argsort(row, kind="stable")
    # arcs, each in the front of the end that is eliminated first
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
    rows = np.stack(
        [
            (solved + beyond)[row_of],
            at - base[row_of],
            np.searchsorted(begins[by_begin], at),
            np.searchsorted(row[by_row], at),
        ],
        axis=1,
    )
    rows = np.concatenate([rows, [[0, 0, len(begins), len(row)]]])
    # what a sweep reads
    places = starts[of_rank] + np.arange(n) - firsts[of_rank]  # by rank
    depths = depth_of(above, tile)
    taken_at = np.cumsum(depths) - depths
    taken = np.zeros(max(1, int(depths.sum())), np.int32)
    taken[np.repeat(taken_at, above) + np.arange(len(number)) - factor.begins[number]] = places[factor.above]
    apart = max(4, 16 // shape.itemsize)
    nodes = np.stack([base, solved, solved + beyond, starts, starts + -(-sizes // apart) * apart, taken_at, depths], axis=1)[
        batch
    ]
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
    """int32; one row of zeros where there would be none, which no array on a device can be."""
    if not len(rows):
        return np.zeros((1, columns), np.int32)
    return np.ascontiguousarray(rows.reshape(len(rows), -1), np.int32)
