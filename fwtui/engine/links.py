"""How ranks exchange data: by MPI between arrays of hosts, by NCCL between those of GPUs."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fwtui_kernels.plan import Link

_EAGER = 1e-3  # seconds in which a waiting rank only gives way to others
_NAP = 1e-4
_yield = getattr(os, "sched_yield", partial(time.sleep, 0))


def patiently(ready: Callable[[], Any], nap: float = _NAP) -> None:
    """Wait until it is so, without holding a core that a rank on the same machine may need."""
    begin = time.perf_counter()
    while not ready():
        if time.perf_counter() - begin < _EAGER:
            _yield()
        else:
            time.sleep(nap)


class MpiLink(Link):
    """Broadcasts between host arrays; `overlaps`: other steps go on meanwhile."""

    def __init__(self, comm: Any):
        self._comm = comm
        self._pending: deque[Any] = deque()  # oldest first
        self.overlaps = True

    def broadcast(self, array: Any, owner: int, stream: Any) -> Callable[[], object]:
        if len(self._pending) > 1:  # a rank without rows in a round never asked for its panel, which is overwritten now
            self._finish(1)
        request = self._comm.Ibcast(array, root=owner)
        self._pending.append(request)
        wait = partial(patiently, request.Test)
        if not self.overlaps:
            wait()
        return wait

    def finish(self) -> None:
        """Wait for all broadcasts."""
        self._finish(0)

    def _finish(self, left: int) -> None:
        while len(self._pending) > left:
            patiently(self._pending.popleft().Test)


class NcclLink(Link):
    """Broadcasts between GPUs, each on its stream. All ranks make theirs together, after choosing their GPU."""

    overlaps = True

    def __init__(self, comm: Any, gpu: int):
        import nccl.core as nccl  # pyright: ignore[reportMissingImports]  # of the extra "cluster"
        from cuda.core import Device  # pyright: ignore[reportAttributeAccessIssue]

        Device(gpu).set_current()
        secret = bytes(nccl.get_unique_id()) if comm.rank == 0 else None
        unique = nccl.UniqueId.from_bytes(comm.bcast(secret))
        self._nccl = nccl.Communicator.init(comm.size, comm.rank, unique)

    def broadcast(self, array: Any, owner: int, stream: Any) -> Callable[[], object]:
        cells = array.view(np.uint8)  # NCCL knows no int16
        self._nccl.broadcast(cells, cells, owner, stream=int(stream.handle))
        return int  # what follows on the stream waits by itself

    def finish(self) -> None:
        """Nothing to wait for: the streams have ended."""
