"""GPU performance monitoring (NVML GPM, Hopper and later): live counters without a profiler."""

from __future__ import annotations

from typing import Any, Protocol

from fwtui.machine.telemetry.bounds import share

LEAST_WINDOW = 0.1  # seconds between two samples; nvml.h calls anything shorter invalid
METRICS = {  # nvml.h, nvmlGpmMetricId_t; all of them percentages
    "sm_utilisation": 2,
    "sm_occupancy": 3,
    "integer_utilisation": 4,
    "dram_utilisation": 10,
    "fp32_utilisation": 12,
}
_METRICS_VERSION = 1


class Asked(Protocol):
    """The GPU that is asked, as fwtui.machine.telemetry.nvml has it."""

    handle: Any
    reasons: dict[str, str]

    def ask(self, what: str, function: str, *arguments: Any) -> Any: ...

    def structure(self, name: str) -> Any: ...


class Gpm:
    """Averages over the window between two samples. Empty where the GPU does not support it."""

    def __init__(self, gpu: Asked) -> None:
        self._gpu = gpu
        answer = gpu.ask("GPM", "nvmlGpmQueryDeviceSupport", gpu.handle)
        self.supported = bool(answer is not None and answer.isSupportedDevice)
        if answer is not None and not self.supported:
            gpu.reasons["GPM"] = "needs Hopper or later"
        self._samples: list[Any] = []  # older, newer
        self._taken: float | None = None
        self._values: dict[str, Any] = {}

    def read(self, now: float) -> dict[str, Any]:
        """Fields of events.Telemetry; `now` in monotonic seconds. Asked too early, it answers the last window again."""
        if not self.supported or (self._taken is not None and now - self._taken < LEAST_WINDOW):
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
        request = self._gpu.structure("c_nvmlGpmMetricsGet_t")
        if request is None:
            return {}
        request.version = _METRICS_VERSION
        request.numMetrics = len(METRICS)
        request.sample1, request.sample2 = self._samples
        for index, identity in enumerate(METRICS.values()):
            request.metrics[index].metricId = identity
        if self._gpu.ask("GPM", "nvmlGpmMetricsGet", request) is None:
            return {}
        answers = zip(METRICS, request.metrics, strict=False)
        return {name: share(answer.value) if answer.nvmlReturn == 0 else None for name, answer in answers}
