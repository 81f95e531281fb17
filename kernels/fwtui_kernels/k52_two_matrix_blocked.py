"""The blocked algorithm with separate input and output matrices (Catinello 2023, section 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fwtui_kernels.compiled.device import NUMBER, cuda, int32, jit
from fwtui_kernels.parts import blocked
from fwtui_kernels.parts import blocked_tiles as tiles
from fwtui_kernels.parts.by_vertex import in_turn
from fwtui_kernels.plan import Program, Shape, Step, Target


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """Like the in-place plan, but a tile is read from the input until this round has written it, then from the output."""
    for step in blocked.plan(shape, stepwise):
        source, to = in_turn(step.args)
        yield replace(
            step,
            reads=tuple(r._replace(buffer=source if r in step.writes else to) for r in step.reads),
            writes=tuple(w._replace(buffer=to) for w in step.writes),
        )


def build(shape: Shape, target: Target) -> Program:
    number = NUMBER[shape.dtype]
    tile, stride = block = blocked.block_of(shape)

    @jit
    def pivot(source, to, p):
        own = cuda.shared.array((tile, tile), number)
        tiles.relax_pivot_tile(own, source, to, p, number, tile, stride)

    @jit
    def panels(source, to, p):
        own = cuda.shared.array((tile, tile), number)
        solved = cuda.shared.array((tile, tile), number)
        at = tiles.beside(cuda.blockIdx.x, p)
        # the pivot of this round is solved in the output; the input still has the open one
        tiles.relax_panel_tile(own, solved, source, to, p, at, cuda.blockIdx.y == 0, number, tile, stride)

    @jit
    def rest(source, to, p):
        own = cuda.shared.array((tile, tile), number)
        first = cuda.shared.array((tile, tile), number)
        second = cuda.shared.array((tile, tile), number)
        base = int32(p * tile)
        top, left = tiles.rest_corner(cuda.blockIdx.y, cuda.blockIdx.x, p, tile)
        # and so are the panels
        tiles.relax_rest_tile(own, first, second, source, to, base, top, left, number, tile, stride, tiles.relax_cell)

    rounds = shape.padded // tile
    return tiles.three_phases(shape, target, (pivot, panels, rest), block, buffers=in_turn, matrices=2, result=rounds % 2)


KERNEL = blocked.rung(
    id="two-matrix-blocked",
    title="Blocked, two matrices",
    papers=(
        "A. S. Catinello, Parallel Floyd-Warshall, 2023, section 4",
        "G. J. Katz, J. T. Kider, All-Pairs Shortest-Paths for Large Graphs on the GPU, Graphics Hardware 2008",
    ),
    plan=plan,
    build=build,
    summary="The blocked algorithm reading from one matrix and writing to another; they swap after each round.",
    lesson=(
        "A negative result, kept because it teaches. Two matrices look cleaner: nothing is overwritten that may still be read. "
        "But the phases of the blocked algorithm already are in an order that makes working in place safe. What the second "
        "matrix adds is footprint. A tile is read from one address and written to another, so the caches hold twice the data. A "
        "matrix that fits the second-level cache once may not fit it twice. The relaxations and the bytes asked for are exactly "
        "those of the version in place."
    ),
    memories=("device", "pinned"),
    matrices=2,
)
