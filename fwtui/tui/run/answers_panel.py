"""What the distances of a run say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from fwtui.analysis import answers
from fwtui.common import units
from fwtui.stream import events
from fwtui.stream.run import Run
from fwtui.tui.frame.dialogs import Hung
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, line
from fwtui.tui.widgets.heat import DistanceMap

LABEL = 19  # cells of a fact's name
BESIDE = 100  # columns that have room for the map beside the words
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


class AnswersPanel(VerticalScroll):
    """The answers of a run, or those of another run that computed the same distances."""

    DEFAULT_CSS = """
    AnswersPanel { padding: 0 1; scrollbar-size-vertical: 1; }
    AnswersPanel #parts { height: auto; }
    AnswersPanel #said { height: auto; width: 1fr; }
    AnswersPanel Static { height: auto; }
    AnswersPanel Histogram, AnswersPanel DistanceMap { margin-top: 1; }
    AnswersPanel.-beside #parts { layout: horizontal; }
    AnswersPanel.-beside DistanceMap { margin: 0 1 0 3; }
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        """`say` is given what is under the cursor of the map, in words."""
        super().__init__(can_focus=False)
        self._say = say
        self.subject: tuple[Run, events.Answers] | None = None

    def show(self, run: Run, told: events.Answers) -> None:
        if (run, told) != self.subject:
            self.subject = run, told
            self.refresh(recompose=True)

    def compose(self) -> ComposeResult:
        if self.subject is None:
            return
        run, told = self.subject
        name = run.graph.name if run.graph is not None else ""
        yield Static(line((f"Answers · run {run.id} · {name or f'{told.vertices:,} vertices'}", STRONG)), markup=False)
        if not told.vertices:
            yield Hung(((Content(""), told.note or "there are no distances"),))
            return
        with Container(id="parts"):
            with Vertical(id="said"):
                yield Hung(tuple((line((f"{name:<{LABEL}}", MUTED)), words) for name, words in _facts(run, told)))
                yield Histogram(told)
            if told.heat:
                yield DistanceMap(told, self._say)

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width >= BESIDE, "-beside")


def _facts(run: Run, told: events.Answers) -> list[tuple[str, str]]:
    facts = answers.facts(told, run.graph.edges if run.graph is not None else None, run.experiment.graphs)
    if told.run != run.id:
        facts.append(("found for", f"run {told.run}, which computed the same distances of the same graph"))
    if told.seconds is not None:
        more = f", and computing the distances once more {units.duration(told.solved)}" if told.solved is not None else ""
        facts.append(("finding this took", f"{units.duration(told.seconds)}{more}; not part of any timing"))
    return facts
