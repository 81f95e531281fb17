"""Common parts of charts: rows of styled pieces, ticks on an axis, and a cursor for arrows and mouse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from textual import events as ui
from textual.strip import Strip
from textual.widget import Widget

from fwtui.tui.actions import ACROSS, CHOOSE, ENDS, Arrowed

Piece = tuple[str, str]  # text, and the part of the chart that it belongs to: "axis", "label", "rule", "series-3", ...
TICK_GAP = 2  # free cells between two labels


class PieceWidget(Widget):
    """A widget whose rows are styled pieces. The style of a part is its Textual component class, named `PREFIX` + part."""

    PREFIX: ClassVar[str]

    def strip(self, pieces: Iterable[Piece]) -> Strip:
        """Return a row of the widget's width."""
        strip = Strip([Segment(text, self.get_component_rich_style(f"{self.PREFIX}--{part}")) for text, part in pieces])
        return strip.adjust_cell_length(self.size.width, self.rich_style)


class ValueCursor(PieceWidget, Arrowed, can_focus=True):
    """A chart with a cursor on one of its values, which disappears when neither focus nor mouse is on the chart."""

    ALLOW_SELECT = False
    BINDINGS: ClassVar = [*ACROSS, *ENDS, CHOOSE]

    def point(self, x: int, y: int) -> None:
        """Put the cursor on the value that is nearest to a cell of the content."""
        raise NotImplementedError

    def release(self) -> None:
        """Hide the cursor."""
        raise NotImplementedError

    def action_choose(self) -> None:
        """Act on the value under the cursor."""
        raise NotImplementedError

    def on_mouse_move(self, event: ui.MouseEvent) -> None:
        if (offset := event.get_content_offset(self)) is not None:
            self.point(offset.x, offset.y)

    def on_click(self, event: ui.Click) -> None:
        self.on_mouse_move(event)
        self.action_choose()

    def on_leave(self) -> None:
        if not self.has_focus:
            self.release()

    def on_blur(self) -> None:
        self.release()


class GridCursor(Arrowed):
    """Mixin for a widget that shows a grid: a permanent cursor on one of its cells, which the arrows move."""

    @property
    def extent(self) -> tuple[int, int]:
        """Rows and columns of the grid."""
        raise NotImplementedError

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column of the cursor, in the grid."""
        raise NotImplementedError

    def put(self, row: int, column: int) -> None:
        """Put the cursor on that cell of the grid, and show it."""
        raise NotImplementedError

    def action_arrow(self, rows: int, columns: int) -> None:
        (row, column), (height, width) = self.cursor, self.extent
        if height and width:
            self.put(min(max(row + rows, 0), height - 1), min(max(column + columns, 0), width - 1))


class TickRows(NamedTuple):
    """An axis with its ticks, the labels under it, and the columns that these take."""

    axis: str
    labels: str
    used: int


def tick_rows(width: int, ticks: Iterable[tuple[int, str]], room: int | None = None) -> TickRows:
    """Draw an axis of `width` cells with those ticks (column, label) whose label fits into the first `room` cells (None: all)."""
    axis, labels, used = ["─"] * width, [" "] * width, 0
    for column, text in ticks:
        start = min(max(0, column - len(text) // 2), max(0, width - len(text)))
        end = start + len(text)
        if start >= used + (TICK_GAP if used else 0) and end <= (width if room is None else room):
            axis[column] = "┬"
            labels[start:end] = text
            used = end
    return TickRows("".join(axis), "".join(labels), used)
