"""The triple loop on one thread: the baseline."""

from __future__ import annotations

from collections.abc import Iterator

from fwtui_kernels.compiled.locked_njit import njit
from fwtui_kernels.parts import by_vertex
from fwtui_kernels.plan import Cost, Kernel, Program, Shape, Step, Target
from fwtui_kernels.programs.cpu_program import CpuProgram


@njit(cache=True)
def relax(distance, k):
    n = distance.shape[0]
    number = distance.dtype.type  # the sum of two 16-bit integers is wider than they are
    for i in range(n):
        to_k = distance[i, k]
        for j in range(n):
            via = number(to_k + distance[k, j])
            if via < distance[i, j]:
                distance[i, j] = via


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    n = shape.n
    # every row is read and written; row k is read once, because it stays in the L1 cache
    return by_vertex.plan(n, Cost(n * n, (2 * n * n + n) * shape.itemsize))


def build(shape: Shape, target: Target) -> Program:
    return CpuProgram(shape, {"relax": relax})


KERNEL = Kernel(
    id="serial",
    title="Serial CPU",
    backend="cpu",
    papers=(
        "R. W. Floyd, Algorithm 97: Shortest Path, CACM 5(6), 1962",
        "S. Warshall, A Theorem on Boolean Matrices, JACM 9(1), 1962",
    ),
    plan=plan,
    build=build,
    summary="Three nested loops on one core, in place.",
    lesson=(
        "For each vertex k, every pair (i, j) tests whether the path through k is shorter. The order of the loops is the whole "
        "algorithm: k must be outermost. The inner loop runs along two rows, which suits a CPU's caches. It does not use the "
        "vector units. Row k is one of the rows that the loop writes, so the compiler's check for overlapping rows always "
        "fails, and the scalar loop runs. A copy of row k makes the check pass. The loop also lacks reuse: for every k the "
        "whole matrix passes through the core once."
    ),
    preference=10,
    cores=1,
)
