"""The common parts of events: a time, bounded numbers, and in some of them a device or a machine."""

from __future__ import annotations

from typing import Annotated, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from fwtui.common.units import LARGEST
from fwtui.experiment.device import DeviceId

Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Count = Annotated[int, Meta(ge=0, le=2**60)]
GpuIndex = Annotated[int, Meta(ge=0, le=9999)]  # CUDA device index
RunId = Annotated[int, Meta(ge=0, le=2**31)]
Vertex = Annotated[int, Meta(ge=0, le=2**31)]
Parent = Annotated[int, Meta(ge=-1, le=2**31)]  # number of the parent of a tree node; -1: none
MAX_RANKS = 512
Rank = Annotated[int, Meta(ge=0, le=MAX_RANKS - 1)]
Real = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
# any amount: watts, MHz, bytes, bytes per second, relaxations per second / 1e6
Amount = Annotated[float, Meta(ge=0, le=LARGEST)]
Celsius = Annotated[float, Meta(ge=-273, le=1000)]
Cells = tuple[Count, Count, Count, Count]  # a rectangle: top, left, bottom, right
Share = Annotated[float, Meta(ge=0, le=1.5)]  # 1 is the whole; counters may slightly exceed it
E = TypeVar("E", bound="Event")


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="kind", tag=str.lower):
    """An event: a statement with its session time."""

    t: Seconds


class OfRun(Event, frozen=True, kw_only=True):
    """An event of one run."""

    run: RunId


def earlier(event: E, seconds: float) -> E:
    """Return the event on the clock of a session that began `seconds` later; earlier events move to its beginning."""
    times = {name: getattr(event, name) for name in ("t", "since") if hasattr(event, name)}
    return replace(event, **{name: round(max(0.0, time - seconds), 9) for name, time in times.items()})


class OfDevice(Struct, frozen=True, gc=False):
    """An event or a request about one device: a GPU, unless a field `backend` names another."""

    @property
    def device_id(self) -> DeviceId:
        return DeviceId(getattr(self, "backend", "cuda"), getattr(self, "gpu", 0))


class Cache(Struct, frozen=True, kw_only=True):
    """A level of the host's data caches."""

    level: Annotated[int, Meta(ge=1, le=9)]
    bytes: Count  # size of one cache
    cores: Annotated[int, Meta(ge=1, le=2**20)] = 1  # usable cores that share the cache


class Machine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The host, without anything that identifies its owner."""

    system: str = ""
    python: str = ""
    cpu: str = ""
    cores: Count | None = None
    memory_bytes: Count | None = None
    caches: Annotated[tuple[Cache, ...], Meta(max_length=9)] = ()  # nearest first; empty if the system does not report them


class RankOf(OfDevice, frozen=True, kw_only=True, omit_defaults=True):
    """A process of several that share a run's matrix, and its device."""

    rank: Rank
    backend: str  # "cpu" | "cuda"
    gpu: GpuIndex = 0
    host: Count = 0  # number of the host among those of the run, instead of its name
    name: str = ""  # name of its GPU

    def __str__(self) -> str:
        device = f"GPU {self.gpu}" if self.backend == "cuda" else "CPU"
        return f"rank {self.rank} ({device}{f' of host {self.host}' if self.host else ''})"


class FormLimit(Struct, frozen=True):
    """A device's limit in one form of fwtui_kernels.probes.probe_forms; the clock is that of its multiprocessors."""

    form: str
    relaxations_per_second: Amount | None = None
    clock_mhz: Amount | None = None
    noisy: bool = False  # other programs used the device, so the true limit is higher


class LevelLimit(Struct, frozen=True, omit_defaults=True):
    """The bandwidth of one memory level: reading and writing on a CPU, reading on a GPU."""

    level: Annotated[int, Meta(ge=0, le=9)]  # cache level; 0: memory. On a GPU, 1: shared memory
    bytes_per_second: Amount | None = None  # all cores together
    one_core: Amount | None = None  # a single core
    noisy: bool = False  # see FormLimit.noisy
