"""What all three-phase blocked kernels say of themselves: their plan and their form (Venkataraman, Sahni, Mukhopadhyaya 2003;
Katz and Kider 2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from kernels.plan import Cost, Kernel, Option, Rect, Shape, Step

PHASES = {"pivot": "pivot", "panels": "panels", "rest": "rest"}
RESULTS = 4  # cells per thread in the first two phases of the optimised rungs
THREADS = Option("threads", (64, 256, 1024), 256, "threads per block; each owns tile^2 / threads cells")


def block_of(shape: Shape) -> tuple[int, int]:
    """Threads across and down: as many as asked for, but never more than the tile has cells."""
    return shape.tile, min(shape.option("threads"), shape.tile**2) // shape.tile


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """Per round p: the pivot tile, then the tiles of its row and column, then all others.

    Bytes are per tile, as each phase moves them: pivot reads and writes itself; a panel tile reads the pivot and itself and
    is written; a tile of the rest reads two panel tiles and itself and is written.
    """
    n, tile = shape.padded, shape.tile
    bytes_per_tile = tile * tile * shape.itemsize
    others = n // tile - 1
    for p in range(n // tile):
        low, high = p * tile, (p + 1) * tile
        pivot = Rect(low, low, high, high)
        row, column = Rect(low, 0, high, n), Rect(0, low, n, high)
        yield Step("pivot", "pivot", (p,), Cost(tile**3, 2 * bytes_per_tile), (pivot,), (pivot,))
        if others:
            panels = tuple(r for r in (*_but(row, low, high, across=True), *_but(column, low, high, across=False)))
            cost = Cost(2 * others * tile**3, 2 * others * 3 * bytes_per_tile)
            yield Step("panels", "panels", (p,), cost, (pivot, *panels), panels)
            cost = Cost(others**2 * tile**3, others**2 * 4 * bytes_per_tile)
            rest = tuple(q for r in _but(Rect(0, 0, n, n), low, high, across=False) for q in _but(r, low, high, across=True))
            yield Step("rest", "rest", (p,), cost, (*panels, *rest), rest)


def _but(rect: Rect, low: int, high: int, across: bool) -> Iterator[Rect]:
    """The rectangle without its columns (across) or rows low..high."""
    parts = (
        (rect._replace(right=low), rect._replace(left=high)) if across else (rect._replace(bottom=low), rect._replace(top=high))
    )
    return (r for r in parts if r.bottom > r.top and r.right > r.left)


# a rung of the GPU, and what most of them have
rung = partial(
    Kernel,
    backend="cuda",
    phases=PHASES,
    plan=plan,
    tiles=(8, 16, 32),
    default_tile=32,
    options=(THREADS,),
    launch_modes=("eager", "graph"),
)
optimized = partial(rung, tiles=(32,), options=())
