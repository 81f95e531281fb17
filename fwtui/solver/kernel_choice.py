"""Choice of the kernel for a graph, dense or sparse."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from math import inf

from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.common.units import memory
from fwtui.engine.engine import Engine
from fwtui.engine.memory_check import check_memory
from fwtui.graphs.adjacency import GivenGraph
from fwtui.graphs.graph import EdgeFacts
from fwtui.solver.call import Call
from fwtui.solver.compiled_code import threads_lost
from fwtui.solver.costs import (
    SPARSE,
    check_device_room,
    check_room,
    free_on_device,
    in_order,
    is_sparse,
    ordered_shape,
    seconds_of,
    shape_of,
)
from fwtui.solver.engine_choice import CPU
from fwtui_kernels import registry
from fwtui_kernels.auto import in_order as best_first
from fwtui_kernels.parts.elimination import relaxations
from fwtui_kernels.plan import Kernel, Shape
from fwtui_kernels.streaming import out_of_core

# vertices up to which SciPy's floyd_warshall takes less time than importing numba and loading a kernel: once, and many times
_MAX_BY_SCIPY, _MAX_TINY = 896, 48
_scipy_has_run = False  # set by the first graph; from the second on, loading a kernel pays


def suited(named_kernel: Kernel | None, n: int, dtype: str, nonnegative: bool, engine: Engine) -> tuple[Kernel, Shape]:
    """Return the requested kernel, or the fastest that accepts the size, and its shape. Raises Refused if none does."""
    if named_kernel is not None and engine.ranks and not (named_kernel.ranked and named_kernel.backend == engine.target.backend):
        other = next(_preferred(n, dtype, nonnegative, engine)).id
        raise Refused(f"kernel {named_kernel.id} does not run on these devices; choose {other}, or omit the kernel")
    if named_kernel is not None and named_kernel.ordered is not None and engine is CPU and threads_lost():
        raise Refused(
            f"kernel {named_kernel.id} needs numba's threads, which do not work in a process forked after they started; "
            "omit the kernel, or start the process with multiprocessing's spawn"
        )
    simulated = engine.target.backend == "simulator"
    first: str | None = None
    for kernel in [named_kernel] if named_kernel is not None else _preferred(n, dtype, nonnegative, engine):
        shape = shape_of(kernel, n, dtype, nonnegative, simulated, max(1, len(engine.ranks)))
        if engine is CPU and threads_lost():
            shape = replace(shape, options=tuple((name, value * (name != "cores")) for name, value in shape.options))
        reason = kernel.refuses(shape) or kernel.lacks(shape, engine.target)
        if reason is None and (kernel.simulates or not simulated):
            return kernel, shape
        first = first or reason
    raise Refused(first or f"no kernel takes {n:,} vertices in {dtype} here; choose another dtype")


def _preferred(n: int, dtype: str, nonnegative: bool, engine: Engine) -> Iterator[Kernel]:
    """Yield the kernels that may run, best known first; on the CPU, SciPy solves small graphs before numba is imported."""
    backend = "cpu" if engine.target.backend == "cpu" else "cuda"
    if engine.ranks:
        yield from (kernel for kernel in registry().values() if kernel.ranked and kernel.backend == backend)
        return
    if backend == "cpu" and nonnegative and _suits_scipy(n):  # float32 weights may close a negative cycle for SciPy
        yield registry()["scipy"]
    yield from best_first(backend, dtype)


def _suits_scipy(n: int) -> bool:
    """Return whether SciPy is faster: for tiny graphs, and for the first small one of a process, which would load numba."""
    global _scipy_has_run
    if n > _MAX_BY_SCIPY or "numba" in sys.modules:
        return False
    if n <= _MAX_TINY:
        return True
    first, _scipy_has_run = not _scipy_has_run, True
    return first


def choose_kernel(
    graph: GivenGraph, facts: EdgeFacts, call: Call, dtype: str, engine: Engine, to_host: bool
) -> tuple[Kernel, Shape, str]:
    """Return the named kernel, or the best one, its shape, and the reason if the graph decided; a kernel that streams if needed.

    `to_host`: the distances are copied to the host. Raises Refused if the matrix or the result does not fit in memory.
    """
    kernel, shape = suited(call.named, facts.n, dtype, facts.nonnegative, engine)
    if engine.ranks:
        check_memory(kernel, shape, engine)
    elif (free := free_on_device(engine, kernel.bytes_of(shape))) != inf:
        usable = int(free)
        if kernel.fitted(shape, usable) is None:
            kernel = out_of_core.KERNEL
            shape = shape_of(kernel, facts.n, dtype, shape.nonnegative)
        fitted = kernel.fitted(shape, usable)
        if fitted is None:
            most = kernel.largest_n(dtype, usable)
            raise Refused(
                f"{facts.n:,} vertices in {dtype} need more than the {memory(usable)} of device memory that are free, "
                f"even tile by tile; choose a graph of up to {most:,} vertices, or device cpu"
            )
        shape = fitted
    if to_host or kernel.streams is not None or call.predecessors:  # the matrix of a kernel that streams stays with the host
        check_room(facts.n, dtype, call.predecessors, low=facts.low)
    return sparser(call.named, graph, facts, kernel, shape, engine)


def sparser(
    named_kernel: Kernel | None, graph: GivenGraph, facts: EdgeFacts, kernel: Kernel, shape: Shape, engine: Engine
) -> tuple[Kernel, Shape, str]:
    """Return the kernel and its shape, or a faster kernel for sparse graphs, and the reason if the graph was ordered.

    A named kernel is never replaced. Raises Refused if its ordered matrix does not fit the device.
    """
    backend = engine.target.backend
    if kernel.ordered is not None:
        ordered = in_order(kernel, shape, graph.adjacency)
        check_device_room(engine, facts.n, kernel.bytes_of(ordered), "omit the kernel")
    elif named_kernel is not None or backend not in SPARSE or engine.ranks or not is_sparse(facts):
        return kernel, shape, ""
    else:
        ordered = ordered_shape(graph, facts, backend, shape.dtype, seconds_of(shape.n**3, backend, shape.itemsize), engine)
        if ordered is None:
            return kernel, shape, ""
    if ordered.order is None:
        return kernel, shape, "no small separators: the dense plan"
    times = ordered.n**3 / relaxations(ordered)
    nodes = units.counted(len(ordered.order.supernodes), "supernode")
    reason = f"{nodes} leave {units.gain(times)} fewer relaxations than a dense graph"
    return kernel if kernel.ordered is not None else registry()[SPARSE[backend]], ordered, reason
