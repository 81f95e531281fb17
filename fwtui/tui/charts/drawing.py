"""A figure as rows of characters: legend, marks, rules, axes with ticks; each character knows which part it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from fwtui.tui.charts import plot
from fwtui.tui.charts.figure import MARKERS, Axis, Figure, Rule, tick_text
from fwtui.tui.charts.finite import decimated, finite, positive
from fwtui.tui.charts.scale import Scale, scale, ticks

Piece = tuple[str, str]  # text, and the part it belongs to: "axis", "label", "rule", "series-3", ...
# of series; the seventh has the first one's again, and another marker
COLOURS = ("$primary", "$text-success", "$text-warning", "$text-error", "$secondary", "$foreground")
LEAST_LABELS = (24, 6)  # columns and rows below which there are only marks


class Stop(NamedTuple):
    """A place where the cursor can be: a column of the plot, and the points there as (series, index)."""

    share: float  # of the plot's width
    points: tuple[tuple[int, int], ...]
    row: int = 0  # of the plot, of the first of them


@dataclass(frozen=True)
class Drawing:
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


@lru_cache(maxsize=64)
def draw(figure: Figure, width: int, height: int) -> Drawing:
    """The figure in `height` rows of exactly `width` cells; never raises, whatever its numbers are."""
    if width < 1 or height < 1:
        return Drawing((), 0, 0, 0, 0, ())
    xs = [_coordinates(series.xs, figure.x) for series in figure.series]
    ys = [_coordinates(series.ys, figure.y) for series in figure.series]
    there = [
        (x, y) for sx, sy in zip(xs, ys, strict=True) for x, y in zip(sx, sy, strict=False) if x is not None and y is not None
    ]
    if not there:
        return _blank(figure.empty, width, height)
    across = _scale([x for x, _ in there], figure.x)
    # a rule is worth seeing, so the axis reaches it
    reach = [rule.value for rule in figure.rules if not rule.vertical and finite((rule.value,))[0] is not None]
    up = _scale([*(y for _, y in there), *reach], figure.y)
    labelled = width >= LEAST_LABELS[0] and height >= LEAST_LABELS[1]
    top, bottom = (1, 2) if labelled else (0, 0)
    y_ticks = ticks(up, max(2, (height - top - bottom) // 3), figure.y.base) if labelled else ()
    y_texts = [tick_text(value, figure.y.text) for value in y_ticks]
    left = min(max(map(len, y_texts), default=0), width // 3) + 1 if labelled else 0
    area = (width - left, height - top - bottom)
    marks = _marks(figure, xs, ys, across, up, area[0])
    grid = plot.drawn(marks, *area)
    body = _rules(figure, grid, across, up)
    rows: list[tuple[Piece, ...]] = []
    if labelled:
        rows.append(_legend(figure, left, width))
    places = {area[1] - 1 - plot.cell(up.share(value), area[1]): text for value, text in zip(y_ticks, y_texts, strict=True)}
    for y, cells in enumerate(body):
        gutter = (
            [(f"{places.get(y, ''):>{left - 1}.{left - 1}}", "label"), ("┤" if y in places else "│", "axis")] if labelled else []
        )
        rows.append((*gutter, *_joined(cells)))
    if labelled:
        rows += _x_axis(figure.x, across, left, area[0])
    return Drawing(tuple(rows), left, top, area[0], area[1], _stops(figure, xs, ys, across, up, area[1]))


def _coordinates(values: Sequence[float | None], axis: Axis) -> tuple[float | None, ...]:
    return positive(values) if axis.log else finite(values)


def _scale(values: Sequence[float], axis: Axis) -> Scale:
    low, high = finite((axis.low, axis.high))
    return scale(values, axis.log, low, high, axis.base)


def _blank(words: str, width: int, height: int) -> Drawing:
    text = words if len(words) <= width else words[: max(0, width - 1)] + "…"
    blank = ((" " * width, "label"),)
    rows = [blank] * height
    rows[(height - 1) // 2] = ((text.center(width), "label"),)
    return Drawing(tuple(rows), 0, 0, 0, 0, ())


def _marks(
    figure: Figure,
    xs: Sequence[Sequence[float | None]],
    ys: Sequence[Sequence[float | None]],
    across: Scale,
    up: Scale,
    width: int,
) -> plot.Marks:
    marks = plot.Marks()
    for number, series in enumerate(figure.series):
        thinned = decimated(xs[number], ys[number], 2 * width)
        shares = [None if p is None else (across.share(p[0]), up.share(p[1])) for p in thinned]
        if series.line:
            marks.line(number, shares)
        there = [p for p in shares if p is not None]
        if series.points:
            # so many that they would cover each other: some are enough to tell whose line it is
            every = 1 if len(there) <= max(width // 2, 8) or not series.line else -(-len(there) // 6)
            marks.point(number, marker(figure, number), there[number % every :: every] or there[:1])
    # what the user looks at comes last, over all others
    marks.points.sort(key=lambda point: figure.series[point[0]].strong)
    return marks


def _rules(figure: Figure, grid: list[list[plot.Cell]], across: Scale, up: Scale) -> list[list[Piece]]:
    """The marks with the rules under them, and the rules' words over nothing."""
    height, width = len(grid), len(grid[0]) if grid else 0
    cells: list[list[Piece]] = [
        [(text, "plain" if series < 0 else _strength(figure, series)) for text, series in row] for row in grid
    ]
    drawn = [(rule, share) for rule in figure.rules if (share := _reached(rule, across if rule.vertical else up)) is not None]
    for rule, share in drawn if height and width else ():
        if rule.vertical:
            x = plot.cell(share, width)
            for row in cells:
                row[x] = ("┊", "rule") if row[x][0] == " " else row[x]
        else:
            y = height - 1 - plot.cell(share, height)
            cells[y] = [("╌", "rule") if text == " " else (text, kind) for text, kind in cells[y]]
    # words last, or another rule would run through them
    for rule, share in drawn if height and width else ():
        said = [words for words in (rule.words, rule.short) if words]
        if rule.vertical:
            x = plot.cell(share, width)
            any(_write(row, words, start) for words in said for row in cells for start in (x + 2, x - 1 - len(words)))
        else:
            y = height - 1 - plot.cell(share, height)
            near = [cells[row] for row in (y + 1, y - 1) if 0 <= row < height]
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


def _joined(cells: Sequence[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for text, kind in cells:
        if joined and joined[-1][1] == kind:
            joined[-1] = (joined[-1][0] + text, kind)
        else:
            joined.append((text, kind))
    return joined


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


def _stops(
    figure: Figure,
    xs: Sequence[Sequence[float | None]],
    ys: Sequence[Sequence[float | None]],
    across: Scale,
    up: Scale,
    height: int,
) -> tuple[Stop, ...]:
    points = [
        (x, y, number, place)
        for number, (sx, sy) in enumerate(zip(xs, ys, strict=True))
        if figure.series[number].points or not figure.pointwise
        for place, (x, y) in enumerate(zip(sx, sy, strict=False))
        if x is not None and y is not None and -1e-9 <= across.share(x) <= 1 + 1e-9
    ]
    points.sort()
    if figure.pointwise:
        return tuple(Stop(across.share(x), ((number, place),), _row(up, y, height)) for x, y, number, place in points)
    stops: dict[float, list[tuple[int, int]]] = {}
    for x, _, number, place in points:
        stops.setdefault(x, []).append((number, place))
    return tuple(Stop(across.share(x), tuple(sorted(found))) for x, found in stops.items())


def _row(up: Scale, y: float, height: int) -> int:
    return height - 1 - plot.cell(min(1.0, max(0.0, up.share(y))), height)
