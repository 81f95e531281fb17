"""`solve`: a graph in, shortest paths out."""

from __future__ import annotations

from functools import partial
from typing import Any, overload

import numpy as np

from fwtui.common.errors import Refused
from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.library_objects import LazyGraph, lazy_of_object, of_object
from fwtui.solver import driver, picking, stack
from fwtui.solver.host_graph import HostGraph
from fwtui.solver.launching import Clock
from fwtui.solver.result import Result, StackResult

# for type checkers, to which an array of unknown shape is one graph
Matrix = np.ndarray[tuple[int, int], Any]
Stack = np.ndarray[tuple[int, int, int], Any] | list[np.ndarray] | tuple[np.ndarray, ...]


@overload
def solve(
    graph: Matrix,
    *,
    dtype: str | None = None,
    predecessors: bool = False,
    kernel: str = "auto",
    device: str | int | None = None,
) -> Result: ...


@overload
def solve(  # pyright: ignore[reportOverlappingOverload]
    graph: Stack,
    *,
    dtype: str | None = None,
    predecessors: bool = False,
    kernel: str = "auto",
    device: str | int | None = None,
) -> StackResult: ...


@overload
def solve(
    graph: Any,
    *,
    dtype: str | None = None,
    predecessors: bool = False,
    kernel: str = "auto",
    device: str | int | None = None,
) -> Result: ...


def solve(
    graph: Any,
    *,
    dtype: str | None = None,
    predecessors: bool = False,
    kernel: str = "auto",
    device: str | int | None = None,
) -> Result | StackResult:
    """Distances between all pairs of vertices, like scipy.sparse.csgraph.shortest_path, and how they were found.

    `graph` is an (n, n) NumPy array (+inf, NaN or a mask for no edge), a SciPy sparse matrix, a NetworkX graph, a table
    (pandas, polars, pyarrow) with the columns source, target and weight, or an array on a GPU (`__cuda_array_interface__`),
    where its distances stay. A (b, n, n) array or a list of graphs is a stack: they are solved at once, and the answer is a
    StackResult. `dtype` ("int16", "int32", "float32") is chosen from the weights: 16 bits if distances provably fit, else
    int32, else float32. `kernel` is "auto", "numpy" or a kernel's id; `device` is "cpu", a GPU's number, or None to use the
    GPU if that pays.

    Unlike SciPy, a zero in a dense array is an edge of weight 0, a negative self-loop is a negative cycle, and
    distances are float32 if that is exact. Raises scipy.sparse.csgraph.NegativeCycleError, Refused (a ValueError) if the
    input is not a graph or does not fit, and TypeError.
    """
    clock = Clock()
    if stack.is_stack(graph):
        return answer_stack(graph, dtype=dtype, predecessors=predecessors, kernel=kernel, device=device, clock=clock)
    if not hasattr(graph, "__cuda_array_interface__"):
        given = lazy_of_object(graph) or of_object(graph)
        return answer(given, dtype=dtype, predecessors=predecessors, kernel=kernel, device=device, clock=clock)
    named = picking.named(kernel)
    if named is not None and named.backend != "cuda":
        raise Refused(f"kernel {named.id} runs on the host and the array is on a GPU; copy it, or leave the kernel out")
    engine = picking.engine_for(device, 0, needed=True)  # of any size, possibly without a length
    engine.activate()
    from numba import cuda

    from fwtui.solver import device_graph

    clock.lap("set-up")
    return driver.run(device_graph.of_device_array(cuda.as_cuda_array(graph), engine), named, dtype, predecessors, clock)


def answer(
    graph: Adjacency | LazyGraph,
    *,
    dtype: str | None = None,
    predecessors: bool = False,
    kernel: str = "auto",
    device: str | int | None = None,
    engine: Engine | None = None,
    tell: driver.Tell = lambda share: None,
    clock: Clock | None = None,
) -> Result:
    """Like solve. `tell` gets the share done; `engine` runs the kernels, chosen by `device` unless given."""
    clock = clock or Clock()
    clock.lap("prepare")
    named = picking.named(kernel)
    if engine is None:
        on_gpu = named is not None and named.backend == "cuda"
        engine = picking.CPU if named is not None and not on_gpu else picking.engine_for(device, graph.n, on_gpu)
    engine.activate()
    clock.lap("set-up")
    there = None
    if engine.target.backend != "cpu":
        from fwtui.solver import device_graph

        there = device_graph.to_device(graph, engine, clock)
    return driver.run(there or HostGraph(graph, engine), named, dtype, predecessors, clock, tell)


def answer_stack(
    graphs: Any,
    *,
    dtype: str | None = None,
    predecessors: bool = False,
    kernel: str = "auto",
    device: str | int | None = None,
    engine: Engine | None = None,
    clock: Clock | None = None,
) -> StackResult:
    """Like solve for a stack. `engine` runs the kernels, chosen by `device` unless given."""
    picking.named(kernel)
    one = partial(answer, dtype=dtype, predecessors=predecessors, kernel=kernel, device=device, engine=engine)
    return stack.run(
        graphs, one, dtype, predecessors, kernel, lambda n: engine or picking.engine_for(device, n, False), clock or Clock()
    )
