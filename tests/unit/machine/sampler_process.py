"""The sampler as a process, and what it told."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from fwtui.machine import hardware
from fwtui.stream import codec, events

PACE = "fewer telemetry readings"  # how the notice begins that a busy machine's sampler may give at any time
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
        [event for event in told if isinstance(event, events.Notice) and not event.text.startswith(PACE)],
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
