"""The telemetry of the whole session on one clock, with runs as bands: what the GPU did, and what held it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from textual.app import ComposeResult
from textual.content import Content
from textual.strip import Strip
from textual.widgets import SelectionList
from textual.widgets.selection_list import Selection

from fwtui.common import units
from fwtui.stream.events import QUANTITIES
from fwtui.stream.run import Run
from fwtui.tui.frame import bindings
from fwtui.tui.frame.bindings import bound, hidden
from fwtui.tui.frame.dialogs import Dialog
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.view import View
from fwtui.tui.telemetry import lane_chart
from fwtui.tui.telemetry.lane_chart import LaneChart
from fwtui.tui.widgets import wording
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, apart, line
from fwtui.tui.widgets.lanes import SPANS, span_for, usual

LIVE_SPAN = 60.0  # seconds that a live session begins with


class Heading(NamedTuple):
    start: float
    end: float
    state: str
    run: Run | None
    hidden: int  # lanes without room


class HeadingLine(Drawn[Heading | None]):
    DEFAULT_CSS = "HeadingLine { padding: 0 1; height: 1; }"

    def draw(self, subject: Heading | None, width: int) -> Sequence[Content]:
        if subject is None:
            return [line("")]
        window = f"{units.clock(subject.start)} to {units.clock(subject.end)}  "
        gone = (f"   {subject.hidden} more: no room", "$text-warning") if subject.hidden else ""
        left = line(("TELEMETRY  ", f"{STRONG} $text-primary"), (window, STRONG), (subject.state, MUTED), gone)
        run = subject.run
        if run is None:
            return [left]
        number = f"run {run.id}  "
        words = number + wording.kernel_words(run, width - left.cell_length - len(number) - 2)
        return [apart(left, line((words, MUTED)), width) if left.cell_length + len(words) + 2 <= width else left]


class Choices(SelectionList[str]):
    """Textual's list shows the choice by colour alone; here only chosen lines have an X."""

    def render_line(self, y: int) -> Strip:
        strip, row = super().render_line(y), y + self.scroll_offset.y
        if row >= self.option_count or self.get_option_at_index(row).value in self.selected:
            return strip
        left, inner, *others = strip
        return Strip([left, Segment(" ", inner.style), *others])


class LanesScreen(Dialog):
    """Which lanes are shown."""

    DEFAULT_CSS = """
    LanesScreen Choices { height: auto; max-height: 16; min-width: 20; border: none; padding: 0; background: $surface; }
    LanesScreen Choices:focus { border: none; }
    """

    def __init__(self, shown: Sequence[str]):
        words = {key: Content(f"{quantity.title:<11}{quantity.meaning}") for key, quantity in QUANTITIES.items()}
        choices = Choices(*(Selection(told, key, key in shown) for key, told in words.items()))
        super().__init__("What to show", choices, hint="Space or Enter chooses, Esc closes this")

    def on_mount(self) -> None:
        chosen = self.query_one(Choices)
        chosen.styles.max_height = max(3, self.app.size.height - 6)
        chosen.focus()

    def action_close(self) -> None:
        self.dismiss(",".join(self.query_one(Choices).selected))


class TelemetryScreen(Frame):
    PLACE = "telemetry"
    STRIP = False
    AUTO_FOCUS = ""
    WORDS = (
        ("runs", "each run from its start to its end; the one that is shown on all screens is bold"),
        ("throttle", "█ while the GPU lowered its clocks, · while it did not, blank if it was not read"),
        ("0 to 700 W", "the ends of a lane's scale; they are the GPU's own limits where those are known"),
    )
    MOVES: ClassVar = ("In the chart (x)", lane_chart.MOVES)
    BINDINGS: ClassVar = [
        bindings.CURSOR,
        bound("s", "lanes", "Series", "choose which quantities are shown", id="telemetry.series"),
        bound("plus,equals_sign", "zoom(1)", "Nearer", "a shorter stretch of time", id="telemetry.nearer", key_display="+"),
        hidden("minus", "zoom(-1)", "Wider", "a longer stretch of time", id="telemetry.wider", key_display="-"),
        hidden("0", "whole", "All", "the whole session", id="telemetry.all"),
        *bindings.SHARED,
    ]

    def __init__(self, view: View):
        super().__init__(view)
        self._names: tuple[str, ...] = ()  # chosen ones; nothing is what is usual for this machine
        self._span: float | None = LIVE_SPAN if view.playback is None else None  # None is the whole session
        self._held: float | None = None  # where the window ends, while a cursor holds it

    def body(self) -> ComposeResult:
        yield HeadingLine(None)
        yield LaneChart(self.view)

    def state(self) -> object:
        return (self._names, self._span, self._held)

    def show(self) -> None:
        names = self._names or tuple(usual(self.model))
        start, end = self._window()
        chart = self.query_one(LaneChart)
        chart.show(names, start, end)
        hidden = sum(height == 0 for height in chart.heights)
        self.query_one(HeadingLine).show(Heading(start, end, self._state_words(), self.view.run, hidden))

    def _state_words(self) -> str:
        span = "all of it" if self._span is None else f"{units.duration(min(self._span, self._whole))} wide"
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
        at = self.query_one(LaneChart).at
        self._span = steps[place] if place < len(steps) else None
        if at is not None and self._span is not None:  # what is under the cursor stays in sight
            self._held = min(max(at + self._span / 2, self._span), max(self.model.t, self._span))
        self.update()

    def action_whole(self) -> None:
        self._span = self._held = None
        self.query_one(LaneChart).release()
        self.update()

    def action_lanes(self) -> None:
        def chosen(names: str) -> None:
            picked = names.split(",")
            self._names = tuple(key for key in QUANTITIES if key in picked)
            self.update()

        self.ask(LanesScreen(self._names or tuple(usual(self.model))), chosen)

    def action_pick(self, run: int) -> None:
        """Show the run on every screen."""
        self.view.selected = run
        self.update()

    def action_hold(self, on: bool) -> None:
        """Let the window stay where it is while a key has set the cursor."""
        self._held = (self._held or self.model.t) if on else None
        self.update()

    def why_not(self, action: str) -> str:
        if action == "whole" and self._span is None and self._held is None:
            return "this is all of it"
        return super().why_not(action)
