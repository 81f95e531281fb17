"""The staged load: doubly tiled order, and each thread begins a slice at k = (i + j) mod 4 (Lund and Smith, section 4.3)."""

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
    summary="Each thread begins a slice at k = (i + j) mod 4 and wraps around, so that no two ask the same bank.",
    lesson=(
        "The order in which k runs makes no difference to a tile whose panels are finished, so threads need not agree on one. "
        "Let the thread with cell (i, j) begin at k = (i + j) mod 4 and wrap around. The sixteen threads of a 4x4 block then ask "
        "for sixteen different words in sixteen different banks. On the authors' machine four turns became one. On today's "
        "hardware threads that want the same word get it together anyway. And the natural order has an advantage of its own: a "
        "thread's next four values lie side by side, and one instruction can load them. Compare the two, by time and by the "
        "counter of bank conflicts."
    ),
    matrices=2,
    preference=30,
)
