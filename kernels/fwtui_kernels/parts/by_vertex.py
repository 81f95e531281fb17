"""The plan and the grid of the rungs that process one vertex at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from fwtui_kernels.plan import WARP, Cost, Kernel, Option, Program, Rect, Shape, Step, Target, crossing

THREADS = Option("threads", (64, 256, 1024), 256, "threads per block")


def plan(n: int, cost: Cost, sides: Callable[[tuple[int, ...]], tuple[int, int]] = lambda args: (0, 0)) -> Iterator[Step]:
    """Yield one step per k that relaxes every pair; `sides` maps the args to the matrix that is read and the one written."""
    for k in range(n):
        source, to = sides((k,))
        reads = (*crossing(n, k, k + 1, source), Rect(0, 0, n, n, source))
        yield Step("relax", "all", (k,), cost, reads, (Rect(0, 0, n, n, to),))


def in_turn(args: tuple[int, ...]) -> tuple[int, int]:
    """Return the matrix that step k reads and the one that it writes, if two alternate."""
    return args[0] % 2, 1 - args[0] % 2


def program(
    shape: Shape,
    target: Target,
    relax: Any,
    threads: int,
    across: int = 1,
    down: int = 1,
    buffers: Callable[[tuple[int, ...]], tuple[int, ...]] = lambda args: (0,),
    **more: Any,
) -> Program:
    """Return the program of `relax` with `across` x `down` cells per thread; a warp is one row of a block."""
    from fwtui_kernels.programs.cuda_program import CudaProgram, Op

    if target.backend == "simulator":  # small blocks, because the simulator is slow
        block = (2 if across > 1 else 4, 4)
    else:
        block = (WARP, threads // WARP)
    grid = (-(-shape.n // (block[0] * across)), -(-shape.n // (block[1] * down)))
    return CudaProgram(shape, target, {"relax": Op(relax, block, lambda args: grid, buffers)}, **more)


# the fields that most of these rungs share
rung = partial(Kernel, options=(THREADS,), launch_modes=("eager", "graph"), memories=("device", "pinned"))
