"""What the places share: one Model, moved by a live Source or a Playback, and what the user is looking at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fwtui.common import units
from fwtui.experiment.device import CPU, DeviceId
from fwtui.experiment.experiment import Experiment, Settled
from fwtui.live.protocols import RunSession
from fwtui.live.sampling import WarpSampling
from fwtui.machine import hardware
from fwtui.sessions.autosave import ContinuedSession, Earlier, Keeper
from fwtui.sessions.folders import files_in, own_folder, stem
from fwtui.sessions.recorder import Recorder
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.requests import Hardware
from fwtui.stream.run import Run
from fwtui.tui.frame import notices
from fwtui.tui.frame.notices import LogEntry
from fwtui.tui.frame.places import Place
from fwtui_kernels.probes.probe_forms import forms_of

if TYPE_CHECKING:
    from fwtui.campaigns.reproduction import Reproduction
    from fwtui.campaigns.sweep.running import Sweep
    from fwtui.tui.frame.playback import Playback
    from fwtui.tui.widgets.draft import Draft
    from fwtui.tui.widgets.ladder_chart import LadderData

UNITS = {"cpu": "CPU", "cuda": "GPU"}


class LiveSession(RunSession, Protocol):
    """What the dashboard needs of fwtui.live.session.Live."""

    experiments: dict[int, Settled]
    keeper: Keeper | None
    warp_sampling: WarpSampling

    def count(self, run: int) -> None: ...
    def answer(self, run: int) -> None: ...
    def whole(self, run: Run) -> Run: ...
    def measure_limits(self, device: DeviceId) -> None: ...
    def name(self, title: str) -> Path: ...
    def go_on(self, session: ContinuedSession) -> None: ...
    def close(self, reason: str = "closed") -> None: ...


@dataclass(eq=False)
class View:
    """Exactly one of `source` and `playback` is there; every place of a view reads the same model."""

    model: Model
    source: LiveSession | None = None
    playback: Playback | None = None
    places: tuple[Place, ...] = ()  # that exist here
    place: str = ""  # the one that is shown
    visits: int = 0  # how often a place was gone to; what opens over a place and closes again is no visit
    drawn: dict[str, int] = field(default_factory=dict)  # how often each place was drawn anew after an error
    close: Callable[[], None] | None = None  # back to what was shown before; None if this is all there is
    number: int = 0  # of the views of this program
    experiment: Experiment = field(default_factory=Experiment)  # what the form begins with, then what it says
    rows: Mapping[str, dict[str, str]] = field(default_factory=dict)  # what the form of a place begins with, by its name
    drafts: dict[str, Draft] = field(default_factory=dict)  # the forms that there are, by the names of their places
    found: Hardware | None = None  # what GPUs are here; None until that has been found out
    selected: int | None = None  # the run that is shown; None follows the newest
    baseline: int | None = None
    named: str = ""  # what the user called the session
    look_back: Callable[[], Earlier | None] | None = None  # finds the session that this one can go on with; takes a while
    earlier: Earlier | None = None  # that session
    campaign: Reproduction | None = None  # experiments that run one after the other
    motion: bool = False  # whether a finished run's plan is played slowly
    notice: LogEntry | None = None  # what the screens themselves had to say last
    answered: int | None = None  # number of the recording's marker whose question has been answered
    guesses: dict[int, float | str] = field(default_factory=dict)  # by the number of the marker: a number, or the key of a choice
    lesson: str = ""  # number or name of the step of the course that the place to learn begins with
    _whole: tuple[Run, Run] | None = None  # an old run, and all of it
    own_files: tuple[str, ...] = ()  # the user's kernel files that were chosen, the last one first
    step: str = ""  # name of the step that was open last
    limits_asked: DeviceId | None = None  # the device whose limits are being measured
    ladder: Model | None = None  # the recorded one, once it has been read (fwtui.tui.background)
    climb: LadderData | None = None  # what a live session's is made of, once it has been read
    asked_for: set[str] = field(default_factory=set)  # which of them are being read
    wanted: Experiment | None = None  # that another place wants run
    sweep: Sweep | None = None  # the last one that was started; it goes on whatever place is shown

    def form_texts(self, place: str) -> Mapping[str, str]:
        """What the form of a place begins with, also where the place is drawn anew; empty if nothing was said."""
        return self.drafts[place].texts() if place in self.drafts else self.rows.get(place, {})

    @property
    def recorder(self) -> Recorder | None:
        """What writes the live session down, named or not."""
        return None if self.source is None else self.source.recorder or self.source.keeper

    def place_named(self, name: str) -> Place | None:
        return next((place for place in self.places if place.name == name), None)

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
            return self.whole(self.model.runs[self.selected])
        return self.model.run

    def whole(self, run: Run) -> Run:
        """The run with all its details, which an old one in a long session has only in the recording."""
        if self.source is None or run.pass_times is None:
            return run
        if self._whole is None or self._whole[0] is not run:
            self._whole = run, self.source.whole(run)
        return self._whole[1]

    @property
    def has_gpu(self) -> bool:
        """Whether there is a GPU here, as far as that is known without waiting for the driver."""
        return bool(self.found.gpus) if self.found is not None else hardware.driver_present()

    @property
    def marker(self) -> tuple[int, int, events.Marker] | None:
        """The marker at a recording's position, with its number and how many there are."""
        return self.playback.player.marker if self.playback is not None else None

    @property
    def presenting(self) -> bool:
        """Whether the cue cards of a recording are presented."""
        return self.playback is not None and self.playback.presenting

    @property
    def busy(self) -> bool:
        """Whether a run, a profiler or a queue of runs is active."""
        sweeping = self.sweep is not None and self.sweep.going
        return sweeping or self.campaign is not None or (self.source is not None and self.source.busy)

    def cancel(self) -> str:
        """Cancel what is running; what that means, in words."""
        if self.campaign is not None:
            self.campaign.cancel()
        if self.sweep is not None and self.sweep.going:
            self.sweep.cancel()
            return "the sweep is cancelled; finished runs are kept, and it can go on from there"
        if self.source is not None and self.source.busy:
            self.source.cancel()
            return "cancelling; a process that does not end is killed after 2 s"
        return ""

    @property
    def device(self) -> DeviceId:
        """The device of the run that is shown; before a run the GPU, if any."""
        run = self.run
        if run is None or run.simulated:
            return self.model.watched if self.has_gpu else CPU
        return run.device

    @property
    def measuring(self) -> str:
        """How far measuring a device's limits has come, and once its outcome; empty if nothing is measured."""
        device, source = self.limits_asked, self.source
        if device is None or source is None:
            return ""
        limits, unit = source.model.measured.get(device), UNITS[device.backend]
        if source.busy:
            gpu = source.model.devices.get(device)
            forms = len(forms_of(device.backend, gpu.compute_capability if gpu is not None else None))
            done = len(limits.forms) if limits is not None and not limits.complete else 0
            return f"measuring the peak rates of this {unit}: {done} of {forms} instruction sequences"
        self.limits_asked = None
        if limits is None or not limits.complete:
            return "the limits were not measured; earlier ones are kept"
        best = max((form.relaxations_per_second or 0.0 for form in limits.forms), default=0.0)
        return f"this {unit} does at most {units.rate(best)}; every rate is now a share of what its type can do"

    def measure_limits(self, device: DeviceId) -> str:
        """Have the device's limits measured, and say so. Raises Refused."""
        assert self.source is not None
        self.source.measure_limits(device)
        self.limits_asked = device
        return self.measuring

    def name(self, title: str) -> str:
        """Keep the live session as a recording of that title; where it is, in words. Raises Refused."""
        source = self.source
        assert source is not None
        if title == self.named and source.recorder is not None:
            path = source.recorder.path
            return f"it is already kept as {path.name} in {path.parent}"
        path = source.name(title)
        self.named = title
        return f"kept as {path.name} in {path.parent}; later runs go there too"

    @property
    def free_name(self) -> str:
        """A name for the session that no other one has: that of the kernel in the form."""
        kernel = self.experiment.kernel
        names = {stem(path) for path in files_in(own_folder())}
        return next(name for number in count(1) if (name := f"{kernel}-{number}" if number > 1 else kernel) not in names)

    @property
    def nameless(self) -> str | None:
        """Why the live session cannot be given a name; None if it can."""
        recorder = self.source.recorder if self.source is not None else None
        if recorder is None:
            return None
        if self.campaign is not None:
            return f"the experiments of {self.campaign.paper.name} are being recorded; wait for their end"
        elsewhere = recorder.path.parent.resolve() != own_folder().resolve()
        return f"this session is recorded to {recorder.path} already" if elsewhere else None

    @property
    def end(self) -> str:
        """What the end of the program would cut short or lose, and what is kept, in a sentence; empty if all is kept."""
        source = self.source
        if source is None:
            return ""
        done, run = sum(run.state == "done" for run in source.model.runs.values()), source.model.run
        ends = []
        if self.campaign is not None:
            ends.append(f"the experiments of {self.campaign.paper.name} would stop")
        elif self.sweep is not None and self.sweep.going:
            ends.append("the sweep would stop")
        elif source.busy:
            running = run is not None and run.state == "running"
            ends.append(
                f"run {run.id} would be cancelled" if run is not None and running else "the work in progress would be cancelled"
            )
        finished = units.counted(done, "finished run")
        ending = f"; {finished} {'is' if done == 1 else 'are'} kept" if done else ""
        if source.recorder is not None:
            ends.append(f"the recording {source.recorder.path.name} would end")
            ending = "; it is kept"
        elif source.keeper is None and done:
            ends.append(f"{finished} would be lost, as nothing is recorded")
            ending = ""
        sentence = " and ".join(ends)
        return f"{sentence[:1].upper()}{sentence[1:]}{ending}." if ends else ""

    @property
    def baseline_run(self) -> Run | None:
        return self.model.runs.get(self.baseline) if self.baseline is not None else None

    def baseline_of(self, run: Run) -> Run | None:
        """What the run is compared with: the run that the user named, else the first one that did the same work."""
        return self.baseline_run or self.model.first_run_of(run)

    @property
    def latest(self) -> LogEntry | None:
        """The log line: what a screen said last, until something newer happens."""
        last = notices.latest(self.model, warnings=self.playback is None)  # those of a recording were for who made it
        return self.notice if self.notice is not None and (last is None or last.t <= self.notice.t) else last

    @property
    def key(self) -> tuple[object, ...]:
        """Everything that decides what all places show."""
        recorder = self.source.recorder if self.source is not None else None
        second = int(self.source.now) if self.source is not None and (recorder is not None or self.paused) else None
        state = (self.model.index, self.paused, self.motion, self.selected, self.baseline, self.notice)
        cards = (self.playback.presenting, self.playback.over) if self.playback is not None else ()
        return (*state, recorder is not None, second, self.busy, cards)
