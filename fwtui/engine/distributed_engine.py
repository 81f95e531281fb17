"""A matrix distributed over several processes: orders that every rank executes, and the engine and program that issue them.

Rank 0 has a run's matrix and its result; the other ranks execute its orders, each with the same plan and its own rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
import psutil
from msgspec import Struct

from fwtui.common.errors import Refused
from fwtui.engine.engine import Check, Engine, PhaseRun, PhaseStretch, Report, StretchTimes, TimedRun, stretches
from fwtui.engine.links import BLOCK, Channel, RankLink
from fwtui.experiment.experiment import kernel_named
from fwtui.stream.requests import Reply
from fwtui.stream.run import WAIT
from fwtui_kernels.plan import EVERY, Buffers, Kernel, Program, Resources, Shape, Step
from fwtui_kernels.programs.rank_programs import RankRows

Value = TypeVar("Value")


def steps_of_rank(plan: Sequence[Step], rank: int) -> list[Step]:
    """Return the steps that a rank launches; their dependencies are limited to the rank's own steps."""
    places = {index: place for place, index in enumerate(i for i, step in enumerate(plan) if step.rank in (rank, EVERY))}
    return [replace(plan[i], after=tuple(places[a] for a in plan[i].after if a in places)) for i in places]


def stretch_of_rank(stretch: PhaseStretch, rank: int) -> PhaseStretch:
    """Return the steps of a stretch that a rank launches."""
    return PhaseStretch(stretch.phase, tuple(step for step in stretch.steps if step.rank in (rank, EVERY)))


def add_wait_stretches(plan: Sequence[Step]) -> list[PhaseStretch]:
    """Return the plan's stretches, with an empty one after each broadcast for the time in which a rank waits for the others."""
    found: list[PhaseStretch] = []
    for stretch in stretches(plan):
        found.append(stretch)
        if stretch.steps[0].rank == EVERY:
            found.append(PhaseStretch(WAIT, ()))
    return found


def separate_waits(parts: Sequence[PhaseStretch], ranks: Sequence[list[float]]) -> StretchTimes:
    """Return the ranks' seconds, with waiting time moved from each broadcast to the stretch after it.

    The last rank to arrive does not wait, so the shortest time of any rank is the time of the broadcast.
    """
    by_rank = [list(seconds) for seconds in ranks]
    for i, part in enumerate(parts):
        if part.phase == WAIT:
            transfer = min(seconds[i - 1] for seconds in by_rank)
            for seconds in by_rank:
                seconds[i - 1 : i + 1] = transfer, seconds[i - 1] - transfer
    return StretchTimes([fmean(seconds[i] for seconds in by_rank) for i in range(len(parts))], tuple(by_rank))


class RankState:
    """The state of one rank in a run: its engine, its program, its rows."""

    program: Program
    buffers: Buffers
    plan: list[Step]  # the steps of all ranks
    timed: TimedRun
    parts: list[PhaseStretch]
    timed_parts: PhaseRun

    def __init__(self, channel: Channel, engine: Engine, link: RankLink):
        self.channel, self.engine, self.link = channel, engine, link
        self.rank = channel.rank
        self.target = replace(engine.target, rank=self.rank, link=link)

    def free(self) -> None:
        """Release the buffers, and the repetitions that hold them."""
        for name in ("buffers", "timed", "timed_parts"):
            self.__dict__.pop(name, None)

    def load(self, matrix: Any) -> None:
        """Load this rank's rows of a matrix that rank 0 has or generates by rows; None in the other ranks."""
        shape = self.program.shape
        rows = np.empty((RankRows(shape, self.rank).count, shape.n), shape.dtype)
        for owner, mine, whole in self.blocks():
            if matrix is not None:
                block = np.ascontiguousarray(matrix[whole], shape.dtype)
                if owner:
                    self.channel.send(block, owner)
                else:
                    rows[mine] = block
            elif owner == self.rank:
                self.channel.receive(rows[mine], 0)
        self.program.load(rows, self.buffers, self.engine.stream)

    def synchronize(self) -> None:
        self.link.finish()
        self.engine.synchronize()

    def warm_up(self, report: Report = lambda launched: None) -> None:
        self.channel.barrier()
        self.engine.warm_up(self.program, steps_of_rank(self.plan, self.rank), self.buffers, _never, report)
        self.link.finish()

    def blocks(self) -> Iterator[tuple[int, slice, slice]]:
        """Yield all rows in blocks of a message: rank, slice of the rank's rows, slice of the matrix."""
        shape = self.program.shape
        most = max(1, BLOCK // (shape.n * shape.itemsize))
        for rank in range(shape.ranks):
            for mine, whole in RankRows(shape, rank).blocks(most):
                yield rank, mine, whole


def _never() -> None:
    """Ignore cancellation: a rank that stopped inside a repetition would leave the others waiting."""


class Order(Struct, Generic[Value], tag=True):
    """An order that all ranks execute in the same sequence; `execute` runs it on one rank and returns the reply."""

    @abstractmethod
    def execute(self, work: Any) -> Value: ...


class EndOrder(Order[None]):
    """An order to end the loop of orders."""


class FreeBytes(Order[int]):
    """An order to return the free bytes for a rank's rows: on its GPU, else its share of the free bytes of its host."""

    def execute(self, work: RankState) -> int:
        free = work.engine.free_bytes()
        if free is not None:
            return free
        here = work.channel.ranks[work.rank].host
        return psutil.virtual_memory().available // sum(other.host == here for other in work.channel.ranks)


class Synchronize(Order[None]):
    """An order to wait until all launched work has finished."""

    def execute(self, work: RankState) -> None:
        work.synchronize()


class Build(Order[None]):
    """An order to build the kernel's program."""

    kernel: str
    shape: Shape

    def execute(self, work: RankState) -> None:
        kernel = kernel_named(self.kernel)
        if refusal := kernel.lacks(self.shape, work.target):
            raise Refused(refusal)
        work.free()  # never two matrices in memory
        work.plan = list(kernel.plan(self.shape, False))
        work.program = kernel.build(self.shape, work.target)


class Allocate(Order[None]):
    def execute(self, work: RankState) -> None:
        work.buffers = work.program.allocate()


class Free(Order[None]):
    def execute(self, work: RankState) -> None:
        work.free()


class Load(Order[None]):
    """An order to load a matrix from rank 0."""

    def execute(self, work: RankState) -> None:
        work.load(None)


class Restore(Order[None]):
    def execute(self, work: RankState) -> None:
        work.program.restore(work.buffers, work.engine.stream)


class Unload(Order["np.ndarray | None"]):
    """An order to gather the result in rank 0."""

    def execute(self, work: RankState) -> np.ndarray | None:
        shape = work.program.shape
        rows = work.program.unload(work.buffers, work.engine.stream)
        result = np.empty((shape.n, shape.n), shape.dtype) if work.rank == 0 else None
        for owner, mine, whole in work.blocks():
            if result is not None:
                if owner:
                    work.channel.receive(result[whole], owner)
                else:
                    result[whole] = rows[mine]
            elif owner == work.rank:
                work.channel.send(np.ascontiguousarray(rows[mine]), 0)
        return result


class Compile(Order[None]):
    """An order to launch one step of each op. On CPUs, one rank of a host compiles first and the others read its cache."""

    def execute(self, work: RankState) -> None:
        steps = steps_of_rank(work.plan, work.rank)
        here = work.channel.ranks[work.rank].host
        first = min(other.rank for other in work.channel.ranks if other.host == here)
        waits = work.engine.target.backend == "cpu" and work.rank != first
        if waits:
            work.channel.barrier()
        work.engine.compile(work.program, [step for step in steps if step.rank != EVERY], work.buffers)
        if not waits:
            work.channel.barrier()
        work.engine.compile(work.program, [step for step in steps if step.rank == EVERY], work.buffers)
        work.synchronize()


class WarmUp(Order[None]):
    """An order to run the plan once, untimed."""

    def execute(self, work: RankState) -> None:
        work.warm_up()


class PrepareTimed(Order[None]):
    """An order to prepare repetitions in the launch mode `mode`."""

    mode: str

    def execute(self, work: RankState) -> None:
        work.timed = work.engine.timed_repetition(work.program, steps_of_rank(work.plan, work.rank), work.buffers, self.mode)


class RunTimed(Order[float]):
    """An order to run a timed repetition and return its seconds."""

    def execute(self, work: RankState) -> float:
        work.engine.synchronize()
        work.channel.barrier()
        seconds = work.timed(_never)
        work.link.finish()
        return seconds


class PreparePhases(Order[None]):
    """An order to prepare instrumented repetitions."""

    mode: str

    def execute(self, work: RankState) -> None:
        work.parts = [stretch_of_rank(part, work.rank) for part in add_wait_stretches(work.plan)]
        parts = [part for part in work.parts if part.steps]
        work.timed_parts = work.engine.instrumented_repetition(work.program, parts, work.buffers, self.mode)


class RunPhases(Order["list[float]"]):
    """An order to run an instrumented repetition and return the seconds of every stretch on every rank."""

    def execute(self, work: RankState) -> list[float]:
        work.engine.synchronize()
        work.channel.barrier()
        work.link.overlaps = False  # otherwise the wait for a panel would count in the phase after it
        try:
            seconds = iter(work.timed_parts(_never).seconds)
        finally:
            work.link.overlaps = True
        work.link.finish()
        return [next(seconds) if part.steps else 0.0 for part in work.parts]


ORDERS = (
    EndOrder | FreeBytes | Synchronize | Build | Allocate | Free | Load | Restore | Unload
    | Compile | WarmUp | PrepareTimed | RunTimed | PreparePhases | RunPhases
)  # fmt: skip


def encode_order(order: Order[Any] | Reply) -> bytes:
    return msgspec.msgpack.encode(order)


def decode_order(order: bytes | bytearray) -> Order[Any]:
    """Decode an order. Raises msgspec.MsgspecError; its input comes only from this program's own ranks."""
    return msgspec.msgpack.decode(order, type=ORDERS)


def reply_of(work: Callable[[], Any]) -> Reply:
    """Return the reply with an order's return value, or with the reason for a refusal."""
    try:
        return Reply(work())
    except Refused as refusal:
        return Reply(None, str(refusal))


def run_order_loop(channel: Channel, work: RankState) -> None:
    """Execute the orders of rank 0 until it ends the job."""
    work.engine.activate()
    while not isinstance(order := decode_order(channel.next_order()), EndOrder):
        with channel.busy():
            channel.reply(encode_order(reply_of(lambda order=order: order.execute(work))))


class DistributedEngine(Engine):
    """The engine of all ranks, in rank 0: it sends each order to the other ranks, and executes its own share of the work."""

    def __init__(self, channel: Channel, work: RankState):
        engine = work.engine
        self._channel, self.work = channel, work
        self.device, self.stream, self.timed = engine.device, engine.stream, engine.timed
        self.name, self.fill, self.target = engine.name, engine.fill, work.target
        self.ranks = channel.ranks

    def replies_to(self, order: Order[Any], work: Callable[[], Any] | None = None) -> list[Reply]:
        """Execute the order on all ranks; rank 0 runs `work` instead, if given."""
        with self._channel.busy():
            self._channel.order(encode_order(order))
            mine = reply_of(work or (lambda: order.execute(self.work)))
            return [mine, *(msgspec.msgpack.decode(reply, type=Reply) for reply in self._channel.replies())]

    def on_all_ranks(self, order: Order[Value], work: Callable[[], Value] | None = None) -> list[Value]:
        """Return the values of all ranks. Raises Refused with the number of the rank that refuses."""
        replies = self.replies_to(order, work)
        for rank, reply in zip(self.ranks, replies, strict=True):
            if reply.refusal:
                raise Refused(f"{rank}: {reply.refusal}")
        return [reply.value for reply in replies]

    def free_bytes(self) -> int:
        return min(self.on_all_ranks(FreeBytes()))

    def synchronize(self) -> None:
        self.on_all_ranks(Synchronize())

    def compile(self, program: Program, plan: Sequence[Step], buffers: Buffers) -> None:
        self.on_all_ranks(Compile())

    def stretches(self, plan: Sequence[Step]) -> list[PhaseStretch]:
        return add_wait_stretches(plan)

    def timed_repetition(self, program: Program, plan: Sequence[Step], buffers: Buffers, mode: str) -> TimedRun:
        self.on_all_ranks(PrepareTimed(mode))

        def run(check: Check) -> float:
            check()
            seconds = max(self.on_all_ranks(RunTimed()))
            check()
            return seconds

        return run

    def instrumented_repetition(self, program: Program, parts: Sequence[PhaseStretch], buffers: Buffers, mode: str) -> PhaseRun:
        self.on_all_ranks(PreparePhases(mode))

        def run(check: Check) -> StretchTimes:
            check()
            timed = separate_waits(parts, self.on_all_ranks(RunPhases()))
            check()
            return timed

        return run

    def activate(self) -> None:
        self.work.engine.activate()

    def build(self, kernel: Kernel, shape: Shape) -> Program:
        self.on_all_ranks(Build(kernel.id, shape))
        return DistributedProgram(self, shape, self.work)

    def warm_up(self, program: Program, plan: Sequence[Step], buffers: Buffers, check: Check, report: Report) -> None:
        places = [index for index, step in enumerate(plan) if step.rank in (0, EVERY)]
        check()
        self.on_all_ranks(WarmUp(), lambda: self.work.warm_up(lambda launched: report(places[launched - 1] + 1)))
        check()


@dataclass
class DistributedProgram(Program):
    """A program whose rows are distributed over all ranks."""

    engine: DistributedEngine
    shape: Shape
    work: RankState  # the state of this process, rank 0

    def allocate(self) -> Buffers:
        self.engine.on_all_ranks(Allocate())
        return []  # each rank allocates its own

    def free(self) -> None:
        self.engine.on_all_ranks(Free())

    def compile(self, steps: Iterable[Step], buffers: Buffers, stream: Any) -> None:
        self.engine.on_all_ranks(Compile())

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        self.engine.on_all_ranks(Load(), lambda: self.work.load(matrix))

    def restore(self, buffers: Buffers, stream: Any) -> None:
        self.engine.on_all_ranks(Restore())

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        raise NotImplementedError("its engine launches whole plans")

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        return self.engine.on_all_ranks(Unload())[0]

    def resources(self) -> dict[str, Resources]:
        return dict(self.work.program.resources())
