"""The staged load in doubly tiled order; a thread begins each slice at k = (i + j) mod 4 (Lund and Smith, section 4.3)."""

from __future__ import annotations

from functools import partial

from fwtui_kernels.k63_staged_natural import program
from fwtui_kernels.parts import blocked

KERNEL = blocked.optimized(
    id="staged-load",
    title="Staged load",
    papers=("B. Lund, J. W. Smith, A Multi-Stage CUDA Kernel for Floyd-Warshall, 2010, section 4.3",),
    # the order of k does not affect the result, so each thread may have its own
    build=partial(program, cyclic=True),
    summary="Each thread begins a slice at k = (i + j) mod 4 and wraps around, so no two threads read the same bank.",
    lesson=(
        "The order of k does not matter for a tile whose panels are solved, so every thread may have another one. Let the "
        "thread with cell (i, j) begin at k = (i + j) mod 4 and wrap around. The sixteen threads of a 4x4 block then read "
        "sixteen different words from sixteen different banks. On the authors' GPU that reduced four passes to one. Today's "
        "hardware delivers a word to all threads that need it in one broadcast. The natural order then has an advantage: the "
        "next four values of a thread are contiguous, so that one instruction can load them. Compare the two rungs by time and "
        "by the counter of bank conflicts."
    ),
    matrices=2,
    preference=30,
)
