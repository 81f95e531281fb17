"""Blocked, for matrices that the device does not hold: tiles of thousands of vertices come, are improved and go back.

round p, tiles of B x B:   pivot    the tile (p, p), closed on the device
                           panels   row p and column p, which stay on the device till the round ends
                           rest     every other tile passes through one of three buffers:

    lane 1 (copies in)     | tile 3 |  tile 4 |  tile 5 | ...
    lane 0 (products)               |  tile 3 |  tile 4 | ...
    lane 2 (copies back)                      |  tile 3 | ...

A tile is B^3 relaxations and 2 B^2 cells over the link, so from some B on the link keeps up: for 5e12 relaxations/s and
50 GB/s each way, int32, from B = 400 on. Not a rung: a rung's matrix is on the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kernels.blocked import plan as blocked_plan
from kernels.plan import Cost, Kernel, Option, Program, Rect, Shape, Step, Target

cuda: Any
load4: Any
ALIGN16: Any
HOME, PIVOT, ROWS, COLUMNS, STREAM = range(5)  # buffers: on the host; then on the device
BUFFERS = 3  # tiles of the rest on the device: one comes, one is worked on, one goes
COMPUTE, IN, BACK = range(3)  # lanes
RESULTS = 4  # rows and columns of results in a thread's registers
PHASES = {"in": "tiles in", "pivot": "pivot", "panels": "panels", "rest": "rest", "back": "tiles back"}


def tiles_on_device(side: int) -> int:
    """Tiles that the device holds at once, of a matrix of side x side tiles."""
    return 1 + 2 * side + BUFFERS


def device_bytes(shape: Shape) -> int:
    """What a run needs on the device."""
    return tiles_on_device(shape.padded // shape.tile) * shape.tile**2 * shape.itemsize


def tile_for(n: int, itemsize: int, free: int) -> int | None:
    """The tile to use with that many bytes of device memory: the largest of at most an eighth of the matrix, None if none fits.

    Larger tiles mean less traffic, but a larger share of the work in the panels, during which little can be copied.
    """
    fitting = [t for t in KERNEL.tiles if device_bytes(Shape(n=n, tile=t, dtype=_BY_SIZE[itemsize])) <= free]
    moderate = [t for t in fitting if 8 * t <= n]
    return max(moderate, default=min(fitting, default=None))


def largest_n(itemsize: int, free: int) -> int:
    """The most vertices that fit any tile, on the device."""
    tile = min(KERNEL.tiles)
    return max(0, (free // (tile**2 * itemsize) - 1 - BUFFERS) // 2 * tile)


def inner(shape: Shape) -> Shape:
    """The pivot tile as a graph of its own, in tiles of what one block of threads closes."""
    small = min(32, shape.tile) if shape.tile >= 32 else min(4, shape.tile)
    return replace(shape, n=shape.tile, tile=small, options=(("threads", 256),))


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """Per round: the pivot comes, is closed and goes; then the panels, tile by tile; then the rest, through three buffers."""
    steps: list[Step] = []
    tile, side = shape.tile, shape.padded // shape.tile
    cell_bytes = tile**2 * shape.itemsize
    back = -1  # the last step that copied back

    def home(row: int, column: int) -> Rect:
        return Rect(row * tile, column * tile, (row + 1) * tile, (column + 1) * tile)

    def place(buffer: int, slot: int) -> Rect:
        return Rect(slot * tile, 0, (slot + 1) * tile, tile, buffer)

    def add(step: Step) -> int:
        steps.append(step)
        return len(steps) - 1

    def comes(buffer: int, slot: int, row: int, column: int, after: int) -> int:
        args, waits = (buffer, slot, row * side + column), (after,) if after >= 0 else ()
        own = (home(row, column),)
        return add(Step("in", "in", args, Cost(0, cell_bytes, cell_bytes), own, (place(buffer, slot),), IN, waits))

    def goes(buffer: int, slot: int, row: int, column: int, after: int) -> int:
        args, own = (buffer, slot, row * side + column), (place(buffer, slot),)
        return add(Step("back", "back", args, Cost(0, cell_bytes, cell_bytes), own, (home(row, column),), BACK, (after,)))

    def product(phase: str, own: tuple[int, int], left: tuple[int, int], top: tuple[int, int], after: int) -> int:
        rects = [place(*operand) for operand in (own, left, top)]
        reads = tuple(dict.fromkeys(rects))
        cost = Cost(tile**3, products_bytes(shape))
        return add(Step("product", phase, (*own, *left, *top), cost, reads, (rects[0],), COMPUTE, (after,)))

    for p in range(side):
        # the tiles of a round are those that the round before sent back, its buffers those that it worked in
        closed = came = comes(PIVOT, 0, p, p, back)
        for step in blocked_plan(inner(shape), False):
            within = tuple(r._replace(buffer=PIVOT) for r in step.reads)
            changed = tuple(r._replace(buffer=PIVOT) for r in step.writes)
            closed = add(replace(step, phase="pivot", reads=within, writes=changed, after=(came,) if came >= 0 else ()))
            came = -1
        back = goes(PIVOT, 0, p, p, closed)
        others = [t for t in range(side) if t != p]
        for t in others:
            came = comes(ROWS, t, p, t, -1)
            back = goes(ROWS, t, p, t, product("panels", (ROWS, t), (PIVOT, 0), (ROWS, t), came))
            came = comes(COLUMNS, t, t, p, -1)
            back = goes(COLUMNS, t, t, p, product("panels", (COLUMNS, t), (COLUMNS, t), (PIVOT, 0), came))
        left: list[int] = [-1] * BUFFERS
        for number, (row, column) in enumerate((i, j) for i in others for j in others):
            slot = number % BUFFERS
            came = comes(STREAM, slot, row, column, left[slot])
            done = product("rest", (STREAM, slot), (COLUMNS, row), (ROWS, column), came)
            left[slot] = back = goes(STREAM, slot, row, column, done)
    return iter(steps)


def products_bytes(shape: Shape) -> int:
    """Device memory that one product asks for: its operands once for each block that uses them, its own tile twice."""
    blocks = shape.tile // width_of(shape)
    return shape.tile**2 * shape.itemsize * (2 * blocks + 2)


def width_of(shape: Shape) -> int:
    """Side of the square that a block of threads computes."""
    return min(64, shape.tile)


def build(shape: Shape, target: Target) -> Program:
    global ALIGN16, cuda, load4
    from kernels import k45_katz_kider
    from kernels.cuda_program import Op
    from kernels.device import ALIGN16, NUMBER, cuda, int32, jit, load4
    from kernels.streamed_program import StreamedProgram

    number = NUMBER[shape.dtype]
    tile, width = shape.tile, width_of(shape)
    slab = min(16, tile)
    across = width // RESULTS
    threads = across * across
    results = RESULTS * RESULTS
    pitch = width + RESULTS  # spreads the stores of columns over the banks, and keeps rows aligned

    @jit
    def product(own, left, top, own_buffer, own_slot, left_buffer, left_slot, top_buffer, top_slot):
        a = cuda.shared.array((slab, pitch), number, alignment=ALIGN16)
        b = cuda.shared.array((slab, pitch), number, alignment=ALIGN16)
        best = cuda.local.array(results, number)
        x = int32(cuda.threadIdx.x)
        y = int32(cuda.threadIdx.y)
        mine = int32(y * across + x)
        row = int32(int32(cuda.blockIdx.y) * width)
        column = int32(int32(cuda.blockIdx.x) * width)
        for r in range(RESULTS):
            for c in range(RESULTS):
                best[r * RESULTS + c] = own[own_slot * tile + row + y * RESULTS + r, column + x * RESULTS + c]
        for start in range(0, tile, slab):
            for cell in range(mine, width * slab, threads):
                # a by columns: a thread's four rows of one k then lie side by side
                a[cell % slab, cell // slab] = left[left_slot * tile + row + cell // slab, start + cell % slab]
                b[cell // width, cell % width] = top[top_slot * tile + start + cell // width, column + cell % width]
            cuda.syncthreads()
            for k in range(slab):
                a0, a1, a2, a3 = load4(a, k * pitch + y * RESULTS)
                b0, b1, b2, b3 = load4(b, k * pitch + x * RESULTS)
                best[0] = min(best[0], number(a0 + b0))
                best[1] = min(best[1], number(a0 + b1))
                best[2] = min(best[2], number(a0 + b2))
                best[3] = min(best[3], number(a0 + b3))
                best[4] = min(best[4], number(a1 + b0))
                best[5] = min(best[5], number(a1 + b1))
                best[6] = min(best[6], number(a1 + b2))
                best[7] = min(best[7], number(a1 + b3))
                best[8] = min(best[8], number(a2 + b0))
                best[9] = min(best[9], number(a2 + b1))
                best[10] = min(best[10], number(a2 + b2))
                best[11] = min(best[11], number(a2 + b3))
                best[12] = min(best[12], number(a3 + b0))
                best[13] = min(best[13], number(a3 + b1))
                best[14] = min(best[14], number(a3 + b2))
                best[15] = min(best[15], number(a3 + b3))
            # the next slab may not come while someone still reads this one
            cuda.syncthreads()
        for r in range(RESULTS):
            for c in range(RESULTS):
                own[own_slot * tile + row + y * RESULTS + r, column + x * RESULTS + c] = best[r * RESULTS + c]

    blocks = tile // width
    closing = k45_katz_kider.build(inner(shape), target)
    ops = {name: replace(op, buffers=lambda args: (PIVOT,)) for name, op in closing.ops.items()}  # type: ignore[attr-defined]
    if inner(shape).padded == inner(shape).tile:
        ops = {"pivot": ops["pivot"]}
    ops["product"] = Op(product, (across, across), lambda args: (blocks, blocks), lambda args: (args[0], args[2], args[4]))
    return StreamedProgram(shape, target, ops)


_BY_SIZE = {4: "int32", 2: "int16"}
KERNEL = Kernel(
    id="out-of-core",
    title="Out of core",
    backend="cuda",
    papers=(
        "P. Sao et al., Scalable All-Pairs Shortest Paths for Huge Graphs on Multi-GPU Clusters, HPDC 2021",
        "G. J. Katz, J. T. Kider, All-Pairs Shortest-Paths for Large Graphs on the GPU, Graphics Hardware 2008",
    ),
    phases=PHASES,
    plan=plan,
    build=build,
    summary="The matrix stays with the host; tiles of it pass through the device while others are worked on.",
    lesson=(
        "A tile of B x B cells takes B^3 relaxations and crosses the link twice: the larger the tile, the more work there is "
        "for each byte, and from a few hundred vertices on a GPU is busy longer than its link. So a matrix that is larger "
        "than the device's memory costs little more time than one that fits, if copies and work go on at the same time."
    ),
    tiles=(256, 512, 1024, 2048, 4096, 8192),
    default_tile=4096,
    options=(Option("threads", (256,), 256, "threads per block where the pivot is closed"),),
    max_n=1 << 18,
)
