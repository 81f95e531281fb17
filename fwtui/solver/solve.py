"""`solve`: a graph in, shortest paths out."""

from __future__ import annotations

from functools import partial
from typing import Any, overload

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import brief
from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.library_objects import LazyGraph, lazy_of_object, of_object
from fwtui.solver import choose, driver, warm
from fwtui.solver.host_graph import HostGraph, OneCoreGraph
from fwtui.solver.launching import Clock, threads_lost
from fwtui.solver.result import Result, StackResult
from fwtui.solver.solver_graph import Tell, untold
from fwtui.solver.stack import is_stack
from fwtui.solver.stack_graph import solve_stack

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
    devices: str | None = None,
    comm: Any = None,
    gather: bool = False,
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
    devices: str | None = None,
    comm: Any = None,
    gather: bool = False,
) -> Result: ...


def solve(
    graph: Any,
    *,
    dtype: str | None = None,
    predecessors: bool = False,
    kernel: str = "auto",
    device: str | int | None = None,
    devices: str | None = None,
    comm: Any = None,
    gather: bool = False,
) -> Result | StackResult:
    """Distances between all pairs of vertices, like scipy.sparse.csgraph.shortest_path, and how they were found.

    `graph` is an (n, n) NumPy array (+inf, NaN or a mask for no edge), a SciPy sparse matrix, a NetworkX graph, a table
    (pandas, polars, pyarrow) with the columns source, target and weight, or an array on a GPU (`__cuda_array_interface__`),
    where its distances stay. A (b, n, n) array or a list of graphs is a stack: they are solved at once, and the answer is a
    StackResult. `dtype` ("int16", "int32", "float32") is chosen from the weights: 16 bits if distances provably fit, else
    int32, else float32. `kernel` is "auto", "numpy" or a kernel's id; `device` is "cpu", a GPU's number, or None to use the
    GPU if that pays.

    `devices` shares one matrix among several devices of this machine: GPUs like "0,1", "all" for all GPUs, or "cpu,cpu" for
    processes on the CPU. They run as a job of their own, which ends with the call, and all distances come back here, where
    predecessors are made. It needs mpi4py and mpiexec.

    In an MPI program all ranks call it with `comm`, such as mpi4py's COMM_WORLD, and with the same arguments, apart from the
    graph, which only rank 0 gives. Each rank computes on the GPU with its number on its machine, or on the CPU where there are
    none or `devices` is "cpu". Each then has some rows of the distances and predecessors: `result.rows` are their vertices. With
    `gather` rank 0 has all rows, and the others none; it then makes all predecessors. What rank 0 refuses, all ranks raise.
    An error inside a rank is told with its number and ends the program.

    Unlike SciPy, a zero in a dense array is an edge of weight 0, a negative self-loop is a negative cycle, and
    distances are float32 if that is exact. Raises scipy.sparse.csgraph.NegativeCycleError, Refused (a ValueError) if the
    input is not a graph or does not fit, and TypeError.
    """
    clock = Clock()
    if comm is not None:
        return _of_all_ranks(graph, comm, dtype, predecessors, kernel, device, devices, gather, clock)
    if gather:
        raise Refused("gather is for the ranks of an MPI program; give comm= too, or leave it out")
    if is_stack(graph):
        if devices is not None:
            raise Refused("a stack of graphs is solved on one device; leave devices out")
        return answer_stack(graph, dtype=dtype, predecessors=predecessors, kernel=kernel, device=device, clock=clock)
    if not hasattr(graph, "__cuda_array_interface__"):
        given = lazy_of_object(graph) or of_object(graph)
        return answer(given, dtype=dtype, predecessors=predecessors, kernel=kernel, device=device, devices=devices, clock=clock)
    if devices is not None:
        raise Refused(f"devices {brief(devices)} get their graph from the host, and the array is on a GPU; copy it to the host")
    named = choose.named(kernel)
    if named is not None and named.backend != "cuda":
        raise Refused(f"kernel {named.id} runs on the host and the array is on a GPU; copy it, or leave the kernel out")
    engine = choose.engine_for(device, 0, needed=True)  # of any size, possibly without a length
    engine.activate()
    from numba import cuda

    from fwtui.solver import device_graph

    clock.lap("set-up")
    return driver.run(device_graph.of_device_array(cuda.as_cuda_array(graph), engine), named, dtype, predecessors, clock)


def _of_all_ranks(
    graph: Any,
    comm: Any,
    dtype: str | None,
    predecessors: bool,
    kernel: str,
    device: str | int | None,
    devices: str | None,
    gather: bool,
    clock: Clock,
) -> Result:
    if device is not None:
        raise Refused(f"device {device} and comm= exclude each other; leave out one of them")
    from fwtui.solver.ranked import solve_ranked

    def read() -> Adjacency | LazyGraph:
        if hasattr(graph, "__cuda_array_interface__"):
            raise Refused("the ranks get the graph from the host, and the array is on a GPU; copy it to the host")
        return lazy_of_object(graph) or of_object(graph)

    return solve_ranked(
        read, comm, dtype=dtype, predecessors=predecessors, kernel=kernel, devices=devices, gather=gather, clock=clock
    )


def answer(
    graph: Adjacency | LazyGraph,
    *,
    dtype: str | None = None,
    predecessors: bool = False,
    kernel: str = "auto",
    device: str | int | None = None,
    devices: str | None = None,
    engine: Engine | None = None,
    tell: Tell = untold,
    clock: Clock | None = None,
) -> Result:
    """Like solve. `tell` gets the share done; `engine` runs the kernels, chosen by `device` unless given."""
    clock = clock or Clock()
    clock.lap("prepare")
    named = choose.named(kernel)
    if devices is not None:
        if device is not None:
            raise Refused(f"devices {brief(devices)} and device {device} exclude each other; leave out one of them")
        from fwtui.solver.job import job_engine

        with job_engine(devices) as job:
            return driver.run(HostGraph(graph, job), named, dtype, predecessors, clock, tell)
    if engine is None:
        on_gpu = named is not None and named.backend == "cuda"
        engine = choose.CPU if named is not None and not on_gpu else choose.engine_for(device, graph.n, on_gpu)
    engine.activate()
    if engine.target.backend != "cpu":
        from fwtui.solver import device_graph

        clock.lap("set-up")
        there = device_graph.to_device(graph, engine, clock)
        return driver.run(there or HostGraph(graph, engine), named, dtype, predecessors, clock, tell)
    code = warm.everyday.ready(graph.n) if named is None and (graph.n <= warm.MOST or threads_lost()) else None
    clock.lap("set-up")
    here = HostGraph(graph, engine) if code is None else OneCoreGraph(graph, engine, code)
    result = driver.run(here, named, dtype, predecessors, clock, tell)
    if named is None:
        warm.everyday.took(result.stats)
    return result


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
    choose.named(kernel)
    one = partial(answer, dtype=dtype, predecessors=predecessors, kernel=kernel, device=device, engine=engine)
    return solve_stack(
        graphs, one, dtype, predecessors, kernel, lambda n: engine or choose.engine_for(device, n, False), clock or Clock()
    )
