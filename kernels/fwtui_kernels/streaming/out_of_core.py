"""Out-of-core: for matrices larger than device memory, tiles of thousands of vertices are copied in, updated and copied back.

round p, tiles of B x B:   pivot    the tile (p, p), solved on the device by the steps of `register-tiled`
                           panels   row p, which stays on the device until the round ends, and column p, which stays there
                                    transposed, as the left operand of the products
                           rest     every other tile passes through one of three buffers:

    stream 1 (copies in)   | tile 3 |  tile 4 |  tile 5 | ...
    stream 0 (products)             |  tile 3 |  tile 4 | ...
    stream 2 (copies back)                    |  tile 3 | ...

A tile is B^3 relaxations and B^2 cells over PCIe in each direction. At 16e12 int32 relaxations/s and 55 GB/s in both directions
at once (PCIe 5, pinned memory), products and copies take equal time at B = 1164; B = 4096 leaves PCIe idle for 70 % of the time.
On an H200, n = 32768 takes 2.24 s with 3 GiB of device memory, and 2.15 s in core.

This kernel is not a rung, because a rung's matrix is on the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from fwtui_kernels import forms
from fwtui_kernels.forms import lanes_of
from fwtui_kernels.parts import register_tiled as tiled
from fwtui_kernels.parts.tuning import Product, tuning_of
from fwtui_kernels.plan import MAX_N, Cost, Kernel, Program, Rect, Shape, Step, Target

# buffers on the device; buffer 0 is the matrix on the host. TURNED and COLUMNS hold transposed tiles, one word per cell
PIVOT, TURNED, ROWS, COLUMNS, STREAM, SOLVED, PANEL = range(1, 8)  # and PANEL + 1
BUFFERS = 3  # tiles of the remainder on the device: one arrives, one is updated, one leaves
COMPUTE, IN, BACK = range(3)  # streams
PHASES = {"in": "tiles in", "pivot": "pivot", "panels": "panels", "rest": "remainder", "back": "tiles back"}


def inner(shape: Shape) -> Shape:
    """Return the shape with which the pivot tile is solved, as a separate graph with smaller tiles."""
    return replace(shape, n=shape.tile, tile=tiled.tile_of(shape) if shape.tile >= tiled.TILE else min(8, shape.tile))


def buffer_shapes(shape: Shape) -> dict[int, tuple[int, int]]:
    """Return the rows and columns of each buffer on the device; its slots are one below the other."""
    tile, side, small = shape.tile, shape.padded // shape.tile, inner(shape).tile
    cells = shape.word_bytes // shape.itemsize  # cells per word
    panel = (small, tile * cells)
    return {
        PIVOT: (tile, tile),
        TURNED: (tile, tile * cells),
        ROWS: (side * tile, tile),
        COLUMNS: (side * tile, tile * cells),
        STREAM: (BUFFERS * tile, tile),
        SOLVED: (2 * small, small * cells),
        PANEL: panel,
        PANEL + 1: panel,
    }


def device_bytes(shape: Shape) -> int:
    """Return the bytes that a run needs on the device."""
    return sum(rows * cells for rows, cells in buffer_shapes(shape).values()) * shape.itemsize


def streams(shape: Shape, free: int) -> Shape | None:
    """Return the shape with the largest tile, up to an eighth of n, that fits into that many bytes of device memory, or None.

    Larger tiles mean fewer copies, but a larger share of the work in the panels, which overlap with few copies.
    """
    fitting = [t for t in KERNEL.tiles if device_bytes(replace(shape, tile=t)) <= free]
    tile = max((t for t in fitting if 8 * t <= shape.n), default=min(fitting, default=None))
    return None if tile is None else replace(shape, tile=tile)


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """Return the steps of each round: copy in, solve and copy back the pivot; then the panel tiles; then the remainder."""
    steps: list[Step] = []
    tile, side = shape.tile, shape.padded // shape.tile
    cell_bytes = tile**2 * shape.itemsize
    back = -1  # index of the latest copy back

    def home(row: int, column: int) -> Rect:
        return Rect(row * tile, column * tile, (row + 1) * tile, (column + 1) * tile)

    def place(buffer: int, slot: int) -> Rect:
        return Rect(slot * tile, 0, (slot + 1) * tile, tile, buffer)

    def add(step: Step) -> int:
        steps.append(step)
        return len(steps) - 1

    def copied(op: str, buffer: int, slot: int, row: int, column: int, after: int) -> int:
        ends = (home(row, column),), (place(buffer, slot),)
        reads, writes = ends if op == "in" else ends[::-1]
        args, waits = (buffer, slot, row * side + column), (after,) if after >= 0 else ()
        return add(Step(op, op, args, Cost(0, cell_bytes, cell_bytes), reads, writes, IN if op == "in" else BACK, waits))

    comes, goes = partial(copied, "in"), partial(copied, "back")

    def turned(phase: str, source: tuple[int, int], to: tuple[int, int], after: tuple[int, ...] = ()) -> int:
        cost = Cost(0, tile**2 * (shape.itemsize + shape.word_bytes))
        return add(Step("turn", phase, (*source, *to), cost, (place(*source),), (place(*to),), COMPUTE, after))

    def product(phase: str, own: tuple[int, int], left: tuple[int, int], top: tuple[int, int], after: int) -> int:
        reads = tuple(dict.fromkeys(place(*operand) for operand in (own, left, top)))
        cost = Cost(tile**3, products_bytes(shape))
        return add(Step("product", phase, (*own, *left, *top), cost, reads, (place(*own),), COMPUTE, (after,)))

    for p in range(side):
        # a round reads the tiles that the previous round copied back, and reuses its buffers
        solved = came = comes(PIVOT, 0, p, p, back)
        for step in tiled.plan(inner(shape), False):
            within = tuple(r._replace(buffer=INNER_BUFFERS[r.buffer]) for r in step.reads)
            changed = tuple(r._replace(buffer=INNER_BUFFERS[r.buffer]) for r in step.writes)
            solved = add(replace(step, phase="pivot", reads=within, writes=changed, after=(came,) if came >= 0 else ()))
            came = -1
        back = goes(PIVOT, 0, p, p, solved)
        turned("pivot", (PIVOT, 0), (TURNED, 0))
        others = [t for t in range(side) if t != p]
        free = [-1] * BUFFERS  # the step after which a tile of the remainder may use the buffer
        for number, t in enumerate(others):
            came = comes(ROWS, t, p, t, -1)
            back = goes(ROWS, t, p, t, product("panels", (ROWS, t), (TURNED, 0), (ROWS, t), came))
            slot = number % BUFFERS
            came = comes(STREAM, slot, t, p, free[slot])
            turned("panels", (STREAM, slot), (COLUMNS, t), (came,))
            product("panels", (STREAM, slot), (COLUMNS, t), (PIVOT, 0), came)
            done = turned("panels", (STREAM, slot), (COLUMNS, t))
            free[slot] = back = goes(STREAM, slot, t, p, done)
        for number, (row, column) in enumerate(((i, j) for i in others for j in others), len(others)):
            slot = number % BUFFERS
            came = comes(STREAM, slot, row, column, free[slot])
            done = product("rest", (STREAM, slot), (COLUMNS, row), (ROWS, column), came)
            free[slot] = back = goes(STREAM, slot, row, column, done)
    return iter(steps)


def cut_of(shape: Shape) -> Product:
    """Return the division of the tile products, which is that of the kernel that solves the pivot."""
    return tuning_of(inner(shape)).rest


def products_bytes(shape: Shape) -> int:
    """Return the device bytes of one product: its operands once per block that uses them, its own tile twice."""
    cut, lanes = cut_of(shape), lanes_of(shape.dtype)
    left, top = shape.tile // (cut.wide * lanes) * shape.word_bytes, shape.tile // cut.high * shape.itemsize
    return shape.tile**2 * (left + top + 2 * shape.itemsize)


def build(shape: Shape, target: Target) -> Program:
    from fwtui_kernels.parts.products import program
    from fwtui_kernels.streaming.streamed import StreamedProgram, product_op, turn_op

    within_tile = program(inner(shape), target)
    is_one_tile = inner(shape).padded == inner(shape).tile
    ops = {
        name: replace(op, buffers=lambda args, op=op: tuple(INNER_BUFFERS[b] for b in op.buffers(args)))
        for name, op in within_tile.ops.items()
        if name == "pivot" or not is_one_tile
    }
    ops |= {"product": product_op(shape, cut_of(shape), target), "turn": turn_op(shape)}
    return StreamedProgram(shape, target, ops, buffer_shapes(shape))


# buffers here, in the order in which the pivot kernel numbers its own
INNER_BUFFERS = (PIVOT, SOLVED, PANEL, PANEL + 1)
KERNEL = Kernel(
    id="out-of-core",
    title="Out of core",
    papers=(
        "P. Sao et al., Scalable All-Pairs Shortest Paths for Huge Graphs on Multi-GPU Clusters, HPDC 2021",
        "G. J. Katz, J. T. Kider, All-Pairs Shortest-Paths for Large Graphs on the GPU, Graphics Hardware 2008",
    ),
    phases=PHASES,
    plan=plan,
    build=build,
    summary="The matrix stays in host memory; tiles pass through the device while others are computed.",
    lesson=(
        "A tile of B x B cells takes B^3 relaxations and crosses the link twice: a larger tile has more work per byte, and from "
        "about a thousand vertices on the products take longer than the copies. So a matrix that is larger than device memory "
        "costs little more time than one that fits, if copies and products overlap."
    ),
    tiles=(256, 512, 1024, 2048, 4096),
    default_tile=4096,
    options=(tiled.FORM,),
    refuses=forms.refuses,
    lacks=forms.lacks,
    max_n=MAX_N,
    streams=streams,
)
