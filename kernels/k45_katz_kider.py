"""The blocked algorithm with its tiles in shared memory (Katz and Kider 2008)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernels.parts import blocked
from kernels.plan import Kernel, Option, Program, Shape, Target

if TYPE_CHECKING:
    from kernels.programs.cuda_program import Op

cuda: Any
THREADS = Option("threads", (64, 256, 1024), 256, "threads per block; each owns tile^2 / threads cells")


def threads_of(shape: Shape) -> int:
    """Threads per block: as asked, but never more than the tile has cells."""
    return min(shape.option("threads"), shape.tile**2)


def pivot_and_panels(shape: Shape) -> dict[str, Op]:
    """The first two phases, which the rungs that change the third one share."""
    global cuda
    from kernels.numba_door.device import NUMBER, cuda, int32, jit
    from kernels.programs.cuda_program import Op

    number = NUMBER[shape.dtype]
    tile = shape.tile
    block = (tile, threads_of(shape) // tile)
    # each thread owns the cells y, y + stride, ... of its column
    stride, results = block[1], tile // block[1]

    @jit
    def pivot(distance, p):
        own = cuda.shared.array((tile, tile), number)
        x = int32(cuda.threadIdx.x)
        y = int32(cuda.threadIdx.y)
        base = int32(p * tile)
        for s in range(results):
            r = int32(y + s * stride)
            own[r, x] = distance[base + r, base + x]
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
            distance[base + r, base + x] = own[r, x]

    @jit
    def panels(distance, p):
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
            closed[r, x] = distance[base + r, base + x]
            own[r, x] = distance[top + r, left + x]
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
            distance[top + r, left + x] = own[r, x]

    others = shape.padded // tile - 1
    return {"pivot": Op(pivot, block, lambda args: (1, 1)), "panels": Op(panels, block, lambda args: (others, 2))}


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
        # the panels are closed: no barrier is needed between the steps of k
        cuda.syncthreads()
        for k in range(tile):
            for s in range(results):
                r = int32(y + s * stride)
                own[r, x] = min(own[r, x], number(to[r, k] + middle[k, x]))
        for s in range(results):
            r = int32(y + s * stride)
            distance[top + r, left + x] = own[r, x]

    others = shape.padded // tile - 1
    ops = {**pivot_and_panels(shape), "rest": Op(rest, block, lambda args: (others, others))}
    return CudaProgram(shape, target, ops)


KERNEL = Kernel(
    id="katz-kider",
    title="Katz-Kider",
    backend="cuda",
    papers=("G. J. Katz, J. T. Kider, All-Pairs Shortest-Paths for Large Graphs on the GPU, Graphics Hardware 2008",),
    phases=blocked.PHASES,
    plan=blocked.plan,
    build=build,
    summary="Three phases of tiles, each loaded into shared memory once and used `tile` times.",
    lesson=(
        "Shared memory is small and close. A block of threads loads three tiles into it and then does tile x tile x tile "
        "relaxations without asking global memory again: the traffic falls by a factor of `tile`. Of every round's three "
        "phases only the last has work for the whole GPU; the pivot occupies a single multiprocessor."
    ),
    tiles=(2, 4, 8, 16, 32),
    default_tile=32,
    options=(THREADS,),
    launch_modes=("eager", "graph"),
    memories=("device", "pinned"),
    preference=20,
)
