"""What CUDA itself says of a GPU."""

from __future__ import annotations

from typing import Any

from fwtui.stream.events import Device
from kernels.numba_door.device import cuda


def gpu_name(gpu: Any) -> str:
    """The name of a numba device."""
    return gpu.name.decode() if isinstance(gpu.name, bytes) else str(gpu.name)


def device_event(gpu: Any, t: float, index: int) -> Device:
    """The facts of a numba device; peak bandwidth is memory clock x 2 (double data rate) x bus width."""
    clock_khz = getattr(gpu, "MEMORY_CLOCK_RATE", 0)
    bus_bits = getattr(gpu, "GLOBAL_MEMORY_BUS_WIDTH", 0)
    major, minor = cuda.runtime.get_version()
    return Device(
        t=t,
        gpu=index,
        name=gpu_name(gpu),
        compute_capability=tuple(gpu.compute_capability),
        multiprocessors=gpu.MULTIPROCESSOR_COUNT,
        memory_bytes=cuda.current_context().get_memory_info().total,
        peak_bytes_per_second=2 * clock_khz * 1000 * bus_bits / 8 or None,
        max_clock_mhz=gpu.CLOCK_RATE / 1000 or None,
        l2_bytes=gpu.L2_CACHE_SIZE or None,
        cuda=f"{major}.{minor}",
    )
