"""The steps and the description of the register-tiled rungs. Plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from fwtui_kernels import forms
from fwtui_kernels.parts.blocked import PHASES, spans_outside
from fwtui_kernels.parts.tuning import ALL, CROSS, PANEL, SOLVED
from fwtui_kernels.plan import Cost, Kernel, Option, Rect, Shape, Step

TILE = 128  # for large graphs
WIDE_TILE = 64  # for distances of 8 bytes
PAPERS = (
    "G. Venkataraman, S. Sahni, S. Mukhopadhyaya, A Blocked All-Pairs Shortest-Paths Algorithm, JEA 8, 2003",
    "V. Volkov, J. W. Demmel, Benchmarking GPUs to Tune Dense Linear Algebra, SC 2008",
    "P. Sao et al., Scalable All-Pairs Shortest Paths for Huge Graphs on Multi-GPU Clusters, HPDC 2021",
)


def tile_of(shape: Shape) -> int:
    """Return the tile for a large graph of the shape's data type."""
    return WIDE_TILE if shape.itemsize == 8 else TILE


def pivot_step(shape: Shape, p: int, lane: int = 0, after: tuple[int, ...] = ()) -> Step:
    """Return the step that solves tile (p, p) and stores two copies, one word per cell."""
    low, high = p * shape.tile, (p + 1) * shape.tile
    own, copies = Rect(low, low, high, high), Rect(0, 0, shape.tile, shape.tile, SOLVED)
    cells = shape.tile**2
    cost = Cost(shape.tile**3, cells * (2 * shape.itemsize + 2 * shape.word_bytes))
    return Step("pivot", "pivot", (p,), cost, (own,), (own, copies), lane, after)


def panels_step(shape: Shape, p: int, lane: int = 0, after: tuple[int, ...] = ()) -> Step:
    """Return the step that computes row p and column p, and a copy of column p by columns."""
    low, high = p * shape.tile, (p + 1) * shape.tile
    n, cells, others = shape.padded, shape.tile**2, shape.padded // shape.tile - 1
    panel = PANEL + p % 2
    spans = spans_outside(low, high, n)
    row = [Rect(low, left, high, right) for left, right in spans]
    column = [Rect(top, low, bottom, high) for top, bottom in spans]
    copies = [Rect(0, left, shape.tile, right, panel) for left, right in spans]
    # a tile is read and written and reads the pivot's copy; the column is written twice
    cost = Cost(2 * others * shape.tile**3, others * cells * (4 * shape.itemsize + 3 * shape.word_bytes))
    reads = (Rect(0, 0, shape.tile, shape.tile, SOLVED), *row, *column)
    return Step("panels", "panels", (p,), cost, reads, (*row, *column, *copies), lane, after)


def rest_step(shape: Shape, p: int, part: int, lane: int = 0, after: tuple[int, ...] = ()) -> Step:
    """Return a step for one part of the remainder of round p, numbered as in tuning.py."""
    tile, n = shape.tile, shape.padded
    low, high = p * shape.tile, (p + 1) * shape.tile
    spans = spans_outside(low, high if part == CROSS else low + part * tile, n)
    if part == CROSS:
        behind = high + tile  # the next pivot's end
        own = tuple(Rect(high, left, behind, right) for left, right in spans)
        own += tuple(Rect(top, high, bottom, behind) for top, bottom in spans_outside(low, behind, n))
    else:
        own = tuple(Rect(top, left, bottom, right) for top, bottom in spans for left, right in spans)
    reads = [Rect(0, top, tile, bottom, PANEL + p % 2) for top, bottom in spans]
    reads += [Rect(low, left, high, right) for left, right in spans]
    tiles = sum(rect.area for rect in own) // tile**2
    cost = Cost(tiles * tile**3, tiles * tile**2 * (3 * shape.itemsize + shape.word_bytes))
    return Step("cross" if part == CROSS else "rest", "rest", (p, part), cost, (*reads, *own), own, lane, after)


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """Yield the steps of each round. Costs count the bytes of whole tiles; copies consist of words of at least 4 bytes."""
    for p in range(shape.padded // shape.tile):
        yield pivot_step(shape, p)
        if shape.padded > shape.tile:
            yield panels_step(shape, p)
            yield rest_step(shape, p, ALL)


FORM = Option(
    "form", (forms.AUTO, forms.ONE_K, forms.TWO_K), forms.AUTO, "k per instruction: 0 = by the weights' sign, 1 = one, 2 = two"
)
# the choices of the rungs that use these products
CHOICES: dict[str, Any] = {
    "tiles": (64, TILE),
    "wide_tiles": (WIDE_TILE,),
    "default_tile": TILE,
    "small_tile": (3072, 64),
    "simulator_tiles": (8,),
    "options": (FORM,),
    "launch_modes": ("eager", "graph"),
    "memories": ("device", "pinned"),
    "refuses": forms.refuses,
    "lacks": forms.lacks,
}
rung = partial(Kernel, papers=PAPERS, phases=PHASES, plan=plan, **CHOICES)
