"""A GPU's peak throughput, from its data sheet."""

from __future__ import annotations

from fwtui.analysis.occupancy import TABLE
from fwtui.stream.events import Device


def fp32_lanes(device: Device | None) -> int | None:
    """Return the number of FP32 units of a GPU; None if the GPU is unknown."""
    each = TABLE.get(device.compute_capability) if device is not None and device.compute_capability is not None else None
    return (
        each.fp32_lanes * device.multiprocessors if device is not None and each is not None and device.multiprocessors else None
    )


def fp32_flops(device: Device | None) -> float | None:
    """Return the FP32 FLOP/s at the highest clock (a fused multiply-add counts as two); None if unknown."""
    lanes = fp32_lanes(device)
    return 2.0 * lanes * device.max_clock_mhz * 1e6 if lanes and device is not None and device.max_clock_mhz else None


# 32 banks of 4 bytes per clock and multiprocessor on every compute capability since 3.0: CUDA C++ Programming Guide,
# appendix "Compute Capabilities"
SHARED_BYTES_PER_CLOCK = 128


def shared_bytes_per_second(device: Device | None) -> float | None:
    """Return the peak bandwidth of shared memory at the highest clock, in bytes/s; None if the GPU is unknown."""
    if device is None or not device.multiprocessors or not device.max_clock_mhz:
        return None
    return float(SHARED_BYTES_PER_CLOCK * device.multiprocessors * device.max_clock_mhz * 1e6)
