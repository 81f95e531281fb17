"""The sampler against a fake NVML (tests/faults/fake_nvml.c), and the pure parts of telemetry."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
import pytest

from fwtui import codec, events, hardware, sampler
from fwtui.sampler import Pace
from fwtui.telemetry import bounds, host
from fwtui.telemetry.nvml import Gpu, Nvml
from fwtui.telemetry.throttle import throttled

FAKE = Path(__file__).resolve().parents[1] / "faults" / "fake_nvml.c"
PATIENCE = 20.0  # seconds, for a process that should need a fraction of one
GPU_FIELDS = (
    *("gpu_power_watts", "gpu_utilisation", "memory_utilisation", "gpu_clock_mhz", "memory_clock_mhz", "gpu_temperature"),
    *("gpu_memory_bytes", "throttle", "energy_joules", "sm_utilisation", "sm_occupancy", "integer_utilisation"),
    *("fp32_utilisation", "dram_utilisation"),
)


@pytest.fixture(scope="session")
def fake_nvml(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Environment variables under which libnvidia-ml.so.1 is the fake."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler on Linux to build the fake NVML")
    folder = tmp_path_factory.mktemp("nvml")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1"), str(FAKE)], check=True)
    return {"LD_LIBRARY_PATH": str(folder)}


@pytest.fixture
def no_nvml(tmp_path: Path) -> Mapping[str, str]:
    """Environment variables under which there is no NVML, even where there is a driver."""
    (tmp_path / "libnvidia-ml.so.1").touch()  # the loader stops at it and cannot load it
    return {"LD_LIBRARY_PATH": str(tmp_path)}


class Heard(NamedTuple):
    device: events.Device
    telemetry: list[events.Telemetry]
    notices: list[events.Notice]
    exit_code: int
    stderr: str


def sample(environment: Mapping[str, str], *arguments: str, readings: int = 3, hz: float = 20) -> Heard:
    """Run the sampler until it has told so many readings (or died), then close its stdin."""
    read_end, write_end = os.pipe()
    command = ["--fd", str(write_end), "--origin", repr(time.monotonic()), "--hz", str(hz), *arguments]
    process = start(command, environment, write_end)
    os.close(write_end)
    told: list[Any] = []
    with open(read_end, "rb", buffering=0) as pipe:
        chunks = iter(lambda: pipe.read(65536), b"")
        for line in codec.decode_lines(chunks):
            assert isinstance(line, codec.Line), line
            told.append(line.event)
            if sum(isinstance(event, events.Telemetry) for event in told) == readings:
                break
    _, stderr = process.communicate(timeout=PATIENCE)
    assert isinstance(told[0], events.Device)
    return Heard(
        told[0],
        [event for event in told if isinstance(event, events.Telemetry)],
        [event for event in told if isinstance(event, events.Notice)],
        process.returncode,
        stderr.decode(),
    )


def start(arguments: list[str], environment: Mapping[str, str], *descriptors: int) -> subprocess.Popen[bytes]:
    inherited = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "fwtui.sampler", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=descriptors,
        env={**inherited, **environment},
    )


def probe(environment: Mapping[str, str]) -> hardware.Hardware:
    process = start(["--probe"], environment)
    answer, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    return msgspec.json.decode(answer, type=hardware.Hardware)


def test_the_device_comes_once_and_then_readings(fake_nvml: Mapping[str, str]) -> None:
    heard = sample(fake_nvml, readings=5)
    device = heard.device
    assert (device.present, device.name, device.compute_capability) == (True, "FAKE NVML test device", (9, 0))
    assert device.peak_bytes_per_second == 2 * 3201e6 * 6016 / 8
    assert (device.memory_bytes, device.max_clock_mhz, device.power_limit_watts) == (2**37, 1980, 700)
    assert (device.driver, device.cuda, device.uuid, device.note) == ("580.00.fake", "13.0", "", "")
    last = heard.telemetry[-1]
    assert (last.gpu_power_watts, last.gpu_utilisation, last.memory_utilisation) == (123.5, 0.42, 0.07)
    assert (last.gpu_clock_mhz, last.memory_clock_mhz, last.gpu_temperature) == (1755, 3200, 41)
    assert (last.gpu_memory_bytes, last.throttle) == (2**30, 4)
    assert last.host_memory_bytes is not None
    assert last.cost_seconds is not None and last.cost_seconds > 0
    times = [reading.t for reading in heard.telemetry]
    assert times == sorted(set(times))
    assert heard.exit_code == 0
    assert not heard.notices


def test_gpm_windows_are_long_enough_at_any_rate(fake_nvml: Mapping[str, str]) -> None:
    heard = sample(fake_nvml, readings=8, hz=30)  # the fake refuses windows below 100 ms
    counted = [reading for reading in heard.telemetry if reading.sm_occupancy is not None]
    assert counted == heard.telemetry[-len(counted) :]  # from the first window on, never a gap
    assert (counted[0].sm_utilisation, counted[0].sm_occupancy, counted[0].integer_utilisation) == (0.2, 0.3, 0.4)
    assert counted[0].dram_utilisation == 1.0
    assert all(reading.fp32_utilisation is None for reading in heard.telemetry)  # one metric that the fake lacks


def test_without_gpm_the_rest_is_read(fake_nvml: Mapping[str, str]) -> None:
    heard = sample({**fake_nvml, "FAKE_NVML_NO_GPM": "1"}, readings=5)
    assert all(reading.sm_occupancy is None and reading.gpu_power_watts == 123.5 for reading in heard.telemetry)
    assert heard.device.note == "no GPM: needs Hopper or later"


@pytest.mark.parametrize(
    ("question", "absent"),
    [
        ("power", {"gpu_power_watts"}),
        ("utilisation", {"gpu_utilisation", "memory_utilisation"}),
        ("throttle", {"throttle"}),
    ],
)
def test_what_is_not_supported_is_none_and_never_zero(fake_nvml: Mapping[str, str], question: str, absent: set[str]) -> None:
    heard = sample({**fake_nvml, "FAKE_NVML_UNSUPPORTED": question}, readings=5)
    elsewhere = {"fp32_utilisation", "energy_joules"}  # never there, only sometimes there
    for name in set(GPU_FIELDS) - elsewhere:
        assert (getattr(heard.telemetry[-1], name) is None) == (name in absent), name
    assert heard.device.note.startswith(f"no {question}")


def test_a_gpu_that_tells_nothing_is_still_there(fake_nvml: Mapping[str, str]) -> None:
    heard = sample({**fake_nvml, "FAKE_NVML_UNSUPPORTED": "all"})
    assert heard.device.present
    assert (heard.device.memory_bytes, heard.device.peak_bytes_per_second, heard.device.name) == (None, None, "")
    assert "no power: not supported" in heard.device.note
    for reading in heard.telemetry:
        assert [getattr(reading, name) for name in GPU_FIELDS] == [None] * len(GPU_FIELDS)
        assert reading.host_memory_bytes


def test_a_lost_gpu_is_said_once_and_the_host_goes_on(fake_nvml: Mapping[str, str]) -> None:
    heard = sample({**fake_nvml, "FAKE_NVML_LOST_AFTER": "3"}, readings=7)
    assert [notice.level for notice in heard.notices] == ["error"]
    assert "fallen off the bus" in heard.notices[0].text
    powers = [reading.gpu_power_watts for reading in heard.telemetry]
    assert powers == [123.5] * 2 + [None] * 5  # one reading came before the device was told
    assert all(getattr(reading, name) is None for reading in heard.telemetry[3:] for name in GPU_FIELDS)
    assert all(reading.host_memory_bytes for reading in heard.telemetry)


def test_without_a_driver_the_host_is_sampled_alone(no_nvml: Mapping[str, str]) -> None:
    heard = sample(no_nvml)
    assert not heard.device.present
    assert heard.device.note == "there is no NVIDIA driver here (libnvidia-ml.so.1 was not found)"
    assert all(getattr(reading, name) is None for reading in heard.telemetry for name in GPU_FIELDS)
    assert heard.telemetry[-1].cpu_utilisation is not None


@pytest.mark.parametrize(("code", "words"), [(4, "--gpus all"), (9, "not loaded"), (18, "updated"), (999, "does not start")])
def test_a_driver_that_does_not_start_says_why(fake_nvml: Mapping[str, str], code: int, words: str) -> None:
    found = probe({**fake_nvml, "FAKE_NVML_INIT": str(code)})
    assert found.gpus == ()
    assert words in found.reason


def test_expensive_readings_come_less_often(fake_nvml: Mapping[str, str]) -> None:
    heard = sample({**fake_nvml, "FAKE_NVML_SLOW_MS": "40"}, readings=5)
    assert heard.telemetry[-1].t - heard.telemetry[-2].t > 0.19  # asked for 0.05
    assert all(reading.cost_seconds is not None and reading.cost_seconds >= 0.04 for reading in heard.telemetry)


def test_a_crash_inside_nvml_is_visible_from_outside(fake_nvml: Mapping[str, str]) -> None:
    heard = sample({**fake_nvml, "FAKE_NVML_CRASH_AFTER": "3"}, readings=99)
    assert heard.exit_code == -signal.SIGSEGV
    assert len(heard.telemetry) == 2
    assert "Segmentation fault" in heard.stderr


def test_the_end_of_stdin_ends_it_even_while_nvml_hangs(fake_nvml: Mapping[str, str]) -> None:
    process = start([], {**fake_nvml, "FAKE_NVML_SLOW_MS": "600000"})
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_nobody_listening_ends_it_quietly(no_nvml: Mapping[str, str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = start(["--fd", str(write_end)], no_nvml, write_end)
    os.close(write_end)
    assert process.wait(timeout=PATIENCE) == 0
    _, stderr = process.communicate()
    assert stderr == b""


def test_the_board_is_named_only_on_request(fake_nvml: Mapping[str, str]) -> None:
    several = {**fake_nvml, "FAKE_NVML_GPUS": "3"}
    assert sample(several, "--identify", "--device", "1", readings=1).device.uuid == "GPU-1-fake"
    assert sample(several, "--identify", "--uuid", "GPU-2-fake", readings=1).device.uuid == "GPU-2-fake"
    assert sample(several, "--identify", "--device", "auto", readings=1).device.uuid == "GPU-0-fake"
    missing = sample(several, "--device", "7", readings=1).device
    assert (missing.present, missing.note) == (False, "there is no GPU 7; 3 found")


@pytest.mark.parametrize(
    ("visible", "numbers"),
    [("2,0", [2, 0]), ("GPU-1", [1]), ("1,-1,0", [1]), ("1,GPU-9,0", [1]), (" 1 , 2 ", [1, 2]), ("", []), ("5", [])],
)
def test_gpus_are_numbered_as_cuda_numbers_them(fake_nvml: Mapping[str, str], visible: str, numbers: list[int]) -> None:
    found = probe({**fake_nvml, "FAKE_NVML_GPUS": "3", "CUDA_VISIBLE_DEVICES": visible})
    assert [gpu.uuid for gpu in found.gpus] == [f"GPU-{number}-fake" for number in numbers]
    assert ("hides every GPU" in found.reason) == (not numbers)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """For tests that ask hardware.gpus() anew, and leave nothing cached."""
    hardware.gpus.cache_clear()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    yield monkeypatch
    hardware.gpus.cache_clear()


def test_hardware_finds_the_gpus_through_a_child(fake_nvml: Mapping[str, str], asked: pytest.MonkeyPatch) -> None:
    for name, value in {**fake_nvml, "FAKE_NVML_GPUS": "2"}.items():
        asked.setenv(name, value)
    found = hardware.gpus()
    assert [(gpu.name, gpu.compute_capability, gpu.gpm) for gpu in found.gpus] == [("FAKE NVML test device", (9, 0), True)] * 2
    assert found.reason == ""
    assert found.gpus[0].bus_width_bits == 6016
    assert hardware.gpus() is found


@pytest.mark.parametrize(("fault", "words"), [("CRASH_AFTER", "crashed while it was asked"), ("SLOW_MS", "did not answer")])
def test_a_driver_that_crashes_or_hangs_is_a_reason(
    fake_nvml: Mapping[str, str], asked: pytest.MonkeyPatch, fault: str, words: str
) -> None:
    asked.setenv("LD_LIBRARY_PATH", fake_nvml["LD_LIBRARY_PATH"])
    asked.setenv(f"FAKE_NVML_{fault}", "0" if fault == "CRASH_AFTER" else "600000")
    if fault == "SLOW_MS":
        asked.setattr(hardware, "PROBE_SECONDS", 0.5)
    found = hardware.gpus()
    assert found.gpus == ()
    assert words in found.reason


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


def test_the_pace_halves_down_to_once_a_second_and_comes_back() -> None:
    pace = Pace(10)
    assert [pace.after(0.019) for _ in range(2)] == [0.1, 0.1]
    slower = [pace.after(0.5) for _ in range(6)]
    assert slower == [0.2, 0.4, 0.8, 1.0, 1.0, 1.0]
    faster = [pace.after(0.001) for _ in range(5)]
    assert faster == [0.5, 0.25, 0.125, 0.1, 0.1]


def test_the_pace_does_not_swing_between_two_rates() -> None:
    pace = Pace(10)
    assert len({pace.after(0.03) for _ in range(20)}) == 1


def test_a_slow_rate_that_was_asked_for_stays() -> None:
    pace = Pace(0.25)
    assert [pace.after(3.0), pace.after(0.001)] == [4.0, 4.0]


class Tired(Exception):
    """The fake sleeper has slept long enough."""


def test_slow_calls_make_the_sampler_back_off_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    now, costs = [100.0], [0.002] * 5 + [0.3] * 10 + [0.001] * 60

    class SlowHost:
        def __init__(self, started: float) -> None:
            self.left = iter(costs)

        def read(self, started: float) -> dict[str, float]:
            assert started == now[0]
            now[0] += next(self.left)
            return {"cpu_utilisation": 0.5}

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] > 150:
            raise Tired

    monkeypatch.setattr(sampler, "Host", SlowHost)
    monkeypatch.setattr(sampler, "open_gpu", lambda device, uuid: (None, "none here"))
    told, tell = os.pipe()
    with pytest.raises((Tired, StopIteration)):
        sampler.Sampler(tell, 100.0, 10, clock=lambda: now[0], sleep=sleep).run("0", None, False)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        heard = [codec.decode(line[:-1]) for line in pipe]
    times = [round(e.t, 3) for e in heard if isinstance(e, events.Telemetry)]
    between = [round(b - a, 3) for a, b in pairwise(times)]
    assert between[:5] == [0.1] * 5, "while calls are quick"
    assert between[5:9] == [0.3, 0.4, 0.8, 1.0], "a reading that takes longer than the time between two ends it"
    assert set(between[9:14]) == {1.0} and between[-1] == 0.1, "and back when they are quick again"
    notices = [(e.level, e.text) for e in heard if isinstance(e, events.Notice)]
    assert notices == [
        ("warning", "fewer telemetry readings: one took 300 ms, more than a fifth of the time between two"),
    ], "the second sentence waits until half a minute has passed"


def test_the_pace_tells_both_ways_and_not_often() -> None:
    pace = Pace(10)
    assert pace.news(0.001, 0.0) == ("", "")
    pace.after(0.05)
    assert pace.news(0.05, 1.0)[0].startswith("fewer telemetry readings: one took 50 ms")
    assert pace.news(0.05, 1.1) == ("", "")
    pace.after(0.001)
    assert pace.news(0.001, 2.0) == ("", "") and pace.news(0.001, 31.5) == (
        "telemetry readings are quick again: 10 a second",
        "info",
    )


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (None, ()),
        (0, ()),
        (0x1 | 0x2 | 0x100, ()),
        (0x4, ("power cap",)),
        (0x1 | 0x20 | 0x80, ("thermal", "power brake")),
        (0x8 | 0x40, ("hardware slowdown", "hardware thermal")),
        (0x10000, ("reason 0x10000",)),
    ],
)
def test_throttle_reasons_in_words(mask: int | None, words: tuple[str, ...]) -> None:
    assert throttled(mask) == words


@pytest.mark.parametrize(("percent", "expected"), [(42, 0.42), (0, 0.0), (110, 1.1), (151, None), (-1, None), (None, None)])
def test_shares_are_believable_or_none(percent: float | None, expected: float | None) -> None:
    assert bounds.share(percent) == expected


def test_numbers_that_mean_unknown_are_none() -> None:
    assert bounds.share(math.nan) is None
    assert bounds.scaled(2**32 - 1, 1e-3) is None
    assert bounds.scaled(math.inf, 1.0) is None
    assert bounds.scaled(0, 1.0) == 0
    assert bounds.count(2**64 - 1) is None


def test_rounding_keeps_four_digits_of_any_size() -> None:
    assert [bounds.significant(x) for x in (0.00012344, 123456.0, 0.0, 1979.6)] == [0.0001234, 123500.0, 0.0, 1980.0]


def test_a_host_without_a_clock_says_none(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([None, SimpleNamespace(current=0.0), SimpleNamespace(current=2600.0)])
    monkeypatch.setattr(host.psutil, "cpu_freq", lambda: next(times))
    reader = host.Host(0.0)
    assert [reader.read(now)["cpu_clock_mhz"] for now in (0.0, 1.0, 2.0, 2.5)] == [None, None, 2600.0, 2600.0]


def test_cpu_time_over_too_short_a_window_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.psutil, "cpu_percent", lambda: 37.0)
    reader = host.Host(0.0)
    assert [reader.read(now)["cpu_utilisation"] for now in (0.01, 0.1)] == [None, 0.37]
