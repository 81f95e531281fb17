"""`solve` in an MPI program: its processes are the ranks. Rank 0 has the graph; each rank gets its rows of the result."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.streams import report
from fwtui.engine.distributed_engine import ORDERS, EndOrder, Order, RankState, RankZeroEngine, encode_order, run_order_loop
from fwtui.engine.engine import Engine
from fwtui.engine.links import Channel, RankLink, gather_arrays, unlink_shared_memory, wait_until
from fwtui.experiment.device import RankDevice
from fwtui.graphs.adjacency import Arcs, GivenGraph
from fwtui.graphs.graph import EdgeFacts
from fwtui.measure.rank_worker import assign_devices, cores_for, engine_at, rank_for_device
from fwtui.measure.worker import diagnose
from fwtui.solver import choose
from fwtui.solver.call import Call, Clock
from fwtui.solver.compiled_code import compiled
from fwtui.solver.costs import bytes_a_cell
from fwtui.solver.host_graph import HostGraph, finished, largest, leads_out, reached
from fwtui.solver.paths import Paths, TracedPredecessors
from fwtui.solver.result import Result, Stats
from fwtui.stream.requests import Reply
from fwtui_kernels.plan import ITEMSIZE, NO_EDGE, Buffers, Kernel, Program, Shape
from fwtui_kernels.programs.rank_programs import RankRows

ALLOWED = (None, "cpu", "all")  # devices of an MPI program


def solve_mpi(read: Callable[[], GivenGraph], comm: Any, gather: bool, call: Call) -> Result:
    """Solve as a rank of an MPI program. Only rank 0 reads the graph. If one rank raises Refused, all raise it."""
    named, devices = call.named, call.devices
    if devices not in ALLOWED:
        raise Refused(
            f"devices {devices!r} cannot be combined with comm=, whose ranks exist already; pass 'cpu' or 'all', or omit devices"
        )
    member = _member(comm, devices == "cpu" or (named is not None and named.backend == "cpu"), devices is None and named is None)
    work = member.work()
    outcome: Any = None
    with member.threads():
        if member.comm.rank == 0:
            engine = _Engine(member, work)
            try:
                graph = read()
                call.clock.lap("set-up")
                source = HostGraph(graph, engine) if gather else MpiGraph(graph, engine, call.predecessors)
                outcome = source.solve(call)
            except Exception as error:
                outcome = error
            member.channel.order(encode_order(EndOrder()))
        else:
            try:
                with compiled():
                    run_order_loop(member.channel, work, SOLVE_ORDERS)
            except BaseException as error:
                member.abort(error)
    shared = (
        replace(outcome, distances=None, predecessors=None, paths=None, rows=None) if isinstance(outcome, Result) else outcome
    )
    # pickled by mpi4py: all ranks raise the same error, of whatever class
    shared = member.comm.bcast(shared)
    if isinstance(shared, Exception):
        raise shared
    if member.comm.rank == 0:
        return outcome
    rows = np.empty(0, np.int64) if gather else work.rows
    distances = np.empty((0, shared.stats.n), np.float32) if gather else work.distances
    before = (np.empty((0, shared.stats.n), np.int32) if gather else work.predecessors) if call.predecessors else None
    return replace(shared, distances=distances, predecessors=before, rows=rows)


@dataclass
class _Member:
    """The rank of this process in a communicator, which caches it for the next call."""

    comm: Any
    channel: Channel
    engine: Engine
    link: RankLink
    cores: int

    def work(self) -> RowWork:
        return RowWork(self.channel, self.engine, self.link, self.comm)

    @contextmanager
    def threads(self) -> Any:
        """Limit compiled code to this rank's part of its host's cores."""
        import numba

        before = numba.get_num_threads()
        numba.set_num_threads(min(before, self.cores))
        try:
            yield
        finally:
            numba.set_num_threads(before)

    def abort(self, error: BaseException) -> NoReturn:
        """Abort the program: the other ranks would wait for this one forever."""
        of = self.channel.ranks[self.comm.rank]
        report(f"{of}: {diagnose(error)[1]}; all ranks end")
        self.comm.Abort(1)
        os._exit(1)


_keyval: int | None = None  # MPI attribute key under which a communicator caches its members by device type


def _member(comm: Any, on_cpu: bool, falls_back: bool) -> _Member:
    """Return this process's part of the communicator; all ranks call it together. Raises NoGpu, on all ranks."""
    global _keyval
    from mpi4py import MPI

    if _keyval is None:
        _keyval = MPI.Comm.Create_keyval()
    members: dict[tuple[bool, bool], _Member] = comm.Get_attr(_keyval) or {}
    if (on_cpu, falls_back) not in members:
        duplicate = comm.Dup()
        unlink_shared_memory(duplicate)
        places: tuple[RankDevice, ...] = assign_devices(duplicate, on_cpu, falls_back)
        channel = Channel(duplicate.Dup(), [rank_for_device(rank, place) for rank, place in enumerate(places)])
        engine, _, link = engine_at(places[duplicate.rank], duplicate)
        engine.activate()
        members[on_cpu, falls_back] = _Member(
            duplicate, channel, engine, link, cores_for(duplicate, [place.host for place in places])
        )
        comm.Set_attr(_keyval, members)
    return members[on_cpu, falls_back]


class _Engine(RankZeroEngine):
    """The engine of rank 0. An error inside an order aborts the program, because the other ranks are executing the order too."""

    def __init__(self, member: _Member, work: RankState):
        super().__init__(member.channel, work)
        self._member = member

    def replies_to(self, order: Order[Any], work: Callable[[], Any] | None = None) -> list[Reply]:
        try:
            return super().replies_to(order, work)
        except BaseException as error:
            self._member.abort(error)


class RowWork(RankState):
    """The state of a rank during one call; the rank retains its rows of the result."""

    rows: np.ndarray  # their vertices
    distances: np.ndarray
    predecessors: np.ndarray
    weights: np.ndarray
    reached: np.ndarray  # fwtui.solver.host_graph.reached
    keeps_weights = False

    def __init__(self, channel: Channel, engine: Engine, link: RankLink, comm: Any):
        super().__init__(channel, engine, link)
        self.comm = comm

    def load(self, rows: np.ndarray) -> None:
        if self.keeps_weights:
            self.weights = rows
        super().load(rows)


class KeepWeights(Order[None]):
    """An order to keep the rows of the next load for the search of predecessors."""

    def execute(self, work: RowWork) -> None:
        work.keeps_weights = True


class LookOrder(Order["tuple[float, list[float]]"]):
    """An order to return the greatest absolute distance in a rank's rows, and their cells on the diagonal."""

    far: float

    def execute(self, work: RowWork) -> tuple[float, list[float]]:
        work.rows = RankRows(work.program.shape, work.rank).vertices()
        work.distances = work.result()
        return largest(work.distances, self.far), work.distances[np.arange(len(work.rows)), work.rows].tolist()


class Reach(Order[None]):
    """An order to record the vertices that a rank's rows reach."""

    far: float

    def execute(self, work: RowWork) -> None:
        work.reached = reached(work.distances, self.far)


class LeadsOut(Order[bool]):
    """An order to return whether one of these arcs (int64 bytes) leads from a reached vertex to an unreached one."""

    sources: bytes
    targets: bytes

    def execute(self, work: RowWork) -> bool:
        return leads_out(np.frombuffer(self.sources, np.int64), np.frombuffer(self.targets, np.int64), work.reached)


class Finish(Order[None]):
    """An order to convert the distances to the form of Result."""

    far: float
    wide: bool

    def execute(self, work: RowWork) -> None:
        work.distances = finished(work.distances, work.rows, work.program.shape.n, self.far, self.wide)
        del work.buffers  # frees the buffers of the kernel


class TraceOrder(Order[None]):
    """An order to search the predecessors of a rank's rows."""

    facts: EdgeFacts
    exact: bool

    def execute(self, work: RowWork) -> None:
        far = float(NO_EDGE[work.weights.dtype.name])
        work.predecessors = _RankPaths(work, self.facts, far, self.exact).found()
        del work.weights


SOLVE_ORDERS = ORDERS | KeepWeights | LookOrder | Reach | LeadsOut | Finish | TraceOrder


class MpiGraph(HostGraph):
    """The graph of rank 0, which sends its rows to the ranks block by block; the ranks retain the distances."""

    engine: RankZeroEngine

    def __init__(self, origin: GivenGraph, engine: RankZeroEngine, predecessors: bool):
        super().__init__(origin, engine)
        self._traced = predecessors

    @property
    def _work(self) -> RowWork:
        assert isinstance(self.engine.work, RowWork)
        return self.engine.work

    def choose_kernel(self, call: Call, dtype: str) -> tuple[Kernel, Shape]:
        result_bytes = bytes_a_cell(dtype, call.predecessors) + ITEMSIZE[dtype] * call.predecessors
        return choose.fitting(call.named, self.facts, dtype, self.engine, result_bytes)

    def load(self, program: Program, buffers: Buffers, clock: Clock) -> None:
        if self._traced:
            self.engine.on_all_ranks(KeepWeights())
        super().load(program, buffers, clock)

    def unload(self, program: Program, buffers: Buffers, far: float) -> tuple[Any, float, np.ndarray]:
        shape = self._work.program.shape
        diagonal = np.zeros(self.n)
        looks = self.engine.on_all_ranks(LookOrder(far))
        for rank, (_, cells) in enumerate(looks):
            diagonal[RankRows(shape, rank).vertices()] = cells
        return None, max(most for most, _ in looks), diagonal

    def escaped(self, distances: Any, far: float) -> bool:
        self.engine.on_all_ranks(Reach(far))
        orders = (LeadsOut(arcs.sources.tobytes(), arcs.targets.tobytes()) for arcs in self.origin.adjacency.pieces())
        return any(any(self.engine.on_all_ranks(order)) for order in orders)

    def cells_here(self, shape: Shape) -> int:
        return self.n * shape.rows * sum(rank.host == 0 for rank in self.engine.ranks)

    def finished(self, distances: Any, far: float, wide: bool, reuse: bool) -> np.ndarray:
        self.engine.on_all_ranks(Finish(far, wide))
        return self._work.distances

    def predecessors(self, distances: Any, exact: bool, traced: TracedPredecessors | None) -> np.ndarray:
        self.engine.on_all_ranks(TraceOrder(self.facts, exact))
        return self._work.predecessors

    def result(self, distances: Any, predecessors: Any | None, stats: Stats) -> Result:
        return Result(distances, predecessors, stats, self.origin.vertices, None, self._work.rows)


class _RankPaths(Paths):
    """Paths from the sources of one rank: the few arcs that are shortest paths themselves are exchanged."""

    def __init__(self, work: RowWork, facts: EdgeFacts, far: float, exact: bool):
        self.distances, self.exact = work.distances, exact
        self._given, self._far, self._comm, self._weights = facts, far, work.comm, work.weights
        self._of = work.rows

    @property
    def facts(self) -> EdgeFacts:
        return self._given

    @cached_property
    def sources(self) -> np.ndarray:
        return self._of

    def found(self) -> np.ndarray:
        """The predecessors of its rows. Collective: all ranks make the same exchanges in the same order."""
        if not self.exact:
            _ = self._searched  # collective: all ranks help to compute it, even if only one needs it
        return self.compiled_search()

    @cached_property
    def _short(self) -> Arcs:
        return self._joined(list(self._short_cells(self._weights, self._far)))

    def _joined(self, columns: list[Arcs]) -> Arcs:
        empty = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
        mine = [np.concatenate(part) for part in zip(empty, *columns, strict=True)]
        return Arcs(*(np.concatenate(gather_arrays(self._comm, part)) for part in mine))

    def _greatest(self, values: np.ndarray) -> np.ndarray:
        return self._reduced(values, "MAX")

    def _least(self, values: np.ndarray) -> np.ndarray:
        return self._reduced(values, "MIN")

    def _reduced(self, values: np.ndarray, operation: str) -> np.ndarray:
        from mpi4py import MPI

        together = np.empty_like(values)
        wait_until(self._comm.Iallreduce(values, together, getattr(MPI, operation)).Test)
        return together
