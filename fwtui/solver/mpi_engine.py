"""The engine of `solve` on several devices of this machine: a job of ranks, one for each.

The graph goes to the ranks, and the distances come back, through memory that all of them map: each copies its own rows.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty
from typing import Any

import numpy as np

from fwtui.common.environment import worker_environment
from fwtui.common.errors import Failed, NoGpu, Refused
from fwtui.common.signals import undo_on_signal
from fwtui.engine.distributed_engine import (
    Build,
    DistributedEngine,
    DistributedProgram,
    LoadMapped,
    Order,
    UnloadMapped,
    encode_order,
)
from fwtui.engine.engine import TimedRun
from fwtui.experiment.device import ALL, DeviceId, RankDevice, format_devices, places
from fwtui.live.mpi_job import MpiJob
from fwtui.machine import hardware, settings
from fwtui.machine.device_choice import all_gpus, check_gpus_exist, check_mpi
from fwtui.measure.rank_worker import NEXT, rank_for_device
from fwtui.stream import events, requests
from fwtui_kernels.plan import Buffers, Kernel, Program, Shape, Step, Target

_LOOKS_EVERY = 0.1  # seconds between checks of the job


class LocalMpiEngine(DistributedEngine):
    """The engine of all ranks, in the process that started them."""

    elsewhere = True

    def __init__(self, devices: str):
        self._devices, requested = devices, places(devices)
        self.ranks = tuple(rank_for_device(rank, place) for rank, place in enumerate(requested))
        self.device = DeviceId("cpu" if requested[0].gpu is None else "cuda", requested[0].gpu or 0)
        self.target, self.stream, self.timed = Target(self.device.backend), None, True
        self.job: MpiJob | None = None

    def activate(self) -> None:
        """Start the job, unless it has begun."""
        if self.job is not None:
            return
        timeout = float(settings.load().text("rank_timeout"))
        self.job = MpiJob(self._devices, timeout, time.monotonic(), worker_environment("real"))

    def replies_to(self, order: Order[Any], work: Callable[[], Any] | None = None) -> list[requests.Reply]:
        """Execute the order on all ranks. Raises Failed if the job has ended."""
        assert self.job is not None
        with undo_on_signal(self.kill):
            self.job.send(requests.RankOrder(encode_order(order)))
            return self._replies(self.job)

    def build(self, kernel: Kernel, shape: Shape) -> Program:
        self.on_all_ranks(Build(kernel.id, shape))
        return LocalMpiProgram(self, shape)

    def timed_repetition(self, program: Program, plan: Sequence[Step], buffers: Buffers, mode: str) -> TimedRun:
        timed = super().timed_repetition(program, plan, buffers, mode)
        return lambda check: timed(lambda: None)  # `solve` shows no progress of passes in other processes

    def kill(self) -> None:
        if self.job is not None:
            self.job.kill()

    def close(self) -> None:
        if self.job is not None:
            self.job.close()

    def _replies(self, job: MpiJob) -> list[requests.Reply]:
        while True:
            ended = job.gone  # before the look: nothing comes after it
            try:
                return requests.replies(job.replies.get(timeout=0 if ended else _LOOKS_EVERY))
            except Empty:
                _check(job, ended)


def _check(job: MpiJob, ended: bool) -> None:
    """Raise Refused or Failed if a rank has reported a fault, or the job has ended."""
    while job.lines:
        line = job.lines.popleft()
        if not isinstance(line, Exception) and isinstance(line.event, events.Fault):
            fault = line.event
            raise (Refused if fault.code == "memory" else Failed)(fault.message.removesuffix(NEXT))
    if ended:
        last = [] if job.pids or job.refused_root else job.last_output.splitlines()[-1:]
        raise Failed(f"{job.death}{f': {last[0]}' if last else ''}")


class LocalMpiProgram(DistributedProgram):
    """A program whose matrix is in memory that the ranks map."""

    def fill(self, write: Callable[[Any], None], buffers: Buffers, stream: Any) -> None:
        n = self.shape.n
        with _shared(n * n * self.shape.itemsize) as (memory, path):
            self._matrix = np.frombuffer(memory, self.shape.dtype).reshape(n, n)
            write(self._matrix)
            self.engine.on_all_ranks(LoadMapped(path))

    def result(self, buffers: Buffers, stream: Any) -> Any:
        self.engine.on_all_ranks(UnloadMapped())
        return self._matrix


@contextmanager
def _shared(size: int) -> Iterator[tuple[mmap.mmap, str]]:
    """Return memory that is freed with the last array in it, and a path under which other processes can map it.

    On Linux no file exists that a killed process could leave behind.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("fwtui")
        path, on_disk = f"/proc/{os.getpid()}/fd/{descriptor}", False
    else:
        descriptor, path = tempfile.mkstemp(prefix="fwtui-")
        on_disk = True
    try:
        os.ftruncate(descriptor, size)
        yield mmap.mmap(descriptor, size), path
    finally:
        os.close(descriptor)
        if on_disk:
            os.unlink(path)


@contextmanager
def job_engine(devices: str) -> Iterator[LocalMpiEngine]:
    """Return the engine for these devices. Its job starts when it is activated, and ends with the block. Raises Refused."""
    engine = LocalMpiEngine(format_devices(_here(devices)))
    try:
        with undo_on_signal(engine.kill):
            yield engine
    except BaseException:
        engine.kill()
        raise
    finally:
        engine.close()


def _here(devices: str) -> tuple[RankDevice, ...]:
    """Resolve the devices of this machine. Raises Refused, and NoGpu for a missing one."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and mpi.COMM_WORLD.size > 1:
        raise Refused(
            f"devices cannot be used in an MPI program, which has {mpi.COMM_WORLD.size} processes here; pass comm= on all of them"
        )
    devices_here = all_gpus() if devices == ALL else places(devices)
    if not devices_here:
        raise Refused("devices is empty; pass a list such as 0,1 or cpu,cpu, or all for all GPUs")
    if devices_here[0].gpu is not None:
        detected = hardware.gpus()
        check_gpus_exist(devices_here, len(detected.gpus), detected.reason)
        if hardware.cuda_package() is None:
            extra = hardware.cuda_extra(detected) or "cu12"
            raise NoGpu(f"numba-cuda is not installed; run: {hardware.install_command(f'fwtui[{extra}]')}")
    check_mpi(format_devices(devices_here))
    return devices_here
