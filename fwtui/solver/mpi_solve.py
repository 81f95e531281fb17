"""`solve` in an MPI program: its processes are the ranks. Rank 0 has the graph, and gets the result."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.streams import report
from fwtui.common.text import excerpt
from fwtui.engine.distributed_engine import DistributedEngine, EndOrder, Order, RankState, encode_order, run_order_loop
from fwtui.engine.engine import Engine
from fwtui.engine.links import Channel, RankLink, unlink_shared_memory
from fwtui.experiment.device import RankDevice
from fwtui.graphs.adjacency import GivenGraph
from fwtui.measure.rank_worker import assign_devices, cores_for, engine_at, rank_for_device
from fwtui.measure.worker import diagnose
from fwtui.solver.call import Call
from fwtui.solver.compiled_code import compiled
from fwtui.solver.driver import answer
from fwtui.solver.result import Result
from fwtui.stream.requests import Reply


def solve_mpi(read: Callable[[], GivenGraph], comm: Any, call: Call) -> Result:
    """Solve as a rank of an MPI program. Rank 0 reads the graph and returns all rows, the other ranks none.

    If rank 0 raises Refused, all raise it.
    """
    named, device = call.named, call.device
    if device not in (None, "cpu"):
        raise Refused(f"device {excerpt(str(device))} and comm= cannot be combined; pass cpu, or omit it for a GPU in each rank")
    member = _member(comm, device == "cpu" or (named is not None and named.backend == "cpu"), named is None)
    work = RankState(member.channel, member.engine, member.link)
    outcome: Result | Exception | None = None
    with member.threads():
        if member.comm.rank == 0:
            try:
                graph = read()
                call.clock.lap("set-up")
                outcome = answer(graph, call, _Engine(member, work))
            except Exception as error:
                outcome = error
            member.channel.order(encode_order(EndOrder()))
        else:
            try:
                with compiled():
                    run_order_loop(member.channel, work)
            except BaseException as error:
                member.abort(error)
    # pickled by mpi4py: all ranks raise the same error, of whatever class
    shared = member.comm.bcast((outcome.stats, outcome.vertices) if isinstance(outcome, Result) else outcome)
    if isinstance(shared, Exception):
        raise shared
    if isinstance(outcome, Result):
        return outcome
    stats, vertices = shared
    none = np.empty((0, stats.n), np.float32)
    return Result(none, none.astype(np.int32) if call.predecessors else None, stats, vertices, rows=np.empty(0, np.int64))


@dataclass
class _Member:
    """The rank of this process in a communicator, which caches it for the next call."""

    comm: Any
    channel: Channel
    engine: Engine
    link: RankLink
    cores: int

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


class _Engine(DistributedEngine):
    """The engine of rank 0. An error inside an order aborts the program, because the other ranks are executing the order too."""

    def __init__(self, member: _Member, work: RankState):
        super().__init__(member.channel, work)
        self._member = member

    def replies_to(self, order: Order[Any], work: Callable[[], Any] | None = None) -> list[Reply]:
        try:
            return super().replies_to(order, work)
        except BaseException as error:
            self._member.abort(error)
