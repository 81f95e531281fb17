"""Rows of distances of a sparse graph by its factor, on all cores: an elimination once, then nnz(L) relaxations for each row.

    ascend   from the source up its branch of the tree of supernodes: x[front] = front (x) x[supernode]
    descend  down the whole tree: x[supernode] = min(x[supernode], front[supernode, vertices above] (x) x[vertices above])

A front holds the distances to its rows from its columns, so that the descent reads its rows. x has a column for each source, so
that the cells of a vertex are neighbours. Every front has its own square block of cells: memory grows with the factor. Imports
numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import get_num_threads

from fwtui_kernels.compiled import trees
from fwtui_kernels.compiled.all_cores import entry, on_all_cores
from fwtui_kernels.compiled.cpu_tiles import SMALL, pack, relax, solve_tile
from fwtui_kernels.compiled.cpu_vectors import ROWS, copy_cells, width_of
from fwtui_kernels.compiled.locked_njit import inner, njit
from fwtui_kernels.compiled.trees import Neighbours
from fwtui_kernels.parts import ordering
from fwtui_kernels.parts.dissection import Dissection
from fwtui_kernels.plan import NO_EDGE

UNIT = 32  # cells to whose multiples a front's side is padded; no vector block is wider
DEEP = 64  # pivots of a step if all cores work on one front
CHUNK = 4 * ROWS  # rows of a task of such a step
MAX_ROWS = 64  # rows of a task of the descent
LINE = 16  # distances that are neighbours in the result and copied at a time
FIRST, SIZE, ABOVE, DEPTH, CLOSED, SIDE, CELLS, PARENT, CHILD, SIBLING = range(10)  # columns of `nodes`


class Tree(NamedTuple):
    """Supernodes, children first, and the cells that their fronts take."""

    nodes: np.ndarray  # a row for each supernode, of the columns above
    above: np.ndarray  # ranks of the vertices above each supernode, ascending; a rank is a place in the order
    vertices: np.ndarray  # the vertex of each rank
    ranks: np.ndarray  # the rank of each vertex
    levels: tuple[np.ndarray, ...]  # supernodes by their height, leaves first
    cells: int

    @property
    def relaxations(self) -> tuple[float, float]:
        """The relaxations of the elimination, and of each row."""
        closed, side = self.nodes[:, CLOSED].astype(float), self.nodes[:, SIDE].astype(float)
        return float((closed * side**2).sum()), float((closed * self.nodes[:, DEPTH]).sum())


def tree_of(dissection: Dissection, near: Neighbours) -> Tree:
    """Return the supernodes of a dissection with the vertices above that each touches."""
    vertices, firsts, parents = dissection
    ranks = ordering.inverse(vertices)
    above, begins = trees.touched(near.begins, near.others, vertices, ranks, firsts, parents)
    count, sizes, depths = len(parents), np.diff(firsts), np.diff(begins)
    nodes = np.empty((count, 10), np.int64)
    nodes[:, FIRST], nodes[:, SIZE], nodes[:, ABOVE], nodes[:, DEPTH] = firsts[:-1], sizes, begins[:-1], depths
    nodes[:, CLOSED] = -(-sizes // SMALL) * SMALL
    nodes[:, SIDE] = -(-(nodes[:, CLOSED] + depths) // UNIT) * UNIT
    areas = nodes[:, SIDE] ** 2
    nodes[:, CELLS] = np.cumsum(areas) - areas
    nodes[:, PARENT] = parents
    nodes[:, CHILD], nodes[:, SIBLING], heights = -1, -1, np.zeros(count, np.int64)
    _find_heights(nodes, heights)
    by_height = np.argsort(heights, kind="stable")
    levels = np.split(by_height, np.cumsum(np.bincount(heights))[:-1])
    return Tree(nodes, above, vertices, ranks, tuple(levels), int(areas.sum()))


@njit(cache=True)
def _find_heights(nodes, heights):
    """Link the children of each supernode, and find its height."""
    for number in range(len(nodes)):
        parent = nodes[number, PARENT]
        if parent >= 0:
            heights[parent] = max(heights[parent], heights[number] + 1)
            nodes[number, SIBLING] = nodes[parent, CHILD]
            nodes[parent, CHILD] = number


def factorise(tree: Tree, near: Neighbours) -> np.ndarray:
    """Eliminate all vertices and return the cells of the fronts; a negative cycle leaves a negative cell on a diagonal."""
    arcs = near.begins, near.others, near.back, near.there
    cells = np.empty(tree.cells, near.there.dtype)
    no_edge, width = cells.dtype.type(NO_EDGE[cells.dtype.name]), width_of(cells.itemsize, UNIT)
    threads = get_num_threads()
    for level in tree.levels:
        if len(level) >= threads:
            # the largest first, so that no core ends long after the others
            level = level[np.argsort(-(tree.nodes[level, SIDE] ** 2) * tree.nodes[level, CLOSED])]
            _eliminate(level, cells, *tree[:4], *arcs, no_edge, width)
            continue
        for number in level:
            _assemble_one(cells, number, *tree[:4], *arcs, no_edge)
            _close_on_all_cores(front_of(cells, tree.nodes[number]), tree.nodes[number, CLOSED], width, min(width, SMALL))
    return cells


@njit(cache=True)
def front_of(cells, node):
    side = node[SIDE]
    return cells[node[CELLS] : node[CELLS] + side * side].reshape(side, side)


@entry
def _eliminate(level, *arguments):
    on_all_cores(_eliminate_one, len(level), (level, *arguments))  # pyright: ignore[reportCallIssue]


@inner(cache=True)
def _eliminate_one(place, level, cells, nodes, above, vertices, ranks, begins, others, there, back, no_edge, width):
    _assemble_one(cells, level[place], nodes, above, vertices, ranks, begins, others, there, back, no_edge)
    node = nodes[level[place]]
    small, strips = np.empty((SMALL + 1, SMALL), cells.dtype), np.empty((1, SMALL * node[SIDE]), cells.dtype)
    solve_tile(front_of(cells, node), 0, 0, node[SIDE], node[CLOSED], small, strips, width)


@njit(cache=True)
def _assemble_one(cells, number, nodes, above, vertices, ranks, begins, others, there, back, no_edge):
    """Fill a front from the arcs of its supernode and the fronts of its children."""
    node = nodes[number]
    front, first, end, closed = front_of(cells, node), node[FIRST], node[FIRST] + node[SIZE], node[CLOSED]
    over = above[node[ABOVE] : node[ABOVE] + node[DEPTH]]
    front[:] = no_edge
    for i in range(len(front)):
        front[i, i] = 0
    for rank in range(first, end):
        vertex, i = vertices[rank], rank - first
        for arc in range(begins[vertex], begins[vertex + 1]):
            other = ranks[others[arc]]
            if first <= other < end:
                front[i, other - first] = min(front[i, other - first], there[arc])
            elif other >= end:
                j, high = 0, len(over) - 1  # np.searchsorted would take half a second to compile
                while j < high:
                    middle = (j + high) // 2
                    j, high = (middle + 1, high) if over[middle] < other else (j, middle)
                front[i, closed + j] = there[arc]
                front[closed + j, i] = back[arc]
    child = node[CHILD]
    while child >= 0:
        below = nodes[child]
        source, skip = front_of(cells, below), below[CLOSED]
        to, at = np.empty(below[DEPTH], np.int64), 0
        for k in range(below[DEPTH]):
            rank = above[below[ABOVE] + k]
            if rank < end:
                to[k] = rank - first
            else:
                while over[at] < rank:
                    at += 1
                to[k] = closed + at
        for i in range(below[DEPTH]):
            row = front[to[i]]
            for k in range(below[DEPTH]):
                row[to[k]] = min(row[to[k]], source[skip + i, skip + k])
        child = below[SIBLING]


@entry
def _close_on_all_cores(front, pivots, width, narrow):
    """Solve a front over its first vertices like `solve_tile`, DEEP at a time, with its rows distributed over the cores."""
    side = len(front)
    strips = np.empty((1, DEEP * side), front.dtype)
    for base in range(0, pivots, DEEP):
        deep = min(DEEP, pivots - base)
        corner = front[base : base + deep, base : base + deep].copy()
        small, own = np.empty((SMALL + 1, SMALL), front.dtype), np.empty((1, DEEP * DEEP), front.dtype)
        solve_tile(corner, 0, 0, deep, deep, small, own, narrow)
        pack(own, corner, 0, 0, deep, deep, narrow)
        pack(strips, front, base, 0, deep, side, width)
        on_all_cores(_relax_rows, -(-side // CHUNK), (front, own, strips, base, deep, narrow, width))  # pyright: ignore[reportCallIssue]


@inner(cache=True)
def _relax_rows(number, front, own, strips, base, deep, narrow, width):
    top, rows = number * CHUNK, min(CHUNK, len(front) - number * CHUNK)
    relax(front, top, base, front, top, base, own, rows, deep, deep, narrow, 0)
    relax(front, top, 0, front, top, base, strips, rows, deep, len(front), width, 0)


def least_loop(cells: np.ndarray, nodes: np.ndarray) -> float:
    """Return the least cell on the diagonals of the fronts: negative if, and only if, there is a negative cycle."""
    return min((float(front_of(cells, node).diagonal()[: node[SIZE]].min(initial=0)) for node in nodes), default=0.0)


def room_for(tree: Tree, rows: int, dtype: np.dtype) -> np.ndarray:
    """Return memory for tasks of the descent, one for each thread: (tasks, n and the end of a block, rows of a task)."""
    threads = get_num_threads()
    share = min(MAX_ROWS, -(-rows // threads))
    block = _block_of(share, dtype)
    return np.empty((min(threads, rows), len(tree.vertices) + ROWS, -(-share // block) * block), dtype)


def _block_of(columns: int, dtype: np.dtype) -> int:
    """Return the columns of a vector block, few if there are few columns."""
    return width_of(dtype.itemsize, min(UNIT, max(8, 1 << (columns - 1).bit_length())))


def rows_from(
    tree: Tree, near: Neighbours, cells: np.ndarray, room: np.ndarray, sources: np.ndarray, far: float, out: np.ndarray
) -> tuple[float, bool]:
    """Fill `out`, (sources, n), float32 or float64, with distances from at most as many sources as `room` has columns.

    Cells of at least `far` become +inf. Return the greatest absolute distance, and whether some distance did not fit the cells'
    type.
    """
    starts = tree.ranks[sources]
    numbers = np.searchsorted(tree.nodes[:, FIRST], starts, "right") - 1
    farthest, escaped = np.zeros(len(room)), np.zeros(len(room), np.bool_)
    no_edge, limit = cells.dtype.type(NO_EDGE[cells.dtype.name]), cells.dtype.type(far)
    block = _block_of(room.shape[2], cells.dtype)
    _rows_from(room, cells, tree[:4], near[:3], starts, numbers, out, no_edge, limit, block, farthest, escaped)
    return float(farthest.max()), bool(escaped.any())


@entry
def _rows_from(room, *arguments):
    on_all_cores(_fill_rows, len(room), (room, *arguments))  # pyright: ignore[reportCallIssue]


@inner(cache=True)
def _fill_rows(task, room, cells, tree, near, starts, numbers, out, no_edge, far, block, farthest, escaped):
    (nodes, above, vertices, ranks), (begins, others, there) = tree, near
    n, columns = len(vertices), room.shape[2]
    low, high = task * columns, min(len(starts), (task + 1) * columns)
    if low >= high:
        return
    x, rows = room[task], out[low:high]
    x[:] = no_edge
    for k in range(low, high):
        x[starts[k], k - low] = 0
    _ascend(cells, nodes, above, x, numbers[low:high], no_edge, block)
    _descend(cells, nodes, above, x, no_edge, block)
    zero, nowhere = out.dtype.type(0), out.dtype.type(np.inf)
    least = most = cells.dtype.type(0)
    whole = True
    for begin in range(0, n, LINE):
        end = min(n, begin + LINE)
        for k in range(len(rows)):
            for vertex in range(begin, end):
                distance = x[ranks[vertex], k]
                reached = distance < far
                rows[k, vertex] = distance + zero if reached else nowhere  # adding 0 turns -0 into 0
                least = min(least, distance)
                most = max(most, distance if reached else most)
                whole = whole and reached
    for k in range(low, high):
        rows[k - low, vertices[starts[k]]] = 0
    escaped[task] = not whole and _escapes(rows, begins, others, there, no_edge)
    farthest[task] = max(np.float64(most), -np.float64(least))


@inner(cache=True)
def _ascend(cells, nodes, above, x, numbers, no_edge, block):
    """Lower the distances in all columns of x by paths from the supernodes of their sources upwards."""
    marked, columns = np.zeros(len(nodes), np.bool_), x.shape[1]
    for number in numbers:
        while number >= 0 and not marked[number]:
            marked[number] = True
            number = nodes[number, PARENT]
    for number in range(len(nodes)):
        if marked[number]:
            node = nodes[number]
            first, size, closed = node[FIRST], node[SIZE], node[CLOSED]
            strips, found = np.empty((1, closed * columns), x.dtype), np.empty((node[SIDE], columns), x.dtype)
            strips[:], found[:] = no_edge, no_edge
            for i in range(size):
                _pack_row(strips, i, closed, x, first + i, block)
            relax(found, 0, 0, front_of(cells, node), 0, 0, strips, closed + node[DEPTH], closed, columns, block, 0)
            for i in range(size):
                _lower(x, first + i, found, i)
            for place in range(node[DEPTH]):
                _lower(x, above[node[ABOVE] + place], found, closed + place)


@inner(cache=True)
def _descend(cells, nodes, above, x, no_edge, block):
    """Lower the distances in all columns of x by paths through the vertices above each supernode, from the root down.

    Rows of x past a supernode, up to a multiple of ROWS, are those of a finished one: no edge leads there from the padding.
    """
    columns = x.shape[1]
    for number in range(len(nodes) - 1, -1, -1):
        node = nodes[number]
        depth = node[DEPTH] + node[DEPTH] % 2
        if depth:
            strips = np.empty((1, depth * columns), x.dtype)
            strips[:] = no_edge  # the last row, if the depth is odd
            for place in range(node[DEPTH]):
                _pack_row(strips, place, depth, x, above[node[ABOVE] + place], block)
            relax(x, node[FIRST], 0, front_of(cells, node), 0, node[CLOSED], strips, node[SIZE], depth, columns, block, 0)


@inner(cache=True)
def _pack_row(strips, place, depth, x, rank, block):
    for begin in range(0, x.shape[1], block):
        copy_cells(strips, 0, begin * depth + place * block, x, rank, begin, block)  # pyright: ignore[reportCallIssue]


@inner(cache=True)
def _lower(x, rank, found, i):
    for column in range(x.shape[1]):
        x[rank, column] = min(x[rank, column], found[i, column])


@inner(cache=True)
def _escapes(rows, begins, others, there, no_edge):
    """Return whether an arc leads from a reached vertex of a row to an unreached one, whose distance overflowed the type."""
    n = len(begins) - 1
    reached = np.zeros(n, np.uint64)  # a bit for each row
    for k in range(len(rows)):
        bit = np.uint64(1) << np.uint64(k)
        for vertex in range(n):
            if rows[k, vertex] < np.inf:
                reached[vertex] |= bit
    for vertex in range(n):
        for arc in range(begins[vertex], begins[vertex + 1]):
            if there[arc] < no_edge and reached[vertex] & ~reached[others[arc]]:
                return True
    return False
