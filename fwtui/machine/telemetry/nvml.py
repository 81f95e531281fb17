"""The only access to NVML: every call goes through `Nvml.query`, and a failed one returns None and a reason."""

from __future__ import annotations

import os
from typing import Any

from fwtui.machine.telemetry.bounds import count, scaled, share, within
from fwtui.stream.events import Device

_SM, _MEMORY = 1, 2  # nvml.h, nvmlClockType_t
GPM_METRICS = {  # nvml.h, nvmlGpmMetricId_t; all of them percentages
    "sm_utilisation": 2,
    "sm_occupancy": 3,
    "integer_utilisation": 4,
    "dram_utilisation": 10,
    "fp32_utilisation": 12,
}
_GPM_VERSION = 1
_GPM_WINDOW = 0.1  # seconds between two samples; nvml.h calls anything shorter invalid
_FUNCTION_NOT_FOUND, _GPU_IS_LOST = 13, 15
_START = {
    4: "this user may not use the GPU; in a container, pass the device through (--gpus all)",
    9: "the NVIDIA driver is installed but not loaded; load it (modprobe nvidia) or reboot",
    12: "there is no NVIDIA driver here (libnvidia-ml.so.1 was not found)",
    15: "the GPU has fallen off the bus; reboot",
    18: "the NVIDIA driver was updated since it was loaded; reboot",
}
ENERGY_EVERY = 1.0  # seconds; the call takes milliseconds


class Lost(Exception):
    """The GPU has fallen off the bus: further calls can hang or crash the driver."""


class Nvml:
    """The library, started once. `reason` says why it cannot be used; empty if it can."""

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
        """The function's result, bytes decoded; or None and the reason.

        Raises Lost when the GPU is gone. A function that the driver lacks is not called again.
        """
        ask = getattr(self._library, function, None)
        if ask is None or function in self._unknown:
            return None, "unknown to this driver"
        try:
            answer = ask(*arguments)
        except self._library.NVMLError as error:
            code = getattr(error, "value", None)
            if code == _GPU_IS_LOST:
                raise Lost from None
            if code == _FUNCTION_NOT_FOUND:
                self._unknown.add(function)
            return None, str(error).lower()
        except UnicodeDecodeError as error:
            return None, str(error)
        return (answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer), ""

    def structure(self, name: str) -> Any:
        """An empty structure of the library; None if this nvidia-ml-py lacks it."""
        kind = getattr(self._library, name, None)
        return None if kind is None else kind()

    def gpus(self) -> list[Gpu]:
        """The GPUs that CUDA sees, in its order: those of CUDA_VISIBLE_DEVICES if it is set, else by bus address.

        CUDA puts the fastest first unless CUDA_DEVICE_ORDER is PCI_BUS_ID; with unequal GPUs only that gives the same numbers.
        """
        chosen: list[Gpu] = []
        try:
            count = self.query("nvmlDeviceGetCount")[0] or 0
            everything = [self._by("nvmlDeviceGetHandleByIndex", i) for i in range(count)]
            known = [g for g in everything if g is not None]
            visible = os.environ.get("CUDA_VISIBLE_DEVICES")
            if visible is None:
                self.reason = "" if known else "the NVIDIA driver finds no GPU"
                return known
            for entry in visible.split(","):
                gpu = self._named(entry.strip(), everything)
                if gpu is None:  # like CUDA, ignore everything from the first wrong entry on
                    break
                chosen.append(gpu)
            if not chosen:
                self.reason = f"CUDA_VISIBLE_DEVICES={visible!r} hides every GPU ({len(known)} here); unset it"
        except Lost:
            self.reason = _START[_GPU_IS_LOST]
        return chosen

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
    """One GPU: facts once, readings often. `lost` once it has fallen off the bus; no calls follow."""

    def __init__(self, nvml: Nvml, handle: Any) -> None:
        self.handle = handle
        self.lost = False
        self.reasons: dict[str, str] = {}  # what it does not report, and why
        self.nvml = nvml
        self._energy_at: float | None = None
        self._energy_first: float | None = None
        self.uuid: str = self.ask("UUID", "nvmlDeviceGetUUID", handle) or ""
        self.gpm = Gpm(self)

    def ask(self, what: str, function: str, *arguments: Any) -> Any:
        """The answer of an NVML function, or None; the first reason is kept under `what` unless that is empty."""
        if self.lost:
            return None
        try:
            answer, reason = self.nvml.query(function, *arguments)
        except Lost:
            self.lost = True
            return None
        if reason and what:
            self.reasons.setdefault(what, reason)
        return answer

    def facts(self) -> Device:
        """The facts that never change. Peak memory bandwidth counts both clock edges: 2 x clock x width / 8."""
        ask, handle = self.ask, self.handle
        memory = ask("memory size", "nvmlDeviceGetMemoryInfo", handle)
        width = count(ask("memory bus width", "nvmlDeviceGetMemoryBusWidth", handle))
        memory_clock = scaled(ask("memory clock limit", "nvmlDeviceGetMaxClockInfo", handle, _MEMORY), 1.0)
        cuda = ask("CUDA version", "nvmlSystemGetCudaDriverVersion")
        capability = ask("compute capability", "nvmlDeviceGetCudaComputeCapability", handle)
        attributes = ask("", "nvmlDeviceGetAttributes", handle)  # only a MIG slice reports it
        return Device(
            t=0.0,
            name=ask("name", "nvmlDeviceGetName", handle) or "",
            uuid=self.uuid,
            driver=ask("driver version", "nvmlSystemGetDriverVersion") or "",
            cuda=f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else "",
            compute_capability=tuple(capability) if capability else None,
            multiprocessors=count(attributes.multiprocessorCount) if attributes is not None else None,
            memory_bytes=count(memory.total) if memory is not None else None,
            peak_bytes_per_second=2 * memory_clock * 1e6 * width / 8 if memory_clock and width else None,
            max_clock_mhz=scaled(ask("clock limit", "nvmlDeviceGetMaxClockInfo", handle, _SM), 1.0),
            power_limit_watts=scaled(ask("power limit", "nvmlDeviceGetEnforcedPowerLimit", handle), 1e-3),
            note="; ".join(f"no {what}: {why}" for what, why in self.reasons.items()),
        )

    def read(self, now: float) -> dict[str, Any]:
        """Fields of events.Telemetry; `now` in monotonic seconds. PCIe throughput is left out: reading it takes 20 ms."""
        ask, handle = self.ask, self.handle
        counters = self.gpm.read(now)  # first, so that its windows match the interval between readings
        utilisation = ask("utilisation", "nvmlDeviceGetUtilizationRates", handle)
        memory = ask("memory in use", "nvmlDeviceGetMemoryInfo", handle)
        return {
            **counters,
            "gpu_power_watts": scaled(ask("power", "nvmlDeviceGetPowerUsage", handle), 1e-3),
            "gpu_utilisation": share(utilisation.gpu) if utilisation is not None else None,
            "memory_utilisation": share(utilisation.memory) if utilisation is not None else None,
            "gpu_clock_mhz": scaled(ask("clock", "nvmlDeviceGetClockInfo", handle, _SM), 1.0),
            "memory_clock_mhz": scaled(ask("memory clock", "nvmlDeviceGetClockInfo", handle, _MEMORY), 1.0),
            "gpu_temperature": within(ask("temperature", "nvmlDeviceGetTemperature", handle, 0), -273, 1000),
            "gpu_memory_bytes": count(memory.used) if memory is not None else None,
            "throttle": count(self._throttle()),
            "energy_joules": self._energy(now),
        }

    def _throttle(self) -> int | None:
        mask = self.ask("", "nvmlDeviceGetCurrentClocksEventReasons", self.handle)
        if mask is None:  # its old name, in drivers before r535
            mask = self.ask("throttle reasons", "nvmlDeviceGetCurrentClocksThrottleReasons", self.handle)
        return mask

    def _energy(self, now: float) -> float | None:
        """Joules since the first reading, read once a second and None in between."""
        if self._energy_at is not None and now - self._energy_at < ENERGY_EVERY:
            return None
        self._energy_at = now
        joules = scaled(self.ask("energy", "nvmlDeviceGetTotalEnergyConsumption", self.handle), 1e-3)
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
        answer = gpu.ask("GPM", "nvmlGpmQueryDeviceSupport", gpu.handle)
        self.supported = bool(answer is not None and answer.isSupportedDevice)
        if answer is not None and not self.supported:
            gpu.reasons["GPM"] = "needs Hopper or later"
        self._samples: list[Any] = []  # older, newer
        self._taken: float | None = None
        self._values: dict[str, Any] = {}

    def read(self, now: float) -> dict[str, Any]:
        """Fields of events.Telemetry; `now` in monotonic seconds. Called too early, it returns the last window again."""
        if not self.supported or (self._taken is not None and now - self._taken < _GPM_WINDOW):
            return self._values
        if not self._samples:
            self._samples = [self._gpu.ask("GPM", "nvmlGpmSampleAlloc") for _ in range(2)]
            if None in self._samples:
                self.supported = False
                return {}
        self._samples.reverse()
        taken = self._gpu.ask("GPM", "nvmlGpmSampleGet", self._gpu.handle, self._samples[1])
        self._values = self._between() if taken is not None and self._taken is not None else {}
        self._taken = now if taken is not None else None
        return self._values

    def _between(self) -> dict[str, Any]:
        request = self._gpu.nvml.structure("c_nvmlGpmMetricsGet_t")
        if request is None:
            return {}
        request.version = _GPM_VERSION
        request.numMetrics = len(GPM_METRICS)
        request.sample1, request.sample2 = self._samples
        for index, identity in enumerate(GPM_METRICS.values()):
            request.metrics[index].metricId = identity
        if self._gpu.ask("GPM", "nvmlGpmMetricsGet", request) is None:
            return {}
        answers = zip(GPM_METRICS, request.metrics, strict=False)
        return {name: share(answer.value) if answer.nvmlReturn == 0 else None for name, answer in answers}


def open_gpus() -> tuple[list[Gpu], str]:
    """The GPUs that CUDA sees, in its order; if there are none, why, in words."""
    nvml = Nvml()
    gpus = [] if nvml.reason else nvml.gpus()
    return gpus, "" if gpus else nvml.reason
