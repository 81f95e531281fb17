"""The race of two runs on the whole screen: both fill their matrices, slowed down or sped up to a visible pace."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from fwtui.analysis.compare import FASTER, NOT_COMPARED, SAME, SLOWER, ComparedRun, Comparison, compare
from fwtui.analysis.explanation import speedup_causes
from fwtui.analysis.race_timeline import SECONDS, ProgressCurve, RacePosition, by_time, progress_curve
from fwtui.common import units
from fwtui.tui.actions import look
from fwtui.tui.frame.dialogs import Dialog
from fwtui.tui.widgets.large import Large
from fwtui.tui.widgets.matrix import MatrixPicture
from fwtui.tui.widgets.run_text import meter
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, line, longest

FRAMES = 12  # pictures a second
KEYS = "{key[race.go]}: {screen.next_state} · {key[dialog.close]}: leave"
FRAME = 2 + 2  # columns of border and padding
AROUND = 2 + 7  # rows of border, heads, figures, bars and keys; the others are for text and matrices
ROOMY = 24  # rows of the screen from which the text at the end has rows reserved
NARROW = 32  # cells of a runner below which its figures are closer


class RaceResult(NamedTuple):
    """The winner and its speedup; no winner if the runs did different work or are equal."""

    text: str
    winner: int | None = None  # index of the runner
    ratio: str = ""
    sure: bool = False


def race_result(baseline: ComparedRun, entrant: ComparedRun, found: Comparison) -> RaceResult:
    """Return the result of the race."""
    runners = baseline, entrant
    times = [e.run.seconds or 0.0 for e in runners]
    if found.verdict == NOT_COMPARED or min(times) <= 0:
        return RaceResult(f"No winner: {found.why}.")
    if found.verdict == SAME:
        return RaceResult(f"A draw: {found.why}.")
    first = times.index(min(times))
    gain = found.speedup or times[0] / times[1]
    ratio, name = units.gain(max(gain, 1 / gain)), entrant_name(runners[first])
    if found.ratio is not None and found.ratio.disturbed:
        ratio = f"at least {found.ratio.least:.0f}x"
    times_text = f"{units.duration(min(times))} against {units.duration(max(times))}, {ratio} speedup."
    if found.verdict in (FASTER, SLOWER):
        why = "; ".join(speedup_causes(found))
        return RaceResult(f"{name} wins: {times_text}{f' Reason: {why}.' if why else ''}", first, ratio, True)
    return RaceResult(f"{name} is first: {times_text} Unclear: {found.why}.", first, ratio)


def entrant_name(entrant: ComparedRun) -> str:
    return f"{entrant.run.title or entrant.run.experiment.kernel} ({entrant.label})"


def clock(place: RacePosition, way: ProgressCurve) -> str:
    """Format the time so far with the unit and decimals of the total, so that the figures do not move."""
    whole = units.duration(way.total)
    number, _, unit = whole.partition(" ")
    if place.seconds >= way.total or unit not in units.SECONDS:
        return units.duration(place.seconds)
    return f"{place.seconds / units.SECONDS[unit]:.{len(number.partition('.')[2])}f} {unit}"


class RunnerState(NamedTuple):
    """A runner at one moment."""

    time: str
    share: float  # completed share of the work
    ratio: str = ""  # the speedup, at the end and for the winner only
    sure: bool = True


class Bar(TextPanel[float]):
    def draw(self, subject: float, width: int) -> Sequence[Content]:
        return [line(*meter(subject, width))]


class RaceRunner(Vertical):
    """A run's name, its time and share in large figures, a bar, and its matrix."""

    DEFAULT_CSS = """
    RaceRunner .figures { height: 3; }
    RaceRunner Digits { height: 3; width: 1fr; text-style: bold; }
    RaceRunner .share { width: auto; color: $text-muted; margin-right: 1; }
    RaceRunner .share.-won { color: $text-success; }
    RaceRunner MatrixPicture { width: 1fr; height: 1fr; padding-left: 0; }
    """

    def __init__(self, entrant: ComparedRun):
        super().__init__()
        self._entrant = entrant

    def compose(self) -> ComposeResult:
        yield Static(Content(entrant_name(self._entrant)).stylize(STRONG), markup=False)
        with Horizontal(classes="figures"):
            yield Large(classes="time")
            yield Large(classes="share")
        yield Bar(0.0)
        yield MatrixPicture()

    def show(self, state: RunnerState) -> None:
        self.query_one(".time", Large).update(state.time)
        share = self.query_one(".share", Large)
        share.update(state.ratio or f"{100 * state.share:.0f}{' ' * (self.size.width >= NARROW)}%")
        share.set_class(bool(state.ratio) and state.sure, "-won")
        self.query_one(Bar).show(state.share)
        self.query_one(MatrixPicture).race(self._entrant.run, state.share)


class RaceScreen(Dialog):
    """The race of two runs that have a time; it starts at once and stops at its end."""

    DEFAULT_CSS = """
    RaceScreen > #box { width: 100%; max-width: 100%; height: 100%; }
    RaceScreen RaceRunner { margin-right: 1; }
    RaceScreen #title, RaceScreen #how { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    BINDINGS: ClassVar = [
        look("space", "go", "Play", "pause or continue; at the end, start again", id="race.go"),
    ]

    def __init__(self, entrant: ComparedRun, baseline: ComparedRun):
        found = compare(entrant, baseline)
        super().__init__(f"Race: {entrant.label} against {baseline.label}", hint=KEYS)
        self._differs = found.differs
        self.runners = (baseline, entrant)
        self.curves = [way for e in self.runners if (way := progress_curve(e.run)) is not None]
        self.result = race_result(baseline, entrant, found)
        self.watched = 0.0  # shown share of the race
        self.going = True
        self._last_frame = monotonic()

    def body(self) -> ComposeResult:
        yield Static(id="how", markup=False)
        with Horizontal():
            for entrant in self.runners:
                yield RaceRunner(entrant)
        yield Static(id="result", markup=False)

    def on_mount(self) -> None:
        self._last_frame = monotonic()
        self.set_interval(1 / FRAMES, self.advance)
        self._fit()
        self._show()

    def on_resize(self) -> None:
        if self.is_mounted:
            self._fit()

    def _fit(self) -> None:
        """Put as many differences into the title as fit; on a high screen, reserve the rows of the result."""
        width, height = self.app.size.width - FRAME, self.app.size.height
        heads = (
            "".join((self.heading, *(f" · {difference}" for difference in self._differs[:most])))
            for most in range(len(self._differs), -1, -1)
        )
        self.query_one("#title", Static).update(longest(map(Content, heads), width))
        footnote = self.query_one("#result", Static)
        footnote.styles.min_height = len(Content(self.result.text).wrap(width)) if height >= ROOMY else 1
        footnote.styles.max_height = max(1, height - AROUND)

    def advance(self) -> None:
        """Advance the race by the time since the last frame."""
        now = monotonic()
        since, self._last_frame = now - self._last_frame, now
        if self.going:
            self.watched = min(1.0, self.watched + since / SECONDS)
            self.going = self.watched < 1
            self._show()

    def action_go(self) -> None:
        """Pause or continue; a finished race starts again."""
        if self.watched >= 1:
            self.watched = 0.0
        self.going = not self.going
        self._show()

    def states(self) -> list[RunnerState]:
        """Return the state of both runners."""
        places = zip(by_time(self.curves, self.watched), self.curves, strict=True)
        states = [RunnerState(clock(place, way), place.share) for place, way in places]
        if self.watched >= 1 and self.result.winner is not None:
            winner = states[self.result.winner]
            states[self.result.winner] = winner._replace(ratio=self.result.ratio, sure=self.result.sure)
        return states

    @property
    def next_state(self) -> str:
        """The effect of the key that pauses or continues."""
        return "pause" if self.going else "again" if self.watched >= 1 else "continue"

    def _show(self) -> None:
        for runner, state in zip(self.query(RaceRunner), self.states(), strict=True):
            runner.show(state)
        self.query_one("#how", Static).update(Content(self._how()))
        self.query_one("#hint", Static).update(Content(self.hint))
        even = [entrant_name(e) for e, way in zip(self.runners, self.curves, strict=True) if not way.sampled]
        were = f"{' and '.join(even)} {'was' if len(even) == 1 else 'were'}"
        note = line((f"{were} not timed round by round: drawn at an even pace." if even else "", MUTED))
        self.query_one("#result", Static).update(line((self.result.text, STRONG)) if self.watched >= 1 else note)

    def _how(self) -> str:
        """Describe the speed and the state of the race; shorter on a narrow screen."""
        slowest = max(way.total for way in self.curves)
        ratio = SECONDS / slowest
        scale = f"{units.duration(slowest)} shown in {SECONDS:g} s"
        slowed = f", {units.gain(ratio)} slower" if ratio >= 1 else f", {units.gain(1 / ratio)} faster"
        state = "" if self.going else " · over" if self.watched >= 1 else " · paused"
        whole = f"both at the same moment · {scale}{slowed}{state}"
        return whole if len(whole) <= self.app.size.width - 4 else f"{scale}{slowed}{state}"
