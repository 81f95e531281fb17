"""The right side: one run from its headline to how it was checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from fwtui.tui.widgets.drawn import Drawn, Told
from fwtui.tui.widgets.matrix import MatrixPicture
from fwtui.tui.widgets.readout import Subject

PICTURED = (72, 18)  # columns and rows of the panel from which on there is room for the matrix
LARGE = (110, 34)


class Part(Drawn["Subject | None"]):
    """One part of a run in the words of fwtui.tui.widgets.readout; nothing where there is no run."""

    def __init__(self, said: Callable[[Subject, int], Sequence[Content]], *, id: str | None = None, classes: str = ""):
        super().__init__(None, id=id, classes=classes)
        self._said = said

    def draw(self, subject: Subject | None, width: int) -> Sequence[Content]:
        return [] if subject is None else self._said(subject, width)


class RunPanel(VerticalScroll, can_focus=False):
    DEFAULT_CSS = """
    RunPanel { padding: 0 1; scrollbar-size-vertical: 1; }
    RunPanel .total, RunPanel .phases, RunPanel .outside, RunPanel .meters, RunPanel .check { margin-top: 1; }
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
        yield Told(())
        yield Part(lambda subject, width: [readout.title(subject, width)])
        yield Figures()
        yield Part(lambda subject, width: [readout.headline(subject, width), *readout.progress(subject, width)], classes="total")
        with Horizontal(id="row"):
            with Vertical():
                yield Part(readout.phases, classes="phases")
                yield Part(readout.outside, id="beside", classes="outside")
                yield Part(readout.meters, id="besides", classes="meters")
            with Container(id="picture"):
                yield MatrixPicture()
        yield Part(readout.meters, id="meters", classes="meters")
        yield Part(readout.outside, id="below", classes="outside")
        yield Part(readout.checked, classes="check")

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
        told = self.query_one(Told)
        told.show(advice)
        told.set_class(subject is not None, "-empty")
        for part in self.query(Part):
            part.show(subject)
            part.set_class(not part.lines, "-empty")
        self.query_one(Figures).show(subject)
        self.query_one(MatrixPicture).show(run, model.t, motion)
