"""A race of two runs on the whole screen: each goes through its matrix, slowed down or sped up so that an eye can follow."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from fwtui.analysis.compare import FASTER, SAME, SLOWER, ComparedRun, Comparison, LowerBound, compare
from fwtui.analysis.explanation import speedup_causes
from fwtui.analysis.race_timeline import SECONDS, Course, RacePosition, by_round, by_time, course
from fwtui.common import units
from fwtui.tui.actions import look
from fwtui.tui.frame.dialogs import Dialog
from fwtui.tui.widgets.large import Large
from fwtui.tui.widgets.matrix import MatrixPicture
from fwtui.tui.widgets.run_text import meter
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, line, longest

FRAMES = 12  # pictures a second
MIN_SECONDS, MAX_SECONDS = 1.0, 64.0  # that a race takes to watch
SPEED = "{key[race.slower]} {key[race.faster]}: speed"
KEYS = f"{{key[race.go]}}: pause · {{key[race.align]}}: by round · {SPEED} · {{key[dialog.close]}}: leave"
FRAME = 2 + 2  # cells of the screen beside the words
AROUND = 2 + 7  # rows that border, heads, figures, bars and keys take: what is left is for words and matrices
ROOMY = 24  # rows of the screen from which on nothing moves at the end
NARROW = 32  # cells of a lane below which its figures are closer


class Ending(NamedTuple):
    """Who has won and by how much; no ratio where the two did not do the same work."""

    words: str
    winner: int | None = None  # place of the runner
    ratio: str = ""
    sure: bool = False


def ending(baseline: ComparedRun, entrant: ComparedRun, found: Comparison) -> Ending:
    """How the race of the two ends."""
    runners = baseline, entrant
    times = [e.run.seconds or 0.0 for e in runners]
    if entrant.run.n != baseline.run.n or not (entrant.run.verified and baseline.run.verified) or min(times) <= 0:
        return Ending(f"Nobody has won: {found.why}.")
    if found.verdict == SAME:
        return Ending(f"A draw: {found.why}.")
    first = times.index(min(times))
    gain = found.speedup or times[0] / times[1]
    ratio, name = units.gain(max(gain, 1 / gain)), entrant_name(runners[first])
    if isinstance(found.ratio, LowerBound):
        ratio = f"at least {found.ratio.least:.0f}x"
    words = f"{units.duration(min(times))} against {units.duration(max(times))}, {ratio} as fast."
    if found.verdict in (FASTER, SLOWER):
        why = "; ".join(speedup_causes(found))
        return Ending(f"{name} wins: {words}{f' Why: {why}.' if why else ''}", first, ratio, True)
    return Ending(f"{name} is first: {words} That is unclear: {found.why}.", first, ratio)


def entrant_name(entrant: ComparedRun) -> str:
    return f"{entrant.run.title or entrant.run.experiment.kernel} ({entrant.label})"


def clock(place: RacePosition, way: Course) -> str:
    """The seconds so far in the unit and with the decimals of the whole, so that the figures do not move."""
    whole = units.duration(way.total)
    number, _, unit = whole.partition(" ")
    if place.seconds >= way.total or not unit.isalpha():
        return units.duration(place.seconds)
    return f"{place.seconds / way.total * float(number):.{len(number.partition('.')[2])}f} {unit}"


class RaceLane(NamedTuple):
    """A runner at one moment."""

    time: str
    share: float  # of the work that is done
    bar: float
    ratio: str = ""  # of the winner, at the end
    sure: bool = True


class Bar(TextPanel[float]):
    def draw(self, subject: float, width: int) -> Sequence[Content]:
        return [line(*meter(subject, width))]


class RaceRunner(Vertical):
    """A run's name, its time and share in large figures, and its matrix; a plan without a film has only a bar."""

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

    def show(self, lane: RaceLane, seconds: float) -> None:
        """Show that moment of a race that takes `seconds` to watch."""
        self.query_one(".time", Large).update(lane.time)
        share = self.query_one(".share", Large)
        share.update(lane.ratio or f"{100 * lane.share:.0f}{' ' * (self.size.width >= NARROW)}%")
        share.set_class(bool(lane.ratio) and lane.sure, "-won")
        self.query_one(Bar).show(lane.bar)
        self.query_one(MatrixPicture).race(self._entrant.run, lane.share, seconds)


class RaceScreen(Dialog):
    """It begins by itself, and stops at its end. Both runs have a time."""

    DEFAULT_CSS = """
    RaceScreen > #box { width: 100%; max-width: 100%; height: 100%; }
    RaceScreen RaceRunner { margin-right: 1; }
    RaceScreen #title, RaceScreen #how { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    BINDINGS: ClassVar = [
        look("space", "go", "Play", "pause and go on; from the end it begins again", id="race.go"),
        look("v", "align", "View", "both at the same time, or at the same point", id="race.align"),
        look(">", "hurry(0.5)", "Faster", "twice as fast", id="race.faster"),
        look("<", "hurry(2)", "Slower", "half as fast", id="race.slower"),
    ]

    def __init__(self, entrant: ComparedRun, baseline: ComparedRun):
        found = compare(entrant, baseline)
        super().__init__(f"Race: {entrant.label} against {baseline.label}", hint=KEYS)
        self._differs = found.differs
        self.runners = (baseline, entrant)
        self.courses = [way for e in self.runners if (way := course(e.run)) is not None]
        self.ending = ending(baseline, entrant, found)
        self.by_round = False
        self.seconds = SECONDS  # that it takes to watch
        self.watched = 0.0  # the share of it that is over
        self.going = True
        self._seen = monotonic()

    def body(self) -> ComposeResult:
        yield Static(id="how", markup=False)
        with Horizontal():
            for entrant in self.runners:
                yield RaceRunner(entrant)
        yield Static(id="said", markup=False)

    def on_mount(self) -> None:
        self._seen = monotonic()
        self.set_interval(1 / FRAMES, self.advance)
        self._fit()
        self._show()

    def on_resize(self) -> None:
        if self.is_mounted:
            self._fit()

    def _fit(self) -> None:
        """As many differences in the title as have room, and where that leaves enough of the matrices the rows of the end."""
        width, height = self.app.size.width - FRAME, self.app.size.height
        heads = (
            "".join((self.heading, *(f" · {words}" for words in self._differs[:most])))
            for most in range(len(self._differs), -1, -1)
        )
        self.query_one("#title", Static).update(longest(map(Content, heads), width))
        footnote = self.query_one("#said", Static)
        footnote.styles.min_height = len(Content(self.ending.words).wrap(width)) if height >= ROOMY else 1
        footnote.styles.max_height = max(1, height - AROUND)

    def advance(self) -> None:
        """Move on by the time since the last look."""
        now = monotonic()
        since, self._seen = now - self._seen, now
        if self.going:
            self.watched = min(1.0, self.watched + since / self.seconds)
            self.going = self.watched < 1
            self._show()

    def action_go(self) -> None:
        """Pause or go on; a finished race starts again."""
        if self.watched >= 1:
            self.watched = 0.0
        self.going = not self.going
        self._show()

    def action_align(self) -> None:
        self.by_round = not self.by_round
        self._show()

    def action_hurry(self, factor: float) -> None:
        self.seconds = min(MAX_SECONDS, max(MIN_SECONDS, self.seconds * factor))
        self._show()

    def lanes(self) -> list[RaceLane]:
        """Both runners at this moment."""
        slowest = max(way.total for way in self.courses)
        places = (by_round if self.by_round else by_time)(self.courses, self.watched)
        lanes = [
            RaceLane(clock(place, way), place.share, place.seconds / slowest if self.by_round else place.share)
            for place, way in zip(places, self.courses, strict=True)
        ]
        if self.watched >= 1 and self.ending.winner is not None:
            winner = lanes[self.ending.winner]
            lanes[self.ending.winner] = winner._replace(ratio=self.ending.ratio, sure=self.ending.sure)
        return lanes

    def _show(self) -> None:
        for runner, lane in zip(self.query(RaceRunner), self.lanes(), strict=True):
            runner.show(lane, self.seconds)
        self.query_one("#how", Static).update(Content(self._how()))
        # the runs that were not timed round by round
        even = [entrant_name(e) for e, way in zip(self.runners, self.courses, strict=True) if not way.sampled]
        were = f"{' and '.join(even)} {'was' if len(even) == 1 else 'were'}"
        note = line((f"{were} not timed round by round: drawn at an even pace." if even else "", MUTED))
        self.query_one("#said", Static).update(line((self.ending.words, STRONG)) if self.watched >= 1 else note)

    def _how(self) -> str:
        """How the race is shown, how much it is slowed down, and its state; in fewer words on a narrow screen."""
        how, point = ("by round", "point of the work") if self.by_round else ("by time", "moment")
        slowest = max(way.total for way in self.courses)
        ratio = self.seconds / slowest
        scale = f"{units.duration(slowest)} shown in {self.seconds:g} s"
        slowed = f", {units.gain(ratio)} slower" if ratio >= 1 else f", {units.gain(1 / ratio)} faster"
        state = "" if self.going else " · over" if self.watched >= 1 else " · paused"
        whole = f"{how}: both at the same {point} · {scale}{slowed}{state}"
        return whole if len(whole) <= self.app.size.width - 4 else f"{how} · {scale}{slowed}{state}"
