"""The telemetry of a live session: a sampler process, restarted if it dies and stopped while a profiler needs the GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from fwtui.experiment.device import DeviceId
from fwtui.live.child import Child, EventChild, StartChild, epitaph
from fwtui.stream import events

RESTARTS = 5


class Sampling:
    """Owns one sampler. Callers of hold() and follow() take its remaining events; `keep()` starts the next one when due."""

    def __init__(
        self,
        origin: float,
        hz: float,
        gpu: DeviceId,
        identify: bool,
        start: StartChild | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.child: EventChild | None = None
        self._start, self._clock = start or Child, clock
        self._origin = origin
        self._arguments = ["--hz", f"{hz:g}", *(["--identify"] * identify)]
        self._wanted = hz > 0
        self._held = False
        self._gpus: tuple[DeviceId, ...] = (gpu,)  # that are followed
        self._workers: tuple[int, ...] = ()  # the processes that measure
        self._deaths = 0
        self._due = origin

    def keep(self) -> None:
        """Start a sampler if there is none, telemetry is wanted and the delay after a crash is over."""
        if self.child is None and self._wanted and not self._held and self._clock() >= self._due:
            arguments = [*self._arguments, "--device", ",".join(map(str, self._gpus))]
            self.child = self._start("fwtui.machine.telemetry.sampler", arguments, self._origin, None)
            self._name_workers()

    def measures(self, workers: tuple[int, ...]) -> None:
        """Count the CPU time of these processes as this program's own."""
        if workers != self._workers:
            self._workers = workers
            self._name_workers()

    def _name_workers(self) -> None:
        if self.child is not None and self._workers:
            self.child.send(b" ".join(b"%d" % worker for worker in self._workers) + b"\n")

    def begin_again(self, origin: float) -> None:
        """Use another clock, after its child has ended."""
        self.child, self._origin = None, origin

    def follow(self, gpus: Sequence[DeviceId]) -> EventChild | None:
        """Switch telemetry to the GPUs in use. Returns the sampler of other GPUs, ended."""
        if tuple(gpus) == self._gpus:
            return None
        self._gpus = tuple(gpus)
        return self._dismiss()

    def hold(self) -> EventChild | None:
        """Run no sampler until release(): a profiler needs the same hardware counters. Returns the previous one, ended."""
        self._held = True
        return self._dismiss()

    def release(self) -> None:
        self._held = False

    def died(self, t: float) -> events.Fault | None:
        """The event at `t` for a sampler that died, once all its events are taken."""
        dead = self.child
        if dead is None or not dead.gone or dead.lines:
            return None
        self.child = None
        self._deaths += 1
        self._due = self._clock() + 2.0**self._deaths
        self._wanted = self._deaths <= RESTARTS
        after = f"it starts again in {2**self._deaths} s" if self._wanted else "telemetry stops"
        message = f"the telemetry process died ({epitaph(dead.exit_code or 0)}); {after}"
        fault = events.Fault(t=t, source="sampler", code="died", message=message, stderr=dead.last_words)
        dead.close(grace=0)
        return fault

    def _dismiss(self) -> EventChild | None:
        child, self.child = self.child, None
        if child is not None:
            child.close(grace=1.0)
        return child
