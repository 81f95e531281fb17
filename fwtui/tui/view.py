"""What the places share: one Model, whoever moves it (a live Source or a Playback), and what the user is looking at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fwtui.experiment import Experiment
from fwtui.model import Model
from fwtui.reproduce.campaign import Campaign
from fwtui.run import Run
from fwtui.telemetry.facts import Hardware
from fwtui.tui import notices
from fwtui.tui.notices import Entry
from fwtui.tui.playback import Playback
from fwtui.tui.source import Source
from fwtui.tui.topbar import Tab


@dataclass(eq=False)
class View:
    """Exactly one of `source` and `playback` is there; every place of a view reads the same model."""

    model: Model
    source: Source | None = None
    playback: Playback | None = None
    tabs: tuple[Tab, ...] = ()  # the places that exist here
    place: str = ""  # the one that is shown
    close: Callable[[], None] | None = None  # back to what was shown before; None where this is all there is
    number: int = 0  # of the views of this program
    experiment: Experiment = field(default_factory=Experiment)  # what the form begins with
    found: Hardware | None = None  # what GPUs are here; None until somebody has looked
    selected: int | None = None  # the run that is shown; None follows the newest
    baseline: int | None = None
    campaign: Campaign | None = None  # runs that follow each other by themselves
    recording_since: float = 0.0  # session time at which the recorder began
    told: Entry | None = None  # what the screens themselves had to say last

    @property
    def busy(self) -> bool:
        """Whether something runs, or will go on by itself."""
        return (self.source is not None and self.source.busy) or self.campaign is not None

    def end_campaign(self) -> None:
        """What has begun is left to end by itself."""
        campaign, self.campaign = self.campaign, None
        if campaign is not None:
            campaign.close()

    @property
    def run(self) -> Run | None:
        """The run that is shown."""
        if self.selected is not None and self.selected in self.model.runs:
            return self.model.runs[self.selected]
        return self.model.run

    @property
    def baseline_run(self) -> Run | None:
        return self.model.runs.get(self.baseline) if self.baseline is not None else None

    @property
    def latest(self) -> Entry | None:
        """The log line: what a screen said last, until something newer happens."""
        last = notices.latest(self.model)
        return self.told if self.told is not None and (last is None or last.t <= self.told.t) else last

    @property
    def key(self) -> tuple[object, ...]:
        """Whatever decides, for all places alike, what is shown."""
        recorder = self.source.recorder if self.source is not None else None
        second = int(self.source.now) if self.source is not None and recorder is not None else None
        return (self.model.index, self.selected, self.baseline, self.told, recorder is not None, second, self.busy)
