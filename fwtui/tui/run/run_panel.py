"""The right side: one run from its headline to how it was checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.limits import limit_of, share_of_peak
from fwtui.analysis.ranks import counted, gain, how_to_compare
from fwtui.analysis.reason import reason
from fwtui.common import units
from fwtui.stream.model import Evidence, Model
from fwtui.stream.run import Run
from fwtui.stream.stages import doing
from fwtui.tui.frame.notices import Banner
from fwtui.tui.widgets import run_text, wording
from fwtui.tui.widgets.drawn import Drawn, Update
from fwtui.tui.widgets.large import Large
from fwtui.tui.widgets.matrix import MatrixPicture
from fwtui.tui.widgets.run_text import RunSubject
from fwtui.tui.widgets.stairs import Stairs

PICTURED = (72, 18)  # columns and rows of the panel from which on there is room for the matrix
LARGE = (110, 34)
NO_ASKS: Mapping[str, str] = {}


class RunSection(Drawn["RunSubject | None"]):
    """One part of a run in the words of fwtui.tui.widgets.run_text; empty without a run."""

    def __init__(self, said: Callable[[RunSubject, int], Sequence[Content]], *, id: str | None = None, classes: str = ""):
        super().__init__(None, id=id, classes=classes)
        self._said = said

    def draw(self, subject: RunSubject | None, width: int) -> Sequence[Content]:
        return [] if subject is None else self._said(subject, width)


class LargeNumber(NamedTuple):
    """One number and its words; without a number the words alone."""

    number: str
    words: str
    doubtful: bool = False


NOTHING = LargeNumber("", "")


def figures(s: RunSubject | None) -> tuple[LargeNumber, LargeNumber, LargeNumber, LargeNumber]:
    """Total, how that compares with the baseline, rate, and share of the limit; progress until there is a time."""
    if s is None:
        return NOTHING, NOTHING, NOTHING, NOTHING
    run = s.run
    if run.simulated or run.seconds is None:
        if run.state == "running" and run.progress is not None:
            return LargeNumber(f"{100 * min(run.progress.done, 1.0):.0f} %", doing(run.stage)), NOTHING, NOTHING, NOTHING
        words = wording.simulated(run) if run.simulated else "no time yet" if run.state == "running" else "no time"
        return LargeNumber("", words), NOTHING, NOTHING, NOTHING
    doubtful = wording.doubtful(run)
    count = run.done.count if run.done is not None else len(run.samples)
    around = (
        f"{units.spread(run.done.spread)}, "
        if run.done is not None and run.done.spread is not None
        else "so far, " * (run.done is None)
    )
    why = wording.verdict(run)[0].lstrip("?✗- ")
    doubt = why if run.state in wording.ENDED_EARLY else f"not to be trusted: {why}"
    how = doubt if doubtful else f"{around}{wording.passes(count)}"
    number, _, unit = units.rate(run.rate).partition(" ")
    rate = LargeNumber(f"{number} {unit.removesuffix('relax/s')}".strip(), "relaxations/s", doubtful)
    return LargeNumber(units.duration(run.seconds), how, doubtful), _compared(s, doubtful), rate, _shared(s, doubtful)


def _compared(s: RunSubject, doubtful: bool) -> LargeNumber:
    if s.gained is not None:
        share = f", {100 * s.gained.efficiency:.0f} % of {counted(s.gained.devices)}" if s.gained.efficiency is not None else ""
        return LargeNumber(units.gain(s.gained.times), f"one {s.gained.one}{share}", doubtful)
    ratio = wording.speedup(s.run, s.baseline)
    if s.baseline is None or s.baseline.id == s.run.id or not ratio:
        return NOTHING
    return LargeNumber(ratio, f"as fast as {s.baseline.title}", doubtful)


def _shared(s: RunSubject, doubtful: bool) -> LargeNumber:
    if s.limit is not None and s.limit.share is not None:
        return LargeNumber(units.percent(s.limit.share), "of the limit", doubtful)
    share = share_of_peak(s.run, s.device)
    return LargeNumber(units.percent(share), "of peak (model)", doubtful) if share is not None else NOTHING


class Figures(Horizontal):
    """The headline numbers in large digits."""

    DEFAULT_CSS = """
    Figures { height: auto; }
    Figures Vertical { width: auto; min-width: 18; max-width: 30; height: auto; padding-right: 2; }
    Figures Digits { width: auto; height: 3; color: $text-primary; text-style: bold; }
    Figures Static { width: auto; max-width: 28; height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
    Figures .-words, Figures .-words Static { max-width: 100%; }
    Figures .-doubtful { color: $text-error; text-style: strike; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown = (NOTHING,) * 4

    def compose(self) -> ComposeResult:
        for _ in self._shown:
            with Vertical() as place:
                place.display = False
                yield Large("")
                yield Static(markup=False)

    def show(self, subject: RunSubject | None) -> None:
        """Show that run's numbers; unchanged ones cost nothing."""
        now = figures(subject)
        for old, new, place in zip(self._shown, now, self.query(Vertical), strict=True):
            if new != old:
                place.display = new != NOTHING
                place.set_class(not new.number, "-words")
                place.query_one(Static).update(Content(new.words))
                digits = place.query_one(Large)
                digits.update(new.number)
                digits.display = bool(new.number)
                digits.set_class(new.doubtful, "-doubtful")
        self._shown = now


class RunPanel(VerticalScroll, can_focus=False):
    DEFAULT_CSS = """
    RunPanel { padding: 0 1; scrollbar-size-vertical: 1; }
    RunPanel .phases, RunPanel .ranks, RunPanel .outside, RunPanel .meters, RunPanel .check { margin-top: 1; }
    RunPanel .total { display: none; }
    RunPanel .reason { text-style: bold; }
    RunPanel Stairs { margin-top: 1; }
    RunPanel .-empty { display: none; }
    RunPanel #row { height: auto; }
    RunPanel #row Vertical { width: 1fr; height: auto; }
    RunPanel MatrixPicture { margin-top: 1; }
    RunPanel #picture { width: auto; height: auto; }
    RunPanel #picture { display: none; }
    RunPanel #picture.-pictured { display: block; }
    RunPanel #picture.-large MatrixPicture { width: 34; height: 18; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._reasoned: tuple[object, tuple[str, str]] | None = None

    def compose(self) -> ComposeResult:
        yield Banner(None)
        yield Update(())
        yield Stairs(None, classes="-empty")
        yield RunSection(lambda subject, width: [run_text.title(subject, width)])
        yield Figures()
        yield RunSection(lambda subject, width: [run_text.headline(subject, width)], classes="total")
        yield RunSection(run_text.many, classes="many")
        yield RunSection(run_text.reason, classes="reason")
        yield RunSection(run_text.progress, classes="progress")
        with Horizontal(id="row"):
            with Vertical():
                yield RunSection(run_text.phases, classes="phases")
                yield RunSection(run_text.ranks, classes="ranks")
                yield RunSection(run_text.meters, classes="meters")
            with Container(id="picture"):
                yield MatrixPicture()
        yield RunSection(run_text.outside, classes="outside")
        yield RunSection(run_text.checked, classes="check")

    def _why(
        self, model: Model, run: Run, evidence: Evidence | None, baseline: Run | None, asks: Mapping[str, str]
    ) -> tuple[str, str]:
        """The reason in words, and what goes beside it; found again only when something that it depends on has changed."""
        key = (run, evidence, baseline, model.measured, asks)
        if self._reasoned is None or self._reasoned[0] != key:
            against = ComparedRun(model, baseline) if baseline is not None else None
            found = reason(ComparedRun(model, run), against)
            self._reasoned = key, (found.sentence(asks.get(found.missing, "")), found.beside)
        return self._reasoned[1]

    def on_resize(self, event: events.Resize) -> None:
        # it goes first where there is little room; on the panel, its classes would have Textual find all styles of it again
        picture = self.query_one("#picture")
        for least, name in ((PICTURED, "-pictured"), (LARGE, "-large")):
            picture.set_class(event.size.width >= least[0] and event.size.height >= least[1], name)

    def show(
        self,
        model: Model,
        run: Run | None,
        baseline: Run | None,
        advice: tuple[str, ...],
        motion: bool = False,
        asks: Mapping[str, str] = NO_ASKS,
        again: str = "",
    ) -> None:
        """Show a run of the model, or advice if there is none.

        `motion`: its plan in slow motion; `asks`: how to find out what a reason lacks (fwtui.analysis.reason); `again`: the
        key that repeats a run.
        """
        subject = None
        if run is not None:
            evidence, latest = model.evidence(run), run.id == model.current
            limit = limit_of(model, run)
            why = self._why(model, run, evidence, baseline, asks)
            gained = gain(model, run)
            how = how_to_compare(run) if gained is None else ""
            subject = RunSubject(run, evidence, model.gpu_of(run), baseline, latest, limit, *why, again, gained, how)
        self.query_one(Banner).show(model.fault)
        told = self.query_one(Update)
        told.show(advice)
        told.set_class(subject is not None, "-empty")
        for part in self.query(RunSection):
            part.show(subject)
            part.set_class(not part.lines, "-empty")
        self.query_one(Figures).show(subject)
        self.query_one(MatrixPicture).show(run, model.t, motion)
