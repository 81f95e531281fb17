"""The sampling processes of a live session: continuous telemetry, and PC samples of finished runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from fwtui.common.environment import worker_environment
from fwtui.experiment.device import DeviceId
from fwtui.live import ncu
from fwtui.live.event_child import EventChild, StartChild, SupervisedEvents, describe_exit
from fwtui.machine.settings import SAMPLES
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.requests import RunRequest, SampleRequest, Work

RESTARTS = 5
AUTO, _, OFF = SAMPLES
MAX_SECONDS = 1.0  # limit unless the user requested samples


class Sampling(SupervisedEvents):
    """The sampler. Callers of hold() and follow() take its remaining events; `restart_if_due()` starts the next one."""

    def __init__(self, start: StartChild, hz: float, gpu: DeviceId, clock: Callable[[], float] = time.monotonic):
        super().__init__(self._start_sampler)
        self._start_child, self._clock = start, clock
        self._arguments = ["--hz", f"{hz:g}"]
        self._wanted = hz > 0
        self._held = False
        self._gpus: tuple[DeviceId, ...] = (gpu,)  # the followed GPUs
        self._workers: tuple[int, ...] = ()  # the process ids of the workers
        self._deaths = 0
        self._due = clock()

    def _start_sampler(self) -> EventChild:
        arguments = [*self._arguments, "--device", ",".join(map(str, self._gpus))]
        return self._start_child("fwtui.machine.telemetry.sampler", arguments, None)

    def restart_if_due(self) -> None:
        """Start a sampler if none runs, telemetry is on and the delay after a failure is over; died() reports a failure."""
        if self.child is None and self._wanted and not self._held and self._clock() >= self._due:
            self.prepare()
            self._name_workers()

    def measures(self, workers: tuple[int, ...]) -> None:
        """Count the CPU time of these processes as this program's."""
        if workers != self._workers:
            self._workers = workers
            self._name_workers()

    def _name_workers(self) -> None:
        if self.child is not None and self._workers:
            self.child.send(b" ".join(b"%d" % worker for worker in self._workers) + b"\n")

    def follow(self, gpus: Sequence[DeviceId]) -> EventChild | None:
        """Switch telemetry to these GPUs. End and return the sampler of the previous ones; None if they are the same."""
        if tuple(gpus) == self._gpus:
            return None
        self._gpus = tuple(gpus)
        return self.close(grace=1.0)

    def hold(self) -> EventChild | None:
        """Run no sampler until release(): a profiler needs the same hardware counters. End and return the present sampler."""
        self._held = True
        return self.close(grace=1.0)

    def release(self) -> None:
        self._held = False

    def died(self, t: float) -> events.Fault | None:
        """Return the event at `t` for a sampler that could not be started, or that died and has no more events."""
        message, self.start_error, output = self.start_error, "", ""
        if (dead := self.dead()) is not None:
            message, output = f"the telemetry process died ({describe_exit(dead.exit_code or 0)})", dead.last_output
        if not message:
            return None
        self._deaths += 1
        self._due = self._clock() + 2.0**self._deaths
        self._wanted = self._deaths <= RESTARTS
        after = f"it starts again in {2**self._deaths} s" if self._wanted else "telemetry stops"
        return events.Fault(t=t, source="sampler", code="died", message=f"{message}; {after}", stderr=output)


class WarpSampling(SupervisedEvents):
    """The process that samples a run; a session takes its events."""

    def __init__(self, start: StartChild, permitted: Callable[[], bool] = ncu.permitted):
        super().__init__(lambda: start("fwtui.measure.warp_sampling_process", [], worker_environment("real")))
        self.mode = OFF
        self.run: int | None = None  # the run being sampled
        self._permitted = permitted
        self._cancelled = False
        self._again = False

    def prepare_for(self, request: Work) -> None:
        """Start the process for the coming run; it imports during the run."""
        if isinstance(request, RunRequest) and self._suits(request) and self._permitted():
            self.prepare()

    def open(self, model: Model, request: Work | None) -> None:
        """Open the GPU of a run in its timed repetitions, for the sampling that follows."""
        if isinstance(request, RunRequest) and self._suits(request) and self.child is not None:
            n = model.runs[request.run].n
            self.child.send(SampleRequest(request.run, request.experiment, request.own, n, ahead=True))

    def begin(self, model: Model, done: RunRequest, include_source: bool) -> events.Sampled | None:
        """Sample a run that has just ended, if requested. Return the event with the reason if that is impossible."""
        if not self._suits(done):
            return None
        run = model.runs[done.run]
        if run.state != "done" or not run.seconds:
            self.close()  # the process may have opened the GPU
            return None
        if not self._permitted():
            return events.Sampled(t=0.0, run=run.id, note=ncu.FORBIDDEN)
        self.prepare()
        if self.child is None:
            return events.Sampled(t=0.0, run=run.id, note=self.start_error)
        most = MAX_SECONDS if self.mode == AUTO else 0.0
        with_source = include_source or not done.own
        self.child.send(SampleRequest(run.id, done.experiment, done.own, run.n, run.seconds, most, with_source))
        self.run, self._cancelled = run.id, False
        return None

    def finished(self) -> None:
        """Accept the end of a run's samples, and end the process: while it has the GPU open, runs are up to 0.4 % slower."""
        self.close()
        self._again = True

    def prepare_next(self) -> None:
        """Start the process for the next sampling: its imports take longer than many runs."""
        if self._again:
            self._again = False
            self.prepare()

    def close(self, grace: float = 0.0) -> EventChild | None:
        self.run = None
        return super().close(grace)

    def cancel(self) -> None:
        """Stop the sampling; over() then reports this."""
        if self.run is not None and self.child is not None:
            self._cancelled = True
            self.child.kill()

    def over(self) -> events.Sampled | None:
        """Return the end of a sampling whose process died, once all its events are taken."""
        run, dead = self.run, self.dead()
        if run is None or dead is None:
            return None
        lines = dead.last_output.splitlines()
        died = f"the sampling process died ({describe_exit(dead.exit_code or 0)}){f': {lines[-1]}' if lines else ''}"
        return events.Sampled(t=0.0, run=run, note="cancelled" if self._cancelled else died)

    def _suits(self, request: RunRequest) -> bool:
        return self.mode != OFF and request.experiment.runs_on.backend == "cuda"
