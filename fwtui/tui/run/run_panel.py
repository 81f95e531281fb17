"""The right side: one run from its headline to how it was checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical, VerticalScroll
from textual.content import Content

from fwtui.analysis.limits import limit_of
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.frame.notices import Banner
from fwtui.tui.run.large_figures import Figures
from fwtui.tui.widgets import readout
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, line
from fwtui.tui.widgets.matrix import MatrixPicture
from fwtui.tui.widgets.readout import Subject

PICTURED = (72, 18)  # columns and rows of the panel from which on there is room for the matrix
LARGE = (110, 34)


class Part(Drawn["Subject | None"]):
    """One part of a run in the words of fwtui.tui.widgets.readout; nothing where there is no run."""

    said: ClassVar[Callable[[Subject, int], Sequence[Content]]]

    def draw(self, subject: Subject | None, width: int) -> Sequence[Content]:
        return [] if subject is None else type(self).said(subject, width)


class Title(Part):
    """Which run, and its verdict."""

    said = staticmethod(lambda subject, width: [readout.title(subject, width)])


class Headline(Part):
    """The numbers that matter most, and what it is doing."""

    said = staticmethod(lambda subject, width: [readout.headline(subject, width), *readout.progress(subject, width)])


class Phases(Part):
    said = staticmethod(readout.phases)


class Outside(Part):
    said = staticmethod(readout.outside)


class Meters(Part):
    said = staticmethod(readout.meters)


class Checked(Part):
    said = staticmethod(readout.checked)


class Empty(Drawn[tuple[str, ...]]):
    """What to do first."""

    def draw(self, subject: tuple[str, ...], width: int) -> Sequence[Content]:
        first, *others = subject or ("",)
        lines = [*line((first, STRONG)).wrap(width)]
        for other in others:
            lines += line((other, MUTED)).wrap(width)
        return lines


class RunPanel(VerticalScroll, can_focus=False):
    DEFAULT_CSS = """
    RunPanel { padding: 0 1; scrollbar-size-vertical: 1; }
    RunPanel Headline, RunPanel Phases, RunPanel Outside, RunPanel Meters, RunPanel Checked { margin-top: 1; }
    RunPanel .-empty { display: none; }
    RunPanel #row { height: auto; }
    RunPanel #row Vertical { width: 1fr; height: auto; }
    RunPanel MatrixPicture { margin-top: 1; }
    RunPanel #picture { width: auto; height: auto; }
    RunPanel #picture, RunPanel #beside, RunPanel #besides { display: none; }
    RunPanel.-pictured #picture, RunPanel.-pictured #beside, RunPanel.-large #besides { display: block; }
    RunPanel.-pictured #below, RunPanel.-large #meters { display: none; }
    RunPanel.-large MatrixPicture { width: 34; height: 18; }
    """

    def compose(self) -> ComposeResult:
        yield Banner(None)
        yield Empty(())
        yield Title(None)
        yield Figures()
        yield Headline(None)
        with Horizontal(id="row"):
            with Vertical():
                yield Phases(None)
                yield Outside(None, id="beside")
                yield Meters(None, id="besides")
            with Container(id="picture"):
                yield MatrixPicture()
        yield Meters(None, id="meters")
        yield Outside(None, id="below")
        yield Checked(None)

    def on_resize(self, event: events.Resize) -> None:
        # the picture goes first where there is little room
        self.set_class(event.size.width >= PICTURED[0] and event.size.height >= PICTURED[1], "-pictured")
        self.set_class(event.size.width >= LARGE[0] and event.size.height >= LARGE[1], "-large")

    def show(self, model: Model, run: Run | None, baseline: Run | None, advice: tuple[str, ...], motion: bool = False) -> None:
        """Show a run of the model, or advice where there is none; `motion`: its plan in slow motion."""
        subject = None
        if run is not None:
            evidence = model.evidence(run) if run.backend == "cuda" else None
            subject = Subject(run, evidence, model.gpu_of(run), baseline, run.id == model.current, limit_of(model, run))
        self.query_one(Banner).show(model.fault)
        empty = self.query_one(Empty)
        empty.show(advice)
        empty.set_class(subject is not None, "-empty")
        for part in self.query(Drawn):
            if isinstance(part, Banner | Empty):
                continue
            part.show(subject)
            part.set_class(not part.lines, "-empty")
        self.query_one(Figures).show(subject)
        self.query_one(MatrixPicture).show(run, model.t, motion)
