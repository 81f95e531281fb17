"""A square of results per thread, read directly from global memory (Catinello 2023, section 2.3)."""

from __future__ import annotations

from collections.abc import Iterator

from fwtui_kernels.compiled.device import NUMBER, cuda, int32, jit
from fwtui_kernels.parts import by_vertex
from fwtui_kernels.plan import Cost, Option, Program, Shape, Step, Target
from fwtui_kernels.programs.cuda_program import pitched

THREADS = 256


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    n = shape.n
    # every result reloads its three cells, because a store in between may have changed them
    return by_vertex.plan(n, Cost(n * n, 4 * n * n * shape.itemsize))


def build(shape: Shape, target: Target) -> Program:
    number = NUMBER[shape.dtype]
    results = shape.option("results")

    @jit
    def relax(distance, k):
        left = int32((cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) * results)
        top = int32((cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y) * results)
        n = distance.shape[0]
        # pitched rows hold whole squares, so only whole rows can be missing
        if left < n:
            for r in range(results):
                i = int32(top + r)
                if i < n:
                    for c in range(results):
                        # the columns of neighbouring threads differ by `results`, so larger squares coalesce less
                        j = int32(left + c)
                        distance[i, j] = min(distance[i, j], number(distance[i, k] + distance[k, j]))

    return by_vertex.program(shape, target, relax, THREADS, across=results, down=results, columns=pitched(shape))


KERNEL = by_vertex.rung(
    id="pseudo-blocked",
    title="Pseudo-blocked",
    papers=("A. S. Catinello, Parallel Floyd-Warshall, 2023, sections 2.3 and 3.3",),
    plan=plan,
    build=build,
    summary="Each thread computes a small square of results instead of one, still from global memory.",
    lesson=(
        "The next rungs work on blocks; this one takes only their shape. A thread computes a square of h x h results, so there "
        "are fewer threads to start. Each reuses row k and column k from the L1 cache. But k still advances by one per launch, "
        "so the matrix is read as often as before. Neighbouring threads are now h columns apart: one instruction of a warp "
        "touches h times more memory sectors and uses only a part of each. With large h there are also too few threads to "
        "hide the memory latency. A small square may help; a large one undoes the coalescing."
    ),
    options=(Option("results", (1, 2, 4, 8, 16, 32), 4, "side of the square of results that a thread computes"),),
)
