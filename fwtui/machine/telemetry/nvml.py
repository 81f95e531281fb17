"""The only access to NVML: every call goes through `Nvml.query`, and a failed one returns None and a reason."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

from fwtui.machine.telemetry.reading_bounds import count, in_unit, share, within
from fwtui.stream.events import Device

_SM, _MEMORY = 1, 2  # nvml.h, nvmlClockType_t
GPM_METRICS = {  # nvml.h, nvmlGpmMetricId_t: a percentage, or MiB/s sent and received
    "sm_utilisation": (2,),
    "sm_occupancy": (3,),
    "integer_utilisation": (4,),
    "dram_utilisation": (10,),
    "fp32_utilisation": (12,),
    "pcie_bytes_per_second": (20, 21),
    "nvlink_bytes_per_second": (60, 61),
}
_GPM_VERSION = 1
GPM_WINDOW = 0.1  # seconds between two samples; nvml.h declares shorter windows invalid
_LINKS, _LINK_SPEED, _LINKS_SENT, _LINKS_RECEIVED = 91, 164, 138, 139  # nvml.h, NVML_FI_DEV_NVLINK_*: MB/s, and KiB so far
_ALL_LINKS, _MAX_LINKS = 2**32 - 1, 64
_PCIE_LANE = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}  # bytes/s each way, by generation
_FUNCTION_NOT_FOUND, _GPU_IS_LOST = 13, 15
_START = {
    4: "this user may not use the GPU; in a container, pass the device through (--gpus all)",
    9: "the NVIDIA driver is installed but not loaded; load it (modprobe nvidia) or reboot",
    12: "no NVIDIA driver found (libnvidia-ml.so.1 is missing)",
    15: "the GPU has fallen off the bus; reboot",
    18: "the NVIDIA driver was updated since it was loaded; reboot",
}
SLOW_EVERY = 1.0  # seconds between calls that take milliseconds


class GpuLost(Exception):
    """The GPU has fallen off the bus: further calls can hang or crash the driver."""


class Nvml:
    """The library, started once. `reason` is the reason why it is unusable; empty if it works."""

    def __init__(self) -> None:
        self.reason = ""
        self._unknown: set[str] = set()
        self._library: Any = None
        try:
            import pynvml
        except ImportError:
            self.reason = "nvidia-ml-py is not installed; run: python -m pip install nvidia-ml-py"
            return
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            self.reason = _START.get(getattr(error, "value", -1), f"NVML does not start: {error}")
            return
        self._library = pynvml

    def query(self, function: str, *arguments: Any) -> tuple[Any, str]:
        """Call the function; return its result, bytes decoded, or None and the reason.

        Raises GpuLost when the GPU is gone. A function that the driver lacks is not called again.
        """
        query = getattr(self._library, function, None)
        if query is None or function in self._unknown:
            return None, "unknown to this driver"
        try:
            answer = query(*arguments)
        except self._library.NVMLError as error:
            code = getattr(error, "value", None)
            if code == _GPU_IS_LOST:
                raise GpuLost from None
            if code == _FUNCTION_NOT_FOUND:
                self._unknown.add(function)
            return None, str(error).lower()
        except UnicodeDecodeError as error:
            return None, str(error)
        return (answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer), ""

    def structure(self, name: str) -> Any:
        """Return an empty structure of the library; None if this nvidia-ml-py lacks it."""
        kind = getattr(self._library, name, None)
        return None if kind is None else kind()

    def gpus(self) -> list[Gpu]:
        """Return the GPUs that CUDA sees, in its order: those of CUDA_VISIBLE_DEVICES if it is set, else by bus address.

        CUDA puts the fastest first unless CUDA_DEVICE_ORDER is PCI_BUS_ID; unequal GPUs have the same numbers only with that.
        """
        gpus: list[Gpu] = []
        try:
            count = self.query("nvmlDeviceGetCount")[0] or 0
            everything = [self._by("nvmlDeviceGetHandleByIndex", i) for i in range(count)]
            opened = [g for g in everything if g is not None]
            visible = os.environ.get("CUDA_VISIBLE_DEVICES")
            if visible is None:
                self.reason = "" if opened else "the NVIDIA driver finds no GPU"
                return opened
            for entry in visible.split(","):
                gpu = self._named(entry.strip(), everything)
                if gpu is None:  # like CUDA, ignore everything from the first wrong entry on
                    break
                gpus.append(gpu)
            if not gpus:
                self.reason = f"CUDA_VISIBLE_DEVICES={visible!r} hides every GPU ({len(opened)} found); unset it"
        except GpuLost:
            self.reason = _START[_GPU_IS_LOST]
        return gpus

    def _by(self, function: str, key: int | str) -> Gpu | None:
        handle, _ = self.query(function, key)
        return None if handle is None else Gpu(self, handle)

    def _named(self, entry: str, everything: list[Gpu | None]) -> Gpu | None:
        if entry.isdecimal():
            return everything[int(entry)] if int(entry) < len(everything) else None
        if entry.startswith("GPU-"):  # CUDA accepts an abbreviated UUID
            return next((g for g in everything if g is not None and g.uuid.startswith(entry)), None)
        return self._by("nvmlDeviceGetHandleByUUID", entry) if entry.startswith("MIG-") else None


class Gpu:
    """A GPU: facts once, telemetry samples often. After `lost` (it has fallen off the bus) no calls follow."""

    def __init__(self, nvml: Nvml, handle: Any) -> None:
        self.handle = handle
        self.lost = False
        self.reasons: dict[str, str] = {}  # quantities without a value, and the reason of each
        self.nvml = nvml
        self._energy_at: float | None = None
        self._energy_first: float | None = None
        self.uuid: str = self.query("UUID", "nvmlDeviceGetUUID", handle) or ""
        self.gpm = Gpm(self)
        self.nvlink = NvLink(self)

    def query(self, what: str, function: str, *arguments: Any) -> Any:
        """Return the result of an NVML function, or None; store the first reason under `what` unless that is empty."""
        if self.lost:
            return None
        try:
            answer, reason = self.nvml.query(function, *arguments)
        except GpuLost:
            self.lost = True
            return None
        if reason and what:
            self.reasons.setdefault(what, reason)
        return answer

    def facts(self) -> Device:
        """Return the constant facts. Peak memory bandwidth counts both clock edges: 2 x clock x width / 8."""
        query, handle = self.query, self.handle
        memory = query("memory size", "nvmlDeviceGetMemoryInfo", handle)
        width = count(query("memory bus width", "nvmlDeviceGetMemoryBusWidth", handle))
        memory_clock = in_unit(query("memory clock limit", "nvmlDeviceGetMaxClockInfo", handle, _MEMORY), 1.0)
        cuda = query("CUDA version", "nvmlSystemGetCudaDriverVersion")
        capability = query("compute capability", "nvmlDeviceGetCudaComputeCapability", handle)
        attributes = query("", "nvmlDeviceGetAttributes", handle)  # only a MIG slice reports it
        return Device(
            t=0.0,
            name=query("name", "nvmlDeviceGetName", handle) or "",
            uuid=self.uuid,
            driver=query("driver version", "nvmlSystemGetDriverVersion") or "",
            cuda=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else "",
            compute_capability=tuple(capability) if capability else None,
            multiprocessors=count(attributes.multiprocessorCount) if attributes is not None else None,
            memory_bytes=count(memory.total) if memory is not None else None,
            peak_bytes_per_second=2 * memory_clock * 1e6 * width / 8 if memory_clock and width else None,
            max_clock_mhz=in_unit(query("clock limit", "nvmlDeviceGetMaxClockInfo", handle, _SM), 1.0),
            power_limit_watts=in_unit(query("power limit", "nvmlDeviceGetEnforcedPowerLimit", handle), 1e-3),
            nvlink_peak_bytes_per_second=self.nvlink.peak,
            pcie_peak_bytes_per_second=self._pcie_peak(),
            note="; ".join(f"no {what}: {why}" for what, why in self.reasons.items()),
        )

    def fields(self, *identities: tuple[int, int]) -> list[int | None]:
        """Return integers by field and scope; None for each that this GPU lacks."""
        answers = self.query("", "nvmlDeviceGetFieldValues", self.handle, list(identities))
        return [None] * len(identities) if answers is None else [None if one.nvmlReturn else one.value.ullVal for one in answers]

    def _pcie_peak(self) -> float | None:
        """Return the bytes per second in both directions together, for the GPU in its slot."""
        lane = _PCIE_LANE.get(self.query("", "nvmlDeviceGetMaxPcieLinkGeneration", self.handle))
        lanes = count(self.query("", "nvmlDeviceGetMaxPcieLinkWidth", self.handle))
        return 2 * lane * lanes if lane and lanes else None

    def read(self, now: float, slow: bool = True) -> dict[str, Any]:
        """Return fields of events.Telemetry; `now` in monotonic seconds. Without `slow`, skip calls that take milliseconds.

        Only GPM reads PCIe traffic: NVML's own call takes 20 ms.
        """
        query, handle = self.query, self.handle
        counters = self.gpm.read(now)  # first, so that its windows match the interval between samples
        if not self.gpm.supported:
            counters = {"nvlink_bytes_per_second": self.nvlink.read(now, slow)}
        elif not self.nvlink.there:
            counters = {**counters, "nvlink_bytes_per_second": None}
        utilisation = query("utilisation", "nvmlDeviceGetUtilizationRates", handle)
        memory = query("memory in use", "nvmlDeviceGetMemoryInfo", handle)
        return {
            **counters,
            "gpu_power_watts": in_unit(query("power", "nvmlDeviceGetPowerUsage", handle), 1e-3),
            "gpu_utilisation": share(utilisation.gpu) if utilisation is not None else None,
            "memory_utilisation": share(utilisation.memory) if utilisation is not None else None,
            "gpu_clock_mhz": in_unit(query("clock", "nvmlDeviceGetClockInfo", handle, _SM), 1.0),
            "memory_clock_mhz": in_unit(query("memory clock", "nvmlDeviceGetClockInfo", handle, _MEMORY), 1.0),
            "gpu_temperature": within(query("temperature", "nvmlDeviceGetTemperature", handle, 0), -273, 1000),
            "gpu_memory_bytes": count(memory.used) if memory is not None else None,
            "throttle": count(self._throttle()),
            "energy_joules": self._energy(now) if slow else None,
        }

    def _throttle(self) -> int | None:
        mask = self.query("", "nvmlDeviceGetCurrentClocksEventReasons", self.handle)
        if mask is None:  # the old name, in drivers before r535
            mask = self.query("throttle reasons", "nvmlDeviceGetCurrentClocksThrottleReasons", self.handle)
        return mask

    def _energy(self, now: float) -> float | None:
        """Return the joules since the first sample, read once a second; None in between."""
        if self._energy_at is not None and now - self._energy_at < SLOW_EVERY:
            return None
        self._energy_at = now
        joules = in_unit(self.query("energy", "nvmlDeviceGetTotalEnergyConsumption", self.handle), 1e-3)
        if joules is None:
            return None
        self._energy_first = joules if self._energy_first is None else self._energy_first
        return max(0.0, joules - self._energy_first)


class Gpm:
    """GPU performance monitoring (Hopper and later), live counters without a profiler: averages between two samples.

    Empty if the GPU does not support it.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        answer = gpu.query("GPM", "nvmlGpmQueryDeviceSupport", gpu.handle)
        self.supported = bool(answer is not None and answer.isSupportedDevice)
        if answer is not None and not self.supported:
            gpu.reasons["GPM"] = "needs Hopper or later"
        self._samples: list[Any] = []  # older, newer
        self._read_at: float | None = None
        self._values: dict[str, Any] = {}

    def read(self, now: float) -> dict[str, Any]:
        """Return fields of events.Telemetry; `now` in monotonic seconds. Called too early, it returns the last window again."""
        if not self.supported or (self._read_at is not None and now - self._read_at < GPM_WINDOW):
            return self._values
        if not self._samples:
            self._samples = [self._gpu.query("GPM", "nvmlGpmSampleAlloc") for _ in range(2)]
            if None in self._samples:
                self.supported = False
                return {}
        self._samples.reverse()
        sample = self._gpu.query("GPM", "nvmlGpmSampleGet", self._gpu.handle, self._samples[1])
        self._values = self._between() if sample is not None and self._read_at is not None else {}
        self._read_at = now if sample is not None else None
        return self._values

    def _between(self) -> dict[str, Any]:
        request = self._gpu.nvml.structure("c_nvmlGpmMetricsGet_t")
        if request is None:
            return {}
        request.version = _GPM_VERSION
        request.sample1, request.sample2 = self._samples
        identities = [identity for identities in GPM_METRICS.values() for identity in identities]
        for index, identity in enumerate(identities):
            request.metrics[index].metricId = identity
        request.numMetrics = len(identities)
        if self._gpu.query("GPM", "nvmlGpmMetricsGet", request) is None:
            return {}
        answers = zip(identities, request.metrics, strict=False)
        values = {identity: answer.value if answer.nvmlReturn == 0 else None for identity, answer in answers}
        return {name: _of_gpm([values[identity] for identity in identities]) for name, identities in GPM_METRICS.items()}


def _of_gpm(values: Sequence[float | None]) -> float | None:
    """Return a share of 1, or bytes per second in both directions together; None if a part of it is missing."""
    readable = [value for value in values if value is not None]
    if len(readable) < len(values):
        return None
    return share(readable[0]) if len(readable) == 1 else in_unit(sum(readable), 2**20)


class NvLink:
    """The links to other GPUs: their peak rate, and their traffic if GPM does not report it.

    `there` is True if the driver reports any links.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        links = gpu.fields((_LINKS, 0))[0]
        speeds = gpu.fields(*((_LINK_SPEED, link) for link in range(min(links, _MAX_LINKS)))) if links else []
        self.peak = in_unit(2 * sum(speed or 0 for speed in speeds), 1e6) or None
        self.there = links is None or (bool(links) and (self.peak is not None or None in speeds))
        self._read_at: float | None = None
        self._carried = 0
        self._rate: float | None = None

    def read(self, now: float, slow: bool) -> float | None:
        """Return bytes per second in both directions together, from counters read once a second; `now` in monotonic seconds."""
        if not slow or not self.there or (self._read_at is not None and now - self._read_at < SLOW_EVERY):
            return self._rate
        out, received = self._gpu.fields((_LINKS_SENT, _ALL_LINKS), (_LINKS_RECEIVED, _ALL_LINKS))
        if out is None or received is None:
            self.there = False
            return None
        carried = 1024 * (out + received)
        self._rate = in_unit((carried - self._carried) / (now - self._read_at), 1.0) if self._read_at is not None else None
        self._carried, self._read_at = carried, now
        return self._rate


def open_gpus() -> tuple[list[Gpu], str]:
    """Return the GPUs that CUDA sees, in its order, and the reason if there are none."""
    nvml = Nvml()
    gpus = [] if nvml.reason else nvml.gpus()
    return gpus, "" if gpus else nvml.reason


def cuda_missing() -> str:
    """Return the reason why CUDA cannot start although NVML does; empty if its library can be loaded."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        without = "the NVIDIA driver is installed without CUDA's library (libcuda.so.1)"
        return f"{without}; in a container, set NVIDIA_DRIVER_CAPABILITIES=compute,utility"
    return ""
