"""The state that the screens share: one Model, moved by a live session or a playback, and the user's selection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fwtui.analysis.limits import describe_peaks
from fwtui.common import units
from fwtui.experiment.device import CPU, DeviceId
from fwtui.experiment.experiment import Experiment, Settled
from fwtui.live.protocols import RunSession
from fwtui.machine import hardware
from fwtui.sessions.autosave import Keeper
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
    from fwtui.campaigns.sweep.running import Sweep
    from fwtui.tui.frame.playback import Playback
    from fwtui.tui.widgets.draft import Draft
    from fwtui.tui.widgets.ladder_chart import LadderData

UNITS = {"cpu": "CPU", "cuda": "GPU"}
ANSWER_SECONDS = 4.0  # for which the answer to a key covers the progress of a measurement


class LiveSession(RunSession, Protocol):
    """The part of fwtui.live.session.Live that the dashboard uses."""

    experiments: dict[int, Settled]
    keeper: Keeper | None

    @property
    def samples(self) -> str: ...
    def measure_limits(self, device: DeviceId) -> None: ...
    def name(self, title: str) -> Path: ...
    def close(self, reason: str = "closed") -> None: ...


@dataclass(eq=False)
class View:
    """A live session (`source`) or a replay (`playback`); all its screens read the same model."""

    model: Model
    source: LiveSession | None = None
    playback: Playback | None = None
    places: tuple[Place, ...] = ()  # the screens of the view
    place: str = ""  # the present one
    visits: int = 0  # number of switches of screens; a dialog does not count
    drawn: dict[str, int] = field(default_factory=dict)  # number of replacements of each screen after errors
    close: Callable[[], None] | None = None  # returns to the previous view; None without one
    number: int = 0  # counts the views of this program
    experiment: Experiment = field(default_factory=Experiment)  # the experiment in the form
    rows: Mapping[str, dict[str, str]] = field(default_factory=dict)  # initial texts of each screen's form
    drafts: dict[str, Draft] = field(default_factory=dict)  # screen name -> form contents
    found: Hardware | None = None  # the GPUs; None until they have been detected
    selected: int | None = None  # the run to show; None: the newest
    baseline: int | None = None
    panel: str = ""  # the panel that fills the Explain screen; empty for all panels, if there is room
    named: str = ""  # the user's name for the session
    notice: LogEntry | None = None  # last message of a screen
    answered: int | None = None  # number of the marker whose answer is shown
    guesses: dict[int, float | str] = field(default_factory=dict)  # marker number -> guess: a number, or the key of a choice
    lesson: str = ""  # number or name of the first step of the course
    own_files: tuple[str, ...] = ()  # chosen user kernel files, the last one first
    step: str = ""  # name of the last open step of the course
    limits_device: DeviceId | None = None  # the device whose peak rates are being measured
    _progress: str = ""  # the last message about that measurement
    ladder: Model | None = None  # the recorded ladder, once it has been read (fwtui.tui.background)
    ladder_data: LadderData | None = None  # data of a live session's ladders, once they have been read
    complete_recording: Model | None = None  # of a replay, once it has been computed
    started_reads: set[str] = field(default_factory=set)  # fields whose reading has started
    requested: Experiment | None = None  # an experiment to start, requested by another screen
    sweep: Sweep | None = None  # the last one; it continues on every screen

    def form_texts(self, place: str) -> Mapping[str, str]:
        """Return the initial texts of a screen's form; empty without any."""
        return self.drafts[place].texts() if place in self.drafts else self.rows.get(place, {})

    @property
    def recorder(self) -> Recorder | None:
        """The recorder of the live session: the user's, or the automatic one."""
        return None if self.source is None else self.source.recorder or self.source.keeper

    def place_named(self, name: str) -> Place | None:
        return next((place for place in self.places if place.name == name), None)

    @property
    def paused(self) -> bool:
        """True while the view of a live session is frozen."""
        return self.source is not None and self.model is not self.source.model

    def pause(self) -> None:
        """Freeze the view of the live session until resume()."""
        if self.source is not None and not self.paused:
            self.model = self.source.model.frozen()

    def resume(self) -> None:
        if self.source is not None:
            self.model = self.source.model

    @property
    def run(self) -> Run | None:
        """The run to show."""
        if self.selected is not None and self.selected in self.model.runs:
            return self.model.runs[self.selected]
        return self.model.run

    @property
    def has_gpu(self) -> bool:
        """True if there is a GPU; before the detection, True if there is a driver."""
        return bool(self.found.gpus) if self.found is not None else hardware.driver_present()

    @property
    def marker(self) -> tuple[int, int, events.Marker] | None:
        """Number, total number and marker at a recording's position."""
        return self.playback.player.marker if self.playback is not None else None

    @property
    def presenting(self) -> bool:
        """True while cue cards are presented."""
        return self.playback is not None and self.playback.presenting

    @property
    def busy(self) -> bool:
        """True while a run, a profiler or a queue of runs is active."""
        sweeping = self.sweep is not None and self.sweep.going
        return sweeping or (self.source is not None and self.source.busy)

    def cancel(self) -> str:
        """Cancel the active run or queue; return a message, "" if nothing was active."""
        if self.sweep is not None and self.sweep.going:
            self.sweep.cancel()
            return "the sweep is cancelled; its finished runs stay, and it can continue from there"
        if self.source is not None and self.source.busy:
            self.source.cancel()
            return "cancelling; a process that does not end is killed after 2 s"
        return ""

    @property
    def device(self) -> DeviceId:
        """The device of the present run; before the first run the GPU, if any."""
        run = self.run
        if run is None or run.simulated:
            return self.model.watched if self.has_gpu else CPU
        return run.device

    @property
    def accepts_run(self) -> bool:
        """True if nothing is active except a measurement of peak rates, after which a run can start."""
        return not self.busy or self.limits_device is not None

    @property
    def measuring(self) -> str:
        """The progress of measuring peak rates; at its end, for one call, the result; otherwise empty."""
        device, source = self.limits_device, self.source
        if device is None or source is None:
            return ""
        limits, unit, run = source.model.measuring.get(device), UNITS[device.backend], source.model.run
        if source.busy and (run is None or run.state != "running"):  # a run that waited for the end has not started
            gpu = source.model.devices.get(device)
            forms = len(forms_of(device.backend, gpu.compute_capability if gpu is not None else None))
            done = len(limits.forms) if limits is not None and not limits.complete else 0
            return f"measuring the peak rates of this {unit}: {done} of {forms} instruction sequences"
        self.limits_device = None
        if limits is None or not limits.complete:
            return "the peak rates were not measured; earlier ones still count"
        peaks = f"{', '.join(describe_peaks(limits))} relax/s"
        return f"peak rates of this {unit}: {peaks}; rates are now shown as % of the peak of their data type"

    def show_progress(self) -> None:
        """Show the progress of measuring peak rates, but the answer to a key for ANSWER_SECONDS before."""
        message, notice = self.measuring, self.notice
        measures, now = self.limits_device is not None, self.source.now if self.source is not None else 0.0
        answered = measures and notice is not None and notice.text != self._progress and now < notice.t + ANSWER_SECONDS
        if message and not answered and (notice is None or notice.text != message):
            self.notice, self._progress = LogEntry(self.model.t, message), message

    def measure_limits(self, device: DeviceId) -> str:
        """Start measuring the peak rates of a device, and return a message. Raises Refused."""
        assert self.source is not None
        self.source.measure_limits(device)
        self.limits_device = device
        self._progress = self.measuring
        return self._progress

    def name(self, title: str) -> str:
        """Save the live session as a recording with that title, and return a message. Raises Refused."""
        source = self.source
        assert source is not None
        if title == self.named and source.recorder is not None:
            path = source.recorder.path
            return f"already saved as {path.name} in {path.parent}"
        path = source.name(title)
        self.named = title
        return f"saved as {path.name} in {path.parent}; later runs are added"

    @property
    def free_name(self) -> str:
        """An unused name for the session, from the kernel of the form."""
        kernel = self.experiment.kernel
        names = {stem(path) for path in files_in(own_folder())}
        return next(name for number in count(1) if (name := f"{kernel}-{number}" if number > 1 else kernel) not in names)

    @property
    def nameless(self) -> str | None:
        """The reason why the live session cannot be named; None if it can."""
        recorder = self.source.recorder if self.source is not None else None
        if recorder is None:
            return None
        elsewhere = recorder.path.parent.resolve() != own_folder().resolve()
        return f"this session is already recorded to {recorder.path}" if elsewhere else None

    @property
    def end(self) -> str:
        """Describe in one sentence the work that quitting would interrupt or lose; empty if no work would be lost."""
        source = self.source
        if source is None:
            return ""
        done, run = sum(run.state == "done" for run in source.model.runs.values()), source.model.run
        ends = []
        if self.sweep is not None and self.sweep.going:
            ends.append("the sweep would stop")
        elif source.busy:
            what = f"run {run.id}" if run is not None and run.state == "running" else "the work in progress"
            ends.append(f"{what} would be cancelled")
        finished = units.counted(done, "finished run")
        ending = f"; {finished} {'is' if done == 1 else 'are'} saved" if done else ""
        if source.recorder is not None:
            ends.append(f"the recording {source.recorder.path.name} would end")
            ending = "; it is saved"
        elif source.keeper is None and done:
            ends.append(f"{finished} would be lost, because this session is not recorded")
            ending = ""
        sentence = " and ".join(ends)
        return f"{sentence[:1].upper()}{sentence[1:]}{ending}." if ends else ""

    @property
    def baseline_run(self) -> Run | None:
        return self.model.runs.get(self.baseline) if self.baseline is not None else None

    def baseline_of(self, run: Run) -> Run | None:
        """Return the baseline of a run: the one that the user chose, else the first run of the same work."""
        return self.baseline_run or self.model.first_run_of(run)

    @property
    def latest(self) -> LogEntry | None:
        """The entry of the log line: the last message of a screen, or a newer entry of the log."""
        last = notices.latest(self.model, live=self.playback is None)  # other notices of a recording concern its author
        return self.notice if self.notice is not None and (last is None or last.t <= self.notice.t) else last

    @property
    def key(self) -> tuple[object, ...]:
        """All values on which every screen depends."""
        recorder = self.source.recorder if self.source is not None else None
        second = int(self.source.now) if self.source is not None and (recorder is not None or self.paused) else None
        state = (self.model.index, self.paused, self.selected, self.baseline, self.notice)
        cards = (play.presenting, play.over, play.player.playing) if (play := self.playback) is not None else ()
        return (*state, recorder is not None, second, self.busy, cards)
