"""What the places share: one Model, moved by a live Source or a Playback, and what the user is looking at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fwtui.analysis.columns import first_runs
from fwtui.common import units
from fwtui.experiment.device import CPU, DeviceId
from fwtui.experiment.experiment import Experiment
from fwtui.live.protocols import Session
from fwtui.machine import hardware
from fwtui.sessions.recorder import Recorder
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.requests import Hardware
from fwtui.stream.run import Run
from fwtui.tui.frame import notices
from fwtui.tui.frame.notices import Entry
from fwtui.tui.frame.places import Place

if TYPE_CHECKING:
    from fwtui.campaigns.reproduce.campaign import Campaign
    from fwtui.campaigns.sweep.running import Sweep
    from fwtui.tui.frame.playback import Playback

UNITS = {"cpu": "CPU", "cuda": "GPU"}


class Source(Session, Protocol):
    """What the dashboard needs of fwtui.live.session.Live."""

    asked: dict[int, Experiment]

    def settled(self, experiment: Experiment) -> tuple[Experiment, bool]: ...
    def count(self, run: int) -> None: ...
    def answer(self, run: int) -> None: ...
    def measure_limits(self, device: DeviceId) -> None: ...
    def record(
        self, folder: Path | None = None, path: Path | None = None, title: str = "", hz: float | None = None
    ) -> Recorder: ...
    def close(self, reason: str = "closed") -> None: ...


@dataclass(eq=False)
class View:
    """Exactly one of `source` and `playback` is there; every place of a view reads the same model."""

    model: Model
    source: Source | None = None
    playback: Playback | None = None
    places: tuple[Place, ...] = ()  # that exist here
    place: str = ""  # the one that is shown
    close: Callable[[], None] | None = None  # back to what was shown before; None where this is all there is
    number: int = 0  # of the views of this program
    experiment: Experiment = field(default_factory=Experiment)  # what the form begins with
    found: Hardware | None = None  # what GPUs are here; None until that has been found out
    selected: int | None = None  # the run that is shown; None follows the newest
    baseline: int | None = None
    recording_since: float = 0.0  # session time at which the recorder began
    campaign: Campaign | None = None  # experiments that run one after the other
    motion: bool = False  # whether a finished run's plan is played slowly
    told: Entry | None = None  # what the screens themselves had to say last
    answered: int | None = None  # number of the recording's marker whose question has been answered
    lesson: str = ""  # number or name of the step of the course that the place to learn begins with
    _firsts: tuple[object, dict[tuple[object, ...], Run]] = (None, {})
    sweep: Sweep | None = None  # the last one that was started; it goes on whatever place is shown

    @property
    def paused(self) -> bool:
        """Whether a live session is shown as it was, while it goes on."""
        return self.source is not None and self.model is not self.source.model

    def pause(self) -> None:
        """Show the live session as it is now, until resume()."""
        if self.source is not None and not self.paused:
            self.model = self.source.model.frozen()

    def resume(self) -> None:
        if self.source is not None:
            self.model = self.source.model

    @property
    def run(self) -> Run | None:
        """The run that is shown."""
        if self.selected is not None and self.selected in self.model.runs:
            return self.model.runs[self.selected]
        return self.model.run

    @property
    def has_gpu(self) -> bool:
        """Whether there is a GPU here, as far as that is known without waiting for the driver."""
        return bool(self.found.gpus) if self.found is not None else hardware.driver_present()

    @property
    def marker(self) -> tuple[int, int, events.Marker] | None:
        """The marker that a recording stands at, with its number and how many there are."""
        return self.playback.player.marker if self.playback is not None else None

    @property
    def busy(self) -> bool:
        """Whether a run, a profiler or several runs one after the other are going."""
        sweeping = self.sweep is not None and self.sweep.going
        return sweeping or self.campaign is not None or (self.source is not None and self.source.busy)

    def cancel(self) -> str:
        """Cancel what is going; what that means, in words."""
        if self.campaign is not None:
            self.campaign.cancel()
        if self.sweep is not None and self.sweep.going:
            self.sweep.cancel()
            return "the sweep is cancelled; what is done stays, and it can go on from there"
        if self.source is not None and self.source.busy:
            self.source.cancel()
            return "cancelling; what does not end by itself is killed after 2 s"
        return ""

    @property
    def device(self) -> DeviceId:
        """What the run that is shown was computed on; before a run the GPU, where there is one."""
        run = self.run
        if run is None or run.simulated:
            return self.model.state.watched if self.has_gpu else CPU
        return run.device

    def measure_limits(self, device: DeviceId) -> str:
        """Have the device's limits measured, and say so. Raises Refused."""
        assert self.source is not None
        self.source.measure_limits(device)
        return f"measuring what this {UNITS[device.backend]} can do at most; some 20 s"

    def record(self, title: str) -> str:
        """Begin to record the live session, or end that; what was done, in words. Raises Refused."""
        source = self.source
        if source is None:
            return ""
        if source.recorder is not None:
            recorder = source.recorder
            source.stop_recording()
            return f"recorded {units.memory(recorder.bytes)} as {recorder.path.name} in {recorder.path.parent}"
        recorder = source.record(title=title)
        self.recording_since = source.now
        return f"recording to {recorder.path.name} in {recorder.path.parent}"

    @property
    def baseline_run(self) -> Run | None:
        return self.model.runs.get(self.baseline) if self.baseline is not None else None

    def baseline_of(self, run: Run) -> Run | None:
        """What the run is compared with: the run that the user named, else the first verified one of the same graph."""
        if self.baseline_run is not None:
            return self.baseline_run
        state = self.model.state
        if self._firsts[0] is not state.begun:  # it changes when another run begins
            self._firsts = state.begun, first_runs(state.begun.values())
        own = state.run if run is state.run and run.verified else None
        return self._firsts[1].get(run.experiment.graph, own)

    @property
    def latest(self) -> Entry | None:
        """The log line: what a screen said last, until something newer happens."""
        last = notices.latest(self.model)
        return self.told if self.told is not None and (last is None or last.t <= self.told.t) else last

    @property
    def key(self) -> tuple[object, ...]:
        """Whatever decides, for all places alike, what is shown."""
        recorder = self.source.recorder if self.source is not None else None
        second = int(self.source.now) if self.source is not None and (recorder is not None or self.paused) else None
        shown = (self.model.index, self.paused, self.motion, self.selected, self.baseline, self.told)
        return (*shown, recorder is not None, second, self.busy)
