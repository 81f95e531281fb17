"""Floyd-Warshall by supernodes: a tile is relaxed with its descendants and ancestors in the elimination tree alone.

            s            order of the vertices   a  b  t  c  d  u  s     t separates a from b, u separates c from d, and s the
          /   \\                                                          two halves of the graph
        t       u        eliminating a touches   a     t           s
       / \\     / \\       eliminating t touches   a  b  t           s     all pairs of them, and nothing else
      a   b   c   d      eliminating s touches   a  b  t  c  d  u  s

Supernodes of equal height are independent: their tiles go in one launch. Two of them may relax the same tile of their common
ancestors, so it is one task that goes through both. Plain Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from importlib.util import find_spec
from itertools import chain
from typing import NamedTuple

from fwtui_kernels.parts.blocked import PHASES, round_of
from fwtui_kernels.plan import Cost, EliminationOrder, Kernel, Shape, Step, Supernode, Target

PAPERS = (
    "P. Sao, R. Kannan, P. Gera, R. Vuduc, A Supernodal All-Pairs Shortest Path Algorithm, PPoPP 2020",
    "A. George, Nested Dissection of a Regular Finite Element Mesh, SIAM J. Numer. Anal. 10(2), 1973",
    "G. Karypis, V. Kumar, A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs, SISC 20(1), 1998",
)


class Elimination(NamedTuple):
    """`spans[p]`: the tiles that tile p is relaxed with, itself included, as half-open spans; `together`: the tiles of each
    launch, in order.
    """

    spans: tuple[tuple[tuple[int, int], ...], ...]
    together: tuple[tuple[int, ...], ...]

    def tiles(self, p: int) -> list[int]:
        """The tiles that tile p is relaxed with, without itself."""
        return [i for first, end in self.spans[p] for i in range(first, end) if i != p]

    def relaxations(self, tile: int) -> int:
        return tile**3 * sum(sum(end - first for first, end in spans) ** 2 for spans in self.spans)

    def fill(self) -> int:
        """The tiles of the factor: those of each tile with itself and its ancestors."""
        return sum(max(0, end - max(first, p)) for p, spans in enumerate(self.spans) for first, end in spans)


def elimination(shape: Shape) -> Elimination:
    """That of the shape's order; without one all vertices are one supernode."""
    return of_supernodes(shape.order.supernodes if shape.order is not None else (Supernode(shape.n, -1),), shape.tile)


@lru_cache(maxsize=32)
def of_supernodes(supernodes: tuple[Supernode, ...], tile: int) -> Elimination:
    starts = EliminationOrder(supernodes).starts(tile)
    lowest, height = list(starts), [0] * len(supernodes)  # first tile of the subtree, and the longest way down
    for number, node in enumerate(supernodes):
        if node.parent >= 0:
            lowest[node.parent] = min(lowest[node.parent], lowest[number])
            height[node.parent] = max(height[node.parent], height[number] + 1)
    spans: list[tuple[tuple[int, int], ...]] = []
    launches: dict[tuple[int, int], list[int]] = {}
    for number, node in enumerate(supernodes):
        touched = [(lowest[number], starts[number + 1])]
        above = node.parent
        while above >= 0:
            first, end = starts[above], starts[above + 1]
            if first == touched[-1][1]:
                first = touched.pop()[0]
            touched.append((first, end))
            above = supernodes[above].parent
        for place, p in enumerate(range(starts[number], starts[number + 1])):
            spans.append(tuple(touched))
            launches.setdefault((height[number], place), []).append(p)
    return Elimination(tuple(spans), tuple(tuple(launches[key]) for key in sorted(launches)))


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """Three steps for each launch, or for each tile; args are the first of its tiles and how many there are."""
    eliminated = elimination(shape)
    for tiles in ((p,) for p in range(len(eliminated.spans))) if stepwise else eliminated.together:
        rounds = [_round(shape, eliminated, p) for p in tiles]
        for phase in PHASES:
            steps = [step for one in rounds for step in one if step.phase == phase]
            if steps:
                reads, writes = (
                    dict.fromkeys(chain(*rects)) for rects in zip(*((s.reads, s.writes) for s in steps), strict=True)
                )
                cost = Cost.total(step.cost for step in steps)
                yield replace(steps[0], args=(tiles[0], len(tiles)), cost=cost, reads=tuple(reads), writes=tuple(writes))


def _round(shape: Shape, eliminated: Elimination, p: int) -> list[Step]:
    cuts = [cut for first, end in eliminated.spans[p] for cut in ((first, min(end, p)), (max(first, p + 1), end))]
    return list(round_of(shape, p, [(first * shape.tile, end * shape.tile) for first, end in cuts if first < end]))


def lacks(shape: Shape, target: Target) -> str | None:
    """Where METIS is missing."""
    return (
        None
        if find_spec("pymetis")
        else "the order of a sparse graph needs pymetis, which is not installed: pip install '.[sparse]'"
    )


# a rung, and what both have
rung = partial(Kernel, papers=PAPERS, phases=PHASES, plan=plan, numbered=True)
