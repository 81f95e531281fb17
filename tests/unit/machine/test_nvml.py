"""Reading a GPU through a driver that answers from a table."""

from __future__ import annotations

import sys
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
            return answer

        return ask


def opened(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> Nvml:
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    return Nvml()


def test_a_function_that_the_driver_lacks_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(nvmlDeviceGetPowerUsage=Driver.NVMLError(13), nvmlDeviceGetTemperature=Driver.NVMLError(3))
    gpu = Gpu(opened(monkeypatch, driver), handle=object())
    for _ in range(3):
        assert gpu.read(0.0)["gpu_power_watts"] is None
    assert driver.questions.count("nvmlDeviceGetPowerUsage") == 1
    assert driver.questions.count("nvmlDeviceGetTemperature") == 3  # not supported now may be supported later
    assert gpu.reasons["power"] == "error 13"


def test_old_names_and_bytes_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(nvmlDeviceGetCurrentClocksThrottleReasons=8, nvmlDeviceGetName=b"Tesla \xff")
    gpu = Gpu(opened(monkeypatch, driver), handle=object())
    assert gpu.read(0.0)["throttle"] == 8
    assert gpu.facts().name == "Tesla \ufffd"
    assert "throttle" not in gpu.facts().note


def test_energy_is_asked_once_a_second_and_counted_from_the_first_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(nvmlDeviceGetTotalEnergyConsumption=5_000_000)
    gpu = Gpu(opened(monkeypatch, driver), handle=object())
    first = gpu.read(10.0)["energy_joules"]
    driver.answers["nvmlDeviceGetTotalEnergyConsumption"] = 5_300_000
    assert [first, gpu.read(10.5)["energy_joules"], gpu.read(11.0)["energy_joules"]] == [0.0, None, 300.0]
    assert driver.questions.count("nvmlDeviceGetTotalEnergyConsumption") == 2


def test_the_bus_of_pcie_is_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(nvmlDeviceGetPcieThroughput=1)
    gpu = Gpu(opened(monkeypatch, driver), handle=object())
    gpu.read(0.0)
    gpu.facts()
    assert driver.questions == []


def test_without_the_package_the_reason_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "pip install nvidia-ml-py" in Nvml().reason
