"""The naive kernel with two matrices that swap after each k (Sing, Fuerst and Lantavos-Stratigakis)."""

from __future__ import annotations

from collections.abc import Iterator

from fwtui_kernels.compiled.device import cuda, int32, jit
from fwtui_kernels.parts import by_vertex
from fwtui_kernels.plan import Cost, Program, Shape, Step, Target


@jit
def relax(source, to, k):
    j = int32(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)
    i = int32(cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y)
    number = source.dtype.type
    if i < source.shape[0] and j < source.shape[1]:
        # write unchanged cells too, because the other matrix holds an older distance
        to[i, j] = min(source[i, j], number(source[i, k] + source[k, j]))


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    n = shape.n
    # like the naive kernel, every thread reads three cells and writes one, but in another matrix
    return by_vertex.plan(n, Cost(n * n, 4 * n * n * shape.itemsize), by_vertex.in_turn)


def build(shape: Shape, target: Target) -> Program:
    threads = shape.option("threads")
    return by_vertex.program(shape, target, relax, threads, buffers=by_vertex.in_turn, matrices=2, result=shape.n % 2)


KERNEL = by_vertex.rung(
    id="two-matrices",
    title="Naive, two matrices",
    papers=("A. Sing, P. Fuerst, P. Lantavos-Stratigakis, Floyd-Warshall CUDA Implementation (Thrust transform)",),
    plan=plan,
    build=build,
    summary="The naive kernel, reading one matrix and writing the other; they swap after each k.",
    lesson=(
        "A parallel loop that overwrites its input looks dangerous, so a library call that maps an input to an output takes two "
        "matrices and swaps them. Here that is unnecessary. Without a negative cycle neither row k nor column k changes in step "
        "k, so updating in place gives the same distances. The second matrix doubles the memory, the caches must hold both, and "
        "each thread computes two addresses instead of one. The requested bytes do not change, so both rungs perform alike if "
        "the matrix is too large for the caches. If it fits, this rung falls behind, and GPM shows its integer pipes busier."
    ),
    matrices=2,
)
