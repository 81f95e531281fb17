"""A rank of a job: an MPI process that computes its share of a matrix.

Rank 0 is the worker for all ranks: it reads requests and sends events, like fwtui.measure.worker. When one rank ends, the
whole job ends, and the next run starts a new one.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from msgspec.structs import replace

from fwtui.common.child_protocol import traceback_end
from fwtui.common.cores import usable_cores
from fwtui.common.errors import NoGpu
from fwtui.engine.distributed_engine import DistributedEngine, EndOrder, RankState, encode_order, run_order_loop
from fwtui.engine.engine import Engine
from fwtui.engine.engine_for import engine_for
from fwtui.engine.links import Channel, MpiLink, NcclLink, RankLink, gather_values, receive_message
from fwtui.experiment.device import CPU, DeviceId, RankDevice
from fwtui.machine import hardware
from fwtui.measure.worker import Worker, diagnose
from fwtui.stream import codec, events, requests

FORWARDED = 0.2  # time for mpiexec to forward the last output
DEATH_SEEN = 1.0  # time in which mpiexec ends all ranks after one has died
NEXT = "; the next run starts new ranks"
_BEAT, _FAULT = range(2)  # tags
_CHECK_EVERY, _PROGRESS_EVERY = 0.05, 0.002  # seconds; each check also advances MPI's broadcasts while a kernel runs
_STAGGER, _STAGGERED = 0.5, 3  # seconds between the reports of ranks that find rank 0 silent, and the number of these ranks
_FORWARD_SECONDS = 1.0  # time for rank 0 to forward another rank's fault


class RankWorker(Worker):
    """Rank 0; it ends all ranks when it ends."""

    ends_at_once = False

    def __init__(self, descriptor: int, origin: float, requests: Iterable[bytes], rank: Rank):
        super().__init__(descriptor, origin, requests)
        self._rank = rank
        self.engine: DistributedEngine | None = None
        self.run: int | None = None  # the current run
        self._serving = False

    def serve(self, request: requests.Work) -> None:
        self.run, self._serving = request.run if isinstance(request, requests.RunRequest) else None, True
        super().serve(request)
        self.run, self._serving = None, False

    def _hang_up(self) -> None:
        if self._serving:
            self._leave()
        self._requests.put(None)

    def _engine(self, device: DeviceId) -> Engine:
        assert self.engine is not None
        self.engine.activate()
        return self.engine

    def _diagnosis(self, error: BaseException) -> tuple[str, str, bool]:
        code, sentence = rank_diagnosis(error)  # other ranks may be inside a repetition, so the job cannot continue
        return code, f"{self._rank.of}: {sentence}", True

    def _leave(self) -> NoReturn:
        self._rank.abort()


class Heartbeats:
    """Heartbeats between rank 0 and the others, which detect a stopped rank, and fault messages to rank 0.

    Rank 0 listens to all others, and they listen to rank 0, while either side executes an order.

    `silent` is called with a rank that sent nothing for `timeout` seconds; `report`, in rank 0, with another rank's fault.
    """

    def __init__(
        self,
        comm: Any,
        timeout: float,
        busy_since: Callable[[], float | None],
        silent: Callable[[int], None],
        report: Callable[[events.Fault], None],
    ):
        self._comm, self._timeout, self._busy_since, self._silent, self._report = comm, timeout, busy_since, silent, report
        self._others: Sequence[int] = range(1, comm.size) if comm.rank == 0 else (0,)
        if comm.rank:
            self._timeout += _STAGGER * min(comm.rank - 1, _STAGGERED)
        self._last_beat = dict.fromkeys(self._others, time.monotonic())
        self._others_busy = dict.fromkeys(self._others, False)
        self._sent: dict[int, Any] = {}  # the last heartbeat's request, by rank
        self._sent_busy = False
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, args=(timeout / 8,), name="heartbeats", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop sending and receiving, before MPI ends."""
        self._over.set()
        self._thread.join()

    def rest(self) -> None:
        """Report that this rank is idle: it may now be silent, as a long call may hold the interpreter."""
        with self._lock:
            if self._sent_busy:
                self._send_beats()

    def send_fault(self, fault: events.Fault) -> None:
        """Give rank 0 time to forward the fault that ends this rank; return only if it did not."""
        with suppress(Exception):
            sending = self._comm.Isend(codec.encode(fault), 0, _FAULT)
            time.sleep(_FORWARD_SECONDS)
            del sending  # the request owns the message's memory

    def _beat(self, every: float) -> None:
        due = 0.0
        while not self._over.wait(_CHECK_EVERY if self._busy_since() is None else _PROGRESS_EVERY):
            now = time.monotonic()
            if now >= due:
                due = now + every
                with self._lock:
                    self._send_beats()
            self._listen()

    def _send_beats(self) -> None:
        self._sent_busy = self._busy_since() is not None
        for rank in self._others:
            request = self._sent.get(rank)
            if request is None or request.Test():  # a stopped rank receives no more
                self._sent[rank] = self._comm.Isend(bytes([self._sent_busy]), rank, _BEAT)

    def _listen(self) -> None:
        now, since = time.monotonic(), self._busy_since()
        for rank in self._others:
            while self._comm.iprobe(rank, _BEAT):
                self._others_busy[rank] = bool(receive_message(self._comm, rank, _BEAT)[0])
                self._last_beat[rank] = now
            if self._comm.rank == 0 and self._comm.iprobe(rank, _FAULT):
                fault = codec.decode(bytes(receive_message(self._comm, rank, _FAULT)))
                assert isinstance(fault, events.Fault)
                self._report(fault)
            busy = since is not None or self._others_busy[rank]
            if busy and now - max(self._last_beat[rank], since or 0.0) > self._timeout:
                self._silent(rank)


class Rank:
    """The rank of this process. `report_fault` reports a fault if rank 0 does not."""

    def __init__(
        self,
        world: Any,
        places: tuple[RankDevice, ...],
        timeout: float,
        report_fault: Callable[[events.Fault], None],
    ):
        self._world, self._timeout, self._report_fault = world, timeout, report_fault
        self._worker: RankWorker | None = None
        self._ends = threading.Lock()
        self._place = places[world.rank]
        ranks = tuple(rank_for_device(rank, place) for rank, place in enumerate(places))
        self.of = ranks[world.rank]
        self._channel = Channel(world.Dup(), ranks, lambda: beats.rest())
        beats = self._beats = Heartbeats(
            world.Dup(), timeout, lambda: self._channel.busy_since, self._is_silent, self._other_fails
        )

    def serve(self, descriptor: int, origin: float, requests: Iterable[bytes]) -> None:
        """Execute requests until they end. Rank 0 reads them, and writes events to the descriptor."""
        if self.of.rank == 0:
            self._worker = RankWorker(descriptor, origin, requests, self)
        try:
            with self._channel.busy():
                work = self._work()
            if self._worker is None:
                run_order_loop(self._channel, work)
                self._beats.stop()
                return
        except BaseException as error:
            code, sentence = rank_diagnosis(error)
            self._fail(code, f"{self.of}: {sentence}", traceback_end())
        assert self._worker is not None
        self._worker.engine = DistributedEngine(self._channel, work)
        self._worker.work()
        self._channel.order(encode_order(EndOrder()))
        self._beats.stop()

    def abort(self, code: int = 0) -> NoReturn:
        """End all ranks at once."""
        time.sleep(FORWARDED)
        os.kill(os.getpid(), signal.SIGTERM)  # after MPI's Abort, mpiexec leaves its temporary files
        os._exit(code)

    def _work(self) -> RankState:
        """Return this rank's engine and its link to the others."""
        engine, device, link = engine_at(self._place, self._world)
        devices = gather_values(self._world, device, events.Device | None)
        named_devices = zip(self._channel.ranks, devices, strict=True)
        self._channel.ranks = tuple(replace(of, name=device.name if device is not None else "") for of, device in named_devices)
        if self._worker is not None:
            for of, found in zip(self._channel.ranks, devices, strict=True):
                if found is not None and of.host == 0:  # only this host's GPUs have numbers in a session
                    self._worker.emit(replace(found, t=self._worker.now()))
        return RankState(self._channel, engine, link)

    def _fail(self, code: str, message: str, where: str = "", via_rank_zero: bool = True) -> NoReturn:
        """Report the reason for the end of the job, and end it. With `via_rank_zero`, rank 0 can forward the report."""
        self._ends.acquire()  # never released: only the first reason is reported
        fault = events.Fault(t=0.0, source="worker", code=code, message=message, stderr=where)
        if self._worker is not None:
            self._other_fails(fault)
        elif via_rank_zero:
            self._beats.send_fault(fault)
        self._report_fault(fault)
        self.abort(1)

    def _other_fails(self, fault: events.Fault) -> NoReturn:
        """Report another rank's fault as the run's, and end the job; only in rank 0."""
        assert self._worker is not None
        self._worker.emit(replace(fault, t=self._worker.now(), run=self._worker.run))
        self.abort(1)

    def _is_silent(self, rank: int) -> NoReturn:
        message = f"{self._channel.ranks[rank]} has not answered for {self._timeout:g} s{NEXT}"
        self._fail("hung", message, via_rank_zero=rank != 0)


def rank_diagnosis(error: BaseException, sleep: Callable[[float], object] = time.sleep) -> tuple[str, str]:
    """Return the fault's code and sentence. Wait after an MPI error: if a peer died, the job ends before this rank reports."""
    if type(error).__module__.startswith("mpi4py"):
        sleep(DEATH_SEEN)
    code, sentence, _ = diagnose(error)
    return code, sentence


def engine_at(place: RankDevice, world: Any) -> tuple[Engine, events.Device | None, RankLink]:
    """Return a rank's engine, the facts of its GPU, and its link to the others. Collective."""
    if place.gpu is None:
        return engine_for(CPU), None, MpiLink(world.Dup())
    engine = engine_for(DeviceId("cuda", place.gpu))
    return engine, engine.facts(0.0), NcclLink(world, place.gpu)


def assign_devices(world: Any, on_cpu: bool, falls_back: bool) -> tuple[RankDevice, ...]:
    """Return for each rank the GPU with its number on its machine, or the CPU for all ranks. Raises NoGpu, on all ranks alike.

    With `falls_back`, all ranks use the CPU if any machine has too few GPUs.
    """
    from mpi4py import MPI

    names = gather_values(world, MPI.Get_processor_name())
    hosts = [list(dict.fromkeys(names)).index(name) for name in names]
    local = [hosts[:rank].count(host) for rank, host in enumerate(hosts)]
    counts = gather_values(world, 0 if on_cpu else len(hardware.gpus().gpus))
    lacking = [rank for rank in range(world.size) if local[rank] >= counts[rank]]
    if on_cpu or (len(lacking) == world.size and falls_back):
        return tuple(RankDevice(host, None) for host in hosts)
    if lacking:
        rank = lacking[0]
        raise NoGpu(
            f"machine {hosts[rank]} has {hosts.count(hosts[rank])} ranks and {counts[rank]} GPUs; start a rank for each GPU, "
            "or pass devices='cpu'"
        )
    return tuple(RankDevice(host, gpu) for host, gpu in zip(hosts, local, strict=True))


def rank_for_device(rank: int, place: RankDevice) -> events.RankOf:
    backend = "cpu" if place.gpu is None else "cuda"
    return events.RankOf(rank=rank, backend=backend, gpu=place.gpu or 0, host=place.host)


def share_cores(world: Any, hosts: Iterable[int]) -> None:
    """Divide a host's cores between its ranks; call it before numba is imported."""
    os.environ.setdefault("NUMBA_NUM_THREADS", str(cores_for(world, hosts)))


def cores_for(world: Any, hosts: Iterable[int]) -> int:
    """Return this rank's share of the cores that other ranks of its host may also use."""
    usable_here = usable_cores()
    usable = list(zip(hosts, gather_values(world, usable_here, set[int]), strict=True))
    here = usable[world.rank][0]
    crowd = sum(host == here and not cores.isdisjoint(usable_here) for host, cores in usable)
    return max(1, len(usable_here) // crowd)
