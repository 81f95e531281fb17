"""One matrix over several processes: the engine and the program of rank 0 have every rank do what they do themselves.

Rank 0 has a run's matrix and its result; the others follow its commands, each with the same plan and its own rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple, Protocol

import numpy as np
import psutil

from fwtui.common.errors import Refused
from fwtui.engine.engine import Check, Engine, Pass, PhasePass, Stretch, Tell, Timed, stretches
from fwtui.engine.links import patiently
from fwtui.experiment.experiment import kernel_named
from fwtui.stream.events import RankOf
from fwtui.stream.run import WAIT
from fwtui_kernels.plan import EVERY, Buffers, Kernel, Link, Program, Resources, Shape, Step
from fwtui_kernels.programs.rank_programs import RankRows

END = "end"  # the last command
BLOCK = 64 * 2**20  # bytes of rows in one message
_COMMAND, _REPLY, _ROWS = range(3)  # tags
_LAZY, _LAZY_NAP, _IDLE, _IDLE_NAP = 0.05, 5e-4, 1.0, 5e-3  # seconds without a command, and how long a follower then sleeps


class RankLink(Link, Protocol):
    """A link whose broadcasts may go on while others work."""

    overlaps: bool

    def finish(self) -> None:
        """Wait for all broadcasts."""


class _Reply(NamedTuple):
    value: Any
    refusal: str = ""


class Channel:
    """Commands from rank 0 to the others, their replies, and rows of matrices. `busy_since` is None between commands."""

    def __init__(self, comm: Any, ranks: Sequence[RankOf], rests: Callable[[], None] = lambda: None):
        self._comm = comm
        self._rests = rests  # called when a command is done
        self.rank, self.size = comm.rank, comm.size
        self.ranks = tuple(ranks)
        self.busy_since: float | None = None

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Meanwhile every rank answers, or something is wrong with it."""
        self.busy_since = time.monotonic()
        try:
            yield
        finally:
            self.busy_since = None
        self._rests()

    def order(self, name: str, *given: Any) -> None:
        """Send a command to all others."""
        for rank in range(1, self.size):
            self._comm.send((name, given), rank, _COMMAND)

    def next_order(self) -> tuple[str, tuple[Any, ...]]:
        """Wait for a command, on an idle core's time."""
        begin = time.monotonic()
        while not self._comm.iprobe(0, _COMMAND):
            idle = time.monotonic() - begin
            if idle > _LAZY:
                time.sleep(_IDLE_NAP if idle > _IDLE else _LAZY_NAP)
            else:
                time.sleep(5e-5)
        return self._comm.recv(source=0, tag=_COMMAND)

    def reply(self, reply: _Reply) -> None:
        self._comm.send(reply, 0, _REPLY)

    def replies(self) -> list[_Reply]:
        """One of every other rank, in order."""
        found = []
        for rank in range(1, self.size):
            patiently(lambda rank=rank: self._comm.iprobe(rank, _REPLY))
            found.append(self._comm.recv(source=rank, tag=_REPLY))
        return found

    def barrier(self) -> None:
        patiently(self._comm.Ibarrier().Test, nap=2e-5)

    def send(self, rows: np.ndarray, to: int) -> None:
        patiently(self._comm.Isend(rows, to, _ROWS).Test)

    def receive(self, rows: np.ndarray, source: int) -> None:
        patiently(self._comm.Irecv(rows, source, _ROWS).Test)


def own_steps(plan: Sequence[Step], rank: int) -> list[Step]:
    """The steps that a rank launches; of the earlier steps they wait for, those of its own."""
    places = {index: place for place, index in enumerate(i for i, step in enumerate(plan) if step.rank in (rank, EVERY))}
    return [replace(plan[i], after=tuple(places[a] for a in plan[i].after if a in places)) for i in places]


def part_of(stretch: Stretch, rank: int) -> Stretch:
    """What a rank launches of a stretch."""
    return Stretch(stretch.phase, tuple(step for step in stretch.steps if step.rank in (rank, EVERY)))


def with_waits(plan: Sequence[Step]) -> list[Stretch]:
    """The plan's stretches, and an empty one after each broadcast for the time in which a rank waits for the others."""
    found: list[Stretch] = []
    for stretch in stretches(plan):
        found.append(stretch)
        if stretch.steps[0].rank == EVERY:
            found.append(Stretch(WAIT, ()))
    return found


def waits_apart(parts: Sequence[Stretch], ranks: Sequence[list[float]]) -> Timed:
    """The ranks' seconds, with the time in which they waited for others moved from a broadcast to the stretch after it.

    The last to come waits for nobody: a broadcast takes as long as the shortest one of any rank.
    """
    apart = [list(seconds) for seconds in ranks]
    for i, part in enumerate(parts):
        if part.phase == WAIT:
            transfer = min(seconds[i - 1] for seconds in apart)
            for seconds in apart:
                seconds[i - 1 : i + 1] = transfer, seconds[i - 1] - transfer
    return Timed([fmean(seconds[i] for seconds in apart) for i in range(len(parts))], tuple(apart))


class Share:
    """What one rank does for a run. All ranks call the same methods in the same order."""

    def __init__(self, channel: Channel, engine: Engine, link: RankLink):
        self._channel, self.engine, self.link = channel, engine, link
        self.rank = channel.rank
        self.target = replace(engine.target, rank=self.rank, link=link)
        self.program: Program
        self.buffers: Buffers
        self._plan: list[Step]  # of all ranks
        self._run: Pass
        self._phases: PhasePass
        self._parts: list[Stretch]
        self._mapped: np.ndarray

    def free_bytes(self) -> int:
        """Free memory for its rows: of its GPU, or its part of its host's."""
        free = self.engine.free_bytes()
        return self.free_host_bytes() if free is None else free

    def free_host_bytes(self) -> int:
        """Its part of its host's free memory."""
        here = self._channel.ranks[self.rank].host
        return psutil.virtual_memory().available // sum(other.host == here for other in self._channel.ranks)

    def build(self, kernel: str, shape: Shape) -> None:
        made = kernel_named(kernel)
        if refusal := made.lacks(shape, self.target):
            raise Refused(refusal)
        self.__dict__.pop("buffers", None)  # so that two matrices are never in memory at once
        self._plan = list(made.plan(shape, False))
        self.program = made.build(shape, self.target)

    def allocate(self) -> None:
        self.buffers = self.program.allocate()

    def load(self, matrix: Any = None) -> None:
        """Rank 0 has the matrix, or makes rows of it when they are asked for; each rank gets its rows of it."""
        self.program.load(self.scattered(matrix), self.buffers, self.engine.stream)

    def scattered(self, matrix: Any) -> np.ndarray:
        """This rank's rows of it."""
        shape = self.program.shape
        rows = np.empty((RankRows(shape, self.rank).count, shape.n), shape.dtype)
        for owner, mine, whole in self._blocks():
            if matrix is not None:
                block = np.ascontiguousarray(matrix[whole], shape.dtype)
                if owner:
                    self._channel.send(block, owner)
                else:
                    rows[mine] = block
            elif owner == self.rank:
                self._channel.receive(rows[mine], 0)
        return rows

    def load_mapped(self, path: str) -> None:
        """The same from a file that all ranks map into memory, and that takes the result in place of the matrix."""
        shape = self.program.shape
        self._mapped = np.memmap(path, shape.dtype, "r+", shape=(shape.n, shape.n))
        self.program.load(RankRows(shape, self.rank).taken_from(self._mapped), self.buffers, self.engine.stream)

    def unload_mapped(self) -> None:
        taken = self.program.result if self.program.home == "host" else self.program.unload
        RankRows(self.program.shape, self.rank).put(taken(self.buffers, self.engine.stream), self._mapped)

    def restore(self) -> None:
        self.program.restore(self.buffers, self.engine.stream)

    def unload(self) -> np.ndarray | None:
        """Rank 0 gets the result."""
        shape = self.program.shape
        rows = self.program.unload(self.buffers, self.engine.stream)
        result = np.empty((shape.n, shape.n), shape.dtype) if self.rank == 0 else None
        for owner, mine, whole in self._blocks():
            if result is not None:
                if owner:
                    self._channel.receive(result[whole], owner)
                else:
                    result[whole] = rows[mine]
            elif owner == self.rank:
                self._channel.send(np.ascontiguousarray(rows[mine]), 0)
        return result

    def synchronize(self) -> None:
        self.link.finish()
        self.engine.synchronize()

    def compile(self) -> None:
        """On CPUs one rank of a host goes first, and the others find in the cache what it compiled."""
        own = own_steps(self._plan, self.rank)
        here = self._channel.ranks[self.rank].host
        first = min(other.rank for other in self._channel.ranks if other.host == here)
        waits = self.engine.target.backend == "cpu" and self.rank != first
        if waits:
            self._channel.barrier()
        self.engine.compile(self.program, [step for step in own if step.rank != EVERY], self.buffers)
        if not waits:
            self._channel.barrier()
        self.engine.compile(self.program, [step for step in own if step.rank == EVERY], self.buffers)
        self.synchronize()

    def warm_up(self, tell: Tell = lambda launched: None) -> None:
        self._channel.barrier()
        self.engine.warm_up(self.program, own_steps(self._plan, self.rank), self.buffers, _never, tell)
        self.link.finish()

    def clean_pass(self, mode: str) -> None:
        self._run = self.engine.clean_pass(self.program, own_steps(self._plan, self.rank), self.buffers, mode)

    def clean(self) -> float:
        self.engine.synchronize()
        self._channel.barrier()
        seconds = self._run(_never)
        self.link.finish()
        return seconds

    def phase_pass(self, mode: str) -> None:
        self._parts = [part_of(part, self.rank) for part in with_waits(self._plan)]
        self._phases = self.engine.phase_pass(self.program, [part for part in self._parts if part.steps], self.buffers, mode)

    def phases(self) -> list[float]:
        """Seconds of every stretch, also of those in which others work."""
        self.engine.synchronize()
        self._channel.barrier()
        self.link.overlaps = False  # otherwise the wait for a panel would be in the phase after it
        try:
            seconds = iter(self._phases(_never).seconds)
        finally:
            self.link.overlaps = True
        self.link.finish()
        return [next(seconds) if part.steps else 0.0 for part in self._parts]

    def _blocks(self) -> Iterator[tuple[int, slice, slice]]:
        """All rows in blocks of a message: their rank, their place among its rows, and in the matrix."""
        shape = self.program.shape
        most = max(1, BLOCK // (shape.n * shape.itemsize))
        for rank in range(shape.ranks):
            for mine, whole in RankRows(shape, rank).blocks(most):
                yield rank, mine, whole


def _never() -> None:
    """A rank that stopped alone inside a pass would leave the others waiting."""


class RankedEngine(Engine):
    """Rank 0's engine, for all ranks."""

    def __init__(self, channel: Channel, own: Share):
        engine = own.engine
        self._channel, self.own = channel, own
        self.device, self.stream, self.timed = engine.device, engine.stream, engine.timed
        self.name, self.fill, self.target = engine.name, engine.fill, self.own.target
        self.ranks = channel.ranks

    def every(self, name: str, *given: Any, own: Callable[[], Any] | None = None) -> list[Any]:
        """Have all ranks do it (rank 0 in its own way, if it has one); what each of them returns. Raises Refused."""
        with self._channel.busy():
            self._channel.order(name, *given)
            replies = [answered(own or (lambda: getattr(self.own, name)(*given))), *self._channel.replies()]
        for rank, reply in zip(self.ranks, replies, strict=True):
            if reply.refusal:
                raise Refused(f"{rank}: {reply.refusal}")
        return [reply.value for reply in replies]

    def activate(self) -> None:
        self.own.engine.activate()

    def free_bytes(self) -> int:
        return min(self.every("free_bytes"))

    def synchronize(self) -> None:
        self.every("synchronize")

    def build(self, kernel: Kernel, shape: Shape) -> Program:
        self.every("build", kernel.id, shape)
        return RankedProgram(self, shape)

    def compile(self, program: Program, plan: Sequence[Step], buffers: Buffers) -> None:
        self.every("compile")

    def stretches(self, plan: Sequence[Step]) -> list[Stretch]:
        return with_waits(plan)

    def warm_up(self, program: Program, plan: Sequence[Step], buffers: Buffers, check: Check, tell: Tell) -> None:
        places = [index for index, step in enumerate(plan) if step.rank in (0, EVERY)]
        check()
        self.every("warm_up", own=lambda: self.own.warm_up(lambda launched: tell(places[launched - 1] + 1)))
        check()

    def clean_pass(self, program: Program, plan: Sequence[Step], buffers: Buffers, mode: str) -> Pass:
        self.every("clean_pass", mode)

        def run(check: Check) -> float:
            check()
            seconds = max(self.every("clean"))
            check()
            return seconds

        return run

    def phase_pass(self, program: Program, parts: Sequence[Stretch], buffers: Buffers, mode: str) -> PhasePass:
        self.every("phase_pass", mode)

        def run(check: Check) -> Timed:
            check()
            timed = waits_apart(parts, self.every("phases"))
            check()
            return timed

        return run


@dataclass
class RankedProgram(Program):
    """A program whose rows are with all ranks."""

    engine: RankedEngine
    shape: Shape

    def allocate(self) -> Buffers:
        self.engine.every("allocate")
        return self.engine.own.buffers

    def compile(self, steps: Iterable[Step], buffers: Buffers, stream: Any) -> None:
        self.engine.every("compile")

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        self.engine.every("load", own=lambda: self.engine.own.load(matrix))

    def restore(self, buffers: Buffers, stream: Any) -> None:
        self.engine.every("restore")

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        raise NotImplementedError("its engine launches whole plans")

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        return self.engine.every("unload")[0]

    def resources(self) -> dict[str, Resources]:
        return dict(self.engine.own.program.resources())


def answered(work: Callable[[], Any]) -> _Reply:
    """What it returns, or why it refuses."""
    try:
        return _Reply(work())
    except Refused as refusal:
        return _Reply(None, str(refusal))


def follow(channel: Channel, share: Share) -> None:
    """Do what rank 0 says until it ends the job."""
    share.engine.activate()
    while (order := channel.next_order())[0] != END:
        name, given = order
        with channel.busy():
            channel.reply(answered(lambda name=name, given=given: getattr(share, name)(*given)))
