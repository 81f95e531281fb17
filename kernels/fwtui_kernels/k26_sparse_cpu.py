"""Leave out what a sparse graph does not need: elimination up a tree, then one sweep down, on all cores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import get_num_threads, prange

from fwtui_kernels import k20_tiled_cpu as dense
from fwtui_kernels.compiled.cpu_tiles import SMALL, relax, solve_tile
from fwtui_kernels.compiled.cpu_vectors import ROWS, claimed, copy_cells
from fwtui_kernels.compiled.locked_njit import njit
from fwtui_kernels.parts import elimination
from fwtui_kernels.parts.cpu_sparse import SparseCpuProgram
from fwtui_kernels.parts.fronts import (
    ARCS,
    BASE,
    COLUMNS,
    COUNT,
    DEPTH,
    DIAGONAL,
    END,
    FROM,
    INDEX,
    KIDS,
    ROW,
    SOLVED,
    START,
    TO,
    WIDTH,
)
from fwtui_kernels.parts.ordering import ordered
from fwtui_kernels.plan import Program, Shape, Target

LAUNCH = 10**6  # relaxations in the time that all cores wait for each other
WIDE = 256  # columns of a task's block


@njit(cache=True)
def assemble(front, node, weights, rows, columns, kids, to, no_edge):
    """Fill a front from its own arcs and its children's fronts."""
    for at in range(node[BASE], node[BASE] + node[COLUMNS]):
        row = front[at]
        row[: rows[at, WIDTH]] = no_edge
        row[rows[at, DIAGONAL]] = 0
        for arc in range(rows[at, ARCS], rows[at + 1, ARCS]):
            row[columns[arc, 0]] = min(row[columns[arc, 0]], weights[arc])
        for kid in range(rows[at, KIDS], rows[at + 1, KIDS]):
            below = front[kids[kid, ROW], kids[kid, FROM] : kids[kid, FROM] + kids[kid, COUNT]]
            for place in range(len(below)):
                column = to[kids[kid, TO] + place, 0]
                row[column] = min(row[column], below[place])


@njit(cache=True, parallel=True)
def eliminate(front, weights, nodes, rows, columns, kids, to, no_edge, width):
    for number in prange(len(nodes)):
        node = nodes[number]
        small, strips = np.empty((SMALL + 1, SMALL), front.dtype), np.empty((1, SMALL * node[COLUMNS]), front.dtype)
        assemble(front, node, weights, rows, columns, kids, to, no_edge)
        solve_tile(front, np.int64(node[BASE]), 0, np.int64(node[COLUMNS]), np.int64(node[SOLVED]), small, strips, width)


@njit(cache=True)
def legs_of(front, node, back):
    """Return the front's rows of a supernode's vertices, by the vertices above; `back`: its columns likewise."""
    rows, base, solved = -(-(node[END] - node[START]) // ROWS) * ROWS, node[BASE], node[SOLVED]
    legs = np.empty((rows, node[DEPTH]), front.dtype)
    for i in range(rows):
        for k in range(node[DEPTH]):
            legs[i, k] = front[base + solved + k, i] if back else front[base + i, solved + k]
    return legs


@njit(cache=True)
def some_swept(own, other, front, nodes, index, low, high, back, halved, counter, no_edge, width):
    """One thread's share: blocks of WIDE columns of a supernode's rows, from `low` to `high`, that no other has taken.

    `halved`: only from the supernode's own columns on.
    """
    across = (high - low + WIDE - 1) // WIDE
    task = claimed(counter)  # pyright: ignore[reportCallIssue]
    while task < across * len(nodes):
        node, left = nodes[task // across], low + task % across * WIDE
        start, end, depth = np.int64(node[START]), np.int64(node[END]), np.int64(node[DEPTH])
        right = min(high, left + WIDE)
        if not halved or right > start:
            legs, strips = legs_of(front, node, back), np.empty((1, depth * WIDE), own.dtype)
            block = np.full((len(legs), WIDE), no_edge, own.dtype)
            for begin in range(0, right - left, width):
                for k in range(depth):
                    copy_cells(strips, 0, begin * depth + k * width, own, index[node[INDEX] + k], left + begin, width)  # pyright: ignore[reportCallIssue]
            for j in range(max(left, start), min(right, end)):
                for i in range(end - start):
                    block[i, j - left] = front[node[BASE] + i, j - start]
            relax(block, 0, 0, legs, 0, 0, strips, len(legs), depth, right - left, width, 0)
            store(block, own, other, start, end, left, max(left, start) if halved else left, right, halved)
        task = claimed(counter)  # pyright: ignore[reportCallIssue]


@njit(cache=True)
def store(block, own, other, start, end, left, first, right, halved):
    """Store the columns from `first` on in the rows of `own`, and transposed in those of `other`, as far as each has them."""
    if start < len(own):
        for i in range(end - start):
            own[start + i, first:right] = block[i, first - left : right - left]
    for j in range(first, min(right, len(other))):
        if not halved or j >= end:
            for i in range(end - start):
                other[j, start + i] = block[i, j - left]


@njit(cache=True, parallel=True)
def sweep(own, other, front, nodes, index, low, high, back, halved, no_edge, width, threads):
    counter = np.zeros(1, np.int64)
    for _ in prange(threads):
        some_swept(own, other, front, nodes, index, low, high, back, halved, counter, no_edge, width)


def on_all_cores(shape: Shape, graph: Any) -> Shape:
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
    ordered=on_all_cores,
    lacks=elimination.lacks,
    summary="For graphs with small separators: vertices are eliminated up a tree, and one sweep down it gives all distances.",
    lesson=(
        "The fastest relaxation is the one that is not done. On a road map a few junctions separate north from south. Eliminate "
        "all of the north first, then the south, then those junctions; within each half do the same again. So the vertices form "
        "a tree. Eliminating a vertex gives the shortest paths by way of it between the few vertices of its front. Those are the "
        "vertices above that its part of the graph touches, so this is hardly any work. Then every path out of a leaf leads "
        "through its front. So its distances to all vertices are one min-plus product. The factors are its front and the rows of "
        "the vertices above, which are done before. A vertex costs n times its front, and on a grid all fronts are small. METIS "
        "finds the separators. Each is a supernode, and so is each part that is too small to be cut. Where distances there and "
        "back are equal, half of the products is left out, and each block is stored twice. A graph without small separators "
        "keeps the dense plan."
    ),
    tiles=(16, 32, 64),
    default_tile=32,
)
