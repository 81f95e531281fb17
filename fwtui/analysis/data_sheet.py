"""A GPU's peak throughput, from its data sheet."""

from __future__ import annotations

from fwtui.analysis.occupancy import TABLE
from fwtui.stream.events import Device


def fp32_lanes(device: Device | None) -> int | None:
    """32-bit floating-point units of the whole GPU; None if it or its table row is unknown."""
    if device is None or device.compute_capability is None:
        return None
    each = TABLE.get(device.compute_capability)
    return each.fp32_lanes * device.multiprocessors if each is not None and device.multiprocessors else None


def fp32_flops(device: Device | None) -> float | None:
    """FLOP/s at the highest clock, a fused multiply-add counting as two; None if not known."""
    lanes = fp32_lanes(device)
    return 2.0 * lanes * device.max_clock_mhz * 1e6 if lanes and device is not None and device.max_clock_mhz else None


# 32 banks of 4 bytes per clock and multiprocessor on every compute capability since 3.0: CUDA C++ Programming Guide,
# appendix "Compute Capabilities"
SHARED_BYTES_PER_CLOCK = 128


def shared_bytes_per_second(device: Device | None) -> float | None:
    """Bytes/s that all multiprocessors can read from shared memory at the highest clock; None if the GPU is not known."""
    if device is None or not device.multiprocessors or not device.max_clock_mhz:
        return None
    return float(SHARED_BYTES_PER_CLOCK * device.multiprocessors * device.max_clock_mhz * 1e6)
