"""Choice of the engine for a graph: a GPU if it is faster."""

from __future__ import annotations

import os
from math import inf

from fwtui.common.errors import NoGpu, Refused
from fwtui.engine.engine import Engine
from fwtui.engine.engine_for import engine_for
from fwtui.experiment.device import DeviceId
from fwtui.solver.costs import MIN_ON_GPU, MIN_ON_STARTED_GPU
from fwtui_kernels.compiled import cubin_cache

CPU = engine_for(DeviceId("cpu"))
_started_by: set[int] = set()  # the processes that started a GPU: this one, or the one that it was forked from


def choose_engine(device: str | int | None, n: int, needed_by: str = "") -> Engine:
    """Return the engine of the GPU to use, or of the CPU if nothing needs a GPU. Raises NoGpu or Refused."""
    device_id = DeviceId.parse("auto" if device is None else str(device), "cpu")
    if device_id.backend == "cpu":
        if needed_by:
            raise Refused(f"device 'cpu' does not suit {needed_by}; pass a CUDA device index, or omit it")
        return CPU
    must = bool(needed_by) or device_id.backend == "cuda"
    if not must and n < _worth():
        return CPU
    if not must and not cubin_cache.some():  # cached cubins prove that this machine has a GPU
        from fwtui.machine.hardware import driver_present

        if not driver_present():
            return CPU
    gpu = device_id.on("cuda")
    try:
        return cuda_engine(gpu)
    except Exception as error:  # no package, no driver, no such GPU: each has its own exception class
        if must:
            from fwtui.measure.cuda_errors import describe_start_failure

            raise NoGpu(f"GPU {gpu} cannot be used ({describe_start_failure(str(error))[:200]}); run `fwtui doctor`") from None
        return CPU


def _worth() -> float:
    """Return the number of vertices from which a GPU is faster."""
    if not _started_by:
        return MIN_ON_GPU
    return MIN_ON_STARTED_GPU if _started_by == {os.getpid()} else inf  # CUDA does not work in a forked process


def cuda_engine(gpu: DeviceId) -> Engine:
    engine = engine_for(gpu)
    _started_by.add(os.getpid())
    return engine
