"""As optimized & blocked, with the tile that is being improved in registers (Lund and Smith, section 4.1)."""

from __future__ import annotations

from typing import Any

from kernels.parts import blocked
from kernels.parts.blocked import RESULTS
from kernels.plan import Program, Shape, Target

cuda: Any
rest_cells: Any


def build(shape: Shape, target: Target) -> Program:
    global cuda, rest_cells
    from kernels.numba_door.device import ALIGN16, NUMBER, cuda, jit, uint32
    from kernels.parts.flat_tiles import program, rest_cells

    number = NUMBER[shape.dtype]
    tile = shape.tile
    cells = tile * tile
    rows = tile // RESULTS
    step = rows * tile

    @jit
    def rest(distance, p):
        to = cuda.shared.array(cells, number, ALIGN16)
        middle = cuda.shared.array(cells, number, ALIGN16)
        # nobody else looks at these cells; an array whose every index is known when compiling becomes registers
        own = cuda.local.array(RESULTS, number)
        matrix = distance.flat
        n = uint32(distance.shape[1])
        x = uint32(cuda.threadIdx.x)
        y = uint32(cuda.threadIdx.y)
        mine = uint32(y * tile + x)
        from_row, from_column, here = rest_cells(p, n, tile, x, y)
        for m in range(RESULTS):
            to[mine + m * step] = matrix[from_row + m * rows * n]
            middle[mine + m * step] = matrix[from_column + m * rows * n]
            own[m] = matrix[here + m * rows * n]
        cuda.syncthreads()
        k = uint32(0)
        while k < tile:
            through = middle[k * tile + x]
            for m in range(RESULTS):
                own[m] = min(own[m], number(to[(y + m * rows) * tile + k] + through))
            k = uint32(k + 1)
        for m in range(RESULTS):
            matrix[here + m * rows * n] = own[m]

    return program(shape, target, rest, (tile, rows))


KERNEL = blocked.optimized(
    id="register-tile",
    title="Register tile",
    papers=("B. Lund, J. W. Smith, A Multi-Stage CUDA Kernel for Floyd-Warshall, 2010, section 4.1",),
    build=build,
    summary="The tile that is being improved lives in registers; shared memory keeps only the two panel tiles.",
    lesson=(
        "The two panel tiles are read by many threads and belong in shared memory. A cell that is being improved is read and "
        "written by one thread alone, and a multiprocessor has more room in registers than in shared memory, so that is where "
        "it goes: a block now needs two tiles instead of three. Registers have no addresses, so the little array works only "
        "if every index into it is known when the kernel is compiled. Needing less pays only where shared memory is what "
        "limits the number of blocks on a multiprocessor; the authors expected no gain from this step alone, because on their "
        "machine two tiles still left room for just one block."
    ),
)
