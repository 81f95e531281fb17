"""One thread per task, one launch per k: the GPU's brute force (Harish and Narayanan 2007)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kernels.plan import Cost, Kernel, Option, Program, Rect, Shape, Step, Target

cuda: Any
WARP = 32


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    n = shape.n
    everything = Rect(0, 0, n, n)
    # every task asks memory for d[i, j], d[i, k] and d[k, j] and writes d[i, j] (Lund and Smith, section 2)
    cost = Cost(n * n, 4 * n * n * shape.itemsize)
    for k in range(n):
        yield Step("relax", "all", (k,), cost, (everything,), (everything,))


def build(shape: Shape, target: Target) -> Program:
    global cuda
    from kernels.cuda_program import CudaProgram, Op
    from kernels.device import NUMBER, cuda, int32, jit

    number = NUMBER[shape.dtype]
    n = shape.n

    @jit
    def relax(distance, k):
        # neighbouring threads take neighbouring columns: their loads join into whole memory transactions
        j = int32(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)
        i = int32(cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y)
        if i < distance.shape[0] and j < distance.shape[1]:
            distance[i, j] = min(distance[i, j], number(distance[i, k] + distance[k, j]))

    threads = shape.option("threads")
    block = (4, 4) if target.backend == "simulator" else (WARP, threads // WARP)  # a simulated thread is a real one
    grid = (-(-n // block[0]), -(-n // block[1]))
    return CudaProgram(shape, target, {"relax": Op(relax, block, lambda args: grid)})


KERNEL = Kernel(
    id="naive",
    title="Naive",
    backend="cuda",
    papers=("P. Harish, P. J. Narayanan, Accelerating Large Graph Algorithms on the GPU Using CUDA, HiPC 2007",),
    phases={"all": "all rounds"},
    plan=plan,
    build=build,
    summary="One thread for each pair (i, j), one launch for each k, everything from global memory.",
    lesson=(
        "A GPU has thousands of threads, so give every pair (i, j) its own and launch n times, once for each k. It works, and "
        "it is limited by memory: each relaxation asks for three numbers and writes one. Neighbouring threads share d[i, k] "
        "and the caches serve most of the rest, so the model's bandwidth can exceed what the memory chips deliver."
    ),
    options=(Option("threads", (64, 256, 1024), 256, "threads per block"),),
    launch_modes=("eager", "graph"),
    memories=("device", "pinned"),
)
