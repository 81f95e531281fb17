"""One thread per pair of vertices and one launch per k: correct here, and broken by the edits in edits.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fwtui_kernels.parts import by_vertex
from fwtui_kernels.plan import Cost, Kernel, Program, Shape, Step, Target

cuda: Any


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    return by_vertex.plan(shape.n, Cost(shape.n**2, 0))


def build(shape: Shape, target: Target) -> Program:
    global cuda
    from fwtui_kernels.compiled.device import NUMBER, cuda, int32, jit
    from fwtui_kernels.programs.cuda_program import CudaProgram, Op

    number = NUMBER[shape.dtype]
    side = 4 if target.backend == "simulator" else 16

    @jit
    def relax(distance, k):
        j = int32(cuda.blockIdx.x * side + cuda.threadIdx.x)
        i = int32(cuda.blockIdx.y * side + cuda.threadIdx.y)
        if i < distance.shape[0] and j < distance.shape[1]:
            to_k = distance[i, k]
            from_k = distance[k, j]
            distance[i, j] = min(distance[i, j], number(to_k + from_k))

    grid = (-(-shape.n // side), -(-shape.n // side))
    return CudaProgram(shape, target, {"relax": Op(relax, (side, side), lambda args: grid)})


KERNEL = Kernel(
    id="by-vertex",
    title="By vertex",
    papers=(),
    plan=plan,
    build=build,
    summary="One thread for each pair.",
    lesson="",
    dtypes=("int32", "float32"),
)
