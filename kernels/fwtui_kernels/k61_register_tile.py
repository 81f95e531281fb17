"""Like optimized & blocked, with the tile being updated in registers (Lund and Smith, section 4.1)."""

from __future__ import annotations

from functools import partial

from fwtui_kernels.k60_optimized import program
from fwtui_kernels.parts import blocked

KERNEL = blocked.optimized(
    id="register-tile",
    title="Register tile",
    papers=("B. Lund, J. W. Smith, A Multi-Stage CUDA Kernel for Floyd-Warshall, 2010, section 4.1",),
    build=partial(program, in_registers=True),
    summary="The tile being updated is in registers; shared memory keeps only the two panel tiles.",
    lesson=(
        "The two panel tiles are read by many threads and belong in shared memory. A cell that is being updated is read and "
        "written by one thread alone. A multiprocessor has more room in registers than in shared memory, so that is where it "
        "goes: a block now needs two tiles instead of three. Registers have no addresses, so the little array works only if "
        "every index into it is known when the kernel is compiled. Needing less pays only where shared memory limits the number "
        "of blocks on a multiprocessor. The authors expected no gain from this step alone, because on their machine two tiles "
        "still left room for just one block."
    ),
)
