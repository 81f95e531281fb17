"""Blocked, with `if` in place of `min` in the third phase (CS542200, before its second optimisation)."""

from __future__ import annotations

from fwtui_kernels.compiled.device import cuda, int32, jit
from fwtui_kernels.parts import blocked
from fwtui_kernels.parts import blocked_tiles as tiles


def rest_of(number, tile, stride):
    """The third phase for cells of that number type, in blocks of tile x stride threads."""
    results = tile // stride  # cells of a thread: y, y + stride, ... of column x

    @jit
    def rest(distance, p):
        own = cuda.shared.array((tile, tile), number)
        to = cuda.shared.array((tile, tile), number)
        middle = cuda.shared.array((tile, tile), number)
        x = int32(cuda.threadIdx.x)
        y = int32(cuda.threadIdx.y)
        top, left = tiles.rest_corner(cuda.blockIdx.y, cuda.blockIdx.x, p, tile)
        tiles.load_rest(own, to, middle, distance, distance, int32(p * tile), top, left, tile, stride)
        cuda.syncthreads()
        for k in range(tile):
            for s in range(results):
                r = int32(y + s * stride)
                via = number(to[r, k] + middle[k, x])
                # a comparison that sets a flag, and a store that waits for it, instead of one minimum
                if via < own[r, x]:
                    own[r, x] = via
        tiles.store(distance, top, left, own, tile, stride)

    return rest


KERNEL = blocked.rung(
    id="blocked-branch",
    title="Blocked, if instead of min",
    papers=("CS542200 Parallel Programming, Homework 4-1, section 3d (its own earlier version)",),
    build=tiles.builder(rest_of),
    summary="The same three tiles in shared memory; a comparison decides whether to store, instead of storing the minimum.",
    lesson=(
        "Thirty-two threads share one instruction stream. Where an `if` sends some of them one way and some the other, the "
        "hardware executes both and masks the threads that did not take each. For a body as short as one store no jump is "
        "needed: the comparison sets a flag and the store checks it. That is still a comparison and a flag where one minimum "
        "instruction would do, but unneeded stores are skipped. Which effect is larger depends on the machine: compare with the "
        "next blocked rung, which differs only in these lines."
    ),
)
