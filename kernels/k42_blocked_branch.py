"""Blocked, with `if` in place of `min` in the third phase (CS542200, before its second optimisation)."""

from __future__ import annotations

from typing import Any

from kernels.k45_katz_kider import THREADS, pivot_and_panels, threads_of
from kernels.parts import blocked
from kernels.plan import Kernel, Program, Shape, Target

cuda: Any


def build(shape: Shape, target: Target) -> Program:
    global cuda
    from kernels.numba_door.device import NUMBER, cuda, int32, jit
    from kernels.programs.cuda_program import CudaProgram, Op

    number = NUMBER[shape.dtype]
    tile = shape.tile
    block = (tile, threads_of(shape) // tile)
    stride, results = block[1], tile // block[1]

    @jit
    def rest(distance, p):
        own = cuda.shared.array((tile, tile), number)
        to = cuda.shared.array((tile, tile), number)
        middle = cuda.shared.array((tile, tile), number)
        x = int32(cuda.threadIdx.x)
        y = int32(cuda.threadIdx.y)
        base = int32(p * tile)
        row = int32(cuda.blockIdx.y)
        column = int32(cuda.blockIdx.x)
        if row >= p:
            row += int32(1)
        if column >= p:
            column += int32(1)
        top = int32(row * tile)
        left = int32(column * tile)
        for s in range(results):
            r = int32(y + s * stride)
            to[r, x] = distance[top + r, base + x]
            middle[r, x] = distance[base + r, left + x]
            own[r, x] = distance[top + r, left + x]
        cuda.syncthreads()
        for k in range(tile):
            for s in range(results):
                r = int32(y + s * stride)
                via = number(to[r, k] + middle[k, x])
                # a comparison that sets a flag, and a store that waits for it, instead of one minimum
                if via < own[r, x]:
                    own[r, x] = via
        for s in range(results):
            r = int32(y + s * stride)
            distance[top + r, left + x] = own[r, x]

    others = shape.padded // tile - 1
    ops = {**pivot_and_panels(shape), "rest": Op(rest, block, lambda args: (others, others))}
    return CudaProgram(shape, target, ops)


KERNEL = Kernel(
    id="blocked-branch",
    title="Blocked, if instead of min",
    backend="cuda",
    papers=("CS542200 Parallel Programming, Homework 4-1, section 3d (its own earlier version)",),
    phases=blocked.PHASES,
    plan=blocked.plan,
    build=build,
    summary="The same three tiles in shared memory; a comparison decides whether to store, instead of storing the minimum.",
    lesson=(
        "Thirty-two threads share one instruction stream. Where an `if` sends some of them one way and some the other, the "
        "machine walks both ways and silences those who do not belong. For a body as short as one store no jump is needed: the "
        "comparison sets a flag and the store looks at it. That is still a comparison and a flag where one minimum "
        "instruction would do, but a store that is not wanted does not happen. Which of the two weighs more is a question for "
        "the machine at hand: compare with the next blocked rung, which differs in these lines alone."
    ),
    tiles=(8, 16, 32),
    default_tile=32,
    options=(THREADS,),
    launch_modes=("eager", "graph"),
)
