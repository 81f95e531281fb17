"""All pairs of a sparse graph: its vertices eliminated up a tree, then one sweep down.

            s            order of the vertices   s  t  u  a  b  c  d      t separates a from b, u separates c from d, and s the
          /   \\                                                          two halves of the graph
        t       u        eliminating a gives     a     t     s            shortest paths by way of a between what is above it:
       / \\     / \\       a front of a and the vertices above to which an edge joins its subtree
      a   b   c   d      sweeping a gives        a  x  everything         as every path from a leads through its front

`eliminate`: each supernode's front is assembled from the arcs and the fronts of its children, and solved over the supernode's
own vertices. Supernodes of equal height are independent. `sweep`: level by level from the root, the distances from each
supernode to all levels above, then to its own level, are one min-plus product: (its front) x (the rows of the vertices above).
Where the graph is undirected, a block is stored twice, the second time transposed. Plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import chain
from typing import Any, NamedTuple

from fwtui_kernels.plan import Cost, Kernel, Level, Rect, Shape, Step, Supernode, Target

PAPERS = (
    "L. Planken, M. de Weerdt, R. van der Krogt, Computing All-Pairs Shortest Paths by Leveraging Low Treewidth, JAIR 43, 2012",
    "P. Sao, R. Kannan, P. Gera, R. Vuduc, A Supernodal All-Pairs Shortest Path Algorithm, PPoPP 2020",
    "A. George, Nested Dissection of a Regular Finite Element Mesh, SIAM J. Numer. Anal. 10(2), 1973",
    "G. Karypis, V. Kumar, A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs, SISC 20(1), 1998",
)
PHASES = {"eliminate": "eliminate", "sweep": "sweep"}
ABOVE, BESIDE = 0, 1  # parts of a sweep: the columns of the levels above, and those of its own level
SLAB = 16  # vertices of a front that a product takes at a time


class Work(NamedTuple):
    """One launch: args are its stage, counted through both phases, and a round of the stage or a part of the sweep."""

    op: str
    phase: str
    args: tuple[int, int]
    cost: Cost
    alone: int = 0  # relaxations of its longest task, which one core does


def depth_of(above: Any, tile: int) -> Any:
    """Return that many vertices, or an array of such numbers, in whole slabs."""
    slab = min(SLAB, tile)
    return -(-above // slab) * slab


def front(node: Supernode, tile: int) -> tuple[int, int]:
    """Return the tiles of a front that are solved, and all of its tiles in a row."""
    pivots = -(-node.size // tile)
    return pivots, pivots - -node.above // tile


def work(shape: Shape, eliminated: Callable[[Shape, int, Level], Iterator[Work]]) -> Iterator[Work]:
    """Yield all launches; `eliminated` yields those that eliminate a level, at that stage."""
    assert shape.order is not None
    levels = shape.order.levels(shape.tile, shape.itemsize)
    for stage, level in enumerate(reversed(levels)):
        yield from eliminated(shape, stage, level)
    for stage, level in enumerate(levels, len(levels)):
        if level.first:
            yield Work("sweep", "sweep", (stage, ABOVE), _swept(shape, level, ABOVE))
        yield Work("sweep", "sweep", (stage, BESIDE), _swept(shape, level, BESIDE))


def _swept(shape: Shape, level: Level, part: int) -> Cost:
    """Count blocks of tile x tile: each reads its part of a front and rows of distances, and is written, or both times of two."""
    assert shape.order is not None
    tile, directed = shape.tile, shape.order.directed
    relaxations = bytes_moved = 0
    for number, start in zip(level.members, level.starts, strict=True):
        node = shape.order.supernodes[number]
        depth = depth_of(node.above, tile)
        for row in range(start, start + node.size, tile):
            whole = level.first * (1 + directed) if part == ABOVE else level.end - level.first
            blocks = (whole if part == ABOVE or directed else level.end - row // tile * tile) // tile
            relaxations += blocks * tile**2 * depth
            bytes_moved += blocks * tile * (depth * (shape.word_bytes + shape.itemsize) + 2 * tile * shape.itemsize)
    return Cost(relaxations, bytes_moved)


def in_rounds(shape: Shape, stage: int, level: Level) -> Iterator[Work]:
    """Yield the blocked algorithm on all fronts of a level together: assemble, then pivot, panels and rest of each round.

    At the end the fronts are copied as the left factors of the sweep, by the vertices above.
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
    if not level.first:  # the root's: all fronts are solved
        nodes = shape.order.supernodes
        copied = (1 + shape.order.directed) * tile * sum(-(-n.size // tile) * depth_of(n.above, tile) for n in nodes)
        if copied:
            yield Work("turn", "eliminate", (stage, 0), Cost(0, copied * (shape.itemsize + shape.word_bytes)))


def at_once(shape: Shape, stage: int, level: Level) -> Iterator[Work]:
    """Yield one launch for all fronts of a level, each from its assembly to its end by one thread."""
    tile, own = shape.tile, shape.tile**2 * shape.itemsize
    assert shape.order is not None
    fronts = [front(shape.order.supernodes[number], tile) for number in level.members]
    relaxations = [pivots * tiles**2 * tile**3 for pivots, tiles in fronts]
    cost = Cost(sum(relaxations), 3 * own * sum(tiles**2 for _, tiles in fronts))
    yield Work("eliminate", "eliminate", (stage, 0), cost, max(relaxations))


def plan(
    shape: Shape, stepwise: bool, eliminated: Callable[..., Iterator[Work]], dense: Callable[..., Iterator[Step]]
) -> Iterator[Step]:
    """Yield the steps, in which a front's cells have their places in the matrix; without an order those of a dense graph."""
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
    """Return the rectangles of each level's fronts: its supernodes with themselves and with all of their ancestors."""
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
    """Count those of a plan, however its fronts are launched; n^3 without an order."""
    return shape.n**3 if shape.order is None else sum(step.cost.relaxations for step in work(shape, at_once))


def fill(shape: Shape) -> float:
    """Return the share of the matrix that the fronts of all supernodes have."""
    nodes = shape.order.supernodes if shape.order is not None else ()
    return sum(node.size * (node.size + 2 * node.above) for node in nodes) / shape.n**2 if nodes else 1.0


def lacks(shape: Shape, target: Target) -> str | None:
    """Where METIS is missing."""
    return (
        None
        if find_spec("pymetis")
        else "the order of a sparse graph needs pymetis, which is not installed: pip install '.[sparse]'"
    )


def rung(eliminated: Callable[..., Iterator[Work]], dense: Callable[..., Iterator[Step]], **description: Any) -> Kernel:
    """A rung with what all have."""
    own_plan = partial(plan, eliminated=eliminated, dense=dense)
    return Kernel(papers=PAPERS, phases=PHASES, plan=own_plan, numbered=True, **description)
