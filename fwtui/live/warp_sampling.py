"""Sampling the warps of finished runs, in a process that times nothing: when it is done, and by whom."""

from __future__ import annotations

from collections.abc import Callable

from fwtui.common.environment import worker_environment
from fwtui.live import ncu
from fwtui.live.child import Child, EventChild, StartChild, epitaph
from fwtui.machine.settings import SAMPLES
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.requests import RunRequest, SampleRequest, Work
from fwtui_kernels.peers import peers

AUTO, _, OFF = SAMPLES
MOST_SECONDS = 1.0  # that it may take where it was not asked for
MODULE = "fwtui.measure.sample_target"


class WarpSampling:
    """Owns the process that will sample a run; a session takes its events."""

    def __init__(self, origin: float, start: StartChild | None = None, permitted: Callable[[], bool] = ncu.permitted):
        self.wanted = OFF
        self.run: int | None = None  # that is being sampled
        self.child: EventChild | None = None
        self._origin, self._start, self._permitted = origin, start or Child, permitted
        self._cancelled = False

    def prepare(self, request: RunRequest) -> None:
        """Start the process that will be needed, which imports meanwhile."""
        if self._suits(request) and self._permitted() and (self.child is None or self.child.exit_code is not None):
            self._begin_child()

    def open(self, model: Model, request: Work | None) -> None:
        """Open the GPU of a run whose passes are timed, for sampling that will soon begin."""
        if isinstance(request, RunRequest) and self._suits(request) and self.child is not None:
            n = model.runs[request.run].n
            self.child.send(SampleRequest(request.run, request.experiment, request.own, n, ahead=True))

    def begin(self, model: Model, done: Work, tell_source: bool) -> events.Sampled | None:
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
        most = MOST_SECONDS if self.wanted == AUTO else 0.0
        tells = tell_source or not done.own
        self.child.send(SampleRequest(run.id, done.experiment, done.own, run.n, run.seconds, most, tells))
        self.run, self._cancelled = run.id, False
        return None

    def begin_again(self, origin: float) -> None:
        """Use another clock, after its child has ended."""
        self.child, self._origin = None, origin

    def finished(self) -> None:
        """All samples of the run have come. Its process ends: while it has the GPU open, others run up to 0.4 % longer.

        The next one imports meanwhile, which takes longer than many a run.
        """
        self._end_child()
        self._begin_child()

    def _begin_child(self) -> None:
        self.child = self._start(MODULE, [], self._origin, worker_environment("real"))

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
        words = child.last_words.splitlines()
        child.close(grace=0)
        if run is None:
            return None
        died = f"the sampling process died ({epitaph(child.exit_code or 0)}){f': {words[-1]}' if words else ''}"
        return events.Sampled(t=0.0, run=run, note="cancelled" if self._cancelled else died)

    def _suits(self, request: RunRequest) -> bool:
        asked = request.experiment
        return self.wanted != OFF and not request.brief and asked.runs_on.backend == "cuda" and asked.kernel not in peers()
