"""Blocked, with the tile being updated in global memory in the third phase (CS542200, before its optimisation)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fwtui_kernels.compiled.device import cuda, int32, jit
from fwtui_kernels.parts import blocked
from fwtui_kernels.parts import blocked_tiles as tiles
from fwtui_kernels.plan import Shape, Step


def rest_of(number, tile, stride):
    """Return the third phase for cells of type `number`, in blocks of tile x stride threads."""
    results = tile // stride  # cells of a thread: y, y + stride, ... of column x

    @jit
    def rest(distance, p):
        to = cuda.shared.array((tile, tile), number)
        middle = cuda.shared.array((tile, tile), number)
        x = int32(cuda.threadIdx.x)
        y = int32(cuda.threadIdx.y)
        base = int32(p * tile)
        top, left = tiles.rest_corner(cuda.blockIdx.y, cuda.blockIdx.x, p, tile)
        for s in range(results):
            r = int32(y + s * stride)
            to[r, x] = distance[top + r, base + x]
            middle[r, x] = distance[base + r, left + x]
        cuda.syncthreads()
        for k in range(tile):
            for s in range(results):
                r = int32(y + s * stride)
                # a global load and a global store for one addition and one minimum
                distance[top + r, left + x] = min(distance[top + r, left + x], number(to[r, k] + middle[k, x]))

    return rest


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """Yield the steps of blocked.plan. The third phase reads two panel tiles once, and reads and writes its tile for each k."""
    bytes_per_tile = shape.tile**2 * shape.itemsize
    for step in blocked.plan(shape, stepwise):
        if step.op == "rest":
            count = step.cost.relaxations // shape.tile**3
            step = replace(step, cost=step.cost._replace(device_bytes=count * (2 + 2 * shape.tile) * bytes_per_tile))
        yield step


KERNEL = blocked.rung(
    id="blocked-global",
    title="Blocked, own tile in global memory",
    papers=("CS542200 Parallel Programming, Homework 4-1, section 3d (its own earlier version)",),
    plan=plan,
    build=tiles.builder(rest_of),
    summary="The panels are in shared memory, but the tile that they update is read and written in global memory for each k.",
    lesson=(
        "This is a blocked kernel with one step missing. The two panel tiles are in shared memory, so reading them is cheap. The "
        "tile that is updated is not: each of the `tile` steps loads it from global memory and stores it back. No other thread "
        "reads those values in between, so this traffic is wasted. A cache shortens the loads, but every store still has to be "
        "sent. The next rungs load the tile once and store it once."
    ),
)
