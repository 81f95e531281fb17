"""The process that owns NVML: it sends the devices, then telemetry samples until stdin ends; stdin lines name the workers.

    python -P -m fwtui.machine.telemetry.sampler ORIGIN [--hz 10] [--device 0,1]
    python -P -m fwtui.machine.telemetry.sampler --probe

NVML has crashed its caller when a GPU fell off the bus, so nothing else runs in this process.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import psutil

from fwtui.common.child_protocol import Parent, write_all
from fwtui.common.cores import usable_cores
from fwtui.machine.telemetry.nvml import GPM_WINDOW, Gpu, cuda_missing, open_gpus
from fwtui.machine.telemetry.reading_bounds import count, in_unit, share, significant, within
from fwtui.stream import codec, events
from fwtui.stream.requests import Hardware

MAX_OF_INTERVAL = 0.2  # share of the interval that a sample may take
SLOWEST = 1.0  # seconds between samples when they are expensive
MIN_WINDOW = 0.05  # seconds; below this, CPU time is too coarse to divide by
CLOCK_EVERY = 1.0  # seconds; on many cores the call is slow
LOST = "the GPU has fallen off the bus; telemetry continues for the host only; reboot to get the GPU back"
ONE_LOST = "GPU {} has fallen off the bus; telemetry continues for the others; reboot to get it back"


class SamplingPace:
    """The interval between samples: doubled while a sample takes too much of it, halved again when samples are cheap."""

    def __init__(self, hz: float) -> None:
        self.fastest = 1 / hz
        self.interval = self.fastest

    def after(self, cost: float) -> float:
        """Return the seconds from the start of a sample that took `cost` seconds to the start of the next one."""
        if cost > MAX_OF_INTERVAL * self.interval:
            self.interval = max(self.fastest, min(2 * self.interval, SLOWEST))
        elif cost < MAX_OF_INTERVAL * self.interval / 4:  # cheap even at twice the rate, with a margin
            self.interval = max(self.fastest, self.interval / 2)
        return self.interval


def processor_seconds(pid: int) -> float | None:
    """Return the CPU time of that process so far in seconds; None if it is gone or access is denied."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return None
    return times.user + times.system


class OwnProcesses:
    """This program's own processes: the sampler, its parent, and the workers named by the parent."""

    def __init__(self, used: Callable[[int], float | None] = processor_seconds) -> None:
        self.workers: tuple[int, ...] = ()
        self._used = used
        self._before: dict[int, float] = {}

    def seconds(self) -> float:
        """Return the CPU seconds that they used since the last call."""
        now = {pid: used for pid in (os.getpid(), os.getppid(), *self.workers) if (used := self._used(pid)) is not None}
        spent = sum(max(0.0, used - self._before.get(pid, used)) for pid, used in now.items())
        self._before = now
        return spent


class Host:
    """CPU utilisation since the last sample, memory in use, CPU clock (at most a second old)."""

    def __init__(self, now: float, processes: OwnProcesses, system: Any = psutil, cores: Iterable[int] | None = None) -> None:
        """`system` provides all values; `cores` are those that this program may use."""
        self._own, self._system = processes, system
        self._cores = sorted(usable_cores() if cores is None else cores)
        system.cpu_percent()  # the first call only starts the window
        self._others(1.0)
        self._read_at = now
        self._clock_at: float | None = None
        self._clock: float | None = None

    def read(self, now: float) -> dict[str, Any]:
        """Return fields of events.Telemetry; `now` in monotonic seconds."""
        utilisation = others = None
        if now - self._read_at >= MIN_WINDOW:
            utilisation, others = share(self._system.cpu_percent()), self._others(now - self._read_at)
            self._read_at = now
        if self._clock_at is None or now - self._clock_at >= CLOCK_EVERY:
            self._clock, self._clock_at = self._clock_mhz(), now
        memory = self._system.virtual_memory()
        return {
            "cpu_utilisation": utilisation,
            "other_cpu_utilisation": others,
            "cpu_clock_mhz": self._clock,
            "host_memory_bytes": count(memory.total - memory.available),
        }

    def _others(self, seconds: float) -> float | None:
        """Return the share of this program's cores that other programs used since the last call."""
        percentages = self._system.cpu_percent(percpu=True)
        busy = sum(percentages[core] for core in self._cores if core < len(percentages)) / 100
        return within(max(0.0, busy - self._own.seconds() / seconds) / len(self._cores), 0, 1)

    def _clock_mhz(self) -> float | None:
        try:
            frequency = self._system.cpu_freq()
        except (OSError, NotImplementedError, RuntimeError, AttributeError):  # psutil has no single way to report "unknown"
            return None
        return in_unit(frequency.current, 1.0) or None if frequency is not None else None


class Sampler:
    """Samples of the host and of GPUs, written as lines to a pipe. `origin` is monotonic time zero."""

    def __init__(
        self,
        descriptor: int,
        origin: float,
        hz: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        host: Callable[[float, OwnProcesses], Host] = Host,
        find_gpus: Callable[[], tuple[list[Gpu], str]] = open_gpus,
    ) -> None:
        self._descriptor = descriptor
        self._origin = origin
        self.own = OwnProcesses()
        self._pace = SamplingPace(hz)
        self._clock = clock
        self._sleep = sleep
        self._host, self._find_gpus = host, find_gpus

    def run(self, indices: Sequence[int]) -> None:
        """Send the devices, then samples forever. Raises OSError when the reader has closed the pipe."""
        gpus, reason = self._find_gpus()
        host = self._host(self._clock(), self.own)
        followed = {index: gpus[index] for index in indices if index < len(gpus)}
        for index in indices:
            gpu = followed.get(index)
            if gpu is not None:
                gpu.read(self._clock())  # the first samples take milliseconds, and show which quantities this GPU lacks
            self._tell(self._device(index, gpu, reason or f"GPU {index} was not found; {len(gpus)} found"))
        if len(followed) > 1:  # the first windows of GPM also take milliseconds, for eight GPUs more than a sample may take
            self._sleep(GPM_WINDOW)
            for gpu in followed.values():
                gpu.read(self._clock())
        for turn in itertools.count():
            started = self._clock()
            of_host = host.read(started)
            # slow calls to one GPU at a time: those of eight would take the time of all other calls together
            slow = list(followed)[turn % len(followed)] if followed else None
            readings = {index: gpu.read(self._clock(), index == slow) for index, gpu in followed.items()} or {indices[0]: {}}
            cost = self._clock() - started
            for place, (index, values) in enumerate(readings.items()):
                host_fields = {**of_host, "cost_seconds": cost} if place == 0 else {}
                self._tell(self._telemetry(index, started, values | host_fields))
            for index in [index for index, gpu in followed.items() if gpu.lost]:
                del followed[index]
                text = ONE_LOST.format(index) if followed else LOST
                self._tell(events.Notice(t=self._time(self._clock()), text=text, level="error"))
            due = started + self._pace.after(cost)
            self._sleep(max(0.0, due - self._clock()))

    def _device(self, index: int, gpu: Gpu | None, reason: str) -> events.Device:
        t = self._time(self._clock())
        if gpu is None:
            return events.Device(t=t, gpu=index, present=False, note=reason)
        return msgspec.structs.replace(gpu.facts(), t=t, gpu=index, uuid="")  # a UUID identifies the board

    def _telemetry(self, index: int, started: float, values: Mapping[str, Any]) -> events.Telemetry:
        rounded: dict[str, Any] = {
            name: significant(value) if isinstance(value, float) else value for name, value in values.items()
        }
        joules = values.get("energy_joules")  # cumulative: with four digits a long session would hide a short run
        rounded["energy_joules"] = None if joules is None else round(joules, 1)
        return events.Telemetry(t=self._time(started), gpu=index, **rounded)

    def _time(self, now: float) -> float:
        return max(0.0, round(now - self._origin, 4))

    def _tell(self, event: events.Event) -> None:
        write_all(self._descriptor, codec.encode(event))


def probe() -> Hardware:
    """Return the GPUs that CUDA sees on this machine, with all their NVML facts."""
    gpus, reason = open_gpus()
    if gpus and (missing := cuda_missing()):
        return Hardware(reason=missing)
    for gpu in gpus:
        gpu.read(time.monotonic())  # the facts then list the missing quantities
    return Hardware(gpus=tuple(gpu.facts() for gpu in gpus), gpm=any(gpu.gpm.supported for gpu in gpus), reason=reason)


def main() -> None:
    """Run the sampler process."""
    parser = argparse.ArgumentParser(prog="fwtui.machine.telemetry.sampler")
    parser.add_argument("origin", type=float, nargs="?", default=0.0)
    parser.add_argument("--hz", type=float, default=10.0)
    parser.add_argument("--device", type=_numbers, default=(0,))
    parser.add_argument("--probe", action="store_true")
    options = parser.parse_args()
    parent = Parent()
    if options.probe:
        parent.send(probe())
        return
    sampler = Sampler(parent.descriptor, options.origin, options.hz)
    threading.Thread(target=_listen, args=(sampler.own, parent), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        sampler.run(options.device)
    parent.leave()


def _listen(processes: OwnProcesses, parent: Parent) -> None:
    """Read the workers' process ids, line by line; end the sampler when the parent hangs up."""
    try:
        for line in parent.requests:
            processes.workers = tuple(map(int, line.split()))
    finally:
        parent.leave()  # at once, even while NVML hangs


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(one) for one in text.split(",")))


if __name__ == "__main__":
    main()
