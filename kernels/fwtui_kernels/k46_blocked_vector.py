"""Blocked, with four 16-bit cells per thread and 64-bit loads and stores (Catinello 2023, section 2.5)."""

from __future__ import annotations

from fwtui_kernels.compiled.device import ALIGN16, NUMBER, cuda, int32, jit, load4, store4
from fwtui_kernels.parts import blocked
from fwtui_kernels.parts import blocked_tiles as tiles
from fwtui_kernels.plan import Option, Program, Shape, Target

LANES = 4


@jit(device=True, inline="always")
def copy(to, at, source, there):
    """Four cells in one load and one store."""
    a, b, c, d = load4(source, there)
    store4(to, at, a, b, c, d)


@jit(device=True, inline="always")
def keep_less(own, at, a, b, c, d):
    """Store only improved cells: storing all four would rewrite column k while others read it."""
    if a < own[at]:
        own[at] = a
    if b < own[at + 1]:
        own[at + 1] = b
    if c < own[at + 2]:
        own[at + 2] = c
    if d < own[at + 3]:
        own[at + 3] = d


def threads_of(shape: Shape) -> int:
    """Threads per block: as requested, but at most one per quadruple of the tile."""
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
        base = p * tile
        for s in range(results):
            r = int32(y + s * stride)
            copy(own, r * tile + x, distance, (base + r) * n + base + x)
        cuda.syncthreads()
        for k in range(tile):
            a, b, c, d = load4(own, k * tile + x)
            for s in range(results):
                r = int32(y + s * stride)
                to = own[r * tile + k]
                keep_less(own, r * tile + x, number(to + a), number(to + b), number(to + c), number(to + d))
            cuda.syncthreads()
        for s in range(results):
            r = int32(y + s * stride)
            copy(distance, (base + r) * n + base + x, own, r * tile + x)

    @jit
    def panels(distance, p):
        own = cuda.shared.array(cells, number, ALIGN16)
        closed = cuda.shared.array(cells, number, ALIGN16)
        x = int32(cuda.threadIdx.x * LANES)
        y = int32(cuda.threadIdx.y)
        n = distance.shape[1]
        base = p * tile
        at = tiles.beside(cuda.blockIdx.x, p) * tile
        top = base
        left = base
        if cuda.blockIdx.y == 0:
            left = at
        else:
            top = at
        for s in range(results):
            r = int32(y + s * stride)
            copy(closed, r * tile + x, distance, (base + r) * n + base + x)
            copy(own, r * tile + x, distance, (top + r) * n + left + x)
        cuda.syncthreads()
        for k in range(tile):
            for s in range(results):
                r = int32(y + s * stride)
                if cuda.blockIdx.y == 0:
                    to = closed[r * tile + k]
                    a, b, c, d = load4(own, k * tile + x)
                else:
                    to = own[r * tile + k]
                    a, b, c, d = load4(closed, k * tile + x)
                keep_less(own, r * tile + x, number(to + a), number(to + b), number(to + c), number(to + d))
            cuda.syncthreads()
        for s in range(results):
            r = int32(y + s * stride)
            copy(distance, (top + r) * n + left + x, own, r * tile + x)

    @jit
    def rest(distance, p):
        own = cuda.shared.array(cells, number, ALIGN16)
        to = cuda.shared.array(cells, number, ALIGN16)
        middle = cuda.shared.array(cells, number, ALIGN16)
        x = int32(cuda.threadIdx.x * LANES)
        y = int32(cuda.threadIdx.y)
        n = distance.shape[1]
        base = p * tile
        top = tiles.beside(cuda.blockIdx.y, p) * tile
        left = tiles.beside(cuda.blockIdx.x, p) * tile
        for s in range(results):
            r = int32(y + s * stride)
            copy(to, r * tile + x, distance, (top + r) * n + base + x)
            copy(middle, r * tile + x, distance, (base + r) * n + left + x)
            copy(own, r * tile + x, distance, (top + r) * n + left + x)
        cuda.syncthreads()
        for k in range(tile):
            # one 64-bit load brings what four threads of the scalar kernel load one by one
            a, b, c, d = load4(middle, k * tile + x)
            for s in range(results):
                r = int32(y + s * stride)
                first = to[r * tile + k]
                e, f, g, h = load4(own, r * tile + x)
                e, f = min(e, number(first + a)), min(f, number(first + b))
                g, h = min(g, number(first + c)), min(h, number(first + d))
                store4(own, r * tile + x, e, f, g, h)
        for s in range(results):
            r = int32(y + s * stride)
            copy(distance, (top + r) * n + left + x, own, r * tile + x)

    return tiles.three_phases(shape, target, (pivot, panels, rest), block)


KERNEL = blocked.rung(
    id="blocked-vector",
    title="Blocked, four cells at a time",
    papers=("A. S. Catinello, Parallel Floyd-Warshall, 2023, section 2.5",),
    build=build,
    summary="Three tiles in shared memory, 16-bit distances, and each load or store moves four of them.",
    lesson=(
        "Shared memory hands each thread a 32-bit word at a time by default, and a 16-bit distance fills only half of it. Here "
        "a thread takes four neighbouring distances with one 64-bit load. It adds the same first leg to all four, and stores "
        "four minima at once. That is a quarter of the loads and stores for the same relaxations, and a quarter of the loop "
        "around them. The additions and minima themselves are still done one by one. The price is that a tile has work for only "
        "a quarter as many threads, so large blocks want large tiles."
    ),
    dtypes=("int16",),
    tiles=(8, 16, 32, 64),
    options=(Option("threads", (64, 256, 1024), 256, "threads per block; each owns tile^2 / threads cells, four or more"),),
    preference=40,
)
