"""Pure functions of telemetry: throttle reasons, plausible numbers, samples of the host, and the sampling rate."""

import math
import os
import sys
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from fwtui.machine.telemetry import reading_bounds, sampler
from fwtui.machine.telemetry.nvml import Gpu, Nvml
from fwtui.machine.telemetry.sampler import SamplingPace
from fwtui.stream import codec, events
from fwtui.stream.quantity import throttled


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        *((None, ()), (0, ()), (0x1 | 0x2 | 0x100, ()), (0x4, ("power cap",))),
        (0x1 | 0x20 | 0x80, ("thermal", "power brake")),
        (0x8 | 0x40, ("hardware slowdown", "hardware thermal")),
        (0x10000, ("reason 0x10000",)),
    ],
)
def test_throttle_reasons_have_names(mask: int | None, words: tuple[str, ...]) -> None:
    assert throttled(mask) == words


def test_numbers_are_believable_or_none_and_rounding_keeps_four_digits() -> None:
    percent = (42, 0, 110, 151, -1, None, math.nan)
    assert [reading_bounds.share(one) for one in percent] == [0.42, 0.0, 1.1, None, None, None, None]
    assert reading_bounds.in_unit(2**32 - 1, 1e-3) is None
    assert reading_bounds.in_unit(math.inf, 1.0) is None
    assert reading_bounds.in_unit(0, 1.0) == 0
    assert reading_bounds.count(2**64 - 1) is None
    assert [reading_bounds.significant(x) for x in (0.00012344, 123456.0, 0.0, 1979.6)] == [0.0001234, 123500.0, 0.0, 1980.0]


def system(percent: Callable[..., object] = psutil.cpu_percent, clock: Callable[[], object] = psutil.cpu_freq) -> SimpleNamespace:
    """Return a fake of psutil for the host."""
    return SimpleNamespace(cpu_percent=percent, cpu_freq=clock, virtual_memory=psutil.virtual_memory)


def test_a_host_without_a_clock_or_a_window_says_none() -> None:
    times = iter([None, SimpleNamespace(current=0.0), SimpleNamespace(current=2600.0)])
    reader = sampler.Host(0.0, sampler.OwnProcesses(), system(clock=lambda: next(times)))
    assert [reader.read(now)["cpu_clock_mhz"] for now in (0.0, 1.0, 2.0, 2.5)] == [None, None, 2600.0, 2600.0]
    reader = sampler.Host(0.0, sampler.OwnProcesses(), system(lambda percpu=False: [37.0] if percpu else 37.0))
    assert [reader.read(now)["cpu_utilisation"] for now in (0.01, 0.1)] == [None, 0.37]
    assert (sampler.processor_seconds(os.getpid()) or 0) > 0 and sampler.processor_seconds(2**22) is None


def test_cpu_time_of_the_program_does_not_count_as_other_work() -> None:
    used = {os.getpid(): 1.0, os.getppid(): 10.0, 77: 100.0}
    own = sampler.OwnProcesses(used.get)
    reader = sampler.Host(0.0, own, system(lambda percpu=False: [0.0, 100.0, 0.0, 50.0] if percpu else 37.5), {1, 3})

    def read(now: float, *spent: float) -> float:
        for pid, more in zip(used, spent, strict=True):
            used[pid] += more
        return reader.read(now)["other_cpu_utilisation"]

    assert read(1.0, 0.1, 0.2, 0.8) == pytest.approx((1.5 - 0.3) / 2), "of the two cores that it may use; nobody named the worker"
    own.workers = (77,)
    assert read(2.0, 0.0, 0.0, 0.8) == pytest.approx(1.5 / 2), "what a process used before it was named says nothing of now"
    assert read(3.0, 0.1, 0.2, 0.8) == pytest.approx((1.5 - 1.1) / 2)
    assert read(4.0, 0.5, 0.5, 0.8) == 0, "counted a little later than the cores were"
    used.pop(77)
    assert read(5.0, 0.1, 0.1) == pytest.approx((1.5 - 0.2) / 2), "it is gone"


def test_the_pace_halves_comes_back_does_not_swing_and_stays_slow_where_asked() -> None:
    pace = SamplingPace(10)
    assert [pace.after(0.019) for _ in range(2)] == [0.1, 0.1]
    slower = [pace.after(0.5) for _ in range(6)]
    assert slower == [0.2, 0.4, 0.8, 1.0, 1.0, 1.0]
    faster = [pace.after(0.001) for _ in range(5)]
    assert faster == [0.5, 0.25, 0.125, 0.1, 0.1]
    pace = SamplingPace(10)
    assert len({pace.after(0.03) for _ in range(20)}) == 1
    pace = SamplingPace(0.25)
    assert [pace.after(3.0), pace.after(0.001)] == [4.0, 4.0]


class Tired(Exception):
    """Raised when the fake sleeper has slept long enough."""


def test_slow_calls_reduce_the_sampling_rate() -> None:
    clock, costs = [100.0], [0.002] * 5 + [0.3] * 10 + [0.001] * 60

    class SlowHost(sampler.Host):
        def __init__(self, started: float, own: sampler.OwnProcesses) -> None:
            self.left = iter(costs)

        def read(self, now: float) -> dict[str, float]:
            assert now == clock[0]
            clock[0] += next(self.left)
            return {"cpu_utilisation": 0.5}

    def sleep(seconds: float) -> None:
        clock[0] += seconds
        if clock[0] > 150:
            raise Tired

    told, tell = os.pipe()
    with pytest.raises((Tired, StopIteration)):
        sampler.Sampler(tell, 100.0, 10, lambda: clock[0], sleep, SlowHost, lambda: ([], "none here")).run((0,))
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        heard = [codec.decode(line[:-1]) for line in pipe]
    times = [round(e.t, 3) for e in heard if isinstance(e, events.Telemetry)]
    between = [round(b - a, 3) for a, b in pairwise(times)]
    assert between[:5] == [0.1] * 5, "while calls are quick"
    assert between[5:9] == [0.3, 0.4, 0.8, 1.0], "a reading that takes longer than the time between two ends it"
    assert set(between[9:14]) == {1.0} and between[-1] == 0.1, "and back when they are quick again"
    assert not [e for e in heard if isinstance(e, events.Notice)]


def test_slow_calls_are_made_to_one_gpu_at_a_time() -> None:
    asked: list[tuple[int, bool]] = []
    turns = iter(range(4))

    def gpu(index: int) -> Any:
        def read(now: float, slow: bool = True) -> dict[str, float]:
            asked.append((index, slow))
            return {}

        return SimpleNamespace(read=read, facts=lambda: events.Device(t=0.0), uuid="", lost=False)

    def sleep(seconds: float) -> None:
        if next(turns, None) is None:
            raise Tired

    with open(os.devnull, "wb") as nobody, pytest.raises(Tired):
        sampler.Sampler(nobody.fileno(), 0.0, 10, sleep=sleep, find_gpus=lambda: ([gpu(0), gpu(1)], "")).run((1, 0))
    first, *others = asked[:4], *(asked[at : at + 2] for at in range(4, 12, 2))
    assert first == [(1, True), (0, True)] * 2, "before the first reading, for all that takes longer the first time"
    assert others == [[(1, True), (0, False)], [(1, False), (0, True)]] * 2


class Driver:
    """A fake of pynvml that counts calls and answers from a table, in which a number is an NVML error."""

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


def test_energy_is_read_each_second_from_the_first_on_and_the_bus_of_pcie_never(monkeypatch: pytest.MonkeyPatch) -> None:
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
