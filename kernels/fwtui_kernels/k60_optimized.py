"""Katz-Kider with fewer and cheaper instructions (Lund and Smith, section 4: "optimized & blocked")."""

from __future__ import annotations

from functools import partial

from fwtui_kernels.compiled.device import ALIGN16, NUMBER, cuda, jit, uint32
from fwtui_kernels.parts import blocked, flat_tiles
from fwtui_kernels.parts.blocked import RESULTS
from fwtui_kernels.parts.flat_tiles import rest_cells
from fwtui_kernels.plan import Program, Shape, Target


def program(shape: Shape, target: Target, in_registers: bool) -> Program:
    """Return the program with the tile being updated in shared memory, or in registers with `in_registers`."""
    number = NUMBER[shape.dtype]
    tile = shape.tile
    cells = tile * tile
    rows = tile // RESULTS  # rows of threads; each thread owns RESULTS cells of its column
    step = rows * tile

    @jit
    def rest(distance, p):
        # no other thread reads a thread's cells, so both kinds of array end up in registers: a local array because its indices
        # are compile-time constants, a shared one because the compiler can prove that the indices differ
        if in_registers:
            own = cuda.local.array(RESULTS, number)
        else:
            own = cuda.shared.array(cells, number, ALIGN16)
        to = cuda.shared.array(cells, number, ALIGN16)
        middle = cuda.shared.array(cells, number, ALIGN16)
        matrix = distance.flat
        # unsigned indices do not need a test for negative values
        n = uint32(distance.shape[1])
        x = uint32(cuda.threadIdx.x)
        y = uint32(cuda.threadIdx.y)
        mine = uint32(y * tile + x)
        first, stride = (uint32(0), 1) if in_registers else (mine, step)
        from_row, from_column, here = rest_cells(p, n, tile, x, y)
        for m in range(RESULTS):
            to[mine + m * step] = matrix[from_row + m * rows * n]
            middle[mine + m * step] = matrix[from_column + m * rows * n]
            own[first + m * stride] = matrix[here + m * rows * n]
        cuda.syncthreads()
        k = uint32(0)
        while k < tile:
            # one load for all four cells of the column
            through = middle[k * tile + x]
            for m in range(RESULTS):
                own[first + m * stride] = min(own[first + m * stride], number(to[(y + m * rows) * tile + k] + through))
            k = uint32(k + 1)
        for m in range(RESULTS):
            matrix[here + m * rows * n] = own[first + m * stride]

    return flat_tiles.program(shape, target, rest, (tile, rows))


KERNEL = blocked.optimized(
    id="optimized",
    title="Optimized & blocked",
    papers=("B. Lund, J. W. Smith, A Multi-Stage CUDA Kernel for Floyd-Warshall, 2010, section 4",),
    build=partial(program, in_registers=False),
    summary="Katz-Kider with less overhead: 256 threads, three tiles, unrolled loops and cheaper addressing.",
    lesson=(
        "Count the instructions of a Katz-Kider thread that are not relaxations. Its arrays are two-dimensional and Python's "
        "indices may be negative, so it recomputes addresses for every k. It loads its cells from shared memory and stores them "
        "again, and the loop over k counts in 64 bits. Here arrays are one-dimensional, and indices are unsigned 32-bit "
        "integers. An address is then a base plus a compile-time constant. The compiler does the rest: it unrolls the loop over "
        "k and loads four neighbours of the column panel with one instruction. No other thread touches a thread's four cells, so "
        "it keeps them in registers from the first k to the last. The algorithm has not changed."
    ),
)
