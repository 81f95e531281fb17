"""A chart with a cursor, which the keyboard or the mouse moves and which shows the values under it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip

from fwtui.common.text import truncate
from fwtui.tui.charts.base import ValueCursor
from fwtui.tui.charts.drawing import CursorStop, Drawing, column_of, draw, marker
from fwtui.tui.charts.figure import COLOURS, Figure


class Chart(ValueCursor):
    """A figure, drawn again only if it or the size changes. The last row shows the values under the cursor."""

    PREFIX = "chart"
    DEFAULT_CSS = """
    Chart { height: 1fr; min-height: 1; }
    Chart .chart--axis { color: $border-blurred; }
    Chart .chart--label { color: $text-muted; }
    Chart:focus .chart--axis { color: $border; }
    Chart .chart--rule { color: $text-warning; }
    Chart .chart--cursor { color: $foreground; text-style: bold; }
    Chart .chart--plain { color: $foreground; }
    """ + "".join(
        f"Chart .chart--series-{number} {{ color: {colour}; }} "
        f"Chart .chart--series-{number}-strong {{ color: {colour}; text-style: bold reverse; }} "
        for number, colour in enumerate(COLOURS)
    )
    COMPONENT_CLASSES: ClassVar = {
        *(f"chart--{name}" for name in ("axis", "label", "rule", "cursor", "plain")),
        *(f"chart--series-{number}{strong}" for number in range(len(COLOURS)) for strong in ("", "-strong")),
    }

    _at: reactive[int | None] = reactive(None)  # the stop under the cursor

    def __init__(
        self,
        figure: Figure | None = None,
        *,
        on_choice: Callable[[int, int], object] = lambda series, point: None,
        hint: str = "arrows or the mouse: values",
        id: str | None = None,
    ):
        """Create a chart; Enter or a click on a value calls `on_choice` with the indices of series and point."""
        super().__init__(id=id)
        self._chosen = on_choice
        self.figure = figure or Figure()
        self._hint = hint
        self._drawn: tuple[Figure, Size, Drawing] | None = None  # only the last: each holds every value of its figure

    def allow_focus(self) -> bool:
        return super().allow_focus() and bool(self.drawing.stops)  # the arrow keys need values

    def show(self, figure: Figure) -> None:
        """Replace the figure; an equal one costs nothing."""
        if figure != self.figure:
            if [s.name for s in figure.series] != [s.name for s in self.figure.series]:
                self._at = None
            self.figure = figure
            self.refresh()

    @property
    def drawing(self) -> Drawing:
        """The drawn figure, cached for the present size."""
        figure, size = self.figure, self.size
        if self._drawn is None or self._drawn[0] is not figure or self._drawn[1] != size:
            # a separate row for the values under the cursor, so that nothing moves when they appear
            height = size.height - (1 if size.height > 3 else 0)
            self._drawn = figure, size, draw(figure, size.width, height)
        return self._drawn[2]

    @property
    def stop(self) -> CursorStop | None:
        stops = self.drawing.stops
        return None if self._at is None or not stops else stops[min(self._at, len(stops) - 1)]

    @property
    def description(self) -> str:
        """The values under the cursor, such as n 4096   ● naive 276 Grelax/s."""
        stop = self.stop
        if stop is None:
            return self._hint if self.has_focus and self.drawing.stops else ""
        figure, rows = self.figure, []
        x = figure.series[stop.points[0][0]].xs[stop.points[0][1]]
        where = f"{figure.x.title} {figure.x.text(x)}".strip() if x is not None else ""
        for number, place in stop.points:
            series, y = figure.series[number], figure.series[number].ys[place]
            name = series.names[place] if place < len(series.names) else series.name
            sign, value = marker(figure, number), figure.y.text(y) if y is not None else ""
            rows.append(f"{sign} {value} · {where} · {name}" if figure.pointwise else f"{sign} {name} {value}")
        parts = rows if figure.pointwise else [where, *rows]
        while len(parts) > 1 and len("   ".join(parts)) > self.size.width:
            parts.pop()
        return "   ".join(parts)

    def render_line(self, y: int) -> Strip:
        width, drawing = self.size.width, self.drawing
        if y >= len(drawing.rows):
            return self.strip([(truncate(self.description, width), "cursor" if self.stop is not None else "label")])
        strip = self.strip(drawing.rows[y])
        if self.stop is None or not drawing.top <= y < drawing.top + drawing.height:
            return strip
        # the cursor's line; a mark under it stays
        column = drawing.left + column_of(self.stop.share, drawing.width)
        under = strip.crop(column, column + 1).text
        cursor = Segment("│" if under in " ╌┊" else under, self.get_component_rich_style("chart--cursor"))
        return Strip.join([strip.crop(0, column), Strip([cursor]), strip.crop(column + 1)])

    def action_arrow(self, rows: int, columns: int) -> None:
        if stops := len(self.drawing.stops):
            start = (-1 if columns > 0 else stops) if self._at is None else min(self._at, stops - 1)
            self._at = min(stops - 1, max(0, start + columns))

    def action_choose(self) -> None:
        if self.stop is not None:
            self._chosen(*self.stop.points[0])

    def nearest(self, x: int, y: int) -> int | None:
        """Return the index of the stop that is nearest to a cell of the widget."""
        drawing = self.drawing
        share = (x - drawing.left) / max(drawing.width - 1, 1)

        def distance(place: int) -> float:
            stop = drawing.stops[place]
            down = stop.row - (y - drawing.top) if self.figure.pointwise else 0
            return ((stop.share - share) * drawing.width / 2) ** 2 + down**2  # a cell is twice as high as wide

        return min(range(len(drawing.stops)), key=distance, default=None)

    def point(self, x: int, y: int) -> None:
        self._at = self.nearest(x, y)

    def release(self) -> None:
        self._at = None
