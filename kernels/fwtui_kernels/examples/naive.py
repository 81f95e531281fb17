"""The naive algorithm: one thread per pair (i, j), one launch per k."""

from __future__ import annotations

from collections.abc import Iterator

from fwtui_kernels.compiled.device import cuda, int32, jit
from fwtui_kernels.own import own
from fwtui_kernels.plan import Cost, Program, Rect, Shape, Step, Target, crossing
from fwtui_kernels.programs.cuda_program import CudaProgram, Op


@jit
def relax(distance, k):
    """Relax one cell. This `jit` is numba.cuda's with a cache on disk."""
    j = int32(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)  # neighbouring threads have neighbouring columns
    i = int32(cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y)
    number = distance.dtype.type  # the data type; a sum is wider, so it is cast
    if i < distance.shape[0] and j < distance.shape[1]:
        distance[i, j] = min(distance[i, j], number(distance[i, k] + distance[k, j]))


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    """Yield the launches in order, as plain data: phases, the race test, the cost model and the picture read them."""
    n = shape.n  # vertices; with tiles use shape.padded, n rounded up to whole tiles
    everything = Rect(0, 0, n, n)  # top, left, bottom, right, in vertices
    # relaxations and bytes of global memory, both required; each relaxation reads three values and writes one
    cost = Cost(relaxations=n * n, device_bytes=4 * n * n * shape.itemsize)
    for k in range(n):
        # the op, its phase, its integer arguments, and the rectangles that it reads and writes, none of them empty
        yield Step("relax", "all", (k,), cost, reads=(*crossing(n, k, k + 1), everything), writes=(everything,))


def build(shape: Shape, target: Target) -> Program:
    """Return the program with the functions that the steps name, for this size and device."""
    block = (4, 4) if target.backend == "simulator" else (32, 8)  # small blocks give the simulator more cases
    grid = (-(-shape.n // block[0]), -(-shape.n // block[1]))
    return CudaProgram(shape, target, {"relax": Op(relax, block, lambda args: grid)})


# further fields (kernels/README.md): tiles=(16, 32), default_tile=32, phases={...}, options=(...); the simulator uses the
# smallest tile, or the smallest of simulator_tiles=(4, 8) for a kernel that works with any tile
KERNEL = own(plan, build)
