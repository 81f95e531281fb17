"""Reading a GPU through a driver that answers from a table."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from fwtui.machine.telemetry.nvml import Gpu, Nvml


class Driver:
    """Stands in for the module pynvml: counts questions and answers from a table; a number there is an NVML error."""

    class NVMLError(Exception):
        def __init__(self, value: int) -> None:
            super().__init__(f"Error {value}")
            self.value = value

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.questions: list[str] = []

    def nvmlInit(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name not in self.answers:
            raise AttributeError(name)

        def ask(*arguments: Any) -> Any:
            self.questions.append(name)
            answer = self.answers[name]
            if isinstance(answer, Exception):
                raise answer
            return answer(*arguments) if callable(answer) else answer

        return ask


def opened(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> Nvml:
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    return Nvml()


def test_functions_and_names_of_other_drivers_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(nvmlDeviceGetPowerUsage=Driver.NVMLError(13), nvmlDeviceGetTemperature=Driver.NVMLError(3))
    gpu = Gpu(opened(monkeypatch, driver), handle=object())
    for _ in range(3):
        assert gpu.read(0.0)["gpu_power_watts"] is None
    assert driver.questions.count("nvmlDeviceGetPowerUsage") == 1
    assert driver.questions.count("nvmlDeviceGetTemperature") == 3  # not supported now may be supported later
    assert gpu.reasons["power"] == "error 13"
    driver = Driver(nvmlDeviceGetCurrentClocksThrottleReasons=8, nvmlDeviceGetName=b"Tesla \xff")
    gpu = Gpu(opened(monkeypatch, driver), handle=object())
    assert gpu.read(0.0)["throttle"] == 8
    assert gpu.facts().name == "Tesla \ufffd"
    assert "throttle" not in gpu.facts().note
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "pip install nvidia-ml-py" in Nvml().reason


def test_energy_is_asked_once_a_second_and_counted_from_the_first_reading_and_the_bus_of_pcie_never(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Driver(nvmlDeviceGetTotalEnergyConsumption=5_000_000, nvmlDeviceGetPcieThroughput=1)
    gpu = Gpu(opened(monkeypatch, driver), handle=object())
    first = gpu.read(10.0)["energy_joules"]
    driver.answers["nvmlDeviceGetTotalEnergyConsumption"] = 5_300_000
    assert [first, gpu.read(10.5)["energy_joules"], gpu.read(11.0)["energy_joules"]] == [0.0, None, 300.0]
    assert driver.questions == ["nvmlDeviceGetTotalEnergyConsumption"] * 2


def field(value: int, error: int = 0) -> SimpleNamespace:
    return SimpleNamespace(nvmlReturn=error, value=SimpleNamespace(ullVal=value))


def test_links_are_counted_once_a_second_where_gpm_does_not_tell_them(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(nvmlDeviceGetFieldValues=lambda handle, wanted: [field(told[number]) for number, _ in wanted])
    told = {91: 2, 164: 25_000, 138: 1000, 139: 500}
    gpu = Gpu(opened(monkeypatch, driver), handle=object())
    assert gpu.facts().nvlink_peak_bytes_per_second == 2 * 2 * 25e9
    rates = [gpu.read(10.0)["nvlink_bytes_per_second"]]
    told |= {138: 3000, 139: 1500}
    for now, slow in ((10.5, True), (11.5, False), (12.0, True), (12.2, False)):
        rates.append(gpu.read(now, slow)["nvlink_bytes_per_second"])
    assert rates == [None, None, None, 3000 * 1024 / 2.0, 3000 * 1024 / 2.0]
    told |= {138: 0, 139: 0}
    assert gpu.read(14.0)["nvlink_bytes_per_second"] is None, "the counters began again"


@pytest.mark.parametrize("told", [Driver.NVMLError(3), [field(0)], [field(0, error=3)]])
def test_without_links_there_is_no_traffic_and_nothing_more_is_asked(monkeypatch: pytest.MonkeyPatch, told: Any) -> None:
    driver = Driver(nvmlDeviceGetFieldValues=told)
    gpu = Gpu(opened(monkeypatch, driver), handle=object())
    if isinstance(told, list):
        driver.answers["nvmlDeviceGetFieldValues"] = told * 2
    rates = [gpu.read(now)["nvlink_bytes_per_second"] for now in (0.0, 2.0, 4.0)]
    assert rates == [None] * 3 and gpu.facts().nvlink_peak_bytes_per_second is None and gpu.facts().note.count("NVLink") == 0
    assert driver.questions.count("nvmlDeviceGetFieldValues") <= 2
