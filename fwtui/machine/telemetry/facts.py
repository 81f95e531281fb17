"""The GPUs of this machine: pure data that the sampler's process tells, and that everything else may read."""

from __future__ import annotations

from msgspec import Struct

from fwtui.stream.events import Device


class Hardware(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The GPUs that CUDA programs can see here, in CUDA's order, or why there are none."""

    gpus: tuple[Device, ...] = ()
    gpm: bool = False  # one of them has live occupancy and DRAM counters
    reason: str = ""
