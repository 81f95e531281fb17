"""The sampler process with a fake NVML (tests/faults/fake_nvml.c), and its sampling rate."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import pytest

from fwtui.machine import hardware
from fwtui.stream import codec, events, model

GPU_FIELDS = (
    *("gpu_power_watts", "gpu_utilisation", "memory_utilisation", "gpu_clock_mhz", "memory_clock_mhz", "gpu_temperature"),
    *("gpu_memory_bytes", "throttle", "energy_joules", "sm_utilisation", "sm_occupancy", "integer_utilisation"),
    *("fp32_utilisation", "dram_utilisation", "nvlink_bytes_per_second", "pcie_bytes_per_second"),
)


def test_the_device_comes_once_and_then_readings(fake_nvml: Mapping[str, str]) -> None:
    heard = sample(fake_nvml, readings=5)
    device = heard.device
    assert (device.present, device.name, device.compute_capability) == (True, "FAKE NVML test device", (9, 0))
    assert device.peak_bytes_per_second == 2 * 3201e6 * 6016 / 8
    assert (device.memory_bytes, device.max_clock_mhz, device.power_limit_watts) == (2**37, 1980, 700)
    assert (device.nvlink_peak_bytes_per_second, device.pcie_peak_bytes_per_second) == (2 * 2 * 25e9, 2 * 16 * 3.938e9)
    assert (device.driver, device.cuda, device.uuid, device.note) == ("580.00.fake", "13.0", "", "")
    last = heard.telemetry[-1]
    assert (last.gpu_power_watts, last.gpu_utilisation, last.memory_utilisation) == (123.5, 0.42, 0.07)
    assert (last.gpu_clock_mhz, last.memory_clock_mhz, last.gpu_temperature) == (1755, 3200, 41)
    assert (last.gpu_memory_bytes, last.throttle) == (2**30, 4)
    assert last.host_memory_bytes is not None
    assert last.cost_seconds is not None and last.cost_seconds > 0
    times = [reading.t for reading in heard.telemetry]
    assert times == sorted(set(times))
    assert heard.exit_code == 0 and heard.notices == []


def test_gpm_windows_are_long_enough_at_any_rate(fake_nvml: Mapping[str, str]) -> None:
    heard = sample(fake_nvml, readings=8, hz=30)  # the fake refuses windows below 100 ms
    counted = [reading for reading in heard.telemetry if reading.sm_occupancy is not None]
    assert counted == heard.telemetry[-len(counted) :]  # from the first window on, never a gap
    assert (counted[0].sm_utilisation, counted[0].sm_occupancy, counted[0].integer_utilisation) == (0.2, 0.3, 0.4)
    assert counted[0].dram_utilisation == 1.0
    assert counted[0].pcie_bytes_per_second == pytest.approx(410 * 2**20, rel=1e-3), "sent and received"
    assert counted[0].nvlink_bytes_per_second == pytest.approx(1210 * 2**20, rel=1e-3)
    assert all(reading.fp32_utilisation is None for reading in heard.telemetry)  # one metric that the fake lacks


def test_without_gpm_the_rest_is_read(fake_nvml: Mapping[str, str]) -> None:
    heard = sample({**fake_nvml, "FAKE_NVML_NO_GPM": "1"}, readings=5)
    assert all(reading.sm_occupancy is None and reading.gpu_power_watts == 123.5 for reading in heard.telemetry)
    assert heard.device.note == "no GPM: needs Hopper or later"
    assert all(reading.pcie_bytes_per_second is None for reading in heard.telemetry)


def test_a_gpu_without_readings_is_still_listed(fake_nvml: Mapping[str, str]) -> None:
    heard = sample({**fake_nvml, "FAKE_NVML_UNSUPPORTED": "all"})
    assert heard.device.present
    assert (heard.device.memory_bytes, heard.device.peak_bytes_per_second, heard.device.name) == (None, None, "")
    assert "no power: not supported" in heard.device.note
    for reading in heard.telemetry:
        assert [getattr(reading, name) for name in GPU_FIELDS] == [None] * len(GPU_FIELDS)
        assert reading.host_memory_bytes


def test_a_lost_gpu_is_reported_once_and_the_host_is_still_sampled(fake_nvml: Mapping[str, str]) -> None:
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
    assert heard.device.note == "no NVIDIA driver found (libnvidia-ml.so.1 is missing)"
    assert all(getattr(reading, name) is None for reading in heard.telemetry for name in GPU_FIELDS)
    assert heard.telemetry[-1].cpu_utilisation is not None


def test_a_crash_inside_nvml_is_visible_from_outside(fake_nvml: Mapping[str, str]) -> None:
    heard = sample({**fake_nvml, "FAKE_NVML_CRASH_AFTER": "3"}, readings=99)
    assert heard.exit_code == -signal.SIGSEGV
    assert len(heard.telemetry) == 2
    assert "Segmentation fault" in heard.stderr


def test_the_end_of_stdin_ends_it_even_while_nvml_hangs(fake_nvml: Mapping[str, str]) -> None:
    process = start([], {**fake_nvml, "FAKE_NVML_SLOW_MS": "600000"})
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_a_closed_pipe_ends_the_sampler_quietly(no_nvml: Mapping[str, str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = start([], no_nvml, write_end)
    os.close(write_end)
    assert process.wait(timeout=PATIENCE) == 0
    _, stderr = process.communicate()
    assert stderr == b""


def test_telemetry_of_one_of_several_gpus(fake_nvml: Mapping[str, str]) -> None:
    several = {**fake_nvml, "FAKE_NVML_GPUS": "3"}
    assert not sample(several, "--device", "1", readings=1).device.uuid, "it identifies the board"
    third = sample(several, "--device", "2", readings=2).telemetry
    assert [reading.gpu for reading in third] == [2, 2] and third[0].t < third[1].t
    assert all(reading.gpu_power_watts == 125.5 and reading.host_memory_bytes for reading in third)
    heard = sample(several, "--device", "0,7", readings=2)
    told = [(device.gpu, device.present, device.note) for device in heard.devices]
    assert told == [(0, True, ""), (7, False, "GPU 7 was not found; 3 found")] and {r.gpu for r in heard.telemetry} == {0}


def test_several_gpus_are_read_together_and_the_host_once(fake_nvml: Mapping[str, str]) -> None:
    heard = sample({**fake_nvml, "FAKE_NVML_GPUS": "3"}, "--device", "2,0", readings=6)
    assert [device.gpu for device in heard.devices] == [2, 0]
    first, second = heard.telemetry[::2], heard.telemetry[1::2]
    assert [(r.gpu, r.gpu_power_watts) for r in (first[-1], second[-1])] == [(2, 125.5), (0, 123.5)]
    assert [reading.t for reading in first] == [reading.t for reading in second], "one time for all of them"
    assert all(r.host_memory_bytes and r.cost_seconds for r in first)
    assert all(getattr(reading, name) is None for reading in second for name in model.HOST)


def test_a_lost_gpu_leaves_the_others(fake_nvml: Mapping[str, str]) -> None:
    lost = {"FAKE_NVML_GPUS": "2", "FAKE_NVML_LOST_GPU": "0", "FAKE_NVML_LOST_AFTER": "7"}
    heard = sample({**fake_nvml, **lost}, "--device", "0,1", readings=8)
    assert [notice.text[:31] for notice in heard.notices] == ["GPU 0 has fallen off the bus; t"]
    assert [r.gpu for r in heard.telemetry] == [0, 1, 0, 1, 0, 1, 1, 1][: len(heard.telemetry)]
    after = heard.telemetry[-2:]
    assert all(r.gpu == 1 and r.gpu_power_watts == 124.5 and r.host_memory_bytes for r in after), "which now tells of the host"


PATIENCE = 20.0  # seconds, for a process that should need a fraction of one


class Heard(NamedTuple):
    devices: list[events.Device]
    telemetry: list[events.Telemetry]
    notices: list[events.Notice]
    exit_code: int
    stderr: str

    @property
    def device(self) -> events.Device:
        return self.devices[0]


def sample(environment: Mapping[str, str], *arguments: str, readings: int = 3, hz: float = 20) -> Heard:
    """Run the sampler until it has told so many readings (or died), then close its stdin."""
    process = start([repr(time.monotonic()), "--hz", str(hz), *arguments], environment)
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    told: list[Any] = []
    for line in codec.decode_lines(iter(lambda: os.read(pipe, 65536), b"")):
        assert isinstance(line, codec.Line), line
        told.append(line.event)
        if sum(isinstance(event, events.Telemetry) for event in told) == readings:
            break
    _, stderr = process.communicate(timeout=PATIENCE)
    assert isinstance(told[0], events.Device)
    return Heard(
        [event for event in told if isinstance(event, events.Device)],
        [event for event in told if isinstance(event, events.Telemetry)],
        [event for event in told if isinstance(event, events.Notice)],
        process.returncode,
        stderr.decode(),
    )


def start(arguments: list[str], environment: Mapping[str, str], stdout: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    inherited = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "fwtui.machine.telemetry.sampler", *arguments],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**inherited, **environment},
    )


def probe(environment: Mapping[str, str]) -> hardware.Hardware:
    process = start(["--probe"], environment)
    answer, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    return msgspec.json.decode(answer, type=hardware.Hardware)
