"""The plan of the sparse rungs: eliminate the vertices up a tree, then compute all distances in one sweep down.

            s            order of the vertices   s  t  u  a  b  c  d      t separates a from b, u separates c from d, and s the
          /   \\                                                          two halves of the graph
        t       u        eliminating a gives     a     t     s            shortest paths through a between the vertices above:
       / \\     / \\       a front of a and the vertices above to which an edge joins its subtree
      a   b   c   d      sweeping a gives        a  x  everything         as every path from a leads through its front

`eliminate` assembles each supernode's front from the arcs and the fronts of its children, and solves it over the supernode's own
vertices. Supernodes of equal height are independent. `sweep` goes level by level from the root. The distances from a supernode
to all levels above, then to its own level, are one min-plus product: (its front) x (the rows of the vertices above). If the
graph is undirected, each block is stored twice, the second time transposed. Plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from fwtui_kernels.plan import Cost, Kernel, Level, Rect, Shape, Step, Supernode

PAPERS = (
    "L. Planken, M. de Weerdt, R. van der Krogt, Computing All-Pairs Shortest Paths by Leveraging Low Treewidth, JAIR 43, 2012",
    "P. Sao, R. Kannan, P. Gera, R. Vuduc, A Supernodal All-Pairs Shortest Path Algorithm, PPoPP 2020",
    "A. George, Nested Dissection of a Regular Finite Element Mesh, SIAM J. Numer. Anal. 10(2), 1973",
    "G. Karypis, V. Kumar, A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs, SISC 20(1), 1998",
)
PHASES = {"eliminate": "eliminate", "sweep": "sweep"}
ABOVE, OWN = 0, 1  # parts of a sweep: the columns of the levels above, and those of the level itself
SLAB = 16  # depth of a slab, in vertices of a front


class Work(NamedTuple):
    """A launch. `args` are the number of its stage, and its round in that stage or its part of the sweep."""

    op: str
    phase: str
    args: tuple[int, int]
    cost: Cost
    longest_task: int = 0  # relaxations of the longest task, which runs on one core


def depth_of(above: Any, tile: int) -> Any:
    """Round a number of vertices, or an array of numbers, up to whole slabs."""
    slab = min(SLAB, tile)
    return -(-above // slab) * slab


def front(node: Supernode, tile: int) -> tuple[int, int]:
    """Return the number of tiles in a row of a front that are solved, and of all tiles in a row."""
    pivots = -(-node.size // tile)
    return pivots, pivots - -node.above // tile


def work(shape: Shape, eliminated: Callable[[Shape, int, Level], Iterator[Work]]) -> Iterator[Work]:
    """Yield all launches; `eliminated` yields the launches that eliminate a level in a given stage."""
    assert shape.order is not None
    levels = shape.order.levels(shape.tile, shape.itemsize)
    for stage, level in enumerate(reversed(levels)):
        yield from eliminated(shape, stage, level)
    for stage, level in enumerate(levels, len(levels)):
        if level.first:
            yield Work("sweep", "sweep", (stage, ABOVE), _sweep_cost(shape, level, ABOVE))
        yield Work("sweep", "sweep", (stage, OWN), _sweep_cost(shape, level, OWN))


def _sweep_cost(shape: Shape, level: Level, part: int) -> Cost:
    """Return the cost of a sweep in blocks of tile x tile cells.

    A block reads its part of a front and rows of distances, and is stored twice, or once for each direction of a directed graph.
    """
    assert shape.order is not None
    tile, directed, nodes = shape.tile, shape.order.directed, shape.order.supernodes
    above, end, own = level.first // tile * (1 + directed), level.end // tile, (level.end - level.first) // tile
    blocks = block_depth = 0  # all blocks, and the sum of their depths
    for number, start in zip(level.members, level.starts, strict=True):
        rows = -(-nodes[number].size // tile)
        # an undirected graph's blocks within the level are those on or right of the diagonal
        triangle = rows * (end - start // tile) - rows * (rows - 1) // 2
        count = rows * above if part == ABOVE else rows * own if directed else triangle
        blocks += count
        block_depth += count * depth_of(nodes[number].above, tile)
    moved = block_depth * (shape.word_bytes + shape.itemsize) + 2 * blocks * tile * shape.itemsize
    return Cost(block_depth * tile**2, moved * tile)


def in_rounds(shape: Shape, stage: int, level: Level) -> Iterator[Work]:
    """Yield the blocked algorithm on all fronts of a level: assemble them, then pivot, panels and remainder of each round.

    The last step of the elimination copies the fronts as the left factors of the sweep, transposed.
    """
    assert shape.order is not None
    tile, own = shape.tile, shape.tile**2 * shape.itemsize
    fronts = [front(shape.order.supernodes[number], tile) for number in level.members]
    yield Work("assemble", "eliminate", (stage, 0), Cost(0, 2 * own * sum(tiles**2 for _, tiles in fronts)))
    for place in range(max(pivots for pivots, _ in fronts)):
        others = [tiles - 1 for pivots, tiles in fronts if place < pivots]
        args = stage, place
        yield Work("pivot", "eliminate", args, Cost(len(others) * tile**3, len(others) * 2 * (own + tile**2 * shape.word_bytes)))
        for op, count in (("panels", 2 * sum(others)), ("rest", sum(one * one for one in others))):
            if count:
                yield Work(op, "eliminate", args, Cost(count * tile**3, count * (3 * own + tile**2 * shape.word_bytes)))
    if not level.first:  # the root's level, which is eliminated last
        nodes = shape.order.supernodes
        copied = (1 + shape.order.directed) * tile * sum(-(-n.size // tile) * depth_of(n.above, tile) for n in nodes)
        if copied:
            yield Work("turn", "eliminate", (stage, 0), Cost(0, copied * (shape.itemsize + shape.word_bytes)))


def at_once(shape: Shape, stage: int, level: Level) -> Iterator[Work]:
    """Yield one launch that assembles and solves all fronts of a level, one thread per front."""
    tile, own = shape.tile, shape.tile**2 * shape.itemsize
    assert shape.order is not None
    fronts = [front(shape.order.supernodes[number], tile) for number in level.members]
    relaxations = [pivots * tiles**2 * tile**3 for pivots, tiles in fronts]
    cost = Cost(sum(relaxations), 3 * own * sum(tiles**2 for _, tiles in fronts))
    yield Work("eliminate", "eliminate", (stage, 0), cost, max(relaxations))


def plan(
    shape: Shape, stepwise: bool, eliminated: Callable[..., Iterator[Work]], dense: Callable[..., Iterator[Step]]
) -> Iterator[Step]:
    """Yield the steps of a sparse graph, or of `dense` if the shape has no elimination order.

    A front's rectangles are the places of its cells in the distance matrix.
    """
    if shape.order is None:
        yield from (replace(step, phase="eliminate") for step in dense(shape, stepwise))
        return
    levels = shape.order.levels(shape.tile, shape.itemsize)
    fronts = _fronts(shape, levels)
    for op, phase, args, cost, _ in work(shape, eliminated):
        number = args[0] - len(levels) if phase == "sweep" else len(levels) - 1 - args[0]
        level, own = levels[number], fronts[number]
        if phase == "eliminate":
            children = () if number == len(levels) - 1 else fronts[number + 1]
            yield Step(op, phase, args, cost, (*own, *children), own)
        elif args[1] == ABOVE:
            reads = (*own, Rect(0, 0, level.first, level.first))
            yield Step(
                op,
                phase,
                args,
                cost,
                reads,
                (Rect(level.first, 0, level.end, level.first), Rect(0, level.first, level.first, level.end)),
            )
        else:
            above = (Rect(0, level.first, level.first, level.end),) if level.first else ()
            yield Step(op, phase, args, cost, (*own, *above), (Rect(level.first, level.first, level.end, level.end),))


def _fronts(shape: Shape, levels: tuple[Level, ...]) -> list[tuple[Rect, ...]]:
    """Return the rectangles of each level's fronts: its supernodes' rows and columns of themselves and of all ancestors."""
    assert shape.order is not None
    nodes = shape.order.supernodes
    first = dict(chain.from_iterable(zip(level.members, level.starts, strict=True) for level in levels))
    found: list[tuple[Rect, ...]] = []
    for level in levels:
        rects: list[Rect] = []
        for number, start in zip(level.members, level.starts, strict=True):
            end, above = start + nodes[number].size, nodes[number].parent
            rects.append(Rect(start, start, end, end))
            while above >= 0:
                left, right = first[above], first[above] + nodes[above].size
                rects += (Rect(start, left, end, right), Rect(left, start, right, end))
                above = nodes[above].parent
        found.append(tuple(rects))
    return found


def relaxations(shape: Shape) -> int:
    """Return the number of relaxations of a sparse plan, which does not depend on the device; n^3 without an order."""
    return shape.n**3 if shape.order is None else sum(step.cost.relaxations for step in work(shape, at_once))


def fill(shape: Shape) -> float:
    """Return the cells of all fronts as a share of the matrix, from 0 to 1."""
    nodes = shape.order.supernodes if shape.order is not None else ()
    return sum(node.size * (node.size + 2 * node.above) for node in nodes) / shape.n**2 if nodes else 1.0


def rung(eliminated: Callable[..., Iterator[Work]], dense: Callable[..., Iterator[Step]], **description: Any) -> Kernel:
    """Return a sparse rung; `description` has the fields of Kernel that differ."""
    own_plan = partial(plan, eliminated=eliminated, dense=dense)
    return Kernel(papers=PAPERS, phases=PHASES, plan=own_plan, numbered=True, **description)
