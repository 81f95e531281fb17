"""The distances of a small graph as numbers: what a step reads and writes, what became shorter, and the marked cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from fwtui.learn.stepping import Stepping
from fwtui.tui.arrow_keys import ACROSS, DOWN, Arrowed
from fwtui.tui.widgets.drawn import MUTED, Drawn, line

LABELS = 4  # cells of a row's own number
NUMBER = 4  # of a distance, and one more for its sign
CELL = NUMBER + 1
SIGNS = {"shorter": "*", "written": "'", "read": ".", "rest": " "}  # what colours say, for screens without them
PARTS = ("rest", "read", "written", "shorter", "marked", "head")


class Legend(Drawn[None]):
    """What the signs and the tints of the matrix say."""

    DEFAULT_CSS = "Legend { width: 42; }"
    NOTHING = (
        line(
            (f" {SIGNS['written']} written ", "$text on $primary 35%"),
            (f" {SIGNS['read']} read ", "$text on $foreground 12%"),
            (f" {SIGNS['shorter']} shorter ", "bold $background on $primary"),
            (" k= this k", MUTED),
        ),
    )


def shown(distance: float) -> str:
    """A distance in at most NUMBER cells; ∞ is no path."""
    if distance == float("inf"):
        return "∞"
    whole = f"{distance:.0f}"
    return whole if len(whole) <= NUMBER else ("-" if distance < 0 else "") + "…"


class DistanceGrid(ScrollView, Arrowed, can_focus=True):
    """Arrows and the mouse mark a cell; the row and the column of the present k are headed by k."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    DistanceGrid { height: auto; width: auto; scrollbar-size: 1 1; }
    DistanceGrid .grid--rest { color: $text; }
    DistanceGrid .grid--read { background: $foreground 12%; color: $text; }
    DistanceGrid .grid--written { background: $primary 35%; color: $text; }
    DistanceGrid .grid--shorter { background: $primary; color: $background; text-style: bold; }
    DistanceGrid .grid--marked { text-style: reverse bold; }
    DistanceGrid .grid--head { color: $text-muted; }
    """
    COMPONENT_CLASSES: ClassVar = {f"grid--{part}" for part in PARTS}
    BINDINGS: ClassVar = [*DOWN, *ACROSS[:2]]

    def __init__(self, stepping: Stepping, marked: Callable[[], None]):
        """`marked` is called when another cell is marked."""
        super().__init__()
        self._marked = marked
        self._stepping = stepping
        self._made_for: object = None
        self._strips: list[Strip] = []

    def show(self) -> None:
        size = Size(LABELS + CELL * self._stepping.trace.n, 1 + self._stepping.trace.n)
        if size != self.virtual_size:
            self.virtual_size = size
            self.refresh(layout=True)
        self.refresh()
        row, column = self._stepping.row, self._stepping.column
        self.scroll_to_region(Region(column * CELL, row, LABELS + CELL, 2), animate=False, force=True)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return LABELS + CELL * self._stepping.trace.n

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1 + self._stepping.trace.n

    def action_arrow(self, rows: int, columns: int) -> None:
        self._stepping.mark(self._stepping.row + rows, self._stepping.column + columns)
        self._marked()

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        column, row = (offset.x + self.scroll_offset.x - LABELS) // CELL, offset.y + self.scroll_offset.y - 1
        if row >= 0 and column >= 0:
            self._stepping.mark(row, column)
            self._marked()

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        styles = {part: self.get_component_rich_style(f"grid--{part}") for part in PARTS}
        s = self._stepping
        made_for = (s.edition, s.position, s.row, s.column, self.has_focus, tuple(styles.values()))
        if made_for != self._made_for:
            self._made_for = made_for
            self._strips = list(self._drawn(styles))
        place = y + scroll_y
        strip = self._strips[place] if place < len(self._strips) else Strip.blank(self.size.width)
        return strip.crop(scroll_x, scroll_x + self.size.width).adjust_cell_length(self.size.width, self.rich_style)

    def _drawn(self, styles: dict[str, Style]) -> Sequence[Strip]:
        s = self._stepping
        n, moment, changed = s.trace.n, s.moment, s.changed
        k = moment.k if moment is not None else -1
        head = [Segment(" " * LABELS, styles["head"])]
        head += [Segment(f"{'k=' if j == k else ''}{j}".rjust(NUMBER) + " ", styles["head"]) for j in range(n)]
        strips = [Strip(head)]
        for i in range(n):
            line = [Segment(f"{'k=' if i == k else ''}{i}".rjust(LABELS - 1) + " ", styles["head"])]
            for j in range(n):
                if changed[i, j]:
                    part = "shorter"
                elif moment is None:
                    part = "rest"
                else:
                    part = "written" if moment.writes(i, j) else "read" if moment.reads(i, j) else "rest"
                style = styles[part]
                if (i, j) == (s.row, s.column):
                    style = style + styles["marked"]
                line.append(Segment(shown(s.distances[i, j]).rjust(NUMBER), style))
                line.append(Segment(SIGNS[part], styles[part]))
            strips.append(Strip(line))
        return strips
