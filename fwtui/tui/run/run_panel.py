"""The right side of the Run screen: one run, from its headline to its verification."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace
from textual import events
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical, VerticalScroll
from textual.content import Content

from fwtui.analysis.compare import SLOWER, ComparedRun
from fwtui.analysis.estimate import estimated_seconds, progress_now
from fwtui.analysis.limits import limit_of, share_of_peak
from fwtui.analysis.phase_table import phase_rows
from fwtui.analysis.rank_timing import gain, number_word
from fwtui.analysis.run_summary import LABELS, NEXT, Assessment, summarise
from fwtui.analysis.warps import main_samples
from fwtui.common import units
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.stream.stages import doing
from fwtui.tui.explain.warp_panel import hotspots, slowest_op
from fwtui.tui.frame.base_screens import DETAILED, PlaceScreen
from fwtui.tui.frame.notices import Banner
from fwtui.tui.widgets import run_labels, run_text
from fwtui.tui.widgets.ladder_chart import Ladder, LadderChart, LadderSubject
from fwtui.tui.widgets.large import Large
from fwtui.tui.widgets.matrix import MatrixPicture
from fwtui.tui.widgets.run_text import RunSubject
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, Update, line, longest
from fwtui.tui.widgets.verdict_text import bars, headline

PICTURED = (72, 18)  # minimum columns and rows of a panel with the picture of the matrix
LARGE = (110, 34)
MAX_CODE = 12  # lines
ROOMY = (160, 50)  # minimum columns and rows of a terminal with filled digits
NO_FIXES: Mapping[str, str] = {}
REASONS = [label for label in LABELS if label != NEXT]


class RunSection(TextPanel["RunSubject | None"]):
    """A section of the run panel, written by a function of fwtui.tui.widgets.run_text; empty without a run."""

    def __init__(self, content: Callable[[RunSubject, int], Sequence[Content]], *, id: str | None = None, classes: str = ""):
        super().__init__(None, id=id, classes=classes)
        self._content = content

    def draw(self, subject: RunSubject, width: int) -> Sequence[Content]:
        return self._content(subject, width)


class LargeNumber(NamedTuple):
    """A number and its label; an empty number leaves only the label."""

    number: str
    label: str
    is_unreliable: bool = False


NOTHING = LargeNumber("", "")


def figure(s: RunSubject | None) -> LargeNumber:
    """Return the speedup over the baseline; for a slower or single run the median time; progress until there is a time."""
    if s is None:
        return NOTHING
    run, is_unreliable = s.run, run_labels.is_unreliable(s.run)
    if run.simulated or run.seconds is None:
        if run.state == "running" and run.progress is not None:
            return LargeNumber(f"{100 * min(run.progress.done, 1.0):.0f} %", doing(run.stage))
        label = run_labels.simulated(run) if run.simulated else "no time yet" if run.state == "running" else "no time"
        return LargeNumber("", label)
    if s.gained is not None:
        share = (
            f", {100 * s.gained.efficiency:.0f} % efficiency on {number_word(s.gained.devices)}"
            if s.gained.efficiency is not None
            else ""
        )
        return LargeNumber(units.gain(s.gained.times), f"speedup over one {s.gained.one}{share}", is_unreliable)
    if s.verdict is not None and s.verdict.times and s.verdict.comparison is not None and s.verdict.comparison.verdict != SLOWER:
        return LargeNumber(s.verdict.times.lstrip("~"), "", is_unreliable)  # the headline next to it has "about"
    return LargeNumber(units.duration(run.seconds), "", is_unreliable)


def headline_rows(s: RunSubject | None, figured: bool = True) -> tuple[Content, ...]:
    """Return three lines: the headline, the time with its confidence, and the rate with its % of peak.

    With `figured`, the lines are next to the large number, and do not repeat the time if that number is the time.
    """
    large_number = figure(s)
    if s is None or not large_number.number or s.run.seconds is None:
        return (line((large_number.label, MUTED)), line(""), line(""))
    run = s.run
    is_unreliable = run_labels.is_unreliable(run)
    single = s.gained is None and (s.verdict is None or s.verdict.comparison is None)
    first = line((large_number.label, STRONG)) if s.verdict is None or s.gained is not None else headline(s.verdict)
    count = run.done.count if run.done is not None else len(run.samples)
    around = [units.spread(run.done.spread)] if run.done is not None and run.done.spread is not None else []
    why = run_labels.verdict(run)[0].lstrip("?✗- ")
    warning = why if run.state in run_labels.ENDED_EARLY else f"unreliable: {why}"
    how = [warning] if is_unreliable else [*around, f"{units.counted(count, 'repetition')}{' so far' * (run.done is None)}"]
    confidence = line((", ".join(how), "$text-error" if is_unreliable else MUTED))
    limit, requested = s.limit.share if s.limit is not None else None, share_of_peak(run, s.device)
    share = f" · {units.percent(limit)} of peak" if limit is not None else ""
    if limit is None and requested is not None:
        share = f" · effective bandwidth {units.percent(requested)} of peak{' (cost model)' * s.details}"
    number, _, unit = units.rate(run.rate).partition(" ")
    rate = f"{number} {unit.removesuffix('relax/s')}".strip()
    speed = line((f"{rate} relaxations/s{share}", MUTED))
    took = line((units.duration(run.seconds), "strike" if is_unreliable else STRONG), " " if around else ", ", confidence)
    again = figured and large_number.number == units.duration(run.seconds)  # the large number is this time
    return line("") if single else first, confidence if again else took, speed


def in_lines(subject: RunSubject, width: int) -> list[Content]:
    """Return the headline in lines without large digits: the headline, then the time and as much of the rate as fits."""
    if not figure(subject).number or subject.run.seconds is None:
        return [line((figure(subject).label, MUTED))]
    first, took, speed = headline_rows(subject, figured=False)
    rates = (line(took, "   ", rate) for rate in (speed, speed.split(" · ")[0]))
    return [*([first] if first.plain else []), longest((*rates, took), width)]


def code(s: RunSubject, width: int) -> list[Content]:
    """Return the inner loop of a run without PC samples, in its slowest phase, while it is running and after it has succeeded."""
    if s.run.state not in ("running", "done") or s.run.ranks or main_samples(s.run) is not None:
        return []
    from fwtui.tui.learn.source_view import excerpt  # imports the highlighter: after the first frame

    return excerpt(s.run.experiment, slowest_op(s.run), MAX_CODE, width)


class Headline(TextPanel[tuple[Content, ...]]):
    """The lines next to the digits; a line that does not fit is cut after its first clause."""

    def draw(self, subject: tuple[Content, ...], width: int) -> Sequence[Content]:
        return [longest((whole, whole.split("   ")[0]), width) for whole in subject]


class Figures(Horizontal):
    """The most important number in large digits, with its explanation on the right."""

    DEFAULT_CSS = """
    Figures { height: auto; }
    Figures Large { width: auto; height: auto; color: $text-primary; text-style: bold; margin-right: 2; }
    Figures .-is_unreliable { color: $text-error; text-style: strike; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: LargeNumber | None = None

    def compose(self) -> ComposeResult:
        yield Large("")
        yield Headline(())

    def show(self, subject: RunSubject | None) -> None:
        """Show that run's numbers; unchanged ones cost nothing."""
        now, rows = figure(subject), headline_rows(subject)
        self.query_one(Headline).show(rows if now.number else rows[:1])
        self.set_class(not now.number and not rows[0].plain, "-empty")
        roomy = self.app.size.width >= ROOMY[0] and self.app.size.height >= ROOMY[1]
        projected = self.screen.has_class("-presenter") and not self.screen.has_class("-flat")
        self.query_one(Large).enlarge(roomy or projected)
        if now == self._shown:
            return
        self._shown = now
        digits = self.query_one(Large)
        digits.update(now.number)
        digits.display = bool(now.number)
        digits.set_class(now.is_unreliable, "-is_unreliable")


class RunPanel(VerticalScroll, can_focus=False):
    DEFAULT_CSS = """
    RunPanel { padding: 0 1; scrollbar-size-vertical: 1; }
    RunPanel .phases, RunPanel .ranks, RunPanel .outside, RunPanel .meters, RunPanel .check { margin-top: 1; }
    RunPanel .reason, RunPanel .progress, RunPanel Figures { margin-top: 1; }
    RunPanel .total, RunPanel .key-numbers { display: none; }
    RunPanel LadderChart { margin-top: 1; }
    RunPanel .-empty { display: none; }
    RunPanel #row { height: auto; }
    RunPanel #row Vertical { width: 1fr; height: auto; }
    RunPanel MatrixPicture { margin-top: 1; }
    RunPanel #picture { width: auto; height: auto; }
    RunPanel #picture { display: none; }
    RunPanel #picture.-pictured { display: block; }
    RunPanel #picture.-done { display: none; }
    RunPanel #picture.-large MatrixPicture { width: 34; height: 18; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.verdict: Assessment | None = None  # the summary shown last
        self._ladder: tuple[Ladder | None, int] = None, 1

    def compose(self) -> ComposeResult:
        yield Banner(None)
        yield Update(())
        yield LadderChart(None, classes="-empty")
        yield RunSection(lambda subject, width: [run_text.title(subject, width)], classes="run-title")
        yield Figures()
        yield RunSection(in_lines, classes="total")
        yield RunSection(lambda s, width: bars(s.verdict, width) if s.verdict and not s.gained else [], classes="reason both")
        yield RunSection(run_text.key_numbers, classes="key-numbers")
        yield RunSection(lambda subject, width: run_text.explained(subject, width, *REASONS), classes="reason")
        yield RunSection(lambda subject, width: run_text.explained(subject, width, NEXT), classes="next")
        yield RunSection(run_text.progress, classes="progress")
        with Horizontal(id="row"):
            with Vertical():
                yield RunSection(run_text.phases, classes="phases")
                yield RunSection(run_text.ranks, classes="ranks")
                yield RunSection(run_text.meters, classes="meters")
                yield RunSection(
                    lambda subject, width: hotspots(subject.run, run_text.label_cells(width), width), classes="reason hot"
                )
                yield RunSection(code, classes="reason code")
            with Container(id="picture"):
                yield MatrixPicture()
        yield RunSection(run_text.outside, classes="outside")
        yield RunSection(run_text.checked, classes="check")

    def on_resize(self, event: events.Resize) -> None:
        # classes of the picture, not of the panel: those would make Textual compute the styles of the whole panel again
        picture = self.query_one("#picture")
        for least, name in ((PICTURED, "-pictured"), (LARGE, "-large")):
            picture.set_class(event.size.width >= least[0] and event.size.height >= least[1], name)
        self.show_ladder(*self._ladder)

    def show_ladder(self, ladder: Ladder | None, other_rows: int = 1) -> None:
        """Show a ladder in the height of the panel less `other_rows`, also after a resize; None removes it."""
        self._ladder, chart = (ladder, other_rows), self.query_one(LadderChart)
        chart.set_class(ladder is None, "-empty")
        chart.show(LadderSubject(ladder, self.size.height - other_rows) if ladder is not None else None)

    def show(
        self,
        model: Model,
        run: Run | None,
        baseline: Run | None,
        advice: tuple[str, ...],
        motion: bool = False,
        fixes: Mapping[str, str] = NO_FIXES,
        again: str = "",
        recorded: Model | None = None,
        next_key: str = "",
    ) -> None:
        """Show a run of the model, or advice if there is none.

        `motion` plays its plan in slow motion. `fixes` maps data that an explanation may lack (keys of
        fwtui.analysis.explanation) to the way to measure them. `again` is the key that repeats a run, `next_key`
        the key that runs the next rung. Gains are predicted from the ladder `recorded`.
        """
        subject, screen = None, self.screen
        assert isinstance(screen, PlaceScreen)
        if run is not None:
            evidence, latest = model.evidence(run), run.id == model.current
            limit = limit_of(model, run)
            against = ComparedRun(model, baseline) if baseline is not None else None
            assessment = self.verdict = summarise(ComparedRun(model, run), against, recorded)
            fix = fixes.get(assessment.reason.missing, "")
            now = replace(run, progress=progress_now(model, run)) if run.state == "running" else run
            ahead = estimated_seconds(model, run) if run.ordered is not None and run.seconds is None else None
            limiters = {one.key: one.limiter.what for one in phase_rows(model, run)}
            subject = RunSubject(
                now,
                evidence,
                model.gpu_of(run),
                baseline,
                latest,
                limit,
                assessment,
                fix,
                next_key,
                again,
                gain(model, run),
                ahead,
                limiters,
                screen.has_class(DETAILED),
                screen.key_of("back"),
                screen.key_of("log"),
            )
        self.query_one(Banner).show((model.fault, screen.key_of("log")) if model.fault is not None else None)
        update = self.query_one(Update)
        update.show(advice)
        update.set_class(subject is not None, "-empty")
        for part in self.query(RunSection):
            part.show(subject)
            part.set_class(not part.lines, "-empty")
        self.query_one(Figures).show(subject)
        # without motion, source lines and presentations hide the picture, and so does the end of the run: it has one colour then
        covered = screen.has_class("-presenting") or (run is not None and run.state != "running" and not run.ranks)
        covered |= any(self.query_one(part, RunSection).lines for part in (".hot", ".code"))
        self.query_one("#picture").set_class(covered and not motion, "-done")
        self.query_one(MatrixPicture).show(run, model.t, motion)
