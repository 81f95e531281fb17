"""R-Kleene with the base case in shared memory or registers, 1, 4 or 16 results per thread (Henriod)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fwtui_kernels import k70_kleene as kleene
from fwtui_kernels.compiled.device import NUMBER, cuda, int32, jit
from fwtui_kernels.plan import Option, Program, Shape, Step, Target


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    # a base case reads and writes its block once (Henriod, "My Method")
    return kleene.recursion(shape, kleene.WIDE, base_bytes=2 * shape.tile**2 * shape.itemsize)


def build(shape: Shape, target: Target) -> Program:
    number = NUMBER[shape.dtype]
    tile = shape.tile
    across = {1: 1, 4: 2, 16: 4}[shape.option("results")]  # results of a thread in each direction
    results = across**2
    # threads in each direction; thread (x, y) owns the cells x, x + side, ... of rows y, y + side, ..., so that neighbouring
    # threads own neighbouring cells
    side = tile // across

    @jit
    def shared_base(distance, low):
        own = cuda.shared.array((tile, tile), number)
        from_k = cuda.local.array(across, number)
        x = int32(cuda.threadIdx.x)
        y = int32(cuda.threadIdx.y)
        for a in range(across):
            for b in range(across):
                own[y + a * side, x + b * side] = distance[low + y + a * side, low + x + b * side]
        cuda.syncthreads()
        # the loop over k is outermost: all results of all threads complete step k before any starts the next
        for k in range(tile):
            for b in range(across):
                from_k[b] = own[k, x + b * side]
            for a in range(across):
                to_k = own[y + a * side, k]
                for b in range(across):
                    via = number(to_k + from_k[b])
                    # row k and column k do not change in step k, so no thread reads what another writes
                    if via < own[y + a * side, x + b * side]:
                        own[y + a * side, x + b * side] = via
            cuda.syncthreads()
        for a in range(across):
            for b in range(across):
                distance[low + y + a * side, low + x + b * side] = own[y + a * side, x + b * side]

    @jit
    def register_base(distance, low):
        # results stay in registers; only row k and column k pass through shared memory
        row = cuda.shared.array((2, tile), number)
        column = cuda.shared.array((2, tile), number)
        own = cuda.local.array(results, number)
        x = int32(cuda.threadIdx.x)
        y = int32(cuda.threadIdx.y)
        for a in range(across):
            for b in range(across):
                own[a * across + b] = distance[low + y + a * side, low + x + b * side]
        for k in range(tile):
            # double buffering: threads may fill the next copy while others read this one, so one barrier per step suffices
            turn = k & 1
            for a in range(across):
                for b in range(across):
                    if y + a * side == k:
                        row[turn, x + b * side] = own[a * across + b]
                    if x + b * side == k:
                        column[turn, y + a * side] = own[a * across + b]
            cuda.syncthreads()
            for a in range(across):
                to_k = column[turn, y + a * side]
                for b in range(across):
                    # the comparison of the shared variant, so that only the memory of the results differs
                    via = number(to_k + row[turn, x + b * side])
                    if via < own[a * across + b]:
                        own[a * across + b] = via
        for a in range(across):
            for b in range(across):
                distance[low + y + a * side, low + x + b * side] = own[a * across + b]

    base = register_base if shape.option("keep") else shared_base
    return kleene.program(shape, target, plan(shape, False), base, side)


KERNEL = replace(
    kleene.KERNEL,
    id="kleene-base",
    title="R-Kleene, fewer threads in the base case",
    plan=plan,
    build=build,
    summary="R-Kleene with its base case in shared memory or registers, where each thread computes 1, 4 or 16 results.",
    lesson=(
        "In plain R-Kleene every step of a base case reads and writes global memory. Here the block is loaded once and stays in "
        "shared memory or in registers until it is solved. A thread that owns 4 or 16 cells loads a value once for several "
        "results, and has several independent sums in flight. The order is critical: all results of all threads must complete "
        "step k before any starts step k + 1. Up to 32 threads, which make up one warp, may seem to run in step without a "
        "barrier; more do not. Whether this shows in the median time depends on the size: in a large graph nearly all the work "
        "is in the wide products."
    ),
    options=(
        Option("results", (1, 4, 16), 4, "results per thread in the base case; its block has tile^2 / results threads"),
        Option(
            "keep",
            (0, 1),
            1,
            "memory of the results in the base case: 0 = shared memory, 1 = registers",
            ("shared memory", "registers"),
        ),
    ),
)
