"""A map of distances: two of its rows in a line of half cells, or a character for both where colours say nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.containers import VerticalScroll
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from fwtui.analysis import answers
from fwtui.stream import events
from fwtui.tui.arrow_keys import ACROSS, DOWN, Arrowed

Share = float | None  # of the way from near to far; None for no path
SCALE = 12  # cells of the legend's colours
NEAREST = 0.2  # how much of the colour the least distance has: more than what has no path
NO_PATH = "no path"
APART_ASCII = "-"  # where near and no path would both be dots
WORDS = 2  # lines above the picture: what it shows, and what its colours mean


class DistanceMap(Arrowed, Widget, can_focus=True):
    """What it shows, what its colours mean, and the map; while it has the focus, with a cursor that a dialog puts into words."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    DistanceMap { width: 48; height: auto; }
    DistanceMap .heat--far { color: $primary; }
    DistanceMap .heat--cursor { color: $warning; }
    DistanceMap .heat--words { color: $text-muted; }
    """
    COMPONENT_CLASSES: ClassVar = {f"heat--{part}" for part in ("far", "cursor", "words")}
    BINDINGS: ClassVar = [*DOWN, *ACROSS]

    def __init__(self, told: events.Answers, say: Callable[[str], None] = lambda words: None):
        """`say` is given what is under the cursor, nothing without one."""
        super().__init__()
        self._tell = say
        self._told = told
        self._columns = max(map(len, told.heat), default=0)  # a made-up file may hold rows of any length
        self._grid: list[list[Share]] = [[*row, *[None] * (self._columns - len(row))] for row in answers.shares(told)]
        self._cursor = (0, 0)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return WORDS + (-(-len(self._grid) // 2) if self._columns else 0)

    @property
    def under(self) -> str:
        """The block of pairs under the cursor, in words."""
        row, column = self._cursor
        means = self._told.heat[row] if self._columns else ()
        mean = means[column] if column < len(means) else None
        rows, columns = _block(row, len(self._grid), self._told.vertices), _block(column, self._columns, self._told.vertices)
        return f"row {rows}, column {columns}: {NO_PATH if mean is None else answers.number(mean)}"

    def action_arrow(self, rows: int, columns: int) -> None:
        row, column = self._cursor
        self._cursor = min(max(row + rows, 0), len(self._grid) - 1), min(max(column + columns, 0), self._columns - 1)
        self._say()

    def on_focus(self) -> None:
        self._say()

    on_blur = on_focus

    def _say(self) -> None:
        self.refresh()
        self._tell(self.under if self.has_focus else "")
        if self.has_focus:
            self.call_after_refresh(self._show_cursor)

    def _show_cursor(self) -> None:
        """Scroll the cursor's line into view: on a low screen the map is higher than its dialog."""
        scroll = next((one for one in self.ancestors if isinstance(one, VerticalScroll)), None)
        if scroll is None:
            return
        line, top = self._cursor[0] // 2, self.region.y - scroll.scrollable_content_region.y + round(scroll.scroll_y)
        # the words come into view with the first line
        here = Region(0, top + WORDS + line, 1, 1) if line else Region(0, top, 1, WORDS + 1)
        scroll.scroll_to_region(here, animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        words = self.get_component_rich_style("heat--words")
        if y >= WORDS:
            segments = self._glyphs(y - WORDS) if self._plain else self._halves(y - WORDS, words)
        else:
            segments = self._legend(words) if y else [Segment(answers.MAP, words)]
        return Strip(segments).adjust_cell_length(self.size.width, self.rich_style)

    @property
    def _plain(self) -> bool:
        return bool(self.app.no_color or getattr(self.app, "plain", False))

    @property
    def _apart(self) -> str:
        return APART_ASCII if getattr(self.app, "plain", False) else answers.NO_PATH

    def _halves(self, y: int, words: Style) -> list[Segment]:
        row, marked = self._cursor
        drawn: list[Segment] = []
        for column, shares in enumerate(zip(*self._grid[2 * y : 2 * y + 2], strict=True)):
            here = self.has_focus and column == marked
            colours = [self._colour(share, here and row == 2 * y + half) for half, share in enumerate(shares)]
            above, below = [*colours, None][:2]  # the last line may have one row
            if above is not None:
                drawn.append(Segment("▀", above + Style(bgcolor=below.color) if below is not None else above))
            else:
                drawn.append(Segment("▄", below) if below is not None else Segment(answers.NO_PATH, words))
        return drawn

    def _glyphs(self, y: int) -> list[Segment]:
        row, marked = self._cursor
        drawn: list[Segment] = []
        for column, shares in enumerate(zip(*self._grid[2 * y : 2 * y + 2], strict=True)):
            known = [share for share in shares if share is not None]
            here = self.has_focus and column == marked and row // 2 == y
            drawn.append(Segment(answers.shade(sum(known) / len(known)) if known else self._apart, Style(reverse=here)))
        return drawn

    def _legend(self, words: Style) -> list[Segment]:
        ends = answers.span(self._told)
        if ends is None:
            return [Segment(f"{self._apart} {NO_PATH}", words)]
        near, far = (answers.number(end) for end in ends)
        steps = [step / (SCALE - 1) for step in range(SCALE)]
        scale = [Segment(answers.shade(s), words) if self._plain else Segment("█", self._colour(s)) for s in steps]
        return [Segment(f"{near} ", words), *scale, Segment(f" {far}   {self._apart} {NO_PATH}", words)]

    def _colour(self, share: Share, cursor: bool = False) -> Style | None:
        if cursor:
            return Style(color=self.get_component_styles("heat--cursor").color.rich_color)
        if share is None:
            return None
        far, behind = self.get_component_styles("heat--far").color, self.background_colors[1]
        return Style(color=behind.blend(far, NEAREST + (1 - NEAREST) * share).rich_color)


def _block(place: int, count: int, n: int) -> str:
    """The rows or columns of the matrix that a place of the map shows."""
    first, last = place * n // max(count, 1) + 1, (place + 1) * n // max(count, 1)
    return f"{first:,}" if last <= first else f"{first:,} to {last:,}"
