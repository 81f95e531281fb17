"""What the distances of a run say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from fwtui.analysis import answers
from fwtui.common import units
from fwtui.stream import events
from fwtui.stream.run import Run
from fwtui.tui.actions import hidden_look
from fwtui.tui.frame.dialogs import Dialog, Hung
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, line
from fwtui.tui.widgets.heat import DistanceMap

LABEL = 19  # cells of a fact's name
BESIDE = 116  # columns of a screen that has the map beside the words
EIGHTHS = " ▏▎▍▌▋▊▉█"
LEAST_NAME = 20  # cells of a counter's name


class Histogram(Drawn[events.Answers]):
    """A bar for each bin; what is above 0 is never empty."""

    def draw(self, subject: events.Answers, width: int) -> Sequence[Content]:
        bins = answers.histogram(subject)
        if not bins:
            return []
        label = max(len(words) for words, _ in bins)
        number = max(len(f"{count:,}") for _, count in bins)
        room, most = max(1, width - label - number - 4), max(1, *(count for _, count in bins))
        lines = [line(("PAIRS BY DISTANCE", f"{STRONG} $text-muted"))]
        for words, count in bins:
            whole, part = divmod(max(1, round(8 * room * count / most)) if count else 0, 8)
            bar = f"{EIGHTHS[-1] * whole}{EIGHTHS[part] if part else ''}"
            lines.append(line((f"{words:>{label}}  ", MUTED), (f"{bar:<{room}}", "$primary"), f"  {count:>{number},}"))
        return lines


class AnswersScreen(Dialog):
    """The answers of a run, or those of another run that computed the same distances."""

    DEFAULT_CSS = """
    AnswersScreen > #box { max-width: 130; }
    AnswersScreen #parts { height: auto; }
    AnswersScreen #said { height: auto; width: 1fr; }
    AnswersScreen Histogram, AnswersScreen DistanceMap { margin-top: 1; }
    AnswersScreen.-beside #parts { layout: horizontal; }
    AnswersScreen.-beside DistanceMap { margin: 0 1 0 3; }
    """
    BINDINGS: ClassVar = [
        hidden_look("A", "close", "Close", "close this", id="answers.close"),
        hidden_look("x", "cursor", "Cursor", "a cursor in the map", id="answers.cursor"),
    ]

    def __init__(self, run: Run, told: events.Answers):
        name = run.graph.name if run.graph is not None else ""
        heading = f"Answers · run {run.id} · {name or f'{told.vertices:,} vertices'}"
        super().__init__(heading, hint="Tab or x puts a cursor into the map, Esc closes this")
        self._run = run
        self._told = told

    def body(self) -> ComposeResult:
        with VerticalScroll():
            if not self._told.vertices:
                yield Hung(((Content(""), self._told.note or "there are no distances"),))
                return
            with Container(id="parts"):
                with Vertical(id="said"):
                    yield Hung(tuple((line((f"{name:<{LABEL}}", MUTED)), words) for name, words in self._facts()))
                    yield Histogram(self._told)
                if self._told.heat:
                    yield DistanceMap(self._told)

    def _facts(self) -> list[tuple[str, str]]:
        told = self._told
        facts = answers.facts(told, self._run.graph.edges if self._run.graph is not None else None, self._run.experiment.graphs)
        if told.run != self._run.id:
            facts.append(("found for", f"run {told.run}, which computed the same distances of the same graph"))
        if told.seconds is not None:
            more = f", and computing the distances once more {units.duration(told.solved)}" if told.solved is not None else ""
            facts.append(("finding this took", f"{units.duration(told.seconds)}{more}; not part of any timing"))
        return facts

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def on_resize(self, event: Resize) -> None:
        self.set_class(self.app.size.width >= BESIDE, "-beside")

    def on_distance_map_moved(self, event: DistanceMap.Moved) -> None:
        event.stop()
        picture = self.query_one(DistanceMap)
        # never scrolled out of view, as the map itself may be
        self.query_one("#hint", Static).update(Content(picture.under if picture.has_focus else self.hint))

    def action_cursor(self) -> None:
        for picture in self.query(DistanceMap):
            picture.focus()
