"""A live session: the measuring child processes, the model of their events, and the sinks that store the events."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import msgspec

from fwtui.analysis import limits
from fwtui.common.child_process import StartError
from fwtui.common.environment import worker_environment
from fwtui.common.errors import Corrupt, Refused, os_error_reason
from fwtui.common.text import sanitise
from fwtui.common.version import __version__
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Settled
from fwtui.experiment.user_kernel_registry import path_of
from fwtui.live.event_child import EventChild, EventModule, StartModule, SupervisedEvents, enforce_limits
from fwtui.live.mpi_job import MpiJob, StartJob
from fwtui.live.protocols import current_run_lines, recording_preface
from fwtui.live.samplers import Sampling, WarpSampling
from fwtui.machine import hardware, settings
from fwtui.machine.device_choice import settle_here
from fwtui.sessions import autosave
from fwtui.sessions.recorder import Recorder
from fwtui.stream import codec, events, requests
from fwtui.stream.codec import Line
from fwtui.stream.model import Model
from fwtui.stream.privacy import anonymous
from fwtui.stream.run import sharing

if TYPE_CHECKING:
    from fwtui.live.counters import CounterProfile

Sink = Callable[[Line], None]
Profile = Callable[[Settled, Event], Mapping[str, Mapping[str, float]] | str]  # fwtui.live.counters.measure
CANCEL_GRACE = 2.0  # seconds before a run that does not stop between steps is killed
CLOSE_GRACE = 0.7  # seconds for the children to end
HURRIED_GRACE = 0.3  # after a signal


class Live:
    """Owns one worker, one sampler, the Model and the sinks. Not thread-safe: one caller drains it.

    `drain()` is called about ten times a second and never blocks; nothing else moves events.
    """

    settled = staticmethod(settle_here)  # in a session of a test: for another machine

    def __init__(
        self,
        *,
        telemetry_hz: float = 10.0,
        device: str = "auto",
        child: StartModule | None = None,
        job: StartJob = MpiJob,
        profile: Profile | None = None,
        cancel_grace: float = CANCEL_GRACE,
    ):
        """`child` starts a worker or a sampler, `job` ranks; `profile` reads hardware counters; `cancel_grace` is in seconds."""
        self.origin = time.monotonic()
        self.model = Model(live=True)
        self.recorder: Recorder | None = None
        self.keeper: autosave.Keeper | None = None  # the title of an unnamed session
        self.sinks: list[Sink] = []
        self._start_module, self._start_job = child or EventModule, job
        self.worker = SupervisedEvents()
        self._worker_kind = "", ""  # real or simulator, and its ranks' devices
        self._worker_failed = False  # the worker may be about to end
        self.sampling = Sampling(self._start_child, telemetry_hz, DeviceId.parse(device).on("cuda"))
        self.warp_sampling = WarpSampling(self._start_child)
        self._supervised = self.worker, self.sampling, self.warp_sampling
        self.record_source = False  # True: runs of the user's kernels record their source
        self._counting: CounterProfile | None = None
        self._profile = profile
        self._request: requests.Work | None = None  # the request that the worker has not finished
        self._queued: requests.RunRequest | None = None  # the run that starts after the measurement of peak rates
        self._next_run = 1
        self._limited: set[DeviceId] = set()  # devices whose peak rates are in the model
        self._kill_at: float | None = None
        self._cancel_grace = cancel_grace
        self._run_lines: list[Line] = []  # lines of the current run: a recording may begin mid-run
        self.experiments: dict[int, Settled] = {}  # key: run; as requested, with the full path of the kernel file
        created, program = datetime.now(UTC).isoformat(timespec="seconds"), f"fwtui {__version__}"
        machine, versions = hardware.machine(), hardware.versions()
        self.emit(events.Header(t=0.0, program=program, created=created, machine=machine, versions=versions))

    @property
    def now(self) -> float:
        """Seconds since the session began."""
        return time.monotonic() - self.origin

    @property
    def samples(self) -> str:
        """The setting of that name for PC samples: one of fwtui.machine.settings.SAMPLES."""
        return self.warp_sampling.mode

    @samples.setter
    def samples(self, mode: str) -> None:
        self.warp_sampling.mode = mode

    @property
    def busy(self) -> bool:
        return self._request is not None or self._counting is not None or self.warp_sampling.run is not None

    def start(self, experiment: Settled) -> int:
        """Start a run and return its id. Raises Refused if another run is in progress.

        While peak rates are measured, the run starts afterwards.
        """
        if not isinstance(self._request, requests.ProbeRequest) or self._queued is not None:
            self._refuse_if_busy()
        device = experiment.runs_on
        if gpus := experiment.gpus:
            self._take(self.sampling.follow(gpus))
        if not device.simulated:
            self.send_limits(device)
        run, self._next_run = self._next_run, self._next_run + 1
        self.experiments[run] = sharing(experiment, self.experiments.get(run - 1))
        request = requests.RunRequest(run, experiment, path_of(experiment.kernel), self.record_source)
        if self._request is None:
            self._send_request(request, device, experiment.devices)
        else:
            self._queued = request
        return run

    def send_limits(self, device: DeviceId) -> bool:
        """Send this device's cached peak rates, if any; return True if the model has them."""
        if device not in self._limited:
            self._limited.add(device)
            if (stored := limits.load(device)) is not None:
                self.emit(msgspec.structs.replace(stored, t=self.now))
        return (measured_limits := self.model.measured.get(device)) is not None and measured_limits.complete

    def measure_limits(self, device: DeviceId) -> None:
        """Measure this device's peak rates in the worker; `busy` until then. Raises Refused during a run."""
        self._refuse_if_busy()
        self._limited.add(device)
        self._send_request(requests.ProbeRequest(device.backend, device.index), device)

    def count(self, run: int) -> None:
        """Profile a run's kernels for their hardware counters, untimed; a notice reports the outcome. Raises Refused."""
        self._refuse_if_busy()
        if self.experiments[run].devices:
            raise Refused(f"run {run} used several devices, but the profiler supports one process; profile a run on one device")
        from fwtui.live.counters import CounterProfile

        self._take(self.sampling.hold())
        self._counting = CounterProfile(run, self.experiments[run], self._profile)

    def cancel(self) -> None:
        """Stop the profiler, or the run before its next step; kill a worker that has not stopped after two seconds."""
        if self._counting is not None:
            self._counting.cancel()
        self.warp_sampling.cancel()
        worker = self.worker.child
        if self._request is None or worker is None or self._kill_at is not None:
            return
        if isinstance(self._request, requests.ProbeRequest):
            self.worker.close()
            self._request = self._queued = None
        else:
            worker.send(requests.CancelRequest(self._request.run))
            self._kill_at = time.monotonic() + self._cancel_grace

    def record(self, folder: Path | None = None, path: Path | None = None, title: str = "") -> Recorder:
        """Start to record: into a new file of `folder` (default: the user's data folder), or to `path`. Raises Refused.

        A current run is recorded from its start.
        """
        header, preface, began = recording_preface(self, sanitise(title), self._run_lines)
        self.recorder = Recorder.at(path, header, preface, folder, header.title, began)
        return self.recorder

    def keep(self) -> None:
        """Record this session automatically if possible; a notice reports the reason otherwise."""
        header, preface, _ = recording_preface(self, "")
        try:
            self.keeper = autosave.keep(header, preface)
        except Refused as refusal:
            self.emit(events.Notice(t=self.now, level="warning", text=f"this session is not saved: {refusal}"))

    def name(self, title: str) -> Path:
        """Save the recording so far under that name, or start one if nothing is recorded. Raises Refused."""
        recorder = self.recorder or self.keeper
        if recorder is None:
            return self.record(path=autosave.path_named(title), title=title).path
        self.recorder, self.keeper = autosave.named(recorder, title), None
        return self.recorder.path

    def stop_recording(self, reason: str = "closed") -> None:
        if self.recorder is not None:
            self.recorder.close(reason, t=self.now)
            self.recorder = None

    def mark(self, text: str) -> None:
        """Add a marker to the recording."""
        self.emit(events.Marker(t=self.now, text=text))

    def emit(self, event: events.Event) -> None:
        """Add an event of this process, treated like the children's events."""
        self.publish(codec.as_line(event))  # the live view then shows the same as a replay

    def drain(self) -> int:
        """Take the children's events since the last call; return their number."""
        self._watch_counting()
        self.sampling.restart_if_due()
        self.warp_sampling.prepare_next()
        count = self._take(self.sampling.child) + self._take(self.worker.child) + self._take(self.warp_sampling.child)
        if self.worker.child is not None and self.worker.child.workers:
            self.sampling.measures(self.worker.child.workers)
        self._watch_worker()
        if self._request is None and self._queued is not None:
            request, self._queued = self._queued, None
            with suppress(StartError):  # the next run reports it
                self._send_request(request, request.experiment.runs_on, request.experiment.devices)
        for event in filter(None, (self.sampling.died(self.now), self.warp_sampling.over())):
            self.emit(msgspec.structs.replace(event, t=self.now))
        return count

    def close(self, reason: str = "closed") -> None:
        """End the children, then the recording. A current run ends as cancelled."""
        if self.worker.child is not None and self._request is not None:
            self.worker.child.kill()
        if self.warp_sampling.run is None:
            self.warp_sampling.close()
        for child in self._children():
            child.hang_up()
        grace = HURRIED_GRACE if reason == "signal" else CLOSE_GRACE
        deadline = time.monotonic() + grace
        if self._counting is not None:
            self._counting.close(grace)
            self._counting = None
        for supervised in self._supervised:
            self._take(supervised.close(grace=max(0.0, deadline - time.monotonic())))
        request, self._request, self._queued = self._request, None, None
        self._send_end(request, "the session ended")
        self.stop_recording(reason)
        keeper, self.keeper = self.keeper, None
        if keeper is not None:
            if keeper.limited and all(run.state != "done" for run in self.model.runs.values()):
                keeper.discard()
            else:
                keeper.close(reason, t=self.now)
            autosave.tidy()

    def kill(self) -> None:
        """Kill the children: for a program with no time left to close."""
        for child in self._children():
            child.kill()

    def _children(self) -> list[EventChild]:
        return [supervised.child for supervised in self._supervised if supervised.child is not None]

    def _refuse_if_busy(self) -> None:
        if self._counting is not None:
            raise Refused(f"the kernels of run {self._counting.run} are being profiled; cancel that or wait for its end")
        if self.warp_sampling.run is not None:
            raise Refused(f"the warps of run {self.warp_sampling.run} are being sampled; cancel that or wait for its end")
        match self._request:
            case requests.ProbeRequest():
                then = f", and run {self._queued.run} starts afterwards" if self._queued is not None else ""
                raise Refused(f"the peak rate is still being measured{then}; cancel that or wait for its end")
            case requests.RunRequest(run=run):
                raise Refused(f"run {run} is still running; cancel it or wait for its end")

    def _send_request(self, request: requests.Work, device: DeviceId, devices: str = "") -> None:
        """Send the request to the worker of its device, or to ranks on `devices`; start another one if necessary."""
        kind = "simulator" if device.simulated else "real", devices
        if self._worker_failed or self._worker_kind != kind:
            self.worker.close(grace=0.5)
            self._worker_kind, self._worker_failed, environment = kind, False, worker_environment(kind[0])
            if devices:
                timeout = float(settings.load().text("rank_timeout"))
                self.worker.start = partial(self._start_job, devices, timeout, self.origin, environment)
            else:
                self.worker.start = partial(self._start_module, "fwtui.measure.worker", [], self.origin, environment)
        worker = self.worker.running()
        self._request, self._kill_at = request, None
        worker.send(request)
        enforce_limits(worker, request, lambda: self._request is request)
        self.warp_sampling.prepare_for(request)

    def _start_child(self, module: str, arguments: Sequence[str], environment: Mapping[str, str] | None) -> EventChild:
        return self._start_module(module, arguments, self.origin, environment)

    def _take(self, child: EventChild | None) -> int:
        count = 0
        while child is not None and child.lines:
            line = child.lines.popleft()
            count += 1
            if isinstance(line, Corrupt):
                self.emit(events.Notice(t=self.now, level="warning", text=f"a child's line was dropped: {line}"))
                continue
            self._worker_failed |= isinstance(line.event, events.Fault) and line.event.source == "worker"
            match self._request, line.event:
                case requests.RunRequest(run=number), events.Fault(source="worker", run=None) as fault:  # another rank's fault
                    line = codec.as_line(msgspec.structs.replace(fault, run=number, t=self.now))
            # before the event is sent: after a signal in between, close() must not send a second end
            match self._request, line.event:
                case requests.RunRequest(run=number) as done, events.RunDone(run=run) if run == number:
                    self._request = self._kill_at = None
                    self.publish(line)
                    if refusal := self.warp_sampling.begin(self.model, done, self.record_source):
                        self.emit(msgspec.structs.replace(refusal, t=self.now))
                    continue
                case request, events.Stage(name="verify", seconds=None):
                    self.warp_sampling.open(self.model, request)
                case _, events.Sampled():
                    self.warp_sampling.finished()
            self.publish(line)
            match self._request, line.event:
                case requests.ProbeRequest(), events.Limits(complete=True) as measured:
                    self._request = None
                    if (best := limits.save(measured)) != measured:
                        self.emit(best)
                    if noise := limits.noise(best):
                        self.emit(events.Notice(t=self.now, text=noise, level="warning"))
        return count

    def _watch_worker(self) -> None:
        worker = self.worker.child
        if worker is not None and self._kill_at is not None and time.monotonic() >= self._kill_at and worker.exit_code is None:
            worker.kill()
        if (worker := self.worker.dead()) is None:
            return
        request, self._request, self._worker_failed = self._request, None, False
        run = request.run if isinstance(request, requests.RunRequest) else None
        if self._kill_at is not None:
            self._send_end(request, f"killed, because its current step did not end within {self._cancel_grace:g} s")
        else:
            fault = self.model.fault
            reported = run is not None and fault is not None and fault.source == "worker" and fault.run == run
            if not reported and (run is not None or worker.exit_code):  # a worker that still works has reported the reason itself
                stage = self.model.run.stage if self.model.run is not None and self.model.run.id == run else ""
                self.emit(worker.death_fault(self.now, run, stage))
        self._kill_at = None

    def _send_end(self, request: requests.Work | None, why: str) -> None:
        """Send the end of a pending run."""
        if isinstance(request, requests.RunRequest):
            self.emit(events.RunDone(t=self.now, run=request.run, outcome="cancelled", message=why))

    def _watch_counting(self) -> None:
        if (counting := self._counting) is None or counting.outcome is None:
            return
        self._counting = None
        self.sampling.release()
        for event in counting.events(self.now):
            self.emit(event)

    def publish(self, line: Line) -> None:
        """Record a line, pass it to the sinks, and apply its event to the model."""
        line = anonymous(line)
        self._run_lines = current_run_lines(self._run_lines, line, self.model.current)
        # the recorders first: everything shown is in the file
        if self.keeper is not None:
            self.keeper.write(line)
            if self.keeper.error is not None:
                failure, self.keeper = os_error_reason(self.keeper.error), None
                self.emit(events.Notice(t=self.now, level="error", text=f"this session is no longer saved: {failure}"))
        if self.recorder is not None:
            self.recorder.write(line)
            if self.recorder.failure is not None:
                failure, self.recorder = self.recorder.failure, None
                self.emit(events.Fault(t=self.now, source="recorder", code="disk", message=failure))
        for sink in list(self.sinks):
            try:
                sink(line)
            except Exception as error:
                self.sinks.remove(sink)
                self.emit(events.Notice(t=self.now, level="error", text=f"an output was detached: {error}"))
        self.model.apply(line.event)
