"""A scripted live session with the interface of fwtui.live.session.Live and without child processes."""

from collections import deque
from pathlib import Path

import msgspec
import scenes
from builders import model_of

from fwtui.common.errors import Refused
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment, Settled, changed, kernel_named, settle
from fwtui.live.samplers import OFF
from fwtui.sessions.autosave import Keeper
from fwtui.sessions.folders import own_folder
from fwtui.sessions.recorder import Recorder
from fwtui.stream import codec, events
from fwtui.stream.codec import Line


class FakeLive:
    """A live session whose `drain` applies the next `pace` scripted events; the time is that of the last one."""

    def __init__(self, device: events.Device = scenes.NO_GPU, pace: int = 1000):
        self.model = model_of([scenes.header(), device])
        self.recorder: Recorder | None = None
        self.keeper: Keeper | None = None
        self.samples = OFF
        self.pace = pace
        self.started: list[Experiment] = []
        self.experiments: dict[int, Settled] = {}
        self.cancelled = 0
        self.counted: list[int] = []
        self.closed = ""
        self.names: list[str] = []
        self.verdict: events.Verdict | None = None
        self._script: deque[events.Event] = deque()
        self._active: int | None = None
        self._measuring = False

    @property
    def now(self) -> float:
        return self.model.t

    @property
    def busy(self) -> bool:
        return self._active is not None or self._measuring

    def settled(self, experiment: Experiment) -> Settled:
        return settle(experiment, kernel_named(experiment.kernel).backend == "cuda" and self.model.gpu is None)

    def start(self, experiment: Settled) -> int:
        if self.busy and not self._measuring:
            raise Refused("a run is still running; cancel it or wait for its end")
        kernel = kernel_named(experiment.kernel)
        self.started.append(experiment)
        self._active = len(self.started)
        self.experiments[self._active] = experiment
        told = scenes.run(
            self._active,
            self.model.t + 0.1,
            changed(experiment, file=Path(experiment.file).name),
            title=kernel.title,
            backend=experiment.runs_on.backend,
            seconds=0.02 / self._active,
            verdict=self.verdict,
        )
        self._script.extend(told)
        return self._active

    def emit(self, event: events.Event, *told: events.Event) -> None:
        """Append these events to the script."""
        self._script.extend((event, *told))

    def count(self, run: int) -> None:
        self.counted.append(run)

    def measure_limits(self, device: DeviceId) -> None:
        if self.busy:
            raise Refused("a run is still running; cancel it or wait for its end")
        forms = (events.FormLimit("float32", 1e12), events.FormLimit("int32", 2e12))
        told = events.Limits(t=self.model.t, backend=device.backend, gpu=device.index, forms=forms[:1])
        whole = msgspec.structs.replace(told, forms=forms, copy_bytes_per_second=1e11, complete=True)
        self._measuring = True
        self.emit(told, whole)

    def cancel(self) -> None:
        self.cancelled += 1
        self._script.clear()
        assert self._active is not None
        self._script.append(events.RunDone(t=self.model.t, run=self._active, outcome="cancelled"))

    def name(self, title: str) -> Path:
        self.names.append(title)
        if self.recorder is None:
            header = msgspec.structs.replace(scenes.header(), title=title)
            self.recorder = Recorder.at(None, header, (), own_folder(), title)
        return self.recorder.path

    def mark(self, text: str) -> None:
        self._script.append(events.Marker(t=self.model.t, text=text))

    def drain(self) -> int:
        taken = 0
        while self._script and taken < self.pace:
            event = self._script.popleft()
            taken += 1
            if self.recorder is not None:
                self.recorder.write(Line(codec.encode(event)[:-1], event))
            self.model.apply(event)
            if isinstance(event, events.Limits):
                self._measuring = not event.complete
            ended = isinstance(event, events.RunDone) or (isinstance(event, events.Fault) and event.run is not None)
            if ended and getattr(event, "run", None) == self._active:
                self._active = None
                self._script.clear()
        return taken

    def close(self, reason: str = "closed") -> None:
        self.closed = reason
