"""Blocked, with the whole third phase in registers: the fastest form on large graphs.

round p:   pivot          panels                 rest
           +--+--+--+     +--+--+--+     C tile: 128 x 128 words of registers in a block, 8 x 8 in a thread
           |P |  |  |     |P |R |R |             += panel, by columns   (128 x slab, shared, copied ahead)
           +--+--+--+     +--+--+--+              x row p, by rows      (slab x 128, shared, copied ahead)
           |  |  |  |     |C |  |  |
           +--+--+--+     +--+--+--+     each word of a slab that a thread loads is used 8 times from a register
           |  |  |  |     |C |  |  |
           +--+--+--+     +--+--+--+
"""

from __future__ import annotations

from collections.abc import Iterator

from kernels import forms
from kernels.forms import WORD_BYTES
from kernels.parts.blocked import PHASES, beside
from kernels.parts.tuning import ALL, CLOSED, CROSS, PANEL
from kernels.plan import Cost, Kernel, Option, Program, Rect, Shape, Step, Target

PAPERS = (
    "G. Venkataraman, S. Sahni, S. Mukhopadhyaya, A Blocked All-Pairs Shortest-Paths Algorithm, JEA 8, 2003",
    "V. Volkov, J. W. Demmel, Benchmarking GPUs to Tune Dense Linear Algebra, SC 2008",
    "P. Sao et al., Scalable All-Pairs Shortest Paths for Huge Graphs on Multi-GPU Clusters, HPDC 2021",
)


def pivot_step(shape: Shape, p: int, lane: int = 0, after: tuple[int, ...] = ()) -> Step:
    """Closes tile (p, p) and copies it twice, a word to a cell."""
    low, high = p * shape.tile, (p + 1) * shape.tile
    own, copies = Rect(low, low, high, high), Rect(0, 0, shape.tile, shape.tile, CLOSED)
    cells = shape.tile**2
    cost = Cost(shape.tile**3, cells * (2 * shape.itemsize + 2 * WORD_BYTES))
    return Step("pivot", "pivot", (p,), cost, (own,), (own, copies), lane, after)


def panels_step(shape: Shape, p: int, lane: int = 0, after: tuple[int, ...] = ()) -> Step:
    """Row p and column p, and column p once more by columns."""
    low, high = p * shape.tile, (p + 1) * shape.tile
    n, cells, others = shape.padded, shape.tile**2, shape.padded // shape.tile - 1
    panel = PANEL + p % 2
    spans = beside(low, high, n)
    row = [Rect(low, left, high, right) for left, right in spans]
    column = [Rect(top, low, bottom, high) for top, bottom in spans]
    copies = [Rect(0, left, shape.tile, right, panel) for left, right in spans]
    # each tile is read and written, and reads the pivot's copy; the column is written twice
    cost = Cost(2 * others * shape.tile**3, others * cells * (4 * shape.itemsize + 3 * WORD_BYTES))
    reads = (Rect(0, 0, shape.tile, shape.tile, CLOSED), *row, *column)
    return Step("panels", "panels", (p,), cost, reads, (*row, *column, *copies), lane, after)


def rest_step(shape: Shape, p: int, part: int, lane: int = 0, after: tuple[int, ...] = ()) -> Step:
    """One part of the rest of round p, numbered as in tuning.py."""
    tile, n = shape.tile, shape.padded
    low, high = p * shape.tile, (p + 1) * shape.tile
    spans = beside(low, high if part == CROSS else low + part * tile, n)
    if part == CROSS:
        behind = high + tile  # the next pivot's end
        own = tuple(Rect(high, left, behind, right) for left, right in spans)
        own += tuple(Rect(top, high, bottom, behind) for top, bottom in beside(low, behind, n))
    else:
        own = tuple(Rect(top, left, bottom, right) for top, bottom in spans for left, right in spans)
    reads = [Rect(0, top, tile, bottom, PANEL + p % 2) for top, bottom in spans]
    reads += [Rect(low, left, high, right) for left, right in spans]
    tiles = sum(rect.area for rect in own) // tile**2
    cost = Cost(tiles * tile**3, tiles * tile**2 * (3 * shape.itemsize + WORD_BYTES))
    return Step("cross" if part == CROSS else "rest", "rest", (p, part), cost, (*reads, *own), own, lane, after)


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """Bytes are per tile, as each phase moves them; copies are made of words, 4 bytes also where a cell has 2."""
    for p in range(shape.padded // shape.tile):
        yield pivot_step(shape, p)
        if shape.padded > shape.tile:
            yield panels_step(shape, p)
            yield rest_step(shape, p, ALL)


def build(shape: Shape, target: Target) -> Program:
    from kernels.parts.products import program

    return program(shape, target)


FORM = Option(
    "form", (forms.AUTO, forms.ONE_K, forms.TWO_K), forms.AUTO, "0 = by the weights' sign, 1 = one k, 2 = two k at once"
)

KERNEL = Kernel(
    id="register-tiled",
    title="Register-tiled",
    papers=PAPERS,
    phases=PHASES,
    plan=plan,
    build=build,
    summary="Phases two and three are one product of tiles: 64 results to a thread in registers, the next slab copied meanwhile.",
    lesson=(
        "Shared memory can bring about one number for each relaxation, so a kernel whose threads load two for each relaxation "
        "waits for it. Here a thread keeps 8 x 8 words of the result in registers: with 16 loaded numbers it does 64 "
        "relaxations, and the arithmetic is the limit. The tile's operands come a slab of k at a time, copied past the "
        "registers into shared memory while the slab before is in use. What is left to win is instructions: on Hopper an "
        "addition and a minimum of integers are one instruction, and that one can do two 16-bit relaxations at once; float32 "
        "distances that are not negative take three instructions for two relaxations, as their bits are ordered like integers. "
        "The second phase needs no order of k either: with the pivot closed it is the same product as the third."
    ),
    tiles=(64, 128),
    default_tile=128,
    small_tile=(3072, 64),
    simulator_tiles=(8,),
    options=(FORM,),
    launch_modes=("eager", "graph"),
    memories=("device", "pinned"),
    refuses=forms.refuses,
    lacks=forms.lacks,
    preference=50,
)
