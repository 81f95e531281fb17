"""The naive algorithm: one thread per pair (i, j), one launch per k."""

from __future__ import annotations

from collections.abc import Iterator

from fwtui_kernels.compiled.device import cuda, int32, jit
from fwtui_kernels.own import own
from fwtui_kernels.plan import Cost, Program, Rect, Shape, Step, Target, crossing
from fwtui_kernels.programs.cuda_program import CudaProgram, Op


@jit
def relax(distance, k):
    """numba.cuda's jit, but what it compiled is on the disk for the next time."""
    j = int32(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)  # neighbouring threads: neighbouring columns
    i = int32(cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y)
    number = distance.dtype.type  # float32, int32 or int16; a sum of two is wider, and is made one again
    if i < distance.shape[0] and j < distance.shape[1]:
        distance[i, j] = min(distance[i, j], number(distance[i, k] + distance[k, j]))


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """Yield the launches in order, as plain data: phases, the race test, the cost model and the picture read them."""
    n = shape.n  # vertices; with tiles take shape.padded, which is n rounded up to whole tiles
    everything = Rect(0, 0, n, n)  # top, left, bottom, right, in vertices
    # relaxations, and bytes of global memory: both must be given; each relaxation reads three numbers and writes one
    cost = Cost(relaxations=n * n, device_bytes=4 * n * n * shape.itemsize)
    for k in range(n):
        # the compiled function, its phase, the integers it gets, and what it reads and writes: no rectangle may be empty
        yield Step("relax", "all", (k,), cost, reads=(*crossing(n, k, k + 1), everything), writes=(everything,))


def build(shape: Shape, target: Target) -> Program:
    """The compiled functions that the steps name, for this size and device."""
    block = (4, 4) if target.backend == "simulator" else (32, 8)  # in the simulator small blocks leave more to try
    grid = (-(-shape.n // block[0]), -(-shape.n // block[1]))
    return CudaProgram(shape, target, {"relax": Op(relax, block, lambda args: grid)})


# what a user may choose, and more that kernels/README.md names: tiles=(16, 32), default_tile=32, phases={...}, options=(...);
# the simulator takes the smallest of the tiles, or of simulator_tiles=(4, 8) for a kernel that works with any
KERNEL = own(plan, build)
