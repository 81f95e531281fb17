"""Lines and points in a rectangle of cells: each cell is a character and the series that it belongs to.

Coordinates are shares of the rectangle (0..1). Lines are dots of braille, two across and four down in a cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Point = tuple[float, float]
Cell = tuple[str, int]  # a character and the series it belongs to; " " belongs to none (-1)
EMPTY: Cell = (" ", -1)
BRAILLE = 0x2800  # the character without dots
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column of the dot in its cell


def pieces(points: Sequence[Point | None]) -> Iterator[list[Point]]:
    """The line through these shares of the rectangle, broken at None and cut where it leaves the rectangle."""
    piece: list[Point] = []
    for before, point in zip([None, *points], [*points, None], strict=True):
        cut = None if before is None or point is None else clipped(before, point)
        if before is not None and point is None and not piece and within(before):
            piece = [before]  # a point without neighbours
        if piece and (cut is None or piece[-1] != cut[0]):
            yield piece
            piece = []
        if cut is not None:
            piece += cut[1:] if piece else cut


def within(point: Point) -> bool:
    return -1e-9 <= point[0] <= 1 + 1e-9 and -1e-9 <= point[1] <= 1 + 1e-9


def clipped(start: Point, end: Point) -> list[Point] | None:
    """The part of a straight stretch that is inside of the rectangle (Liang and Barsky, 1984); None if nothing is."""
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


def column(share: float, width: int) -> int:
    """The cell of a share of the way across."""
    return round(_share(share) * (2 * width - 1)) // 2


def row(share: float, height: int) -> int:
    """The cell of a share of the way up, counted from the top."""
    return height - 1 - round(_share(share) * (4 * height - 1)) // 4


def drawn(
    lines: Sequence[tuple[int, Sequence[Point | None]]], marks: Sequence[tuple[Cell, Sequence[Point]]], width: int, height: int
) -> list[list[Cell]]:
    """`height` rows of `width` cells, the top one first: lines by series, then single points over them."""
    grid = [[EMPTY] * width for _ in range(height)]
    for series, points in lines:
        for x, y in (dot for piece in pieces(points) for dot in _dots(piece, 2 * width - 1, 4 * height - 1)):
            before, _ = grid[y // 4][x // 2]
            dots = ord(before) - BRAILLE if before != " " else 0
            grid[y // 4][x // 2] = chr(BRAILLE + (dots | DOTS[y % 4][x % 2])), series
    for mark, points in marks:
        for x, y in filter(within, points):
            grid[row(y, height)][column(x, width)] = mark
    return grid


def _dots(piece: Sequence[Point], right: int, bottom: int) -> Iterator[tuple[int, int]]:
    """Columns and rows, from the top, of the dots of a line within the rectangle; `right` and `bottom` are the last ones."""
    ends = [(x * right, (1 - y) * bottom) for x, y in piece]
    for (x, y), (to_x, to_y) in zip(ends, ends[1:] or ends, strict=False):
        steps = max(1, round(max(abs(to_x - x), abs(to_y - y))))
        for step in range(steps + 1):
            yield round(x + (to_x - x) * step / steps), round(y + (to_y - y) * step / steps)
