"""A GPU's peak throughput, from its data sheet."""

from __future__ import annotations

from collections.abc import Mapping

from fwtui.stream.events import Device

# 32-bit floating-point additions per clock and multiprocessor: CUDA C++ Programming Guide, table "Throughput of Native
# Arithmetic Instructions"
FP32_LANES: Mapping[tuple[int, int], int] = {
    **dict.fromkeys(((6, 0), (7, 0), (7, 2), (7, 5), (8, 0)), 64),
    **dict.fromkeys(((5, 0), (5, 2), (5, 3), (6, 1), (6, 2), (8, 6), (8, 7), (8, 9), (9, 0)), 128),
    **dict.fromkeys(((10, 0), (10, 3), (11, 0), (12, 0), (12, 1)), 128),
}


def fp32_lanes(device: Device | None) -> int | None:
    """32-bit floating-point units of the whole GPU; None if it or its table row is unknown."""
    if device is None or device.compute_capability is None:
        return None
    lanes = FP32_LANES.get(device.compute_capability)
    return lanes * device.multiprocessors if lanes and device.multiprocessors else None


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
