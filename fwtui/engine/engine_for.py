"""The engine of a device."""

from __future__ import annotations

from functools import cache

from fwtui.engine.engine import Engine, HostEngine
from fwtui.experiment.device import DeviceId
from fwtui_kernels.compiled import SIMULATED
from fwtui_kernels.plan import Target


def engine_for(device: DeviceId) -> Engine:
    """Open this process's engine of that device once, and make it current. In simulator processes, GPUs use a host engine."""
    if device.backend != "cpu":
        simulated = device.simulated or SIMULATED
        device = device.on("simulator" if simulated else "cuda")
    engine = _opened(device)
    engine.activate()
    return engine


@cache
def _opened(device: DeviceId) -> Engine:
    if device.backend == "cpu":
        return HostEngine(Target("cpu"))
    if device.simulated:
        from fwtui_kernels.compiled.device import cuda

        return HostEngine(Target("simulator"), cuda.stream())
    from fwtui.engine.cuda_engine import CudaEngine

    return CudaEngine(device)
