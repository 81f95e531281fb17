"""Elimination up a tree and one sweep down on all CPU cores: only the relaxations that a sparse graph needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import get_num_threads

from fwtui_kernels import k20_tiled_cpu as dense
from fwtui_kernels.compiled.all_cores import entry, on_all_cores
from fwtui_kernels.compiled.cpu_tiles import SMALL, relax, solve_tile
from fwtui_kernels.compiled.cpu_vectors import ROWS, claim, copy_cells
from fwtui_kernels.compiled.locked_njit import inner
from fwtui_kernels.parts import elimination, fronts
from fwtui_kernels.parts.cpu_sparse import SparseCpuProgram
from fwtui_kernels.parts.ordering import ordered
from fwtui_kernels.plan import Program, Shape, Target

LAUNCH = 10**6  # time of a barrier of all cores, in relaxations
WIDE = 256  # columns of a block


@inner(cache=True)
def assemble(front, node, weights, rows, columns, kids, to, no_edge):
    """Fill a front from its own arcs and its children's fronts."""
    for at in range(node[fronts.BASE], node[fronts.BASE] + node[fronts.COLUMNS]):
        row = front[at]
        row[: rows[at, fronts.WIDTH]] = no_edge
        row[rows[at, fronts.DIAGONAL]] = 0
        for arc in range(rows[at, fronts.ARCS], rows[at + 1, fronts.ARCS]):
            row[columns[arc, 0]] = min(row[columns[arc, 0]], weights[arc])
        for kid in range(rows[at, fronts.KIDS], rows[at + 1, fronts.KIDS]):
            below = front[kids[kid, fronts.ROW], kids[kid, fronts.FROM] : kids[kid, fronts.FROM] + kids[kid, fronts.COUNT]]
            for place in range(len(below)):
                column = to[kids[kid, fronts.TO] + place, 0]
                row[column] = min(row[column], below[place])


@inner(cache=True)
def eliminate_one(number, front, weights, nodes, rows, columns, kids, to, no_edge, width):
    node = nodes[number]
    base, side, solved = np.int64(node[fronts.BASE]), np.int64(node[fronts.COLUMNS]), np.int64(node[fronts.SOLVED])
    small, strips = np.empty((SMALL + 1, SMALL), front.dtype), np.empty((1, SMALL * side), front.dtype)
    assemble(front, node, weights, rows, columns, kids, to, no_edge)
    solve_tile(front, base, 0, side, solved, small, strips, width)


@entry
def eliminate(front, weights, nodes, *others):
    on_all_cores(eliminate_one, len(nodes), (front, weights, nodes, *others))  # pyright: ignore[reportCallIssue]


@inner(cache=True)
def legs_of(front, node, back):
    """Return a front's rows of its supernode over the vertices above; with `back`, its columns, transposed."""
    rows, base, solved = -(-(node[fronts.END] - node[fronts.START]) // ROWS) * ROWS, node[fronts.BASE], node[fronts.SOLVED]
    legs = np.empty((rows, np.int64(node[fronts.DEPTH])), front.dtype)
    for i in range(rows):
        for k in range(node[fronts.DEPTH]):
            legs[i, k] = front[base + solved + k, i] if back else front[base + i, solved + k]
    return legs


@inner(cache=True)
def sweep_blocks(_, own, other, front, nodes, index, low, high, back, halved, counter, no_edge, width):
    """Compute blocks of a supernode's rows x WIDE columns, from `low` to `high`, until the threads have claimed them all.

    With `halved`, skip the columns left of the supernode's own.
    """
    across = (high - low + WIDE - 1) // WIDE
    task = claim(counter)  # pyright: ignore[reportCallIssue]
    while task < across * len(nodes):
        node, left = nodes[task // across], low + task % across * WIDE
        start, end, depth = np.int64(node[fronts.START]), np.int64(node[fronts.END]), np.int64(node[fronts.DEPTH])
        right = min(high, left + WIDE)
        if not halved or right > start:
            legs, strips = legs_of(front, node, back), np.empty((1, depth * WIDE), own.dtype)
            block = np.full((len(legs), WIDE), no_edge, own.dtype)
            for begin in range(0, right - left, width):
                for k in range(depth):
                    copy_cells(strips, 0, begin * depth + k * width, own, index[node[fronts.INDEX] + k], left + begin, width)  # pyright: ignore[reportCallIssue]
            for j in range(max(left, start), min(right, end)):
                for i in range(end - start):
                    block[i, j - left] = front[node[fronts.BASE] + i, j - start]
            relax(block, 0, 0, legs, 0, 0, strips, len(legs), depth, right - left, width, 0)
            store(block, own, other, start, end, left, max(left, start) if halved else left, right, halved)
        task = claim(counter)  # pyright: ignore[reportCallIssue]


@inner(cache=True)
def store(block, own, other, start, end, left, first, right, halved):
    """Store the columns `first` to `right` of a block in `own`, and transposed in `other`, if their rows exist there."""
    if start < len(own):
        for i in range(end - start):  # an assignment of arrays would take seconds to compile
            for j in range(first, right):
                own[start + i, j] = block[i, j - left]
    for j in range(first, min(right, len(other))):
        if not halved or j >= end:
            for i in range(end - start):
                other[j, start + i] = block[i, j - left]


@entry
def sweep(own, other, front, nodes, index, low, high, back, halved, no_edge, width, threads):
    shared = (own, other, front, nodes, index, low, high, back, halved, np.zeros(1, np.int64), no_edge, width)
    on_all_cores(sweep_blocks, threads, shared)  # pyright: ignore[reportCallIssue]


def ordered_for_all_cores(shape: Shape, graph: Any) -> Shape:
    return ordered(shape, graph, LAUNCH, elimination.at_once, get_num_threads())


def build(shape: Shape, target: Target) -> Program:
    ops = {"eliminate": eliminate, "sweep": sweep}
    return dense.build(shape, target) if shape.order is None else SparseCpuProgram(shape, ops)


KERNEL = elimination.rung(
    elimination.at_once,
    dense.KERNEL.plan,
    id="sparse-cpu",
    title="Sparse CPU",
    backend="cpu",
    build=build,
    ordered=ordered_for_all_cores,
    summary="For graphs with small separators: vertices are eliminated up a tree, and one sweep down it gives all distances.",
    lesson=(
        "The fastest relaxation is the one that you skip. On a road map a few junctions separate north from south. Eliminate "
        "the north first, then the south, then those junctions, and order each half in the same way. This nested dissection "
        "makes the vertices a tree. Eliminating a vertex finds the shortest paths through it between the vertices of its front: "
        "the vertices above it that its subtree touches. Fronts are small, so elimination is little work. Every path that leaves "
        "a leaf then crosses its front. The distances from a leaf to all vertices are therefore one min-plus product, of its "
        "front and the rows of the vertices above, which are computed before. A vertex costs n times the size of its front, and "
        "on a grid all fronts are small. Separators are level sets of breadth-first searches. Each separator is a supernode, and "
        "so is each part that is too small to cut. If the graph is undirected, half of the products is skipped and each block is "
        "stored twice. A graph without small separators runs the dense plan."
    ),
    tiles=(16, 32, 64),
    default_tile=32,
)
