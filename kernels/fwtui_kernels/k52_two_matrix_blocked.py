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
    """Yield the steps of the in-place plan; a tile that this round has written is read from the output, others from the input."""
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
        at = tiles.skip_pivot(cuda.blockIdx.x, p)
        # this round's solved pivot is in the output; the input has the unsolved one
        tiles.relax_panel_tile(own, solved, source, to, p, at, cuda.blockIdx.y == 0, number, tile, stride)

    @jit
    def rest(source, to, p):
        own = cuda.shared.array((tile, tile), number)
        first = cuda.shared.array((tile, tile), number)
        second = cuda.shared.array((tile, tile), number)
        base = int32(p * tile)
        top, left = tiles.rest_corner(cuda.blockIdx.y, cuda.blockIdx.x, p, tile)
        # this round's panels are in the output too
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
        "A negative result, on the ladder because it teaches. Two matrices look cleaner: nothing is overwritten that may still "
        "be read. But the phases of the blocked algorithm are already in an order that makes updating in place safe. The second "
        "matrix only adds footprint: a tile is read from one address and written to another, so the caches hold twice the data. "
        "A matrix that fits into the L2 cache once may not fit twice. The relaxations and the requested bytes are exactly those "
        "of the version in place."
    ),
    memories=("device", "pinned"),
    matrices=2,
)
