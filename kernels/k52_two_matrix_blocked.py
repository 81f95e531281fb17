"""The blocked algorithm with separate input and output matrices (Catinello 2023, section 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kernels.k45_katz_kider import THREADS, threads_of
from kernels.parts import blocked
from kernels.plan import Kernel, Program, Shape, Step, Target

cuda: Any


def sides(args: tuple[int, ...]) -> tuple[int, int]:
    """The matrix that holds the input of round p, and the one that takes its output."""
    return args[0] % 2, 1 - args[0] % 2


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """As in place, but a tile is read from the input until this round has written it, and from the output afterwards."""
    for step in blocked.plan(shape, stepwise):
        source, to = sides(step.args)
        yield replace(
            step,
            reads=tuple(r._replace(buffer=source if r in step.writes else to) for r in step.reads),
            writes=tuple(w._replace(buffer=to) for w in step.writes),
        )


def build(shape: Shape, target: Target) -> Program:
    global cuda
    from kernels.numba_door.device import NUMBER, cuda, int32, jit
    from kernels.programs.cuda_program import CudaProgram, Op

    number = NUMBER[shape.dtype]
    tile = shape.tile
    block = (tile, threads_of(shape) // tile)
    # each thread owns the cells y, y + stride, ... of its column
    stride, results = block[1], tile // block[1]

    @jit
    def pivot(source, to, p):
        own = cuda.shared.array((tile, tile), number)
        x = int32(cuda.threadIdx.x)
        y = int32(cuda.threadIdx.y)
        base = int32(p * tile)
        for s in range(results):
            r = int32(y + s * stride)
            own[r, x] = source[base + r, base + x]
        cuda.syncthreads()
        for k in range(tile):
            for s in range(results):
                r = int32(y + s * stride)
                via = number(own[r, k] + own[k, x])
                # row k and column k do not change in step k, so nobody reads what another writes
                if via < own[r, x]:
                    own[r, x] = via
            cuda.syncthreads()
        for s in range(results):
            r = int32(y + s * stride)
            to[base + r, base + x] = own[r, x]

    @jit
    def panels(source, to, p):
        own = cuda.shared.array((tile, tile), number)
        closed = cuda.shared.array((tile, tile), number)
        x = int32(cuda.threadIdx.x)
        y = int32(cuda.threadIdx.y)
        base = int32(p * tile)
        at = int32(cuda.blockIdx.x)
        if at >= p:
            at += int32(1)
        top = base
        left = base
        if cuda.blockIdx.y == 0:
            left = int32(at * tile)
        else:
            top = int32(at * tile)
        for s in range(results):
            r = int32(y + s * stride)
            # the pivot of this round is closed in the output; the input still has the open one
            closed[r, x] = to[base + r, base + x]
            own[r, x] = source[top + r, left + x]
        cuda.syncthreads()
        for k in range(tile):
            for s in range(results):
                r = int32(y + s * stride)
                if cuda.blockIdx.y == 0:
                    via = number(closed[r, k] + own[k, x])
                else:
                    via = number(own[r, k] + closed[k, x])
                if via < own[r, x]:
                    own[r, x] = via
            cuda.syncthreads()
        for s in range(results):
            r = int32(y + s * stride)
            to[top + r, left + x] = own[r, x]

    @jit
    def rest(source, to, p):
        own = cuda.shared.array((tile, tile), number)
        first = cuda.shared.array((tile, tile), number)
        second = cuda.shared.array((tile, tile), number)
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
            first[r, x] = to[top + r, base + x]
            second[r, x] = to[base + r, left + x]
            own[r, x] = source[top + r, left + x]
        # the panels are closed: no barrier is needed between the steps of k
        cuda.syncthreads()
        for k in range(tile):
            for s in range(results):
                r = int32(y + s * stride)
                own[r, x] = min(own[r, x], number(first[r, k] + second[k, x]))
        for s in range(results):
            r = int32(y + s * stride)
            to[top + r, left + x] = own[r, x]

    rounds = shape.padded // tile
    others = rounds - 1
    ops = {
        "pivot": Op(pivot, block, lambda args: (1, 1), sides),
        "panels": Op(panels, block, lambda args: (others, 2), sides),
        "rest": Op(rest, block, lambda args: (others, others), sides),
    }
    return CudaProgram(shape, target, ops, matrices=2, result=rounds % 2)


KERNEL = Kernel(
    id="two-matrix-blocked",
    title="Blocked, two matrices",
    backend="cuda",
    papers=(
        "A. S. Catinello, Parallel Floyd-Warshall, 2023, section 4",
        "G. J. Katz, J. T. Kider, All-Pairs Shortest-Paths for Large Graphs on the GPU, Graphics Hardware 2008",
    ),
    phases=blocked.PHASES,
    plan=plan,
    build=build,
    summary="The blocked algorithm reading from one matrix and writing to another, which change places after each round.",
    lesson=(
        "A negative result, kept because it teaches. Two matrices look cleaner: nothing is overwritten that may still be read. "
        "But the phases of the blocked algorithm already are in an order that makes working in place safe. What the second "
        "matrix adds is footprint: a tile is read from one address and written to another, so the caches hold twice the data "
        "and a matrix that fits the second-level cache once may not fit it twice. The relaxations and the bytes asked for are "
        "exactly those of the version in place."
    ),
    tiles=(8, 16, 32),
    default_tile=32,
    options=(THREADS,),
    launch_modes=("eager", "graph"),
    memories=("device", "pinned"),
    matrices=2,
)
