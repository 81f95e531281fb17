"""Blocked, with one-dimensional thread blocks in the third phase: row and column by division (CS542200, its first version)."""

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
    cells = tile * tile
    threads = threads_of(shape)
    results = cells // threads

    @jit
    def rest(distance, p):
        own = cuda.shared.array(cells, number)
        to = cuda.shared.array(cells, number)
        middle = cuda.shared.array(cells, number)
        t = int32(cuda.threadIdx.x)
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
            q = int32(t + s * threads)
            to[q] = distance[top + q // tile, base + q % tile]
            middle[q] = distance[base + q // tile, left + q % tile]
            own[q] = distance[top + q // tile, left + q % tile]
        cuda.syncthreads()
        for k in range(tile):
            for s in range(results):
                q = int32(t + s * threads)
                # which row and which column? two-dimensional threads know, these work it out
                own[q] = min(own[q], number(to[q // tile * tile + k] + middle[k * tile + q % tile]))
        for s in range(results):
            q = int32(t + s * threads)
            distance[top + q // tile, left + q % tile] = own[q]

    others = shape.padded // tile - 1
    ops = {**pivot_and_panels(shape), "rest": Op(rest, (threads, 1), lambda args: (others, others))}
    return CudaProgram(shape, target, ops)


KERNEL = Kernel(
    id="blocked-one-dimensional",
    title="Blocked, 1-D threads",
    backend="cuda",
    papers=("CS542200 Parallel Programming, Homework 4-1, section 1b",),
    phases=blocked.PHASES,
    plan=blocked.plan,
    build=build,
    summary="In the third phase the threads of a block are a line; each finds row and column of its cells by division.",
    lesson=(
        "The hardware numbers the threads of a block along one line anyway; two-dimensional blocks only say how to read the "
        "number. So the same thread does the same work here, and the difference is in the arithmetic: row and column come from "
        "a division and a remainder. Division of integers is slow on a GPU, which has no instruction for it. The "
        "tile's width is a power of two that the compiler knows, so it can use shifts and masks; a few such "
        "instructions remain beside each relaxation, which itself is only an addition and a minimum. The first two phases "
        "are the next rungs', so that this one change is what a comparison shows."
    ),
    tiles=(8, 16, 32),
    default_tile=32,
    options=(THREADS,),
    launch_modes=("eager", "graph"),
)
