"""The process that owns numba and CUDA: it reads requests and sends events.

`python -P -m fwtui.measure.worker ORIGIN` takes the session's start in monotonic seconds. A GPU error leaves its process
unusable, so the worker reports it and ends; the next run starts a new one. The end of stdin ends it at once.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from fwtui.common.child_protocol import Parent, traceback_end, write_all
from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.engine.engine import Cancelled, Engine
from fwtui.engine.engine_for import engine_for
from fwtui.experiment.device import DeviceId
from fwtui.measure.cuda_errors import describe_kernel_fault, describe_start_failure
from fwtui.measure.run_context import RunContext
from fwtui.measure.user_kernel_process import describe_user_error, resolve_kernel
from fwtui.stream import codec, events, requests

if TYPE_CHECKING:
    from fwtui.measure.runner import Runner


class Worker:
    """Runs one experiment at a time; a thread reads requests in the background."""

    ends_at_once = True  # when stdin ends; False if the current request must finish first

    def __init__(self, descriptor: int, origin: float, lines: Iterable[bytes], runner: Runner | None = None):
        self._descriptor = descriptor
        self._origin = origin
        self._lines = lines
        self._requests: queue.SimpleQueue[requests.Work | None] = queue.SimpleQueue()
        self._cancelled: set[int] = set()
        self._opened: set[DeviceId] = set()
        self._runner = runner

    def now(self) -> float:
        return time.monotonic() - self._origin

    def emit(self, event: events.Event) -> None:
        """Write the event as one line to the pipe."""
        self.write(codec.encode(event))

    def write(self, line: bytes) -> None:
        """Write a line to the pipe; exit if the reader has closed it."""
        try:
            write_all(self._descriptor, line)
        except BrokenPipeError:
            self._leave()

    def work(self) -> None:
        """Serve requests until there are no more."""
        threading.Thread(target=self._listen, name="requests", daemon=True).start()
        while True:
            request = self._requests.get()
            if request is None:
                return
            try:
                self.serve(request)
            except BaseException as error:
                code, sentence, process_lost = self._diagnosis(error)
                complaint = (
                    "" if isinstance(request, requests.ProbeRequest) else describe_user_error(error, request.experiment.kernel)
                )
                if complaint and code == "error":  # a user's mistake, which does not damage this process
                    self.emit(requests.last_word(request, self.now(), complaint))
                    continue
                run = request.run if isinstance(request, requests.RunRequest) else None
                where = traceback_end()
                self.emit(events.Fault(t=self.now(), source="worker", code=code, run=run, message=sentence, stderr=where))
                if self.ends_at_once or not process_lost:
                    self.emit(requests.last_word(request, self.now(), sentence))
                if process_lost:
                    self._leave()

    def serve(self, request: requests.Work) -> None:
        """Execute one request. Raises errors for diagnose()."""
        if isinstance(request, requests.ProbeRequest):
            from fwtui.measure.probe import measure

            measure(self._engine(request.device_id), self.emit, self.now)
            return
        runner, experiment = self._measuring(), request.experiment
        try:
            kernel = resolve_kernel(experiment, request.own)
        except Refused as refusal:
            parts = (events.PhaseName("all", "all rounds"),)
            facts = {"title": experiment.kernel, "backend": "cuda", "gpu": experiment.runs_on.index, "phases": parts}
            self.emit(events.RunStarted(t=self.now(), run=request.run, experiment=experiment.without_path, **facts))
            self.emit(requests.last_word(request, self.now(), str(refusal)))
            return
        engine = self._engine(experiment.runs_on)
        context = RunContext(request.run, experiment, kernel, engine, partial(self._check, request.run), self.emit, self.now)
        runner.run(context, request.own if request.include_source else "")

    def _measuring(self) -> Runner:
        if self._runner is None:
            from fwtui.measure.runner import Runner  # imports numba, so only when needed

            self._runner = Runner()
        return self._runner

    def _listen(self) -> None:
        for line in self._lines:
            request = requests.decode(line)
            if isinstance(request, requests.CancelRequest):
                self._cancelled.add(request.run)
                continue
            self._requests.put(request)
        self._hang_up()

    def _hang_up(self) -> None:
        """Handle the end of the requests."""
        self._leave()

    def _leave(self) -> NoReturn:
        os._exit(0)

    def _diagnosis(self, error: BaseException) -> tuple[str, str, bool]:
        return diagnose(error)

    def _check(self, run: int) -> None:
        if run in self._cancelled:
            raise Cancelled

    def _engine(self, device: DeviceId) -> Engine:
        engine = engine_for(device)
        if device not in self._opened and (facts := engine.facts(self.now())) is not None:
            self.emit(facts)
        self._opened.add(device)
        return engine


def diagnose(error: BaseException) -> tuple[str, str, bool]:
    """Return (code, sentence, True if this process must end) for an exception from a run."""
    text = sanitise(str(error)) or type(error).__name__
    if isinstance(error, MemoryError):
        return "memory", f"the host's memory is exhausted ({text}); choose a smaller n", False
    if "OUT_OF_MEMORY" in text:
        return "memory", f"the GPU's memory is exhausted ({text}); choose a smaller n, or end other programs on the GPU", True
    kind = type(error)
    if kind.__name__ == "CudaSupportError":
        return "cuda", f"CUDA does not start ({describe_start_failure(text)}); run `fwtui doctor`", True
    if "cuda" in kind.__module__ or kind.__name__.startswith("Cuda") or "CUDA_ERROR" in text:
        did = describe_kernel_fault(text)
        message = f"the kernel {did}: {text}" if did else f"the GPU reported an error: {text}"
        return "cuda", f"{message}; the next run gets a new worker", True
    if kind.__module__.startswith(("mpi4py", "nccl")):
        return "error", f"{kind.__module__.partition('.')[0].removesuffix('4py').upper()} reported an error: {text}", True
    return "error", f"{kind.__name__}: {text}", False


def main() -> None:
    parent = Parent()
    Worker(parent.descriptor, float(sys.argv[1]), parent.requests).work()


if __name__ == "__main__":
    main()
