"""The one door to plotext for lines and points: marks in a rectangle, as characters and the series each belongs to.

plotext raises on infinities and empty data, rounds limits, and keeps its figure in a module, so it gets shares of the
rectangle (0..1), finite and inside of it, and the figure is cleared before and after.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Point = tuple[float, float]
Cell = tuple[str, int]  # a character and the series it belongs to; " " belongs to none (-1)
EMPTY: Cell = (" ", -1)
_PIECE = re.compile("\x1b\\[38;5;(\\d+)m([^\x1b]*)|\x1b\\[[0-9;]*m|([^\x1b]+)")
_COLOURS = 200  # series are told apart in plotext's output by these numbers


class Marks:
    """What is to be drawn: lines as lists of points, then single points over them."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, list[Point]]] = []
        self.points: list[tuple[int, str, list[Point]]] = []

    def line(self, series: int, points: Sequence[Point | None]) -> None:
        """A line through these shares of the rectangle, broken at None and cut where it leaves the rectangle."""
        piece: list[Point] = []
        for before, point in zip([None, *points], [*points, None], strict=True):
            cut = None if before is None or point is None else clipped(before, point)
            if before is not None and point is None and len(piece) == 0 and _inside(before):
                piece = [before]  # a point without neighbours
            if cut is None or (piece and piece[-1] != cut[0]):
                if piece:
                    self.lines.append((series, piece))
                piece = []
            if cut is not None:
                piece += cut if not piece else cut[1:]

    def point(self, series: int, marker: str, points: Sequence[Point]) -> None:
        """The same marker at each of these shares of the rectangle; what is outside is left out."""
        inside = [point for point in points if _inside(point)]
        if inside:
            self.points.append((series, marker, inside))


def _inside(point: Point) -> bool:
    return -1e-9 <= point[0] <= 1 + 1e-9 and -1e-9 <= point[1] <= 1 + 1e-9


def clipped(start: Point, end: Point) -> list[Point] | None:
    """The part of a straight stretch that is inside of the rectangle (Liang and Barsky, 1984); None where nothing is."""
    first, last = 0.0, 1.0
    for low, way in zip(start, (end[0] - start[0], end[1] - start[1]), strict=True):
        for room, speed in ((low, -way), (1 - low, way)):
            if speed == 0:
                if room < -1e-9:
                    return None
            elif speed < 0:
                first = max(first, room / speed)
            else:
                last = min(last, room / speed)
    if first > last:
        return None
    # far ends lose digits, so they are put back onto the border
    return [(_share(start[0] + t * (end[0] - start[0])), _share(start[1] + t * (end[1] - start[1]))) for t in (first, last)]


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def cell(share: float, cells: int) -> int:
    """Where plotext puts a share of the way, counted from the low end."""
    return min(cells - 1, max(0, round(share * (cells - 1))))


def drawn(marks: Marks, width: int, height: int) -> list[list[Cell]]:
    """`height` rows of `width` cells, the top one first."""
    if width < 1 or height < 1:
        return []
    grid = [[EMPTY] * width for _ in range(height)]
    if marks.lines and width > 1 and height > 1:  # plotext has no limits for a single row or column
        _lines(marks.lines, grid, width, height)
    for series, marker, points in marks.points:
        for x, y in points:
            grid[height - 1 - cell(y, height)][cell(x, width)] = (marker, series)
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
