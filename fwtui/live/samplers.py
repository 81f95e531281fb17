"""The processes of a live session that sample: telemetry all the time, and the warps of runs that are over."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from fwtui.common.environment import worker_environment
from fwtui.experiment.device import DeviceId
from fwtui.live import ncu
from fwtui.live.event_child import EventChild, EventModule, StartChild, describe_exit
from fwtui.machine.settings import SAMPLES
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.requests import RunRequest, SampleRequest, Work

RESTARTS = 5
AUTO, _, OFF = SAMPLES
MAX_SECONDS = 1.0  # that it may take where it was not asked for
MODULE = "fwtui.measure.warp_sampling_process"


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
        self._start, self._clock = start or EventModule, clock
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

    def restart(self, origin: float) -> None:
        """Use another clock, after its child has ended."""
        self.child, self._origin = None, origin

    def follow(self, gpus: Sequence[DeviceId]) -> EventChild | None:
        """Switch telemetry to the GPUs in use. Returns the sampler of other GPUs, ended."""
        if tuple(gpus) == self._gpus:
            return None
        self._gpus = tuple(gpus)
        return self._stop_sampler()

    def hold(self) -> EventChild | None:
        """Run no sampler until release(): a profiler needs the same hardware counters. Returns the previous one, ended."""
        self._held = True
        return self._stop_sampler()

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
        message = f"the telemetry process died ({describe_exit(dead.exit_code or 0)}); {after}"
        fault = events.Fault(t=t, source="sampler", code="died", message=message, stderr=dead.last_output)
        dead.close(grace=0)
        return fault

    def _stop_sampler(self) -> EventChild | None:
        child, self.child = self.child, None
        if child is not None:
            child.close(grace=1.0)
        return child


class WarpSampling:
    """Owns the process that will sample a run; a session takes its events."""

    def __init__(self, origin: float, start: StartChild | None = None, permitted: Callable[[], bool] = ncu.permitted):
        self.wanted = OFF
        self.run: int | None = None  # that is being sampled
        self.child: EventChild | None = None
        self._origin, self._start, self._permitted = origin, start or EventModule, permitted
        self._cancelled = False
        self._again = False

    def prepare(self, request: RunRequest) -> None:
        """Start the process that will be needed, which imports meanwhile."""
        if self._suits(request) and self._permitted() and (self.child is None or self.child.exit_code is not None):
            self._begin_child()

    def open(self, model: Model, request: Work | None) -> None:
        """Open the GPU of a run whose passes are timed, for sampling that will soon begin."""
        if isinstance(request, RunRequest) and self._suits(request) and self.child is not None:
            n = model.runs[request.run].n
            self.child.send(SampleRequest(request.run, request.experiment, request.own, n, ahead=True))

    def begin(self, model: Model, done: Work, include_source: bool) -> events.Sampled | None:
        """Sample a run that has just ended, if that is wanted. Returns why it cannot be."""
        if not isinstance(done, RunRequest) or not self._suits(done):
            return None
        run = model.runs[done.run]
        if run.state != "done" or not run.seconds:
            self._end_child()  # the GPU may be open
            return None
        if not self._permitted():
            return events.Sampled(t=0.0, run=run.id, note=ncu.FORBIDDEN)
        self.prepare(done)
        assert self.child is not None
        most = MAX_SECONDS if self.wanted == AUTO else 0.0
        tells = include_source or not done.own
        self.child.send(SampleRequest(run.id, done.experiment, done.own, run.n, run.seconds, most, tells))
        self.run, self._cancelled = run.id, False
        return None

    def restart(self, origin: float) -> None:
        """Use another clock, after its child has ended."""
        self.child, self._origin = None, origin

    def finished(self) -> None:
        """All samples of the run have come. Its process ends: while it has the GPU open, others run up to 0.4 % longer."""
        self._end_child()
        self._again = True

    def keep(self) -> None:
        """After a sampling, begin the process for the next, which imports meanwhile: that takes longer than many a run."""
        if self._again:
            self._begin_child()

    def close_idle(self) -> None:
        """End the process at once if it samples nothing."""
        if self.run is None:
            self._end_child()

    def _begin_child(self) -> None:
        self.child = self._start(MODULE, [], self._origin, worker_environment("real"))
        self._again = False

    def _end_child(self) -> None:
        self.run = None
        child, self.child = self.child, None
        if child is not None:
            child.close(grace=0)

    def cancel(self) -> None:
        """Stop it; over() then says so."""
        if self.run is not None and self.child is not None:
            self._cancelled = True
            self.child.kill()

    def over(self) -> events.Sampled | None:
        """The end of a sampling whose process died, once all its events are taken."""
        child = self.child
        if child is None or not child.gone or child.lines:
            return None
        run, self.run, self.child = self.run, None, None
        words = child.last_output.splitlines()
        child.close(grace=0)
        if run is None:
            return None
        died = f"the sampling process died ({describe_exit(child.exit_code or 0)}){f': {words[-1]}' if words else ''}"
        return events.Sampled(t=0.0, run=run, note="cancelled" if self._cancelled else died)

    def _suits(self, request: RunRequest) -> bool:
        return self.wanted != OFF and not request.brief and request.experiment.runs_on.backend == "cuda"
