"""Blocked, with four 16-bit cells per thread and 64-bit loads and stores (Catinello 2023, section 2.5)."""

from __future__ import annotations

from fwtui_kernels.compiled.device import ALIGN16, NUMBER, cuda, int32, jit, load4, store4
from fwtui_kernels.parts import blocked
from fwtui_kernels.parts import blocked_tiles as tiles
from fwtui_kernels.plan import Option, Program, Shape, Target

LANES = 4


@jit(device=True, inline="always")
def copy(to, to_at, to_pitch, source, at, pitch, stride, results):
    """Copy a thread's groups of four cells, `stride` rows apart, each with one load and one store."""
    for s in range(results):
        a, b, c, d = load4(source, at + s * stride * pitch)
        store4(to, to_at + s * stride * to_pitch, a, b, c, d)


@jit(device=True, inline="always")
def keep_less(own, at, a, b, c, d):
    """Store only improved cells, because storing all four would rewrite column k while other threads read it."""
    if a < own[at]:
        own[at] = a
    if b < own[at + 1]:
        own[at + 1] = b
    if c < own[at + 2]:
        own[at + 2] = c
    if d < own[at + 3]:
        own[at + 3] = d


@jit(device=True, inline="always")
def relax_in_order(own, to, middle, x, y, number, tile, stride, results):
    """Relax the tile `own` through each vertex of a tile, with a barrier after each; `own` may be `to` or `middle`."""
    for k in range(tile):
        a, b, c, d = load4(middle, k * tile + x)
        for s in range(results):
            r = int32(y + s * stride)
            to_k = to[r * tile + k]
            keep_less(own, r * tile + x, number(to_k + a), number(to_k + b), number(to_k + c), number(to_k + d))
        cuda.syncthreads()


def threads_of(shape: Shape) -> int:
    """Return the threads per block: as requested, but at most one per four cells of the tile."""
    return min(shape.option("threads"), shape.tile**2 // LANES)


def build(shape: Shape, target: Target) -> Program:
    number = NUMBER[shape.dtype]
    tile = shape.tile
    cells = tile * tile
    wide = tile // LANES
    block = (wide, threads_of(shape) // wide)
    stride, results = block[1], tile // block[1]

    @jit
    def pivot(distance, p):
        own = cuda.shared.array(cells, number, ALIGN16)
        x = int32(cuda.threadIdx.x * LANES)
        y = int32(cuda.threadIdx.y)
        n = distance.shape[1]
        here = (p * tile + y) * n + p * tile + x
        copy(own, y * tile + x, tile, distance, here, n, stride, results)
        cuda.syncthreads()
        relax_in_order(own, own, own, x, y, number, tile, stride, results)
        copy(distance, here, n, own, y * tile + x, tile, stride, results)

    @jit
    def panels(distance, p):
        own = cuda.shared.array(cells, number, ALIGN16)
        solved = cuda.shared.array(cells, number, ALIGN16)
        x = int32(cuda.threadIdx.x * LANES)
        y = int32(cuda.threadIdx.y)
        n = distance.shape[1]
        other = tiles.skip_pivot(cuda.blockIdx.x, p)
        across = cuda.blockIdx.y == 0
        row = p if across else other
        column = other if across else p
        here = (row * tile + y) * n + column * tile + x
        copy(solved, y * tile + x, tile, distance, (p * tile + y) * n + p * tile + x, n, stride, results)
        copy(own, y * tile + x, tile, distance, here, n, stride, results)
        cuda.syncthreads()
        if across:
            relax_in_order(own, solved, own, x, y, number, tile, stride, results)
        else:
            relax_in_order(own, own, solved, x, y, number, tile, stride, results)
        copy(distance, here, n, own, y * tile + x, tile, stride, results)

    @jit
    def rest(distance, p):
        own = cuda.shared.array(cells, number, ALIGN16)
        to = cuda.shared.array(cells, number, ALIGN16)
        middle = cuda.shared.array(cells, number, ALIGN16)
        x = int32(cuda.threadIdx.x * LANES)
        y = int32(cuda.threadIdx.y)
        n = distance.shape[1]
        top = tiles.skip_pivot(cuda.blockIdx.y, p) * tile + y
        left = tiles.skip_pivot(cuda.blockIdx.x, p) * tile + x
        copy(to, y * tile + x, tile, distance, top * n + p * tile + x, n, stride, results)
        copy(middle, y * tile + x, tile, distance, (p * tile + y) * n + left, n, stride, results)
        copy(own, y * tile + x, tile, distance, top * n + left, n, stride, results)
        cuda.syncthreads()
        for k in range(tile):
            # one 64-bit load replaces the loads of four threads of the scalar kernel
            a, b, c, d = load4(middle, k * tile + x)
            for s in range(results):
                r = int32(y + s * stride)
                first = to[r * tile + k]
                e, f, g, h = load4(own, r * tile + x)
                e, f = min(e, number(first + a)), min(f, number(first + b))
                g, h = min(g, number(first + c)), min(h, number(first + d))
                store4(own, r * tile + x, e, f, g, h)
        copy(distance, top * n + left, n, own, y * tile + x, tile, stride, results)

    return tiles.three_phases(shape, target, (pivot, panels, rest), block)


KERNEL = blocked.rung(
    id="blocked-vector",
    title="Blocked, four cells at a time",
    papers=("A. S. Catinello, Parallel Floyd-Warshall, 2023, section 2.5",),
    build=build,
    summary="Three tiles in shared memory, 16-bit distances, and each load or store moves four of them.",
    lesson=(
        "Shared memory delivers a 32-bit word per thread by default, and a 16-bit distance fills only half of it. Here a thread "
        "loads four neighbouring distances with one 64-bit instruction, adds the same first operand to all four, and stores four "
        "minima at once. That takes a quarter of the loads and stores for the same relaxations, and a quarter of the loop "
        "overhead. The additions and minima themselves are still done one by one. The price is that a tile has work for only a "
        "quarter of the threads, so large blocks need large tiles."
    ),
    dtypes=("int16",),
    tiles=(8, 16, 32, 64),
    options=(Option("threads", (64, 256, 1024), 256, "threads per block; each owns tile^2 / threads cells, four or more"),),
    preference=40,
)
