"""A figure as rows of characters: legend, marks, rules, axes with ticks; each character knows which part it belongs to."""

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
_COLOURS = 200  # these numbers separate the series in plotext's output
Columns = Sequence[Sequence[float | None]]  # of coordinates, by series
MIN_LABELS = (24, 6)  # columns and rows below which there are only marks
MIN_MARGIN = 60  # columns from which names have room of their own beside the ends of their lines
DOWN = (0, -1, 1, -2, 2, -3, 3)  # rows that a name in the margin may be away from its line's end
LEGEND = 6  # rows of a chart for each that its legend may have


def pieces(points: Sequence[Point | None]) -> Iterator[list[Point]]:
    """The line through these shares of the rectangle, broken at None and at what is outside of it."""
    for there, piece in groupby(points, key=lambda point: point is not None and within(point)):
        if there:
            yield [(_inside(point[0]), _inside(point[1])) for point in piece if point is not None]


def within(point: Point) -> bool:
    return -1e-9 <= point[0] <= 1 + 1e-9 and -1e-9 <= point[1] <= 1 + 1e-9


def _inside(value: float) -> float:
    return min(1.0, max(0.0, value))


def column_of(share: float, width: int) -> int:
    """Where plotext puts a share of the way across: a cell is two dots of braille wide."""
    return round(_inside(share) * (2 * width - 1)) // 2


def row_of(share: float, height: int) -> int:
    """Where it puts one of the way up, counted from the top: a cell is four dots high."""
    return height - 1 - round(_inside(share) * (4 * height - 1)) // 4


def plot_marks(
    lines: Sequence[tuple[int, Sequence[Point | None]]], marks: Sequence[tuple[Cell, Sequence[Point]]], width: int, height: int
) -> list[list[Cell]]:
    """`height` rows of `width` cells, the top one first: lines by series, then single points over them."""
    grid = [[EMPTY] * width for _ in range(height)]
    inside = [(series, piece) for series, points in lines for piece in pieces(points)]
    if inside and width > 1 and height > 1:  # plotext has no limits for a single row or column
        _plot_lines(inside, grid, width, height)
    for mark, points in marks:
        for x, y in filter(within, points):
            grid[row_of(y, height)][column_of(x, width)] = mark
    return grid


def _plot_lines(lines: list[tuple[int, list[Point]]], grid: list[list[Cell]], width: int, height: int) -> None:
    """plotext raises on infinities and empty data, rounds limits, and keeps its figure in a module.

    So it gets shares of the rectangle, finite and inside of it, and the figure is cleared before and after.
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
        places = [*points, points[0]] if len(points) == 1 else points  # one point is a line too
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
    """A place where the cursor can be: a column of the plot, and the points there as (series, index)."""

    share: float  # of the plot's width
    points: tuple[tuple[int, int], ...]
    row: int = 0  # of the plot, of the first of them


class Drawing(NamedTuple):
    """Rows of pieces, all of the same width; the plot's rectangle in them; and where the cursor can stop."""

    rows: tuple[tuple[Piece, ...], ...]
    left: int
    top: int
    width: int  # of the plot's rectangle
    height: int
    stops: tuple[CursorStop, ...]


def part(figure: Figure, series: int) -> str:
    """The part that a series is, which decides its colour."""
    one = figure.series[series]
    return "rule" if one.limit else f"series-{sign(one.kernel).place if one.kernel else series % len(COLOURS)}"


def marker(figure: Figure, series: int) -> str:
    """Its sign at its points, and in words."""
    one = figure.series[series]
    if not one.points:
        return "─"
    return one.marker or (sign(one.kernel).glyph if one.kernel else MARKERS[series % len(MARKERS)])


class Plotted(NamedTuple):
    """A figure with the coordinates that can be drawn, by series, on its two scales."""

    figure: Figure
    xs: Columns
    ys: Columns
    across: Scale
    up: Scale


def draw(figure: Figure, width: int, height: int) -> Drawing:
    """The figure in `height` rows of exactly `width` cells; never raises, for any numbers."""
    if width < 1 or height < 1:
        return Drawing((), 0, 0, 0, 0, ())
    drawable_x, drawable_y = (positive if axis.log else finite for axis in (figure.x, figure.y))
    xs, ys = [drawable_x(series.xs) for series in figure.series], [drawable_y(series.ys) for series in figure.series]
    there = [point for _, _, *point in _points(xs, ys)]
    if not there:
        rows = [((" " * width, "label"),)] * height
        rows[(height - 1) // 2] = ((truncate(figure.empty, width).center(width), "label"),)
        return Drawing(tuple(rows), 0, 0, 0, 0, ())
    # a rule is worth seeing, so the axis reaches it
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
    """The figure with axes and a legend of `above` rows; and how many rows the whole legend takes."""
    figure, across, up = plotted.figure, plotted.across, plotted.up
    room = height - 2 - above
    y_ticks = ticks(up, max(2, room // 3), figure.y.base)
    y_texts = [tick_text(value, figure.y.text) for value in y_ticks]
    places = {row_of(up.share(value), room): text for value, text in zip(y_ticks, y_texts, strict=True)}
    # a row with a rule has the rule's own value, which differs from a tick in that row
    ruled = {row_of(up.share(rule.value), room): rule for rule in figure.rules if not rule.vertical and _reached(rule, up)}
    places |= {row: tick_text(rule.value, figure.y.text) for row, rule in ruled.items()}
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
    """Series, place in it and coordinates of every point that has both."""
    for number, (sx, sy) in enumerate(zip(xs, ys, strict=True)):
        for place, (x, y) in enumerate(zip(sx, sy, strict=False)):
            if x is not None and y is not None:
                yield number, place, x, y


def _scale(values: Sequence[float], axis: Axis) -> Scale:
    low, high = finite((axis.low, axis.high))
    return scale(values, axis.log, low, high, axis.base)


def _marks(plotted: Plotted, width: int, height: int) -> list[list[Cell]]:
    """Lines and points of all series in a grid of that size."""
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
            # too many would cover each other: a few show whose line it is
            every = 1 if len(there) <= max(width // 2, 8) or not series.line else -(-len(there) // 6)
            marks.append(((marker(figure, number), number), there[number % every :: every] or there[:1]))
    # what the user looks at comes last, over all others
    marks.sort(key=lambda one: figure.series[one[0][1]].strong)
    return plot_marks(lines, marks, width, height)


def _body(plotted: Plotted, width: int, height: int) -> list[list[Piece]]:
    """The marks with the rules under them, and the rules' words over nothing."""
    cells: list[list[Piece]] = [
        [(text, "plain" if series < 0 else _strength(plotted.figure, series, text)) for text, series in row]
        for row in _marks(plotted, width, height)
    ]
    placed: list[tuple[Rule, int]] = []  # each with its column or its row
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
    # words last, or another rule would run through them
    for rule, at in placed:
        labels = [words for words in (rule.words, rule.short) if words]
        if rule.vertical:
            any(_write(row, words, start, "rule") for words in labels for row in cells for start in (at + 2, at - 1 - len(words)))
        else:
            near = [cells[row] for row in (at + 1, at - 1) if 0 <= row < height]
            any(_write(row, words, start, "rule") for words in labels for start in (width - len(words), 1) for row in near)
    return cells


def _reached(rule: Rule, along: Scale) -> bool:
    """Return True if the rule is finite and within its axis."""
    return finite((rule.value,))[0] is not None and 0 <= along.share(rule.value) <= 1


def _strength(figure: Figure, series: int, text: str) -> str:
    """The part of a series' cell; the series under the cursor has strong marks, and lines like all others."""
    strong = figure.series[series].strong and text == marker(figure, series)
    return f"{part(figure, series)}-strong" if strong else part(figure, series)


def _write(row: list[Piece], words: str, start: int, kind: str) -> bool:
    """Write words if all of them fit with nothing else in them or beside them; returns whether they did."""
    around = row[max(start - 1, 0) : start + len(words) + 1]
    if not words or start < 0 or start + len(words) > len(row) or any(text not in " ┊" for text, _ in around):
        return False
    row[start : start + len(words)] = [(character, kind) for character in words]
    return True


def _named(figure: Figure) -> list[int]:
    """The series that are named."""
    return [number for number, series in enumerate(figure.series) if series.name and series.listed]


def _margin(plotted: Plotted, width: int, left: int) -> int:
    """Cells right of the plot for names at the ends of lines; none if no line comes near, or there is no room."""
    series = plotted.figure.series
    lines = [number for number in _named(plotted.figure) if series[number].line and series[number].points]
    most = min(max((len(series[number].name) + 3 for number in lines), default=0), width // 3)
    ends = [points[-1][0] for number in lines if (points := _shares(plotted, number))]
    near = any(end * (width - left) + most > width - left for end in ends)
    return most if near and width >= MIN_MARGIN else 0


def _shares(plotted: Plotted, number: int) -> list[Point]:
    """Where a series' points are in the plot, those outside of it left out."""
    there = zip(plotted.xs[number], plotted.ys[number], strict=False)
    shares = [(plotted.across.share(x), plotted.up.share(y)) for x, y in there if x is not None and y is not None]
    return [point for point in shares if within(point)]


def _write_names(plotted: Plotted, cells: list[list[Piece]], margin: int) -> list[int]:
    """Write names beside the ends of their lines, or one of their points; returns the series that had no room."""
    figure, width, height = plotted.figure, len(cells[0]), len(cells)
    for row in cells:
        row += [(" ", "plain")] * margin
    left_over = []
    for number in sorted(_named(figure), key=lambda number: not figure.series[number].strong):
        series, name, kind = figure.series[number], figure.series[number].name, part(figure, number)
        points = [(column_of(x, width), row_of(y, height)) for x, y in _shares(plotted, number)[::-1]]
        mark = marker(figure, number)
        tries: list[tuple[int, int, str]] = []
        if series.line:
            name = cut_middle(name, margin - 3) if margin else name
            points = points[:1]
        for column, row in points:
            # beside another sign, as where points cover each other, its own one says whose name it is
            beside_mark = cells[row][column][0] in (mark, "─") or not series.points
            tries.append((row, column + 2, name if beside_mark else f"{mark} {name}"))
            if not series.line:
                tries.append((row, column - 1 - len(name) - 2 * (not beside_mark), name if beside_mark else f"{name} {mark}"))
            elif margin:
                tries += [(row + down, width + 1, f"{mark} {name}") for down in DOWN]
            else:
                tries += [(row + down, column + 2, name) for down in (-1, 1)]
        if not any(0 <= row < height and _write(cells[row], words, start, kind) for row, start, words in tries):
            left_over.append(number)
    return sorted(left_over)


def joined(cells: Sequence[Piece]) -> list[Piece]:
    """As few pieces as possible."""
    return [("".join(text for text, _ in alike), kind) for kind, alike in groupby(cells, key=itemgetter(1))]


def _legend(figure: Figure, named: Sequence[int], width: int) -> list[list[Piece]]:
    """The axis' title, then a marker and a name for each of these series, in as many rows as they take."""
    rows: list[list[Piece]] = [[(figure.y.title[:width], "label")]]
    for number in named:
        words = f"{marker(figure, number)} {figure.series[number].name}"
        used = _cells(rows[-1])
        gap = "   " if used else ""
        if used and used + len(gap) + len(words) > width:
            rows.append([])
            gap = ""
        rows[-1] += [(gap, "label"), (truncate(words, width), part(figure, number))]
    for row in rows:
        row.append((" " * (width - _cells(row)), "label"))
    return rows


def _cells(row: Sequence[Piece]) -> int:
    return sum(len(text) for text, _ in row)


def _x_axis(axis: Axis, across: Scale, left: int, width: int, margin: int) -> list[tuple[Piece, ...]]:
    title = f" {axis.title}" if axis.title else ""
    at = width if margin >= len(title) else width - len(title)  # of the title
    values = [value for value in ticks(across, max(2, width // 8), axis.base) if not axis.whole or value == int(value)]
    rows = tick_rows(width, [(column_of(across.share(value), width), tick_text(value, axis.text)) for value in values], at)
    labels, corner = rows.labels + " " * margin, " " * (left - 1)
    if rows.used <= at:
        labels = labels[:at] + title + labels[at + len(title) :]
    return [
        ((corner + "└", "axis"), (rows.axis + " " * margin, "axis")),
        ((corner + " ", "label"), (labels, "label")),
    ]


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
