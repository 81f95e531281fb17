"""The naive kernel: one thread per pair (i, j), one launch per k (Harish and Narayanan 2007)."""

from __future__ import annotations

from collections.abc import Iterator

from fwtui_kernels.compiled.device import cuda, int32, jit
from fwtui_kernels.parts import by_vertex
from fwtui_kernels.plan import Cost, Option, Program, Shape, Step, Target
from fwtui_kernels.programs.cuda_program import pitched


@jit
def relax(distance, k):
    # neighbouring threads take neighbouring columns: their loads coalesce into whole memory transactions
    j = int32(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)
    i = int32(cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y)
    # a pitched row is longer than the matrix is wide
    n = distance.shape[0]
    number = distance.dtype.type  # the sum of two 16-bit integers is wider than they are
    if i < n and j < n:
        distance[i, j] = min(distance[i, j], number(distance[i, k] + distance[k, j]))


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    n = shape.n
    # every thread reads d[i, j], d[i, k] and d[k, j] and writes d[i, j] (Lund and Smith, section 2)
    requested = 4 * n * n * shape.itemsize
    # mapped memory stays on the host, so every access crosses PCIe (Sing, Fuerst and Lantavos-Stratigakis)
    cost = Cost(n * n, 0, link_bytes=requested) if shape.memory == "mapped" else Cost(n * n, requested)
    return by_vertex.plan(n, cost)


def build(shape: Shape, target: Target) -> Program:
    columns = pitched(shape) if shape.option("pitch") else None
    return by_vertex.program(shape, target, relax, shape.option("threads"), columns=columns)


KERNEL = by_vertex.rung(
    id="naive",
    title="Naive",
    papers=(
        "P. Harish, P. J. Narayanan, Accelerating Large Graph Algorithms on the GPU Using CUDA, HiPC 2007",
        "A. Sing, P. Fuerst, P. Lantavos-Stratigakis, Floyd-Warshall CUDA Implementation (memory kinds)",
        "A. S. Catinello, Parallel Floyd-Warshall, 2023 (pitched rows, threads per block)",
    ),
    plan=plan,
    build=build,
    summary="One thread for each pair (i, j), one launch for each k, everything from global memory.",
    lesson=(
        "A GPU runs thousands of threads, so give every pair (i, j) its own thread and launch n times, once for each k. It "
        "works, but memory requests dominate: each relaxation loads three values and stores one. Neighbouring threads share d[i, "
        "k], and caches serve row k and column k. Therefore the effective bandwidth can exceed the DRAM bandwidth while DRAM is "
        "far from busy; compare it with DRAM throughput (GPM or counters). If the compute pipes are not busy either, the kernel "
        "is latency-bound: a thread loads, relaxes once and ends, and the next block takes its place. The matrix may also be in "
        "other memory. Mapped memory stays on the host: it needs no copy, but every access that no cache serves crosses PCIe. "
        "Managed memory migrates to the GPU page by page on first touch. Pitched rows are padded so that each starts on a "
        "128-byte boundary, and no access of a warp is split over an additional transaction."
    ),
    options=(by_vertex.THREADS, Option("pitch", (0, 1), 0, "1: rows padded in memory to a multiple of 128 bytes", ("no", "yes"))),
    memories=("device", "pinned", "mapped", "managed"),
    preference=10,
)
