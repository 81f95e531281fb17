"""The blocked algorithm with its tiles in shared memory (Katz and Kider 2008)."""

from __future__ import annotations

from fwtui_kernels.compiled.device import cuda, int32, jit
from fwtui_kernels.parts import blocked
from fwtui_kernels.parts import blocked_tiles as tiles


def rest_of(number, tile, stride):
    """The third phase for cells of that number type, in blocks of tile x stride threads."""
    results = tile // stride  # cells of a thread: y, y + stride, ... of column x

    @jit
    def rest(distance, p):
        own = cuda.shared.array((tile, tile), number)
        to = cuda.shared.array((tile, tile), number)
        middle = cuda.shared.array((tile, tile), number)
        x = int32(cuda.threadIdx.x)
        y = int32(cuda.threadIdx.y)
        top, left = tiles.rest_corner(cuda.blockIdx.y, cuda.blockIdx.x, p, tile)
        tiles.load_rest(own, to, middle, distance, distance, int32(p * tile), top, left, tile, stride)
        # the panels are closed: no barrier is needed between the steps of k
        cuda.syncthreads()
        for k in range(tile):
            for s in range(results):
                r = int32(y + s * stride)
                own[r, x] = min(own[r, x], number(to[r, k] + middle[k, x]))
        tiles.store(distance, top, left, own, tile, stride)

    return rest


KERNEL = blocked.rung(
    id="katz-kider",
    title="Katz-Kider",
    papers=("G. J. Katz, J. T. Kider, All-Pairs Shortest-Paths for Large Graphs on the GPU, Graphics Hardware 2008",),
    build=tiles.builder(rest_of),
    summary="Three phases of tiles, each loaded into shared memory once and used `tile` times.",
    lesson=(
        "Shared memory is small and close. A block of threads loads three tiles into it. Then it does tile x tile x tile "
        "relaxations without asking global memory again: the traffic falls by a factor of `tile`. Of every round's three phases "
        "only the last has work for the whole GPU. The pivot occupies a single multiprocessor."
    ),
    tiles=(2, 4, 8, 16, 32),
    memories=("device", "pinned"),
    preference=20,
)
