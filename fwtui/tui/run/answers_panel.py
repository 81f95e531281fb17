"""The distance summary of a run: facts, a histogram, and a map of distances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from fwtui.analysis import answers
from fwtui.common import units
from fwtui.stream import events
from fwtui.stream.run import Run
from fwtui.tui.actions import ACROSS, DOWN, ENDS
from fwtui.tui.charts.base import GridCursor
from fwtui.tui.frame.dialogs import DefinitionList
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, line

Share = float | None  # 0 for the shortest distance, 1 for the longest; None for no path
SCALE = 12  # cells of the legend's colours
NEAREST = 0.2  # strength of the colour of the shortest distance; cells without a path have none
NO_PATH = "no path"
HEAD = 2  # lines above the picture: title and legend
LABEL = 19  # cells of a fact's name
SIDE_BY_SIDE = 100  # columns of a panel that shows the map next to the facts
EIGHTHS = " ▏▎▍▌▋▊▉█"


class DistanceMap(GridCursor, Widget, can_focus=True):
    """Title, legend and map of distances; while it has the focus, the map has a cursor, and a message describes its block."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    DistanceMap { width: 48; height: auto; }
    DistanceMap .heat--far { color: $primary; }
    DistanceMap .heat--cursor { color: $warning; }
    DistanceMap .heat--label { color: $text-muted; }
    """
    COMPONENT_CLASSES: ClassVar = {f"heat--{part}" for part in ("far", "cursor", "label")}
    BINDINGS: ClassVar = [*DOWN, *ACROSS, *ENDS]

    def __init__(self, answers_event: events.Answers, show_message: Callable[[str], None] = lambda text: None):
        """Create a map that passes the description of the block under the cursor to `show_message`, or "" without a cursor."""
        super().__init__()
        self._show_message = show_message
        self._answers = answers_event
        self._columns = max(map(len, answers_event.heat), default=0)  # a made-up file may hold rows of any length
        self._grid: list[list[Share]] = [[*row, *[None] * (self._columns - len(row))] for row in answers.shares(answers_event)]
        self._cursor = (0, 0)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return HEAD + (-(-len(self._grid) // 2) if self._columns else 0)

    @property
    def under(self) -> str:
        """Description of the block of pairs under the cursor."""
        row, column = self._cursor
        means = self._answers.heat[row] if self._columns else ()
        mean = means[column] if column < len(means) else None
        rows, columns = (
            _block(row, len(self._grid), self._answers.vertices),
            _block(column, self._columns, self._answers.vertices),
        )
        return f"row {rows}, column {columns}: {NO_PATH if mean is None else answers.number(mean)}"

    @property
    def extent(self) -> tuple[int, int]:
        return len(self._grid), self._columns

    @property
    def cursor(self) -> tuple[int, int]:
        return self._cursor

    def put(self, row: int, column: int) -> None:
        self._cursor = row, column
        self._describe()

    def on_focus(self) -> None:
        self._describe()

    on_blur = on_focus

    def _describe(self) -> None:
        self.refresh()
        # later, because has_focus changes only after this event
        self.call_later(lambda: self._show_message(self.under if self.has_focus else ""))
        if self.has_focus:
            self.call_after_refresh(self._show_cursor)

    def _show_cursor(self) -> None:
        """Scroll the cursor's line into view: on a low screen the map is higher than its dialog."""
        scroll = next((one for one in self.ancestors if isinstance(one, VerticalScroll)), None)
        if scroll is None:
            return
        line, top = self._cursor[0] // 2, self.region.y - scroll.scrollable_content_region.y + round(scroll.scroll_y)
        # the first line brings title and legend into view
        here = Region(0, top + HEAD + line, 1, 1) if line else Region(0, top, 1, HEAD + 1)
        scroll.scroll_to_region(here, animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        label = self.get_component_rich_style("heat--label")
        if y >= HEAD:
            segments = self._glyphs(y - HEAD) if self.app.no_color else self._halves(y - HEAD, label)
        else:
            segments = self._legend(label) if y else [Segment(answers.MAP, label)]
        return Strip(segments).adjust_cell_length(self.size.width, self.rich_style)

    def _halves(self, y: int, label: Style) -> list[Segment]:
        row, marked = self._cursor
        segments: list[Segment] = []
        for column, shares in enumerate(zip(*self._grid[2 * y : 2 * y + 2], strict=True)):
            here = self.has_focus and column == marked
            colours = [self._colour(share, here and row == 2 * y + half) for half, share in enumerate(shares)]
            above, below = [*colours, None][:2]  # the last line may have one row
            if above is not None:
                segments.append(Segment("▀", above + Style(bgcolor=below.color) if below is not None else above))
            else:
                segments.append(Segment("▄", below) if below is not None else Segment(answers.NO_PATH, label))
        return segments

    def _glyphs(self, y: int) -> list[Segment]:
        row, marked = self._cursor
        segments: list[Segment] = []
        for column, shares in enumerate(zip(*self._grid[2 * y : 2 * y + 2], strict=True)):
            means = [share for share in shares if share is not None]
            here = self.has_focus and column == marked and row // 2 == y
            segments.append(Segment(answers.shade(sum(means) / len(means)) if means else answers.NO_PATH, Style(reverse=here)))
        return segments

    def _legend(self, label: Style) -> list[Segment]:
        ends = answers.span(self._answers)
        if ends is None:
            return [Segment(f"{answers.NO_PATH} {NO_PATH}", label)]
        near, far = (answers.number(end) for end in ends)
        steps = [step / (SCALE - 1) for step in range(SCALE)]
        scale = [Segment(answers.shade(s), label) if self.app.no_color else Segment("█", self._colour(s)) for s in steps]
        return [Segment(f"{near} ", label), *scale, Segment(f" {far}   {answers.NO_PATH} {NO_PATH}", label)]

    def _colour(self, share: Share, cursor: bool = False) -> Style | None:
        if cursor:
            return Style(color=self.get_component_styles("heat--cursor").color.rich_color)
        if share is None:
            return None
        far, behind = self.get_component_styles("heat--far").color, self.background_colors[1]
        return Style(color=behind.blend(far, NEAREST + (1 - NEAREST) * share).rich_color)


def _block(place: int, count: int, n: int) -> str:
    """Return the rows or columns of the matrix that a cell of the map covers: 1 to 64."""
    first, last = place * n // max(count, 1) + 1, (place + 1) * n // max(count, 1)
    return f"{first:,}" if last <= first else f"{first:,} to {last:,}"


class Histogram(TextPanel[events.Answers]):
    """A bar for each bin; a positive count never gives an empty bar."""

    def draw(self, subject: events.Answers, width: int) -> Sequence[Content]:
        bins = answers.histogram(subject)
        if not bins:
            return []
        label = max(len(bin_text) for bin_text, _ in bins)
        number = max(len(f"{count:,}") for _, count in bins)
        room, most = max(1, width - label - number - 4), max(1, *(count for _, count in bins))
        lines = [line(("PAIRS BY DISTANCE", f"{STRONG} $text-muted"))]
        for bin_text, count in bins:
            whole, part = divmod(max(1, round(8 * room * count / most)) if count else 0, 8)
            bar = f"{EIGHTHS[-1] * whole}{EIGHTHS[part] if part else ''}"
            lines.append(line((f"{bin_text:>{label}}  ", MUTED), (f"{bar:<{room}}", "$primary"), f"  {count:>{number},}"))
        return lines


class AnswersPanel(VerticalScroll):
    """The distance summary of a run, or of another run that computed the same distances."""

    DEFAULT_CSS = """
    AnswersPanel { padding: 0 1; scrollbar-size-vertical: 1; }
    AnswersPanel #parts { height: auto; }
    AnswersPanel #facts { height: auto; width: 1fr; }
    AnswersPanel Histogram, AnswersPanel DistanceMap { margin-top: 1; }
    AnswersPanel.-side-by-side #parts { layout: horizontal; }
    AnswersPanel.-side-by-side DistanceMap { margin: 0 1 0 3; }
    """

    def __init__(self, show_message: Callable[[str], None]) -> None:
        """Create an empty panel that passes the description of the block under the cursor of the map to `show_message`."""
        super().__init__(can_focus=False)
        self._show_message = show_message
        self.subject: tuple[Run, events.Answers] | None = None

    def show(self, run: Run, answers_event: events.Answers) -> None:
        if (run, answers_event) != self.subject:
            self.subject = run, answers_event
            self.refresh(recompose=True)

    def compose(self) -> ComposeResult:
        if self.subject is None:
            return
        run, answers_event = self.subject
        name = run.graph.name if run.graph is not None else ""
        yield Static(
            line((f"Distance summary · run {run.id} · {name or units.vertices(answers_event.vertices)}", STRONG)), markup=False
        )
        if not answers_event.vertices:
            yield DefinitionList(((Content(""), answers_event.note or "there are no distances"),))
            return
        with Container(id="parts"):
            with Vertical(id="facts"):
                yield DefinitionList(
                    tuple((line((f"{name:<{LABEL}}", MUTED)), text) for name, text in _facts(run, answers_event))
                )
                yield Histogram(answers_event)
            if answers_event.heat:
                yield DistanceMap(answers_event, self._show_message)

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width >= SIDE_BY_SIDE, "-side-by-side")


def _facts(run: Run, answers_event: events.Answers) -> list[tuple[str, str]]:
    facts = answers.facts(answers_event, run.graph.edges if run.graph is not None else None)
    if answers_event.run != run.id:
        facts.append(("computed for", f"run {answers_event.run}, which computed the same distances of the same graph"))
    if answers_event.seconds is not None:
        more = (
            f", and recomputing the distances {units.duration(answers_event.solved)}" if answers_event.solved is not None else ""
        )
        facts.append(("summary took", f"{units.duration(answers_event.seconds)}{more}; not part of any timing"))
    return facts
