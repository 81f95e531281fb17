"""The telemetry of the whole session on one clock, with runs as bands: what the GPU did, and what held it back."""

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

from fwtui.analysis.gpu_balance import Balance, balance
from fwtui.common import units
from fwtui.experiment.device import DeviceId
from fwtui.stream.events import QUANTITIES
from fwtui.stream.run import Run
from fwtui.tui.actions import ACROSS, CHOOSE, first, hidden_look, look, unless
from fwtui.tui.frame import bindings
from fwtui.tui.frame.dialogs import CLOSES, Dialog
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.telemetry_strip import during
from fwtui.tui.frame.view import View
from fwtui.tui.telemetry.track_chart import NO_RUN, RunReadings, TrackChart
from fwtui.tui.telemetry.tracks import SPANS, span_for, tracks_of
from fwtui.tui.widgets import wording
from fwtui.tui.widgets.shown_quantities import among, usual
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, apart, line, longest

LIVE_SPAN = 60.0  # seconds that a live session begins with
LATELY = 3.0  # seconds in which the work of several GPUs is compared, while a run goes on


class Heading(NamedTuple):
    start: float
    end: float
    state: str
    run: Run | None
    hidden: int  # tracks without room
    more: int = 0  # quantities of several GPUs without room
    key: str = ""  # to get to them


class HeadingLine(TextPanel[Heading | None]):
    DEFAULT_CSS = "HeadingLine { padding: 0 1; height: 1; }"
    NOTHING = (line(""),)

    def draw(self, subject: Heading, width: int) -> Sequence[Content]:
        window = f"{units.clock(subject.start)} to {units.clock(subject.end)}  "
        note = (f"   {subject.hidden} more: no room", "$text-warning") if subject.hidden else ""
        if subject.more and not note:
            note = (f"   {units.counted(subject.more, 'more quantity', 'more quantities')}: {subject.key}", MUTED)
        begin = line(("TELEMETRY  ", f"{STRONG} $text-primary"), (window, STRONG))
        left = longest((line(begin, (subject.state, MUTED), note), line(begin.rstrip(), note)), width)
        run = subject.run
        if run is None:
            return [left]
        number = f"run {run.id}  "
        words = number + wording.kernel_words(run, width - left.cell_length - len(number) - 2)
        return [apart(left, line((words, MUTED)), width) if left.cell_length + len(words) + 2 <= width else left]


class BalanceLine(TextPanel[tuple[str, Balance] | None]):
    """Which of several GPUs does most and which least, and when; no line for one GPU."""

    DEFAULT_CSS = "BalanceLine { padding: 0 1; }"

    def draw(self, subject: tuple[str, Balance], width: int) -> Sequence[Content]:
        when, found = subject
        words = (f"{found.word} {when}", f"{STRONG} {'$text-warning' if found.word == 'uneven' else '$text-primary'}")
        words_line = line(words, f": {found.why}")
        return [longest((*(line(words_line, (f"; {links}", MUTED)) for links in found.links), words_line), width)]


class Choices(SelectionList[str]):
    """Textual's list shows the choice by colour alone; here only chosen lines have an X."""

    def render_line(self, y: int) -> Strip:
        strip, row = super().render_line(y), y + self.scroll_offset.y
        if row >= self.option_count or self.get_option_at_index(row).value in self.selected:
            return strip
        left, inner, *others = strip
        return Strip([left, Segment(" ", inner.style), *others])


class QuantitiesScreen(Dialog):
    """Which tracks are shown."""

    DEFAULT_CSS = """
    QuantitiesScreen Choices { height: auto; max-height: 16; min-width: 20; border: none; padding: 0; background: $surface; }
    QuantitiesScreen Choices:focus { border: none; }
    """

    def __init__(self, selected: Sequence[str], details: bool):
        sources = {key: f" ({one.source})" * bool(details and one.source) for key, one in QUANTITIES.items()}
        words = {key: Content(f"{one.title:<11}{one.meaning}{sources[key]}") for key, one in QUANTITIES.items()}
        choices = Choices(*(Selection(label, key, key in selected) for key, label in words.items()))
        super().__init__("What to show", choices, hint=f"Space or Enter chooses, {CLOSES}")

    def on_mount(self) -> None:
        choices = self.query_one(Choices)
        choices.styles.max_height = max(3, self.app.size.height - 6)
        choices.focus()

    def action_close(self) -> None:
        self.dismiss(",".join(self.query_one(Choices).selected))


_all_of_it = unless(lambda screen: not screen.all_shown, "this is all of it")
_one_gpu = unless(attrgetter("several"), "this session has telemetry of one GPU at most")
_all_quantities = first(
    unless(attrgetter("several"), "all quantities of the GPU are shown"),
    unless(lambda screen: screen.gpu is None, "all quantities of GPU {screen.gpu} are shown"),
)


class TelemetryScreen(Frame):
    PLACE = "telemetry"
    STRIP = False
    AUTO_FOCUS = ""
    WORDS = (
        ("runs", "each run from its start to its end; the one that is shown on all screens is bold"),
        ("mean ↑ max", "of the shown run, during its timed repetitions; under a cursor, the values at that time"),
        ("╌", "not read"),
        ("throttle", "█ while the GPU lowered its clocks, · while it did not, blank if it was not read"),
        ("0 to 700 W", "the ends of a track's scale; they are the GPU's own limits where those are known"),
        ("uneven", "of several GPUs, one does less than 90 % of what the busiest does: it waits, or has less to do"),
        (
            "NVLink",
            "what a GPU's links to the others carry, sent and received together; what goes one way only fills half of them",
        ),
    )
    MOVES: ClassVar = ("In the chart ({key[cursor]})", (*ACROSS, CHOOSE))
    BINDINGS: ClassVar = [
        bindings.CURSOR,
        look("Q", "tracks", "Quantities", "choose which quantities are shown", id="telemetry.series"),
        hidden_look("v", "quantity", "View", "the next quantity of every GPU", _all_quantities, "telemetry.quantity"),
        look("H", "gpu", "GPU", "one GPU with all its quantities, the next one, or every GPU", _one_gpu, "telemetry.gpu"),
        look("plus,equals_sign", "zoom(1)", "Nearer", "a shorter stretch of time", id="telemetry.nearer", key_display="+"),
        hidden_look("minus", "zoom(-1)", "Wider", "a longer stretch of time", id="telemetry.wider", key_display="-"),
        hidden_look("0", "whole", "All", "the whole session", _all_of_it, "telemetry.all"),
        *bindings.SHARED,
    ]

    def __init__(self, view: View):
        super().__init__(view)
        self._names: tuple[str, ...] = ()  # chosen ones; nothing is what is usual for this machine
        self.gpu: DeviceId | None = None  # the only one of several that is shown
        self._first = 0  # of the quantities, which group of tracks is at the top
        self._worked: tuple[object, Balance | None] = (None, None)  # how the GPUs worked in a run that is over
        self._means: tuple[object, RunReadings] = (None, NO_RUN)
        self._span: float | None = LIVE_SPAN if view.playback is None else None  # None is the whole session
        self._held: float | None = None  # where the window ends, while a cursor holds it

    def body(self) -> ComposeResult:
        yield HeadingLine(None)
        yield BalanceLine(None)
        yield TrackChart(self.view, self._choose, self._hold, self.action_zoom)

    def state(self) -> object:
        return (self._names, self._span, self._held, self.gpu, self._first)

    @property
    def all_shown(self) -> bool:
        """Whether all of the session is shown."""
        return self._span is None and self._held is None

    @property
    def several(self) -> tuple[DeviceId, ...]:
        """The GPUs that were read in this session, if they are several."""
        gpus = tuple(sorted(self.model.readings))
        return gpus if len(gpus) > 1 else ()

    @property
    def _quantities(self) -> tuple[str, ...]:
        """What is shown, as far as there is room."""
        if self._names or not self.several:
            return self._names or tuple(usual(self.model))
        compared = among(self.model, self.several)
        return tuple(compared if self.gpu is None else {**compared, **usual(self.model)})

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
        key = self.key_of("telemetry.quantity")
        heading = Heading(start, end, self._state_words(), self.view.run, hidden, len(names) - len(visible), key)
        self.query_one(HeadingLine).show(heading)
        self.query_one(BalanceLine).show(self._balance(gpus) if gpus else None)

    def _of_run(self, gpus: set[DeviceId | None]) -> RunReadings:
        """Mean and peak of the shown run, once it is over and until the next one begins: what is read since is idle."""
        run = self.view.run
        if run is None or self.view.busy or run.state == "running":
            return NO_RUN
        if self._means[0] != (key := (run, gpus)):
            on = [gpu for gpu in gpus if (gpu is None) != (run.backend == "cuda")]
            found = {gpu: during(self.model, run, gpu) for gpu in on}
            self._means = key, {gpu: both for gpu, both in found.items() if both is not None}
        return self._means[1]

    def _balance(self, gpus: tuple[DeviceId, ...]) -> tuple[str, Balance] | None:
        """How several GPUs worked, and when: in the run that is shown, or lately while it goes on."""
        run, now = self.view.run, self.model.t
        window = run.clean_window if run is not None else None
        if run is None or window is None or run.finished is None or window[0] == window[1]:
            since = max(run.started if run is not None and run.finished is None else 0.0, now - LATELY)
            found = balance(self.model, gpus, since, now)
            return ("now", found) if found is not None else None
        if self._worked[0] != (key := (gpus, *window)):
            self._worked = key, balance(self.model, gpus, *window)
        found = self._worked[1]
        return (f"in run {run.id}", found) if found is not None else None

    def _state_words(self) -> str:
        span = "all of it" if self._span is None else f"{units.duration(min(self._span, self._whole))} wide"
        if gpus := self.several:
            span += f" · {len(gpus)} GPUs" if self.gpu is None else f" · GPU {self.gpu}"
        if self._held is not None:
            return f"{span} · held"
        return span if self.view.playback is not None else f"{span} · following"

    @property
    def _whole(self) -> float:
        """How long the session is: a recording's length is known, a live one is as long as the next round time."""
        playback = self.view.playback
        return max(playback.player.length, 1.0) if playback is not None else span_for(self.model.t)

    def _window(self) -> tuple[float, float]:
        """Session time at both ends."""
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
            self.say(f"{units.duration(steps[0])} is the shortest stretch" if direction > 0 and steps else "this is all of it")
            return
        at = self.query_one(TrackChart).at
        self._span = steps[place] if place < len(steps) else None
        if at is not None and self._span is not None:  # what is under the cursor stays in sight
            self._held = min(max(at + self._span / 2, self._span), max(self.model.t, self._span))
        self.update()

    def action_whole(self) -> None:
        self._span = self._held = None
        self.query_one(TrackChart).release()
        self.update()

    def action_tracks(self) -> None:
        def chosen(names: str) -> None:
            picked = names.split(",")
            self._names = tuple(key for key in QUANTITIES if key in picked)
            self.update()

        self.ask(QuantitiesScreen(self._quantities, self.look.details), chosen)

    def action_quantity(self) -> None:
        self._first = (self._first + 1) % len(self._quantities)
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
        """Let the window stay where it is while a key has set the cursor."""
        self._held = (self._held or self.model.t) if on else None
        self.update()
