"""`solve`: a graph in, shortest paths out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import quoted
from fwtui.common.units import counted
from fwtui.graphs.adjacency import Adjacency, DeviceArray, GivenGraph, merge_parallel
from fwtui.graphs.columns import WeightChoice
from fwtui.graphs.file_options import AUTO
from fwtui.graphs.library_objects import graph_of
from fwtui.graphs.vertices import Vertices
from fwtui.solver.call import Call
from fwtui.solver.costs import check_room
from fwtui.solver.driver import answer
from fwtui.solver.ends import Ends
from fwtui.solver.method import choose_method
from fwtui.solver.result import Result
from fwtui.solver.single_source import solve_by_dijkstra


def solve(
    graph: Any,
    *,
    dtype: str | np.dtype | type | None = None,
    predecessors: bool = False,
    kernel: str = "auto",
    device: str | int | None = None,
    comm: Any = None,
    sources: Sequence[Hashable] | None = None,
    targets: Sequence[Hashable] | None = None,
    weight: Hashable | None = AUTO,
    keep: str | None = None,
) -> Result:
    """Return the shortest-path distances between all pairs of vertices, with statistics; like scipy's shortest_path.

    `graph` is an (n, n) NumPy array (+inf, NaN or a mask for no edge), a SciPy sparse matrix, a NetworkX graph, a table
    (pandas, polars, pyarrow) with the columns source, target and weight, or an array on a GPU (`__cuda_array_interface__`),
    whose distances stay on that GPU. `dtype` is "int16", "int32", "float32" or "float64". By default it is the narrowest that
    provably holds all distances, or else float64, which may round sums; "float32" is faster and rounds more. `kernel` is "auto"
    or the id of a kernel. `device` is "cpu", the index of a GPU, or None to use a GPU if it is faster.

    `weight` names the column of a table, or the attribute of a NetworkX graph, that holds the weights; None gives each edge the
    weight 1. The default is the column called weight, or one with a similar name (cost, length, distance, value, time,
    weight_km); if all columns of numbers have other names, the graph is rejected. Of parallel edges the lightest counts, but
    duplicate entries of a sparse matrix add up. `result.stats.notes` states the column and the parallel edges. A warning is
    issued if the greatest weight of a matrix probably means no edge.

    `sources` and `targets` restrict the result to some rows and columns, and the memory to these: row k belongs to the k-th
    source, column k to the k-th target. An integer is the number of a vertex, any other value a label. The fastest method by
    estimate computes the rows: Dijkstra searches from the sources or backwards from the targets, one elimination and a sweep
    for each vertex, or a kernel for all pairs. `result.stats.reason` states the estimates. `predecessors` need complete rows.

    `keep="device"` leaves the distances and predecessors on the GPU, as arrays with `__cuda_array_interface__`.

    In an MPI program all ranks call `solve` with the same arguments and `comm`, such as mpi4py's COMM_WORLD; only rank 0 passes
    the graph. Each rank uses one GPU of its machine, or the CPU if there is no GPU or `device` is "cpu". Rank 0 returns all
    rows, the other ranks none. If rank 0 raises Refused, all ranks do. If a rank fails, the program aborts with its number.

    Unlike SciPy, a zero in a dense array is an edge of weight 0, a negative self-loop is a negative cycle, and distances are
    float32 if that is exact or requested. Raises scipy.sparse.csgraph.NegativeCycleError, Refused (a ValueError) if the input
    is not a graph or does not fit in memory, and TypeError.
    """
    resident = hasattr(graph, "__cuda_array_interface__")
    in_device_memory = isinstance(keep, str) and keep == "device"
    call = Call(_dtype_name(dtype), predecessors, kernel, device, in_device_memory)
    if keep is not None and not in_device_memory:
        raise Refused(f"keep is {quoted(str(keep))}; pass 'device', or omit it for distances on the host")
    if not isinstance(weight, Hashable):
        raise Refused(f"weight is {quoted(str(weight))}, not a name; pass one, or None if each edge counts 1")
    if keep and (sources is not None or targets is not None or comm is not None):
        raise Refused("keep='device' cannot be combined with sources, targets or comm; omit keep, or these")
    if sources is not None or targets is not None:
        ends = "targets" if sources is None else "sources"
        if comm is not None:
            raise Refused(f"distances of some {ends} are computed by one process; omit {ends}, or comm")
        if resident:
            raise Refused(f"{ends} need a graph in host memory; omit {ends}, or copy the array to the host")
        if targets is not None and predecessors:
            raise Refused("predecessors need complete rows; omit targets or predecessors")
    if comm is not None:
        if not hasattr(comm, "Get_attr"):
            raise Refused(f"comm is {quoted(str(comm))}, not a communicator; pass one such as mpi4py.MPI.COMM_WORLD")
        from fwtui.solver.mpi_solve import solve_mpi

        def read() -> GivenGraph:
            if resident:
                raise Refused("the ranks get the graph from the host, and the array is on a GPU; copy it to the host")
            return graph_of(graph, weight)

        return solve_mpi(read, comm, call)
    if resident:
        WeightChoice(weight).check_unused("an array")
    given = graph if resident else graph_of(graph, weight)
    rows = None if sources is None else _numbers("source", sources, given.vertices)
    columns = None if targets is None else _numbers("target", targets, given.vertices)
    result = solve_one(given, call, rows, columns)
    return replace(result, stats=replace(result.stats, notes=given.notes)) if not resident and given.notes else result


def solve_one(
    graph: GivenGraph | DeviceArray, call: Call, rows: np.ndarray | None = None, columns: np.ndarray | None = None
) -> Result:
    """Return these rows and columns of distances, in their order; None means all, and is required for an array on a GPU.

    If the call names a dtype, a kernel or a device, a kernel computes all distances. Otherwise the method with the least
    estimated time does: searches, an elimination, or a kernel. Raises Refused, Failed, and SciPy's NegativeCycleError.
    """
    if rows is None and columns is None and isinstance(graph, GivenGraph) and not call.keep_on_device:
        check_room(graph.n, "int16", call.predecessors)  # before memory is allocated for each vertex or edge
    least = min((len(some) for some in (rows, columns) if some is not None), default=None)
    if isinstance(graph, GivenGraph) and call.is_free:
        ends = Ends(graph.n, rows, columns)
        method = choose_method(graph, ends, call.predecessors, call.dtype)
        if method.elimination is not None:
            return method.elimination.solve(call, method.reason)
        if method.name == "searches":
            return solve_by_dijkstra(graph.adjacency, ends, method.reason, call)
    result = answer(graph, call)
    if least is None:
        return result
    why = ""
    if call.is_free and call.dtype is None:
        why = f"all distances take less time than searches from {counted(least, 'vertex', 'vertices')}"
    wanted_rows = slice(None) if rows is None else rows
    distances = np.asarray(result.distances)[wanted_rows]
    before = result.predecessors[wanted_rows] if result.predecessors is not None else None
    if columns is not None:
        distances = distances[:, columns]
    return Result(distances, before, replace(result.stats, reason=why), result.vertices, rows=rows, columns=columns)


def _dtype_name(dtype: Any) -> str | None:
    """Return the name of a data type: of a text, a NumPy type, or one of its scalar classes."""
    return None if dtype is None else np.dtype(dtype).name if isinstance(dtype, (np.dtype, type)) else str(dtype)


def _numbers(what: str, ends: Sequence[Hashable], vertices: Vertices) -> np.ndarray:
    """Return the numbers of the vertices: an integer is a number, any other value a label. Raises Refused if one is missing."""
    array = isinstance(ends, np.ndarray) and (ends.ndim != 1 or ends.dtype == bool)
    mask = isinstance(ends, Sequence) and any(isinstance(end, (bool, np.bool_)) for end in ends)
    if array or mask or isinstance(ends, (str, bytes)) or not isinstance(ends, Iterable):
        raise Refused(f"{what}s is not a list of vertices; pass one like [3, 17], or numpy.flatnonzero(mask)")
    n = len(vertices)
    numbers = [int(end) if isinstance(end, (int, np.integer)) else vertices.row(end) for end in ends]
    if not numbers:
        raise Refused(f"{what}s is empty; pass at least one vertex, or omit it for all")
    for number in numbers:
        if not 0 <= number < n:
            raise Refused(f"{what} {number} is outside 0 to {n - 1}; choose vertices of the graph")
    return np.array(numbers, dtype=np.int64)


def solve_exactly(graph: Adjacency, predecessors: bool) -> Result | None:
    """Return the result of kernels for callers that expect float64; None if a sum would be rounded. Raises like solve."""
    facts = graph.facts
    if not facts.exact_sums:
        return None
    result = answer(graph, Call(predecessors=predecessors))
    return result if result.stats.exact else None


def solve_in_float64(graph: Adjacency, predecessors: bool, method: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return (n, n) distances and predecessors: from kernels if they are exact, else from SciPy by that method, in float64.

    Raises like solve.
    """
    result = solve_exactly(graph, predecessors)
    if result is not None:
        return result.distances, result.predecessors
    from scipy.sparse import csgraph, csr_array

    arcs = graph.all_arcs()
    if (arcs.weights[arcs.sources == arcs.targets] < 0).any():  # SciPy's Floyd-Warshall ignores self-loops
        raise csgraph.NegativeCycleError("the graph has a negative self-loop")
    sources, targets, weights = merge_parallel(arcs)  # SciPy would add them up
    matrix = csr_array((weights, (sources, targets)), shape=(graph.n, graph.n))
    if predecessors:
        return csgraph.shortest_path(matrix, method=method, return_predecessors=True)
    return csgraph.shortest_path(matrix, method=method), None
