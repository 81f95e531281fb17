"""The one door to plotext for lines and points: marks in a rectangle, as characters and the series each belongs to.

plotext raises on infinities and empty data, rounds limits, and keeps its figure in a module, so it gets shares of the
rectangle (0..1), finite and inside of it, and the figure is cleared before and after.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

Point = tuple[float, float]
Cell = tuple[str, int]  # a character and the series it belongs to; " " belongs to none (-1)
EMPTY: Cell = (" ", -1)
_PIECE = re.compile("\x1b\\[38;5;(\\d+)m([^\x1b]*)|\x1b\\[[0-9;]*m|([^\x1b]+)")
_COLOURS = 200  # these numbers separate the series in plotext's output


def pieces(points: Sequence[Point | None]) -> Iterator[list[Point]]:
    """The line through these shares of the rectangle, broken at None and at what is outside of it."""
    for there, piece in groupby(points, key=lambda point: point is not None and within(point)):
        if there:
            yield [(_share(point[0]), _share(point[1])) for point in piece if point is not None]


def within(point: Point) -> bool:
    return -1e-9 <= point[0] <= 1 + 1e-9 and -1e-9 <= point[1] <= 1 + 1e-9


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def column(share: float, width: int) -> int:
    """Where plotext puts a share of the way across: a cell is two dots of braille wide."""
    return round(_share(share) * (2 * width - 1)) // 2


def row(share: float, height: int) -> int:
    """Where it puts one of the way up, counted from the top: a cell is four dots high."""
    return height - 1 - round(_share(share) * (4 * height - 1)) // 4


def drawn(
    lines: Sequence[tuple[int, Sequence[Point | None]]], marks: Sequence[tuple[Cell, Sequence[Point]]], width: int, height: int
) -> list[list[Cell]]:
    """`height` rows of `width` cells, the top one first: lines by series, then single points over them."""
    grid = [[EMPTY] * width for _ in range(height)]
    inside = [(series, piece) for series, points in lines for piece in pieces(points)]
    if inside and width > 1 and height > 1:  # plotext has no limits for a single row or column
        _lines(inside, grid, width, height)
    for mark, points in marks:
        for x, y in filter(within, points):
            grid[row(y, height)][column(x, width)] = mark
    return grid


def _lines(lines: list[tuple[int, list[Point]]], grid: list[list[Cell]], width: int, height: int) -> None:
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
