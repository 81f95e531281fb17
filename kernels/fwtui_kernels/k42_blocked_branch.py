"""Blocked, with `if` in place of `min` in the third phase (CS542200, before its second optimisation)."""

from __future__ import annotations

from fwtui_kernels.compiled.device import jit
from fwtui_kernels.parts import blocked
from fwtui_kernels.parts import blocked_tiles as tiles


@jit(device=True, inline="always")
def relax(own, to, middle, r, k, x, number):
    """Relax one cell with a comparison and a predicated store instead of a minimum."""
    via = number(to[r, k] + middle[k, x])
    if via < own[r, x]:
        own[r, x] = via


KERNEL = blocked.rung(
    id="blocked-branch",
    title="Blocked, if instead of min",
    papers=("CS542200 Parallel Programming, Homework 4-1, section 3d (its own earlier version)",),
    build=tiles.builder(tiles.rest_in_shared(relax)),
    summary="The same three tiles in shared memory; a comparison decides whether to store, instead of storing the minimum.",
    lesson=(
        "Thirty-two threads share one instruction stream. If an `if` sends some of them one way and some the other, the hardware "
        "executes both ways and masks the inactive threads. A body as short as one store needs no jump: the comparison sets a "
        "predicate and the store checks it. That is a comparison and a predicated store instead of one minimum instruction, but "
        "unneeded stores are skipped. Which effect is larger depends on the GPU: compare with katz-kider, which differs only in "
        "these lines."
    ),
)
