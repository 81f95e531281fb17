"""SciPy's own routine: the reference, and the rate that a Python user has today."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import NegativeCycleError, floyd_warshall

from fwtui_kernels.parts import library
from fwtui_kernels.parts.library import LibraryProgram
from fwtui_kernels.plan import Kernel, Program, Shape, Step, Target

ITEMSIZE = 8


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    # its loop is that of `serial`: every row is read and written, row k is read once
    return library.plan(shape, stepwise, shape.n * (2 * shape.n**2 + shape.n) * ITEMSIZE)


def build(shape: Shape, target: Target) -> Program:
    return LibraryProgram(shape, _graph, _distances)


def _graph(n: int, rows: Any, columns: Any, weights: Any) -> Any:
    """A sparse float64 copy: SciPy's dense form cannot tell an edge of weight 0 from no edge."""
    return csr_array((weights.astype(np.float64), (rows, columns)), shape=(n, n))


def _distances(graph: Any) -> Any:
    try:
        return floyd_warshall(graph)
    except NegativeCycleError:
        # the other kernels show a negative cycle by a negative diagonal
        return np.where(np.eye(graph.shape[0], dtype=bool), -1.0, np.inf)


KERNEL = Kernel(
    id="scipy",
    title="SciPy",
    backend="cpu",
    papers=("SciPy, scipy.sparse.csgraph.floyd_warshall",),
    plan=plan,
    build=build,
    summary="The library routine, compiled, one thread, float64.",
    lesson=(
        "This is what `scipy.sparse.csgraph.floyd_warshall` does on the same graph. It is compiled code, but one thread, in "
        "double precision and without tiles. Every other kernel's result is compared with it, cell by cell."
    ),
    compiles=False,
    itemsize=ITEMSIZE,
    scalar=True,  # addsd and comisd in the wheels of 1.x
    host_bytes=56,  # indices and float64 weights while the sparse form is made, then the result and a copy
)
