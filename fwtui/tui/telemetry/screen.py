"""The Telemetry screen: all readings of a session on one clock, with runs as bands and throttling."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from textual.app import ComposeResult
from textual.content import Content
from textual.strip import Strip
from textual.widgets import SelectionList
from textual.widgets.selection_list import Selection

from fwtui.common import units
from fwtui.experiment.device import DeviceId
from fwtui.stream.events import QUANTITIES
from fwtui.stream.run import Run
from fwtui.tui.actions import ACROSS, CHOOSE, ENDS, hidden_look, look, require
from fwtui.tui.frame import bindings
from fwtui.tui.frame.dialogs import CLOSES, Dialog
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.telemetry_strip import during
from fwtui.tui.frame.view import View
from fwtui.tui.telemetry.track_chart import NO_RUN, RunReadings, TrackChart
from fwtui.tui.telemetry.tracks import SPANS, span_for, tracks_of
from fwtui.tui.widgets import run_labels
from fwtui.tui.widgets.shown_quantities import default_quantities, default_quantities_of_several
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, justify, line, longest

LIVE_SPAN = 60.0  # visible seconds of a live session at first


class Heading(NamedTuple):
    start: float
    end: float
    state: str
    run: Run | None
    hidden: int  # tracks without room
    folded: str = ""  # tracks that are folded or have no room yet, and the key that opens them


class HeadingLine(TextPanel[Heading | None]):
    DEFAULT_CSS = "HeadingLine { padding: 0 1; height: 1; }"
    NOTHING = (line(""),)

    def draw(self, subject: Heading, width: int) -> Sequence[Content]:
        window = f"{units.clock(subject.start)} to {units.clock(subject.end)}  "
        note = (f"   {subject.hidden} more: no room", "$text-warning") if subject.hidden else (subject.folded, MUTED)
        begin = line(("TELEMETRY  ", f"{STRONG} $text-primary"), (window, STRONG))
        left = longest((line(begin, (subject.state, MUTED), note), line(begin.rstrip(), note)), width)
        run = subject.run
        if run is None:
            return [left]
        number = f"run {run.id}  "
        text = number + run_labels.describe_kernel(run, width - left.cell_length - len(number) - 2)
        return [justify(left, line((text, MUTED)), width) if left.cell_length + len(text) + 2 <= width else left]


class Choices(SelectionList[str]):
    """A selection list that also marks the choice without colours: only chosen lines have an X."""

    def render_line(self, y: int) -> Strip:
        strip, row = super().render_line(y), y + self.scroll_offset.y
        if row >= self.option_count or self.get_option_at_index(row).value in self.selected:
            return strip
        left, inner, *others = strip
        return Strip([left, Segment(" ", inner.style), *others])


class QuantitiesScreen(Dialog):
    """The choice of visible quantities."""

    DEFAULT_CSS = """
    QuantitiesScreen Choices { height: auto; max-height: 16; min-width: 20; border: none; padding: 0; background: $surface; }
    QuantitiesScreen Choices:focus { border: none; }
    """

    def __init__(self, selected: Sequence[str], details: bool):
        sources = {key: f" ({one.source})" * bool(details and one.source) for key, one in QUANTITIES.items()}
        title = max(len(one.title) for one in QUANTITIES.values()) + 2
        labels = {key: Content(f"{one.title:<{title}}{one.meaning}{sources[key]}") for key, one in QUANTITIES.items()}
        choices = Choices(*(Selection(label, key, key in selected) for key, label in labels.items()))
        super().__init__("Quantities", choices, hint=f"Space or Enter chooses, {CLOSES}")

    def on_mount(self) -> None:
        choices = self.query_one(Choices)
        choices.styles.max_height = max(3, self.app.size.height - 6)
        choices.focus()

    def action_close(self) -> None:
        self.dismiss(",".join(self.query_one(Choices).selected))


_one_gpu = require(attrgetter("several"), "this session has telemetry of one GPU at most")
_all_open = require(lambda screen: not screen.is_mounted or screen.closed, "all tracks are open")


class TelemetryScreen(Frame):
    PLACE = "telemetry"
    STRIP = False
    AUTO_FOCUS = ""
    WORDS = (
        ("runs", "each run from its start to its end; the shown run is bold"),
        ("mean, max", "of the shown run during its timed repetitions, else of the visible time; ┄ is the maximum"),
        ("╌", "no reading"),
        ("throttle", "█ while the GPU lowered its clocks, · while it did not, blank without readings"),
        ("0 to 700 W", "the ends of a track's scale: the limits of the GPU, if it reports them"),
        ("NVLink", "traffic with other GPUs, sent plus received; one-way traffic fills at most half of the peak"),
    )
    MOVES: ClassVar = ("In the chart ({key[cursor]})", (*ACROSS, *ENDS, CHOOSE))
    BINDINGS: ClassVar = [
        bindings.CURSOR,
        look("Q", "tracks", "Quantities", "choose which quantities are shown", id="telemetry.series"),
        hidden_look("v", "quantity", "View", "fold the open tracks and open the next ones", _all_open, "telemetry.quantity"),
        look("H", "gpu", "GPU", "show one GPU, the next one, or all GPUs", _one_gpu, "telemetry.gpu"),
        look("plus,equals_sign", "zoom(1)", "Zoom in", "show a shorter time span", id="telemetry.nearer", key_display="+"),
        hidden_look("minus", "zoom(-1)", "Zoom out", "show a longer time span", id="telemetry.wider", key_display="-"),
        *bindings.SHARED,
    ]

    def __init__(self, view: View):
        super().__init__(view)
        self._names: tuple[str, ...] = ()  # chosen quantities; empty: the default ones of this machine
        self.gpu: DeviceId | None = None  # the only GPU of several that is shown
        self.closed = 0  # number of tracks that are folded or have no room
        self._first = 0  # index of the quantity whose group of tracks is at the top
        self._means: tuple[object, RunReadings] = (None, NO_RUN)  # cached mean and maximum of a finished run
        self._span: float | None = LIVE_SPAN if view.playback is None else None  # None: the whole session
        self._held: float | None = None  # end of the window, while a cursor holds it

    def body(self) -> ComposeResult:
        yield HeadingLine(None)
        yield TrackChart(self.view, self._choose, self._hold, self.action_zoom)

    def state(self) -> object:
        return (self._names, self._span, self._held, self.gpu, self._first, self.closed)

    @property
    def several(self) -> tuple[DeviceId, ...]:
        """Return the GPUs with readings in this session, if there are several."""
        gpus = tuple(sorted(self.model.readings))
        return gpus if len(gpus) > 1 else ()

    @property
    def _quantities(self) -> tuple[str, ...]:
        """Return the visible quantities: the chosen ones, else those of this machine."""
        if self._names or not self.several:
            return self._names or tuple(default_quantities(self.model))
        compared = default_quantities_of_several(self.model, self.several)
        return tuple(compared if self.gpu is None else {**compared, **default_quantities(self.model)})

    def show(self) -> None:
        start, end = self._window()
        chart, names, gpus = self.query_one(TrackChart), self._quantities, self.several
        visible = names
        if gpus and self.gpu is None:
            first = self._first % len(names)
            visible = (*names[first:], *names[:first])[: max(1, chart.room // (1 + len(gpus)))]
        one = self.gpu or self.model.watched
        tracks = tracks_of(self.model, visible, (one,) if not gpus or self.gpu is not None else gpus)
        chart.show(tracks, start, end, self._of_run({track.gpu for track in tracks}))
        hidden = sum(height == 0 for height in chart.heights)
        self.closed = len(names) - len(visible) or (len(tracks) - chart.open_tracks if chart.open_tracks else 0)
        folded = f"   {self.closed} folded: {self.key_of('telemetry.quantity')} opens the next" if self.closed else ""
        self.query_one(HeadingLine).show(Heading(start, end, self._state, self.view.run, hidden, folded))

    def _of_run(self, gpus: set[DeviceId | None]) -> RunReadings:
        """Return mean and maximum of the shown run after its end; none during a run, when the visible time counts."""
        run = self.view.run
        if run is None or self.view.busy or run.state == "running":
            return NO_RUN
        if self._means[0] != (key := (run, gpus)):
            on = [gpu for gpu in gpus if (gpu is None) != (run.backend == "cuda")]
            found = {gpu: during(self.model, run, gpu) for gpu in on}
            self._means = key, {gpu: both for gpu, both in found.items() if both is not None}
        return self._means[1]

    @property
    def _state(self) -> str:
        span = "whole session" if self._span is None else f"{units.duration(min(self._span, self._whole))} wide"
        if gpus := self.several:
            span += f" · {len(gpus)} GPUs" if self.gpu is None else f" · GPU {self.gpu}"
        if self._held is not None:
            return f"{span} · held"
        return span if self.view.playback is not None else f"{span} · following"

    @property
    def _whole(self) -> float:
        """Return the length of the session in seconds; that of a live session is rounded up."""
        playback = self.view.playback
        return max(playback.player.length, 1.0) if playback is not None else span_for(self.model.t)

    def _window(self) -> tuple[float, float]:
        """Return the session times at both ends of the chart."""
        whole = self._whole
        if self._span is None or self._span >= whole:
            return 0.0, whole
        end = max(self._held if self._held is not None else self.model.t, self._span)
        return end - self._span, end

    def action_zoom(self, direction: int) -> None:
        steps = [span for span in SPANS if span < self._whole]
        now = len(steps) if self._span is None or self._span >= self._whole else steps.index(span_for(self._span))
        place = now - direction
        if not 0 <= place <= len(steps):
            self.show_message(
                f"{units.duration(steps[0])} is the shortest span" if direction > 0 and steps else "the whole session is visible"
            )
            return
        at = self.query_one(TrackChart).at
        self._span = steps[place] if place < len(steps) else None
        if at is not None and self._span is not None:  # the cursor stays visible
            self._held = min(max(at + self._span / 2, self._span), max(self.model.t, self._span))
        self.update()

    def action_tracks(self) -> None:
        def chosen(names: str) -> None:
            picked = names.split(",")
            self._names = tuple(key for key in QUANTITIES if key in picked)
            self.update()

        self.open_dialog(QuantitiesScreen(self._quantities, self.look.details), chosen)

    def action_quantity(self) -> None:
        if self.several and self.gpu is None:
            self._first = (self._first + 1) % len(self._quantities)
        else:
            self.query_one(TrackChart).open_next()
        self.update()

    def action_gpu(self) -> None:
        order = (None, *self.several)
        self.gpu = order[(order.index(self.gpu) + 1) % len(order)] if self.gpu in order else None
        self.update()

    def _choose(self, run: int) -> None:
        """Show the run on every screen."""
        self.view.selected = run
        self.update()

    def _hold(self, on: bool) -> None:
        """Hold the window while keys move the cursor."""
        self._held = (self._held or self.model.t) if on else None
        self.update()
