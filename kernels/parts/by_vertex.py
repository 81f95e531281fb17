"""What the rungs that go through one vertex at a time share: their plan, and a grid over the whole matrix."""

from __future__ import annotations

from collections.abc import Iterator

from kernels.plan import WARP, Cost, Rect, Shape, Step, Target, crossing


def plan(n: int, cost: Cost) -> Iterator[Step]:
    """For each k one step that relaxes every pair, in place."""
    everything = Rect(0, 0, n, n)
    for k in range(n):
        yield Step("relax", "all", (k,), cost, (*crossing(n, k, k + 1), everything), (everything,))


def launch(shape: Shape, target: Target, threads: int, across: int = 1, down: int = 1) -> tuple[tuple[int, int], tuple[int, int]]:
    """Block and grid for threads that have `across` x `down` cells each: a warp is a row of a block."""
    if target.backend == "simulator":  # a simulated thread is a real one
        block = (2 if across > 1 else 4, 4)
    else:
        block = (WARP, threads // WARP)
    return block, (-(-shape.n // (block[0] * across)), -(-shape.n // (block[1] * down)))
