"""The blocked algorithm with its tiles in shared memory (Katz and Kider 2008)."""

from __future__ import annotations

from fwtui_kernels.compiled.device import jit
from fwtui_kernels.parts import blocked
from fwtui_kernels.parts import blocked_tiles as tiles


@jit(device=True, inline="always")
def relax(own, to, middle, r, k, x, number):
    """Relax cell (r, x) of the tile `own` through vertex k; all three tiles are in shared memory."""
    own[r, x] = min(own[r, x], number(to[r, k] + middle[k, x]))


KERNEL = blocked.rung(
    id="katz-kider",
    title="Katz-Kider",
    papers=("G. J. Katz, J. T. Kider, All-Pairs Shortest-Paths for Large Graphs on the GPU, Graphics Hardware 2008",),
    build=tiles.builder(tiles.rest_in_shared(relax)),
    summary="Three phases of tiles, each loaded into shared memory once and used `tile` times.",
    lesson=(
        "Shared memory is small and fast. A thread block loads three tiles into it and then does tile x tile x tile relaxations "
        "without another access to global memory. The requested bytes fall by a factor of `tile`. Of the three phases of a "
        "round, only the last one has work for the whole GPU. The pivot occupies a single multiprocessor."
    ),
    tiles=(2, 4, 8, 16, 32),
    memories=("device", "pinned"),
    preference=20,
)
