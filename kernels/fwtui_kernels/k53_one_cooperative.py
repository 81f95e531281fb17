"""The blocked algorithm's three phases and all its rounds in one cooperative launch (Catinello 2023, section 4)."""

from __future__ import annotations

from fwtui_kernels.compiled.device import NUMBER, cuda, int32, jit
from fwtui_kernels.parts import blocked
from fwtui_kernels.parts import blocked_tiles as tiles
from fwtui_kernels.plan import Program, Shape, Target
from fwtui_kernels.programs.cuda_program import CudaProgram, Op

# minimum capacity of a multiprocessor over all supported generations
REGISTERS, RESIDENT, SHARED = 65536, 1024, 49152


def blocks_per_multiprocessor(shape: Shape, threads: int) -> int:
    """Return the number of blocks that are resident together; a grid-wide barrier deadlocks if a block is not."""
    results = shape.tile**2 // threads
    # a thread with more results needs more registers; launch_bounds limits the compiler to this number
    registers = 64 if results == 1 else 80 if results <= 4 else 255
    shared = 3 * shape.tile**2 * shape.itemsize
    return max(1, min(REGISTERS // (registers * threads), RESIDENT // threads, SHARED // shared))


def build(shape: Shape, target: Target) -> Program:
    number = NUMBER[shape.dtype]
    tile, stride = block = blocked.block_of(shape)
    threads = tile * stride
    resident = blocks_per_multiprocessor(shape, threads)

    @jit(launch_bounds=(threads, resident))
    def rounds(distance, begin, end):
        own = cuda.shared.array((tile, tile), number)
        first = cuda.shared.array((tile, tile), number)
        second = cuda.shared.array((tile, tile), number)
        grid = cuda.cg.this_grid()
        block = int32(cuda.blockIdx.x)
        blocks = int32(cuda.gridDim.x)
        others = int32(distance.shape[0] // tile - 1)
        for p in range(begin, end):
            base = int32(p * tile)
            if block == 0:
                tiles.relax_pivot_tile(own, distance, distance, p, number, tile, stride)
            # all blocks wait for the pivot
            grid.sync()
            for t in range(block, int32(2 * others), blocks):
                at = tiles.skip_pivot(t // 2, p)
                tiles.relax_panel_tile(own, first, distance, distance, p, at, t % 2 == 0, number, tile, stride)
            grid.sync()
            for t in range(block, int32(others * others), blocks):
                top, left = tiles.rest_corner(int32(t // others), int32(t % others), p, tile)
                tiles.relax_rest_tile(
                    own, first, second, distance, distance, base, top, left, number, tile, stride, tiles.relax_cell
                )
                # the next tile of this block overwrites the panels that others may still read
                cuda.syncthreads()
            grid.sync()

    # two blocks are enough to show races in the simulator
    blocks = 2 if target.backend == "simulator" else max(1, target.multiprocessors) * resident
    return CudaProgram(shape, target, {"rounds": Op(rounds, block, lambda args: (blocks, 1))})


KERNEL = blocked.rung(
    id="one-cooperative",
    title="Blocked, one cooperative launch",
    papers=(
        "A. S. Catinello, Parallel Floyd-Warshall, 2023, section 4",
        "G. J. Katz, J. T. Kider, All-Pairs Shortest-Paths for Large Graphs on the GPU, Graphics Hardware 2008",
    ),
    phases={"all": "all rounds"},
    plan=blocked.plan_at_once,
    build=build,
    summary="All three phases of all rounds in one launch, with barriers across the whole grid between them.",
    lesson=(
        "Three launches per round cost time on the host, so do all rounds in one. Blocks stay on the GPU, take one tile after "
        "the other, and wait at a grid-wide barrier. The barrier requires all blocks to be resident, so the grid is as large as "
        "the GPU, not as large as the work. That suits the third phase. In the first one, a single block works while all others "
        "wait at the barrier, just as the rest of the GPU would wait for a small launch. A grid-wide barrier is not free either, "
        "and the launches of a CUDA graph cost the host little. So the saved launches count only if rounds are short. In long "
        "rounds occupancy counts: a kernel with all three phases needs many more registers than one for only the third. Fewer of "
        "its blocks fit on a multiprocessor, and fewer warps are left to hide latency."
    ),
    memories=("device", "pinned"),
)
