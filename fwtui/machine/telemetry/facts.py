"""What does not change about a GPU while it is watched; pure data that the sampler tells and everybody may read."""

from __future__ import annotations

from msgspec import Struct


class GpuFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU as NVML describes it, in CUDA's order; None where it does not say. Bytes, bits, MHz, watts."""

    name: str = ""
    uuid: str = ""
    driver: str = ""
    cuda: str = ""  # the newest CUDA that the driver runs
    compute_capability: tuple[int, int] | None = None
    multiprocessors: int | None = None
    memory_bytes: int | None = None
    peak_bytes_per_second: float | None = None
    max_clock_mhz: float | None = None
    power_limit_watts: float | None = None
    gpm: bool = False  # live occupancy and DRAM counters
    note: str = ""  # what it does not tell, and why


class Hardware(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The GPUs that CUDA programs can see here, or why there are none."""

    gpus: tuple[GpuFacts, ...] = ()
    reason: str = ""
