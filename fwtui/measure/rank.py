"""One rank of a job: a process of MPI that computes its share of a matrix.

Rank 0 is a worker for all of them: it reads requests and sends events, like fwtui.measure.worker. When one rank ends, the
whole job ends, and the next run gets a new one.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from msgspec.structs import replace

from fwtui.common.cores import usable_cores
from fwtui.common.errors import NoGpu, Refused
from fwtui.engine.engine import Engine, engine_for
from fwtui.engine.links import MpiLink, NcclLink
from fwtui.engine.ranks import END, Channel, RankedEngine, RankLink, Share, follow
from fwtui.experiment.device import CPU, DeviceId
from fwtui.experiment.devices import Place
from fwtui.machine import hardware
from fwtui.measure.heartbeats import Heartbeats
from fwtui.measure.worker import Worker, diagnosis
from fwtui.stream import events, requests

FORWARDED = 0.2  # seconds that mpiexec gets to forward the last words
DEATH_SEEN = 1.0  # seconds in which it ends all ranks when one has died
NEXT = "; the next run gets a new job"


class RankWorker(Worker):
    """Rank 0, which ends all of them at its end."""

    ends_at_once = False

    def __init__(self, descriptor: int, origin: float, asked: Iterable[bytes], rank: Rank):
        super().__init__(descriptor, origin, asked)
        self._rank = rank
        self.engine: RankedEngine | None = None
        self.run: int | None = None  # the current one
        self._serving = False

    def _serve(self, request: requests.Work) -> None:
        self.run, self._serving = request.run if isinstance(request, requests.Start) else None, True
        super()._serve(request)
        self.run, self._serving = None, False

    def _obey(self, order: requests.Order) -> None:
        assert self.engine is not None
        self._serving = True
        try:
            replies = requests.Replies(self.engine.every(order.name, *order.given))
        except Refused as refusal:
            replies = requests.Replies([], str(refusal))
        except BaseException as error:
            code, sentence, _ = self._diagnosis(error)
            self.tell(events.Fault(t=self.now(), source="worker", code=code, message=sentence, stderr=traceback.format_exc()))
            self._leave()
        self._serving = False
        self.write(requests.encode(replies))

    def _hang_up(self) -> None:
        if self._serving:
            self._leave()
        self._asked.put(None)

    def _engine(self, device: DeviceId) -> Engine:
        assert self.engine is not None
        self.engine.activate()
        return self.engine

    def _diagnosis(self, error: BaseException) -> tuple[str, str, bool]:
        code, sentence = _diagnosis(error)  # the others may be inside a pass, so there is no way on
        return code, f"{self._rank.of}: {sentence}", True

    def _leave(self) -> NoReturn:
        self._rank.abort()


class Rank:
    """This process. `speak` tells a fault that rank 0 did not take; `end_all` ends all ranks, with that exit code."""

    def __init__(
        self,
        world: Any,
        places: tuple[Place, ...],
        timeout: float,
        speak: Callable[[events.Fault], None],
        end_all: Callable[[int], object],
    ):
        self._world, self._timeout, self._speak, self._end_all = world, timeout, speak, end_all
        self._worker: RankWorker | None = None
        self._ends = threading.Lock()
        self._place = places[world.rank]
        ranks = tuple(of_place(rank, place) for rank, place in enumerate(places))
        self.of = ranks[world.rank]
        self._channel = Channel(world.Dup(), ranks, lambda: beats.rest())
        beats = self._beats = Heartbeats(
            world.Dup(), timeout, lambda: self._channel.busy_since, self._is_silent, self._other_fails
        )

    def serve(self, descriptor: int, origin: float, asked: Iterable[bytes]) -> None:
        """Work until nothing more is asked. Rank 0 reads that, and writes events to the descriptor."""
        if self.of.rank == 0:
            self._worker = RankWorker(descriptor, origin, asked, self)
        try:
            with self._channel.busy():
                share = self._share()
            if self._worker is None:
                follow(self._channel, share)
                self._beats.stop()
                return
        except BaseException as error:
            code, sentence = _diagnosis(error)
            self._fail(code, f"{self.of}: {sentence}", traceback.format_exc())
        assert self._worker is not None
        self._worker.engine = RankedEngine(self._channel, share)
        self._worker.work()
        self._channel.order(END)
        self._beats.stop()

    def abort(self, code: int = 0) -> NoReturn:
        """End all ranks at once."""
        time.sleep(FORWARDED)
        self._end_all(code)
        os._exit(code)

    def _share(self) -> Share:
        """This rank's engine, and its link to the others."""
        engine, device, link = engine_at(self._place, self._world)
        devices = self._world.allgather(device)
        known = zip(self._channel.ranks, devices, strict=True)
        self._channel.ranks = tuple(replace(of, name=found.name if found is not None else "") for of, found in known)
        if self._worker is not None:
            for of, found in zip(self._channel.ranks, devices, strict=True):
                if found is not None and of.host == 0:  # only this host's GPUs have numbers in a session
                    self._worker.tell(replace(found, t=self._worker.now()))
        return Share(self._channel, engine, link)

    def _fail(self, code: str, message: str, where: str = "", heard: bool = True) -> NoReturn:
        """Tell why the job ends, and end it. `heard`: rank 0 can hand it on."""
        self._ends.acquire()  # never released: only the first reason is told
        fault = events.Fault(t=0.0, source="worker", code=code, message=message, stderr=where)
        if self._worker is not None:
            self._other_fails(fault)
        elif heard:
            self._beats.tell_first(fault)
        self._speak(fault)
        self.abort(1)

    def _other_fails(self, fault: events.Fault) -> NoReturn:
        """In rank 0: tell another rank's fault as one of the run, and end the job."""
        assert self._worker is not None
        self._worker.tell(replace(fault, t=self._worker.now(), run=self._worker.run))
        self.abort(1)

    def _is_silent(self, rank: int) -> NoReturn:
        message = f"{self._channel.ranks[rank]} has not answered for {self._timeout:g} s{NEXT}"
        self._fail("hung", message, heard=rank != 0)


def _diagnosis(error: BaseException) -> tuple[str, str]:
    """Its code, and what it means in a sentence, unless this rank is ended first: MPI also fails where another one has died."""
    if type(error).__module__.startswith("mpi4py"):
        time.sleep(DEATH_SEEN)
    code, sentence, _ = diagnosis(error)
    return code, sentence


def engine_at(place: Place, world: Any) -> tuple[Engine, events.Device | None, RankLink]:
    """A rank's engine, what is known of its GPU, and its link to the others; all ranks get theirs together."""
    if place.gpu is None:
        return engine_for(CPU), None, MpiLink(world.Dup())
    engine = engine_for(DeviceId("cuda", place.gpu))
    return engine, engine.facts(0.0), NcclLink(world, place.gpu)


def assigned(world: Any, on_cpu: bool, falls_back: bool, way: str) -> tuple[Place, ...]:
    """The GPU with each rank's number on its machine, or everywhere the CPU. Raises NoGpu, on all ranks alike.

    `falls_back`: to the CPU where no machine has enough GPUs; `way` is how a user asks for it.
    """
    from mpi4py import MPI

    names = world.allgather(MPI.Get_processor_name())
    hosts = [list(dict.fromkeys(names)).index(name) for name in names]
    local = [hosts[:rank].count(host) for rank, host in enumerate(hosts)]
    found = world.allgather(0 if on_cpu else len(hardware.gpus().gpus))
    lacking = [rank for rank in range(world.size) if local[rank] >= found[rank]]
    if on_cpu or (len(lacking) == world.size and falls_back):
        return tuple(Place(host, None) for host in hosts)
    if lacking:
        rank = lacking[0]
        raise NoGpu(
            f"machine {hosts[rank]} has {hosts.count(hosts[rank])} ranks and {found[rank]} GPUs; start a rank for each GPU, "
            f"or give {way}"
        )
    return tuple(Place(host, gpu) for host, gpu in zip(hosts, local, strict=True))


def of_place(rank: int, place: Place) -> events.RankOf:
    backend = "cpu" if place.gpu is None else "cuda"
    return events.RankOf(rank=rank, backend=backend, gpu=place.gpu or 0, host=place.host)


def share_cores(world: Any, hosts: Iterable[int]) -> None:
    """Divide a host's cores between its ranks; before numba is imported."""
    os.environ.setdefault("NUMBA_NUM_THREADS", str(cores_for(world, hosts)))


def cores_for(world: Any, hosts: Iterable[int]) -> int:
    """This rank's part of the cores, with those ranks of its host that may use the same ones."""
    own = usable_cores()
    told = zip(hosts, world.allgather(own), strict=True)
    all_told = list(told)
    here = all_told[world.rank][0]
    crowd = sum(host == here and not cores.isdisjoint(own) for host, cores in all_told)
    return max(1, len(own) // crowd)
