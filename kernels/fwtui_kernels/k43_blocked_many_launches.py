"""Blocked, with a separate launch for each side of the pivot (CS542200, its block configuration)."""

from __future__ import annotations

from collections.abc import Iterator

from fwtui_kernels.compiled.device import NUMBER, cuda, int32, jit
from fwtui_kernels.parts import blocked
from fwtui_kernels.parts import blocked_tiles as tiles
from fwtui_kernels.plan import Cost, Program, Rect, Shape, Step, Target
from fwtui_kernels.programs.cuda_program import CudaProgram, Op


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """Yield the steps of a round: the pivot, up to four launches for the panels and up to four for the remainder.

    Their second argument is the side of the pivot (0 left, 1 right, 2 above, 3 below), or the quadrant of the remainder (0 above
    left, 1 above right, 2 below left, 3 below right). At the edges of the matrix there are fewer launches.
    """
    for step in blocked.plan(shape, stepwise):
        if step.op == "pivot":
            yield step
            continue
        p = step.args[0]
        low, high = p * shape.tile, (p + 1) * shape.tile
        whole = sum(part.area for part in step.writes)
        for part in step.writes:
            cost = Cost(*(whole_cost * part.area // whole for whole_cost in step.cost))
            below, right = int(part.top >= high), int(part.left >= high)
            if step.op == "panels":
                side = 2 + below if part.left == low else right
                sources: tuple[Rect, ...] = (Rect(low, low, high, high),)
            else:
                side = 2 * below + right
                sources = (Rect(low, part.left, high, part.right), Rect(part.top, low, part.bottom, high))
            yield Step(step.op, step.phase, (p, side), cost, (*sources, part), (part,))


def build(shape: Shape, target: Target) -> Program:
    number = NUMBER[shape.dtype]
    tile, stride = block = blocked.block_of(shape)

    @jit
    def panels(distance, p, side):
        own = cuda.shared.array((tile, tile), number)
        solved = cuda.shared.array((tile, tile), number)
        at = int32(cuda.blockIdx.x)
        # right of and below the pivot, tiles are numbered from the one after it
        if side % 2 == 1:
            at += int32(p + 1)
        tiles.relax_panel_tile(own, solved, distance, distance, p, at, side < 2, number, tile, stride)

    @jit
    def rest(distance, p, side):
        own = cuda.shared.array((tile, tile), number)
        to = cuda.shared.array((tile, tile), number)
        middle = cuda.shared.array((tile, tile), number)
        base = int32(p * tile)
        row = int32(cuda.blockIdx.y)
        column = int32(cuda.blockIdx.x)
        if side >= 2:
            row += int32(p + 1)
        if side % 2 == 1:
            column += int32(p + 1)
        top = int32(row * tile)
        left = int32(column * tile)
        tiles.relax_rest_tile(own, to, middle, distance, distance, base, top, left, number, tile, stride, tiles.relax_cell)

    others = shape.padded // tile - 1

    def count(p: int, after: int) -> int:
        """Return the number of tiles before or after the pivot in one direction."""
        return others - p if after else p

    pivot, _ = tiles.pivot_and_panels(shape)
    ops = {
        "pivot": Op(pivot, block, lambda args: (1, 1)),
        "panels": Op(panels, block, lambda args: (count(args[0], args[1] % 2), 1)),
        "rest": Op(rest, block, lambda args: (count(args[0], args[1] % 2), count(args[0], args[1] // 2))),
    }
    return CudaProgram(shape, target, ops)


KERNEL = blocked.rung(
    id="blocked-many-launches",
    title="Blocked, many launches",
    papers=("CS542200 Parallel Programming, Homework 4-1, section 1b",),
    plan=plan,
    build=build,
    summary="Each side of the pivot and each quadrant of the remainder is a separate launch: up to nine per round, not three.",
    lesson=(
        "It is natural to process the parts left of, right of, above and below the pivot one after the other. That simplifies "
        "the arithmetic in each launch a little. But launches in one stream are serialised: the next one starts when the last "
        "block of the previous one has finished. Each launch has an overhead, and at its end multiprocessors idle while the last "
        "blocks run. Four small launches pay that four times, and the parts near the edge of the matrix are too small to fill a "
        "GPU. A single launch over all independent work lets the hardware distribute the blocks."
    ),
)
