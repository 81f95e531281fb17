"""Links between ranks for orders and data: MPI between hosts, NCCL between GPU arrays."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import msgspec
import numpy as np

from fwtui.stream.events import RankOf
from fwtui_kernels.plan import Link

BLOCK = 64 * 2**20  # bytes of rows in one message
_ORDER, _REPLY, _ROWS = range(3)  # tags
_SHARED = "/dev/shm/mpich_shm_"

_EAGER = 1e-3  # seconds in which a waiting rank only yields its core to others
_NAP = 1e-4
_LAZY, _LAZY_NAP, _IDLE, _IDLE_NAP = 0.05, 5e-4, 1.0, 5e-3  # seconds without an order, and the sleep of a rank after that time
_yield = getattr(os, "sched_yield", partial(time.sleep, 0))


def unlink_shared_memory(comm: Any) -> None:
    """Remove the names of MPICH's shared memory (Linux) after all ranks have mapped it: a killed rank would leave them."""
    comm.Barrier()  # now all ranks have mapped it
    with suppress(OSError), open("/proc/self/maps") as maps:
        for path in {line.split()[-1] for line in maps if _SHARED in line}:
            with suppress(OSError):  # another rank has removed it
                os.unlink(path)


def wait_until(ready: Callable[[], Any], nap: float = _NAP) -> None:
    """Wait until `ready()` is true, without occupying a core that a rank on the same machine may need."""
    begin = time.perf_counter()
    while not ready():
        if time.perf_counter() - begin < _EAGER:
            _yield()
        else:
            time.sleep(nap)


def receive_message(comm: Any, source: int, tag: int) -> bytearray:
    """Return the next message with that tag, whose length only its sender has."""
    from mpi4py import MPI

    status = MPI.Status()
    comm.Probe(source, tag, status)
    message = bytearray(status.Get_count(MPI.BYTE))
    comm.Recv(message, source, tag)
    return message


def gather_values(comm: Any, value: Any, kind: Any = Any) -> list[Any]:
    """Gather values of that type, encoded by msgspec, from all ranks. Collective."""
    encoded = comm.allgather(msgspec.msgpack.encode(value))
    return [msgspec.msgpack.decode(value, type=kind) for value in encoded]


class Channel:
    """Orders from rank 0 to the others, their replies, and rows of matrices. `busy_since` is None between orders."""

    def __init__(self, comm: Any, ranks: Sequence[RankOf], rests: Callable[[], None] = lambda: None):
        self._comm = comm
        self._rests = rests  # called after each order
        self.rank, self.size = comm.rank, comm.size
        self.ranks = tuple(ranks)
        self.busy_since: float | None = None

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Mark an order in progress: every rank must send heartbeats inside the block."""
        self.busy_since = time.monotonic()
        try:
            yield
        finally:
            self.busy_since = None
        self._rests()

    def order(self, order: bytes) -> None:
        """Send an order to all other ranks."""
        for rank in range(1, self.size):
            self._comm.Send(order, rank, _ORDER)

    def next_order(self) -> bytearray:
        """Wait for an order without occupying a core."""
        begin = time.monotonic()
        while not self._comm.iprobe(0, _ORDER):
            idle = time.monotonic() - begin
            if idle > _LAZY:
                time.sleep(_IDLE_NAP if idle > _IDLE else _LAZY_NAP)
            else:
                time.sleep(5e-5)
        return receive_message(self._comm, 0, _ORDER)

    def reply(self, reply: bytes) -> None:
        self._comm.Send(reply, 0, _REPLY)

    def replies(self) -> Iterator[bytearray]:
        """Receive one message from every other rank, in order."""
        for rank in range(1, self.size):
            wait_until(partial(self._comm.iprobe, rank, _REPLY))
            yield receive_message(self._comm, rank, _REPLY)

    def barrier(self) -> None:
        wait_until(self._comm.Ibarrier().Test, nap=2e-5)

    def send(self, rows: np.ndarray, to: int) -> None:
        wait_until(self._comm.Isend(rows, to, _ROWS).Test)

    def receive(self, rows: np.ndarray, source: int) -> None:
        wait_until(self._comm.Irecv(rows, source, _ROWS).Test)


class MpiLink(Link):
    """Broadcasts between host arrays; `overlaps`: other steps run during a broadcast."""

    def __init__(self, comm: Any):
        self._comm = comm
        self._pending: deque[Any] = deque()  # oldest first
        self.overlaps = True

    def broadcast(self, array: Any, owner: int, stream: Any) -> Callable[[], object]:
        if len(self._pending) > 1:  # a rank without rows in a round never waited for its panel, which is overwritten now
            self._finish(1)
        request = self._comm.Ibcast(array, root=owner)
        self._pending.append(request)
        wait = partial(wait_until, request.Test)
        if not self.overlaps:
            wait()
        return wait

    def finish(self) -> None:
        """Wait for all broadcasts."""
        self._finish(0)

    def _finish(self, left: int) -> None:
        while len(self._pending) > left:
            wait_until(self._pending.popleft().Test)


class NcclLink(Link):
    """Broadcasts between GPUs, each on its stream. All ranks create theirs together, after choosing their GPU."""

    overlaps = True

    def __init__(self, comm: Any, gpu: int):
        import nccl.core as nccl  # pyright: ignore[reportMissingImports]  # installed with fwtui[cluster]
        from cuda import core

        cuda: Any = core
        cuda.Device(gpu).set_current()
        secret = bytes(nccl.get_unique_id()) if comm.rank == 0 else None
        unique = nccl.UniqueId.from_bytes(gather_values(comm, secret)[0])
        self._nccl = nccl.Communicator.init(comm.size, comm.rank, unique)

    def broadcast(self, array: Any, owner: int, stream: Any) -> Callable[[], object]:
        # a Buffer has bytes, as NCCL has no int16, and its GPU. For other arrays nccl4py gets the GPU of their address from
        # cuda-bindings, which up to 13.3 returns 0 for every address (NVIDIA/cuda-python, issue 2928)
        self._nccl.broadcast(array.buffer, array.buffer, owner, stream=int(stream.handle))
        return int  # the stream orders all later work after the broadcast

    def finish(self) -> None:
        """Do nothing: the caller has already synchronised the streams."""


RankLink = MpiLink | NcclLink
