"""The optimized blocked kernel with the tile being updated in registers (Lund and Smith, section 4.1)."""

from __future__ import annotations

from functools import partial

from fwtui_kernels.k60_optimized import program
from fwtui_kernels.parts import blocked

KERNEL = blocked.optimized(
    id="register-tile",
    title="Tile in registers",
    papers=("B. Lund, J. W. Smith, A Multi-Stage CUDA Kernel for Floyd-Warshall, 2010, section 4.1",),
    build=partial(program, in_registers=True),
    summary="The tile being updated is in registers; shared memory holds only the two panel tiles.",
    lesson=(
        "Many threads read the two panel tiles, so these belong in shared memory. Only one thread reads and writes a cell that "
        "is being updated. A multiprocessor has more registers than shared memory, so the cell moves to a register, and a block "
        "needs two tiles of shared memory instead of three. Registers have no addresses, so the local array works only if every "
        "index into it is a compile-time constant. Less shared memory pays only if shared memory limits the number of resident "
        "blocks. The authors expected no gain from this step only, because two tiles still left room for just one block on "
        "their GPU."
    ),
)
