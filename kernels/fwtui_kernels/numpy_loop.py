"""The k-loop on the whole matrix with NumPy, which `solve` runs where nothing may be compiled. Not a rung of the ladder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fwtui_kernels.plan import Cost, Kernel, Program, Rect, Shape, Step, Target

TOGETHER = 64  # values of k in a step: a run is cancelled between steps
TRAFFIC = 4  # whole matrices read or written for each k: the matrix twice, the sums twice


def _plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    n = shape.n
    everything = Rect(0, 0, n, n)
    for first in range(0, n, TOGETHER):
        end = min(first + TOGETHER, n)
        cost = Cost((end - first) * n**2, (end - first) * TRAFFIC * n**2 * shape.itemsize)
        yield Step("relax", "all", (first, end), cost, (everything,), (everything,))


def _build(shape: Shape, target: Target) -> Program:
    import numpy as np

    from fwtui_kernels.programs.cpu_program import CpuProgram

    sums = np.empty((shape.n, shape.n), shape.dtype)

    def relax(matrix: Any, first: int, end: int) -> None:
        for k in range(first, end):
            np.add(matrix[:, k, None], matrix[k], out=sums)
            np.minimum(matrix, sums, out=matrix)

    return CpuProgram(shape, {"relax": relax})


NUMPY = Kernel(
    id="numpy",
    title="NumPy, k-loop",
    backend="cpu",
    papers=("NumPy",),
    plan=_plan,
    build=_build,
    summary="The k-loop on whole matrices with NumPy, in place.",
    lesson="",
    compiles=False,
    simulates=False,
    matrices=2,
)
