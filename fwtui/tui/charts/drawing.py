"""A figure as rows of characters: legend, marks, rules, axes with ticks; each character has the part that it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from fwtui.common.text import cut_middle, truncate
from fwtui.tui.charts.base import Piece, tick_rows
from fwtui.tui.charts.figure import COLOURS, MARKERS, Axis, Figure, Rule, sign, tick_text
from fwtui.tui.charts.scale import Scale, decimated, finite, positive, scale, ticks

Point = tuple[float, float]
Cell = tuple[str, int]  # a character and the series it belongs to; " " belongs to none (-1)
EMPTY: Cell = (" ", -1)
_PIECE = re.compile("\x1b\\[38;5;(\\d+)m([^\x1b]*)|\x1b\\[[0-9;]*m|([^\x1b]+)")
_COLOURS = 200  # first of the colour numbers that separate the series in plotext's output
Columns = Sequence[Sequence[float | None]]  # coordinates of each series
MIN_LABELS = (24, 6)  # columns and rows below which there are only marks
MIN_MARGIN = 60  # columns of a chart that has a margin for names at the ends of their lines
DOWN = (0, -1, 1, -2, 2, -3, 3)  # offsets of a name in the margin from the end of its line, in rows
LEGEND = 6  # a chart has at least this many rows for each row of its legend


def pieces(points: Sequence[Point | None]) -> Iterator[list[Point]]:
    """Yield the pieces of a line through points given as shares of the rectangle; it breaks at None and outside the rectangle."""
    for there, piece in groupby(points, key=lambda point: point is not None and within(point)):
        if there:
            yield [(_inside(point[0]), _inside(point[1])) for point in piece if point is not None]


def within(point: Point) -> bool:
    return -1e-9 <= point[0] <= 1 + 1e-9 and -1e-9 <= point[1] <= 1 + 1e-9


def _inside(value: float) -> float:
    return min(1.0, max(0.0, value))


def column_of(share: float, width: int) -> int:
    """Return the column in which plotext draws a share (0 to 1) of the width: a cell is two braille dots wide."""
    return round(_inside(share) * (2 * width - 1)) // 2


def row_of(share: float, height: int) -> int:
    """Return the row, counted from the top, in which plotext draws a share of the height: a cell is four dots high."""
    return height - 1 - round(_inside(share) * (4 * height - 1)) // 4


def plot_marks(
    lines: Sequence[tuple[int, Sequence[Point | None]]], marks: Sequence[tuple[Cell, Sequence[Point]]], width: int, height: int
) -> list[list[Cell]]:
    """Return `height` rows of `width` cells, top row first: lines by series, and single points drawn over them."""
    grid = [[EMPTY] * width for _ in range(height)]
    inside = [(series, piece) for series, points in lines for piece in pieces(points)]
    if inside and width > 1 and height > 1:  # plotext has no limits for a single row or column
        _plot_lines(inside, grid, width, height)
    for mark, points in marks:
        for x, y in filter(within, points):
            grid[row_of(y, height)][column_of(x, width)] = mark
    return grid


def _plot_lines(lines: list[tuple[int, list[Point]]], grid: list[list[Cell]], width: int, height: int) -> None:
    """Draw lines into the grid with plotext.

    plotext raises on infinities and empty data, rounds limits, and stores its figure in a module variable. The points must
    therefore be finite shares (0 to 1) of the rectangle, and the figure is cleared before and after.
    """
    import plotext  # 20 ms that only the first chart needs

    plotext.clear_figure()
    plotext.theme("clear")
    plotext.limit_size(False, False)
    plotext.plot_size(width, height)
    plotext.frame(False)
    for axis in (plotext.xaxes, plotext.yaxes):
        axis(False, False)
    for series, points in lines:
        places = [*points, points[0]] if len(points) == 1 else points  # plotext draws no line through one point
        plotext.plot([x for x, _ in places], [y for _, y in places], marker="braille", color=series % _COLOURS + 16)
    plotext.xticks([])
    plotext.yticks([])
    plotext.xlim(0, 1)
    plotext.ylim(0, 1)
    rows = plotext.build().split("\n")
    plotext.clear_figure()
    for row, text in zip(grid, rows, strict=False):
        place = 0
        for colour, coloured, bare in _PIECE.findall(text):
            for character in coloured or bare:
                if place < width and character != " ":
                    row[place] = (character, int(colour) - 16 if colour else -1)
                place += 1


class CursorStop(NamedTuple):
    """A position of the cursor: a column of the plot, and the points in it as (series, index)."""

    share: float  # position as a share of the plot's width
    points: tuple[tuple[int, int], ...]
    row: int = 0  # row of the plot with the first point


class Drawing(NamedTuple):
    """Rows of pieces, all of one width; the rectangle of the plot in them; and the positions of the cursor."""

    rows: tuple[tuple[Piece, ...], ...]
    left: int
    top: int
    width: int  # size of the plot without its axes
    height: int
    stops: tuple[CursorStop, ...]


def part(figure: Figure, series: int) -> str:
    """Return the part name of a series, which decides its colour."""
    one = figure.series[series]
    return "rule" if one.limit else f"series-{sign(one.kernel).place if one.kernel else series % len(COLOURS)}"


def marker(figure: Figure, series: int) -> str:
    """Return the sign of a series, at its points and in texts."""
    one = figure.series[series]
    if not one.points:
        return "─"
    return one.marker or (sign(one.kernel).glyph if one.kernel else MARKERS[series % len(MARKERS)])


class Plotted(NamedTuple):
    """A figure with its drawable coordinates by series, and its two scales."""

    figure: Figure
    xs: Columns
    ys: Columns
    across: Scale
    up: Scale


def draw(figure: Figure, width: int, height: int) -> Drawing:
    """Draw the figure in `height` rows of exactly `width` cells. Never raises, whatever the numbers are."""
    if width < 1 or height < 1:
        return Drawing((), 0, 0, 0, 0, ())
    drawable_x, drawable_y = (positive if axis.log else finite for axis in (figure.x, figure.y))
    xs, ys = [drawable_x(series.xs) for series in figure.series], [drawable_y(series.ys) for series in figure.series]
    there = [point for _, _, *point in _points(xs, ys)]
    if not there:
        rows = [((" " * width, "label"),)] * height
        rows[(height - 1) // 2] = ((truncate(figure.empty, width).center(width), "label"),)
        return Drawing(tuple(rows), 0, 0, 0, 0, ())
    # extend the axis to every horizontal rule
    reach = [rule.value for rule in figure.rules if not rule.vertical and finite((rule.value,))[0] is not None]
    across, up = _scale([x for x, _ in there], figure.x), _scale([*(y for _, y in there), *reach], figure.y)
    plotted = Plotted(figure, xs, ys, across, up)
    if width < MIN_LABELS[0] or height < MIN_LABELS[1]:
        rows = tuple(tuple(joined(cells)) for cells in _body(plotted, width, height))
        return Drawing(rows, 0, 0, width, height, _stops(plotted, height))
    drawing, lines = _framed(plotted, width, height, 1)
    more = min(lines, height // LEGEND)
    return _framed(plotted, width, height, more)[0] if more > 1 else drawing


def _framed(plotted: Plotted, width: int, height: int, above: int) -> tuple[Drawing, int]:
    """Draw the figure with axes and a legend of `above` rows; also return the number of rows of the whole legend."""
    figure, across, up = plotted.figure, plotted.across, plotted.up
    room = height - 2 - above
    y_ticks = ticks(up, max(2, room // 3), figure.y.base)
    y_texts = [tick_text(value, figure.y.text) for value in y_ticks]
    places = {row_of(up.share(value), room): text for value, text in zip(y_ticks, y_texts, strict=True)}
    # the value of a strong mark without a line replaces that of a tick in the same row, and the value of a rule replaces both
    marked = [ys for series, ys in zip(figure.series, plotted.ys, strict=True) if series.strong and not series.line]
    places |= {row_of(up.share(y), room): tick_text(y, figure.y.text) for ys in marked for y in ys if y is not None}
    # of two rules in one row the axis shows the lower value, which limits
    rules = sorted((rule for rule in figure.rules if not rule.vertical and _reached(rule, up)), key=lambda rule: -rule.value)
    places |= {row_of(up.share(rule.value), room): tick_text(rule.value, figure.y.text) for rule in rules}
    left = min(max(map(len, places.values()), default=0), width // 3) + 1
    margin = _margin(plotted, width, left)
    body = _body(plotted, width - left - margin, room)
    unnamed = _write_names(plotted, body, margin)
    legend = _legend(figure, unnamed, width)
    rows = [tuple(row) for row in [*legend, *[[(" " * width, "label")]] * above][:above]]
    for y, cells in enumerate(body):
        label = (f"{places.get(y, ''):>{left - 1}.{left - 1}}", "label")
        rows.append((label, ("┤" if y in places else "│", "axis"), *joined(cells)))
    rows += _x_axis(figure.x, across, left, width - left - margin, margin)
    return Drawing(tuple(rows), left, above, width - left - margin, room, _stops(plotted, room)), len(legend)


def _points(xs: Columns, ys: Columns) -> Iterator[tuple[int, int, float, float]]:
    """Yield series, index and both coordinates of every complete point."""
    for number, (sx, sy) in enumerate(zip(xs, ys, strict=True)):
        for place, (x, y) in enumerate(zip(sx, sy, strict=False)):
            if x is not None and y is not None:
                yield number, place, x, y


def _scale(values: Sequence[float], axis: Axis) -> Scale:
    low, high = finite((axis.low, axis.high))
    return scale(values, axis.log, low, high, axis.base)


def _marks(plotted: Plotted, width: int, height: int) -> list[list[Cell]]:
    """Draw lines and points of all series in a grid of that size."""
    figure = plotted.figure
    lines: list[tuple[int, list[Point | None]]] = []
    marks: list[tuple[Cell, list[Point]]] = []
    for number, series in enumerate(figure.series):
        thinned = decimated(plotted.xs[number], plotted.ys[number], 2 * width)
        shares = [None if p is None else (plotted.across.share(p[0]), plotted.up.share(p[1])) for p in thinned]
        if series.line:
            lines.append((number, shares))
        if series.points:
            there = [p for p in shares if p is not None]
            # too many marks would overlap: a few identify the line
            every = 1 if len(there) <= max(width // 2, 8) or not series.line else -(-len(there) // 6)
            marks.append(((marker(figure, number), number), there[number % every :: every] or there[:1]))
    # draw the series under the cursor last, over all others
    marks.sort(key=lambda one: figure.series[one[0][1]].strong)
    return plot_marks(lines, marks, width, height)


def _body(plotted: Plotted, width: int, height: int) -> list[list[Piece]]:
    """Draw the marks, the rules under them, and the labels of the rules in free cells."""
    cells: list[list[Piece]] = [
        [(text, "plain" if series < 0 else _strength(plotted.figure, series, text)) for text, series in row]
        for row in _marks(plotted, width, height)
    ]
    placed: list[tuple[Rule, int]] = []  # rules with their column or row
    for rule in plotted.figure.rules:
        along = plotted.across if rule.vertical else plotted.up
        if _reached(rule, along):
            share = along.share(rule.value)
            placed.append((rule, column_of(share, width) if rule.vertical else row_of(share, height)))
    for rule, at in placed:
        if rule.vertical:
            for row in cells:
                row[at] = ("┊", "rule") if row[at][0] == " " else row[at]
        else:
            cells[at] = [("╌", "rule") if text == " " else (text, kind) for text, kind in cells[at]]
    # labels last, or another rule would cross them; rules in one row share a label
    lines: dict[tuple[int, str], list[Rule]] = {}
    for rule, at in placed:
        lines.setdefault((at, rule.label if rule.vertical else ""), []).append(rule)
    for (at, vertical), there in lines.items():
        both = (" · ".join(filter(None, texts)) for texts in ([r.label for r in there], [r.short for r in there]))
        labels = [label for label in both if label]
        if vertical:
            any(_write(row, label, start, "rule") for label in labels for row in cells for start in (at + 2, at - 1 - len(label)))
        else:
            near = [(cells[row], " ┊") for row in (at + 1, at - 1) if 0 <= row < height]
            for rows, pad in ((near, ""), ([(cells[at], "╌")], " ")):  # next to the line, or else on it
                padded = [f"{pad}{label}{pad}" for label in labels]
                starts = [(label, start) for label in padded for start in (width - len(label) - len(pad), 1)]
                if any(_write(row, label, start, "rule", free) for label, start in starts for row, free in rows):
                    break
    return cells


def _reached(rule: Rule, along: Scale) -> bool:
    """Return True if the rule is finite and within its axis."""
    return finite((rule.value,))[0] is not None and 0 <= along.share(rule.value) <= 1


def _strength(figure: Figure, series: int, text: str) -> str:
    """Return the part name of a series' cell; the marks of the series under the cursor are strong, its line is not."""
    strong = figure.series[series].strong and text == marker(figure, series)
    return f"{part(figure, series)}-strong" if strong else part(figure, series)


def _write(row: list[Piece], label: str, start: int, kind: str, free: str = " ┊") -> bool:
    """Write a label if its cells and one cell on either side have characters of `free`; return True if it was written."""
    around = row[max(start - 1, 0) : start + len(label) + 1]
    if not label or start < 0 or start + len(label) > len(row) or any(text not in free for text, _ in around):
        return False
    row[start : start + len(label)] = [(character, kind) for character in label]
    return True


def _named(figure: Figure) -> list[int]:
    """Return the series whose names are shown."""
    return [number for number, series in enumerate(figure.series) if series.name and series.listed]


def _margin(plotted: Plotted, width: int, left: int) -> int:
    """Return the cells right of the plot for names at the ends of lines; 0 if no line ends near it or the chart is too narrow."""
    series = plotted.figure.series
    lines = [number for number in _named(plotted.figure) if series[number].line and series[number].points]
    most = min(max((len(series[number].name) + 3 for number in lines), default=0), width // 3)
    ends = [points[-1][0] for number in lines if (points := _shares(plotted, number))]
    near = any(end * (width - left) + most > width - left for end in ends)
    return most if near and width >= MIN_MARGIN else 0


def _shares(plotted: Plotted, number: int) -> list[Point]:
    """Return the points of a series inside the plot, as shares of its width and height."""
    there = zip(plotted.xs[number], plotted.ys[number], strict=False)
    shares = [(plotted.across.share(x), plotted.up.share(y)) for x, y in there if x is not None and y is not None]
    return [point for point in shares if within(point)]


def _write_names(plotted: Plotted, cells: list[list[Piece]], margin: int) -> list[int]:
    """Write each name at the end of its line or at one of its points; return the series whose names did not fit."""
    figure, width, height = plotted.figure, len(cells[0]), len(cells)
    for row in cells:
        row += [(" ", "plain")] * margin
    left_over = []
    for number in sorted(_named(figure), key=lambda number: not figure.series[number].strong):
        series, name, kind = figure.series[number], figure.series[number].name, part(figure, number)
        points = [(column_of(x, width), row_of(y, height)) for x, y in _shares(plotted, number)[::-1]]
        mark = marker(figure, number)
        places: list[tuple[int, int, str]] = []  # row, first column and text of each possible place
        if series.line:
            name = cut_middle(name, margin - 3) if margin else name
            points = points[:1]
        for column, row in points:
            # if the mark of another series covers this point, the name needs its own mark
            visible = cells[row][column][0] in (mark, "─") or not series.points
            places.append((row, column + 2, name if visible else f"{mark} {name}"))
            if not series.line:
                places.append((row, column - 1 - len(name) - 2 * (not visible), name if visible else f"{name} {mark}"))
            elif margin:
                places += [(row + down, width + 1, f"{mark} {name}") for down in DOWN]
            else:
                places += [(row + down, column + 2, name) for down in (-1, 1)]
        if not any(0 <= row < height and _write(cells[row], label, start, kind) for row, start, label in places):
            left_over.append(number)
    return sorted(left_over)


def joined(cells: Sequence[Piece]) -> list[Piece]:
    """Join neighbouring pieces of one kind."""
    return [("".join(text for text, _ in alike), kind) for kind, alike in groupby(cells, key=itemgetter(1))]


def _legend(figure: Figure, named: Sequence[int], width: int) -> list[list[Piece]]:
    """Return the title of the y axis, then marker and name of each of these series, in as many rows as they need."""
    rows: list[list[Piece]] = [[(figure.y.title[:width], "label")]]
    for number in named:
        entry = f"{marker(figure, number)} {figure.series[number].name}"
        used = _cells(rows[-1])
        gap = "   " if used else ""
        if used and used + len(gap) + len(entry) > width:
            rows.append([])
            gap = ""
        rows[-1] += [(gap, "label"), (truncate(entry, width), part(figure, number))]
    for row in rows:
        row.append((" " * (width - _cells(row)), "label"))
    return rows


def _cells(row: Sequence[Piece]) -> int:
    return sum(len(text) for text, _ in row)


def _x_axis(axis: Axis, across: Scale, left: int, width: int, margin: int) -> list[tuple[Piece, ...]]:
    title = f" {axis.title}" if axis.title else ""
    at = width if margin >= len(title) else width - len(title)  # first column of the title
    values = [value for value in ticks(across, max(2, width // 8), axis.base) if not axis.whole or value == int(value)]
    places = [(column_of(across.share(value), width), tick_text(value, axis.text)) for value in values]
    rows = tick_rows(width, places, None if axis.ends else at)
    labels, line, corner = rows.labels + " " * margin, rows.axis + " " * margin, " " * (left - 1)
    if rows.used <= at:
        labels = labels[:at] + title + labels[at + len(title) :]
    elif axis.ends and at > 0:  # hide as few ticks as possible
        start = min(range(at), key=lambda start: (line[start : start + len(title) + 1].count("┬"), abs(start - at // 2)))
        line = f"{line[:start]}{title} {line[start + len(title) + 1 :]}"
    return [((corner + "└", "axis"), (line, "axis")), ((corner + " ", "label"), (labels, "label"))]


def _stops(plotted: Plotted, height: int) -> tuple[CursorStop, ...]:
    figure, across, up = plotted.figure, plotted.across, plotted.up
    points = sorted(
        (x, y, number, place)
        for number, place, x, y in _points(plotted.xs, plotted.ys)
        if (figure.series[number].points or not figure.pointwise) and -1e-9 <= across.share(x) <= 1 + 1e-9
    )
    if figure.pointwise:
        rows = [row_of(up.share(y), height) for _, y, _, _ in points]
        return tuple(CursorStop(across.share(x), ((n, place),), row) for (x, _, n, place), row in zip(points, rows, strict=True))
    return tuple(
        CursorStop(across.share(x), tuple(sorted((number, place) for _, _, number, place in there)))
        for x, there in groupby(points, key=itemgetter(0))
    )
