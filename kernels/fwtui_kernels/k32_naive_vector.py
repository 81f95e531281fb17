"""The naive kernel with four 16-bit cells per thread and 64-bit accesses (Catinello 2023, section 2.2)."""

from __future__ import annotations

from collections.abc import Iterator

from fwtui_kernels.compiled.device import cuda, int32, jit, load4, store4
from fwtui_kernels.parts import by_vertex
from fwtui_kernels.plan import Cost, Program, Shape, Step, Target
from fwtui_kernels.programs.cuda_program import pitched

CELLS = 4  # per thread


@jit
def relax(distance, k):
    j = int32((cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) * CELLS)
    i = int32(cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y)
    n = distance.shape[0]
    number = distance.dtype.type
    if i < n and j < n:
        # pitched rows start at a multiple of 8 bytes, so four cells are one access; cells beyond n are padding
        columns = distance.shape[1]
        own = i * columns + j
        to_k = distance[i, k]
        a, b, c, d = load4(distance, own)
        e, f, g, h = load4(distance, k * columns + j)
        a, b = min(a, number(to_k + e)), min(b, number(to_k + f))
        c, d = min(c, number(to_k + g)), min(d, number(to_k + h))
        store4(distance, own, a, b, c, d)


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    n = shape.n
    # a thread reads four cells of row i, four of row k and d[i, k], and writes four; the last cells of a row may be padding
    threads = n * -(-n // CELLS)
    return by_vertex.plan(n, Cost(n * n, (3 * CELLS + 1) * threads * shape.itemsize))


def build(shape: Shape, target: Target) -> Program:
    return by_vertex.program(shape, target, relax, shape.option("threads"), across=CELLS, columns=pitched(shape))


KERNEL = by_vertex.rung(
    id="naive-vector",
    title="Naive, vectorised",
    papers=("A. S. Catinello, Parallel Floyd-Warshall, 2023, section 2.2",),
    plan=plan,
    build=build,
    summary="The naive kernel in 16 bit, four neighbouring columns per thread, loaded and stored 64 bits at a time.",
    lesson=(
        "16-bit distances halve the bytes, but a thread that loads two bytes uses little of the width of one instruction. Here "
        "each thread takes four neighbouring columns: one 64-bit load brings four cells, one 64-bit store writes four, and d[i, "
        "k] is loaded once for all of them. A quarter of the threads issue a quarter of the memory instructions for the same "
        "cells. The accesses need rows that start at a multiple of 8 bytes, so rows are padded in memory. But the whole matrix "
        "still streams through once for every k."
    ),
    dtypes=("int16",),
)
