"""The plan and the description of the blocked rungs (Venkataraman, Sahni, Mukhopadhyaya 2003; Katz and Kider 2008), and
other orders of a tile's cells. Plain Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from fwtui_kernels.plan import Cost, Kernel, Option, Rect, Shape, Step, crossing

PHASES = {"pivot": "pivot", "panels": "panels", "rest": "remainder"}
RESULTS = 4  # cells per thread in the first two phases of the optimised rungs
THREADS = Option("threads", (64, 256, 1024), 256, "threads per block; each owns tile^2 / threads cells")


def block_of(shape: Shape) -> tuple[int, int]:
    """Return the threads across and down: as many as requested, but at most one per cell of the tile."""
    return shape.tile, min(shape.option("threads"), shape.tile**2) // shape.tile


def spans_outside(low: int, high: int, n: int) -> list[tuple[int, int]]:
    """Return the non-empty spans of n vertices before `low` and from `high` on."""
    return [(first, end) for first, end in ((0, low), (high, n)) if first < end]


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """Yield the steps of each round: the pivot tile, then the tiles of its row and column, then all others.

    Costs count the bytes of whole tiles. The pivot reads and writes itself. A panel tile reads the pivot and itself and writes
    itself. A tile of the remainder reads two panel tiles and itself and writes itself.
    """
    for p in range(shape.padded // shape.tile):
        yield from round_of(shape, p, spans_outside(p * shape.tile, (p + 1) * shape.tile, shape.padded))


def round_of(shape: Shape, p: int, spans: Sequence[tuple[int, int]]) -> Iterator[Step]:
    """Yield the three steps of round p over the tiles in the given spans of vertices."""
    tile, bytes_per_tile = shape.tile, shape.tile**2 * shape.itemsize
    low, high = p * tile, (p + 1) * tile
    pivot = Rect(low, low, high, high)
    yield Step("pivot", "pivot", (p,), Cost(tile**3, 2 * bytes_per_tile), (pivot,), (pivot,))
    if spans:
        others = sum(end - first for first, end in spans) // tile
        panels = tuple(Rect(low, left, high, right) for left, right in spans)
        panels += tuple(Rect(top, low, bottom, high) for top, bottom in spans)
        cost = Cost(2 * others * tile**3, 2 * others * 3 * bytes_per_tile)
        yield Step("panels", "panels", (p,), cost, (pivot, *panels), panels)
        cost = Cost(others**2 * tile**3, others**2 * 4 * bytes_per_tile)
        rest = tuple(Rect(top, left, bottom, right) for top, bottom in spans for left, right in spans)
        yield Step("rest", "rest", (p,), cost, (*panels, *rest), rest)


def plan_at_once(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """Yield one step for all rounds, or one per round; the bytes are those of the three phases."""
    n, rounds = shape.padded, shape.padded // shape.tile
    everything = Rect(0, 0, n, n)
    by_round = groupby(plan(shape, stepwise), key=lambda step: step.args[0])
    costs = [Cost.total(step.cost for step in steps) for _, steps in by_round]
    for first, last in [(p, p + 1) for p in range(rounds)] if stepwise else [(0, rounds)]:
        reads = (*crossing(n, first * shape.tile, last * shape.tile), everything)
        yield Step("rounds", "all", (first, last), Cost.total(costs[first:last]), reads, (everything,))


def place(q: Any, tile: Any) -> Any:
    """Return the row-major position of cell q of a tile that is stored in 4x4 blocks."""
    small, inside = q >> 4, q & 15
    across = tile >> 2  # 4x4 blocks in a row of blocks
    return ((small // across << 2) + (inside >> 2)) * tile + (small % across << 2) + (inside & 3)


def shares(tile: int) -> tuple[int, int, int, int]:
    """Return the layout of 16 results for each of tile^2 / 16 threads in a tile: rows, columns, and the strides between them."""
    threads = tile * tile // 16
    across = min(4, threads) * max(1, threads // 16)
    columns = tile // across
    rows = 16 // columns
    return rows, columns, tile // rows, across


# the fields that most of these rungs share
rung = partial(
    Kernel, phases=PHASES, plan=plan, tiles=(8, 16, 32), default_tile=32, options=(THREADS,), launch_modes=("eager", "graph")
)
optimized = partial(rung, tiles=(32,), options=())
