"""A figure as rows of characters: legend, marks, rules, axes with ticks; each character knows which part it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from fwtui.common.text import shortened
from fwtui.tui.charts import plot
from fwtui.tui.charts.figure import MARKERS, Axis, Figure, Rule, tick_text
from fwtui.tui.charts.scale import Scale, decimated, finite, positive, scale, ticks

Columns = Sequence[Sequence[float | None]]  # of coordinates, by series
Piece = tuple[str, str]  # text, and the part it belongs to: "axis", "label", "rule", "series-3", ...
# of series; the seventh has the first one's again, and another marker
COLOURS = ("$primary", "$text-success", "$text-warning", "$text-error", "$secondary", "$foreground")
LEAST_LABELS = (24, 6)  # columns and rows below which there are only marks


class Stop(NamedTuple):
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
    stops: tuple[Stop, ...]


def part(series: int) -> str:
    return f"series-{series % len(COLOURS)}"


def marker(figure: Figure, series: int) -> str:
    return figure.series[series].marker or MARKERS[series % len(MARKERS)]


class Plotted(NamedTuple):
    """A figure with the coordinates that can be drawn, by series, on its two scales."""

    figure: Figure
    xs: Columns
    ys: Columns
    across: Scale
    up: Scale


@lru_cache(maxsize=64)
def draw(figure: Figure, width: int, height: int) -> Drawing:
    """The figure in `height` rows of exactly `width` cells; never raises, whatever its numbers are."""
    if width < 1 or height < 1:
        return Drawing((), 0, 0, 0, 0, ())
    drawable_x, drawable_y = (positive if axis.log else finite for axis in (figure.x, figure.y))
    xs, ys = [drawable_x(series.xs) for series in figure.series], [drawable_y(series.ys) for series in figure.series]
    there = [point for _, _, *point in _points(xs, ys)]
    if not there:
        return _blank(figure.empty, width, height)
    # a rule is worth seeing, so the axis reaches it
    reach = [rule.value for rule in figure.rules if not rule.vertical and finite((rule.value,))[0] is not None]
    across, up = _scale([x for x, _ in there], figure.x), _scale([*(y for _, y in there), *reach], figure.y)
    plotted = Plotted(figure, xs, ys, across, up)
    if width < LEAST_LABELS[0] or height < LEAST_LABELS[1]:
        rows = tuple(tuple(joined(cells)) for cells in _body(plotted, width, height))
        return Drawing(rows, 0, 0, width, height, _stops(plotted, height))
    room = height - 3  # without legend, axis and its labels
    y_ticks = ticks(up, max(2, room // 3), figure.y.base)
    y_texts = [tick_text(value, figure.y.text) for value in y_ticks]
    left = min(max(map(len, y_texts), default=0), width // 3) + 1
    places = {room - 1 - plot.cell(up.share(value), room): text for value, text in zip(y_ticks, y_texts, strict=True)}
    labelled = [_legend(figure, left, width)]
    for y, cells in enumerate(_body(plotted, width - left, room)):
        label = (f"{places.get(y, ''):>{left - 1}.{left - 1}}", "label")
        labelled.append((label, ("┤" if y in places else "│", "axis"), *joined(cells)))
    labelled += _x_axis(figure.x, across, left, width - left)
    return Drawing(tuple(labelled), left, 1, width - left, room, _stops(plotted, room))


def _points(xs: Columns, ys: Columns) -> Iterator[tuple[int, int, float, float]]:
    """Series, place in it and coordinates of every point that has both."""
    for number, (sx, sy) in enumerate(zip(xs, ys, strict=True)):
        for place, (x, y) in enumerate(zip(sx, sy, strict=False)):
            if x is not None and y is not None:
                yield number, place, x, y


def _scale(values: Sequence[float], axis: Axis) -> Scale:
    low, high = finite((axis.low, axis.high))
    return scale(values, axis.log, low, high, axis.base)


def _blank(words: str, width: int, height: int) -> Drawing:
    rows = [((" " * width, "label"),)] * height
    rows[(height - 1) // 2] = ((shortened(words, width).center(width), "label"),)
    return Drawing(tuple(rows), 0, 0, 0, 0, ())


def _marks(plotted: Plotted, width: int, height: int) -> list[list[plot.Cell]]:
    """Lines and points of all series in a grid of that size."""
    figure = plotted.figure
    lines: list[tuple[int, list[plot.Point | None]]] = []
    marks: list[tuple[plot.Cell, list[plot.Point]]] = []
    for number, series in enumerate(figure.series):
        thinned = decimated(plotted.xs[number], plotted.ys[number], 2 * width)
        shares = [None if p is None else (plotted.across.share(p[0]), plotted.up.share(p[1])) for p in thinned]
        if series.line:
            lines.append((number, shares))
        if series.points:
            there = [p for p in shares if p is not None]
            # so many that they would cover each other: some are enough to tell whose line it is
            every = 1 if len(there) <= max(width // 2, 8) or not series.line else -(-len(there) // 6)
            marks.append(((marker(figure, number), number), there[number % every :: every] or there[:1]))
    # what the user looks at comes last, over all others
    marks.sort(key=lambda one: figure.series[one[0][1]].strong)
    return plot.drawn(lines, marks, width, height)


def _body(plotted: Plotted, width: int, height: int) -> list[list[Piece]]:
    """The marks with the rules under them, and the rules' words over nothing."""
    cells: list[list[Piece]] = [
        [(text, "plain" if series < 0 else _strength(plotted.figure, series)) for text, series in row]
        for row in _marks(plotted, width, height)
    ]
    drawn: list[tuple[Rule, int]] = []  # each with its column or its row
    for rule in plotted.figure.rules:
        share = _reached(rule, plotted.across if rule.vertical else plotted.up)
        if share is not None:
            drawn.append((rule, plot.cell(share, width) if rule.vertical else height - 1 - plot.cell(share, height)))
    for rule, at in drawn:
        if rule.vertical:
            for row in cells:
                row[at] = ("┊", "rule") if row[at][0] == " " else row[at]
        else:
            cells[at] = [("╌", "rule") if text == " " else (text, kind) for text, kind in cells[at]]
    # words last, or another rule would run through them
    for rule, at in drawn:
        said = [words for words in (rule.words, rule.short) if words]
        if rule.vertical:
            any(_write(row, words, start) for words in said for row in cells for start in (at + 2, at - 1 - len(words)))
        else:
            near = [cells[row] for row in (at + 1, at - 1) if 0 <= row < height]
            any(_write(row, words, start) for words in said for start in (width - len(words), 1) for row in near)
    return cells


def _reached(rule: Rule, along: Scale) -> float | None:
    """Where on its axis the rule is; None where the axis does not reach it."""
    share = along.share(rule.value) if finite((rule.value,))[0] is not None else -1.0
    return share if 0 <= share <= 1 else None


def _strength(figure: Figure, series: int) -> str:
    if figure.series[series].limit:
        return "rule"
    return f"{part(series)}-strong" if figure.series[series].strong else part(series)


def _write(row: list[Piece], words: str, start: int) -> bool:
    """Words where there is room for all of them and nothing else; whether there was."""
    room = row[max(start, 0) : start + len(words)]
    if not words or start < 0 or len(room) < len(words) or any(text not in " ┊" for text, _ in room):
        return False
    row[start : start + len(words)] = [(character, "rule") for character in words]
    return True


def joined(cells: Sequence[Piece]) -> list[Piece]:
    """As few pieces as possible."""
    return [("".join(text for text, _ in alike), kind) for kind, alike in groupby(cells, key=itemgetter(1))]


def _legend(figure: Figure, left: int, width: int) -> tuple[Piece, ...]:
    """The axis' title, then a marker and a name for each series, as many as fit; the last one says how many more there are."""
    pieces: list[Piece] = [(f"{figure.y.title[:width]}", "label")]
    room = width - len(pieces[0][0])
    named = [number for number, series in enumerate(figure.series) if series.name and series.listed]
    for place, number in enumerate(named):
        words = f"   {marker(figure, number) if figure.series[number].points else '─'} {figure.series[number].name}"
        rest = len(named) - place - 1
        if len(words) + (len(f"   +{rest} more") if rest else 0) > room:
            pieces.append((f"   +{rest + 1} more"[:room], "label"))
            room -= len(pieces[-1][0])
            break
        pieces.append((words, "rule" if figure.series[number].limit else part(number)))
        room -= len(words)
    return (*pieces, (" " * room, "label"))


def _x_axis(axis: Axis, across: Scale, left: int, width: int) -> list[tuple[Piece, ...]]:
    line, labels = ["─"] * width, [" "] * width
    end = 0  # of the labels so far
    title = f" {axis.title}" if axis.title else ""
    for value in ticks(across, max(2, width // 8), axis.base):
        if axis.whole and value != int(value):
            continue
        x, text = plot.cell(across.share(value), width), tick_text(value, axis.text)
        start = min(max(0, x - len(text) // 2), width - len(text))
        if start < end + (2 if end else 0) or start + len(text) > width - len(title):
            continue
        line[x] = "┬"
        labels[start : start + len(text)] = text
        end = start + len(text)
    if end + len(title) <= width:
        labels[width - len(title) :] = title
    corner = " " * (left - 1)
    return [((corner + "└", "axis"), ("".join(line), "axis")), ((corner + " ", "label"), ("".join(labels), "label"))]


def _stops(plotted: Plotted, height: int) -> tuple[Stop, ...]:
    figure, across, up = plotted.figure, plotted.across, plotted.up
    points = sorted(
        (x, y, number, place)
        for number, place, x, y in _points(plotted.xs, plotted.ys)
        if (figure.series[number].points or not figure.pointwise) and -1e-9 <= across.share(x) <= 1 + 1e-9
    )
    if figure.pointwise:
        rows = [height - 1 - plot.cell(min(1.0, max(0.0, up.share(y))), height) for _, y, _, _ in points]
        return tuple(Stop(across.share(x), ((n, place),), row) for (x, _, n, place), row in zip(points, rows, strict=True))
    return tuple(
        Stop(across.share(x), tuple(sorted((number, place) for _, _, number, place in there)))
        for x, there in groupby(points, key=itemgetter(0))
    )
