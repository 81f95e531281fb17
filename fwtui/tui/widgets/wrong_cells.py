"""The matrix of a kernel that is wrong: its wrong cells, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from fwtui.analysis.plan_checks import words
from fwtui.stream.trials import Where
from fwtui.tui.widgets.drawn import MUTED, Drawn, hung, line
from fwtui.tui.widgets.matrix import Pixels

RIGHT, OUTLINE, WRONG = range(3)  # cells of a result, by what is seen of them
CELL_STYLES = ("$border-blurred", "$foreground", "$error")  # opaque: two share a cell of the terminal
CELL_GLYPHS = "·+#"


class WrongCells(Drawn[Where | None]):
    """The cells of a result that are wrong in red, and an outline around what was written where it began."""

    def __init__(self, where: Where | None = None, rows: int = 0):
        super().__init__(where)
        self._rows = rows  # of the picture

    def fit(self, rows: int) -> None:
        if rows != self._rows:
            self._rows, self._width = rows, -1
            self.refresh(layout=True)

    def draw(self, subject: Where, width: int) -> Sequence[Content]:
        rows = min(self._rows, width // 2)
        if rows < 1:
            return []
        plain = self.app.no_color or getattr(self.app, "plain", False)
        grid = wrong_pixels(subject, 2 * rows, rows if plain else 2 * rows)
        if plain:
            lines = [line(*((CELL_GLYPHS[part], CELL_STYLES[part]) for part in row)) for row in grid]
        else:
            pairs = (zip(above, below, strict=True) for above, below in zip(grid[0::2], grid[1::2], strict=True))
            lines = [line(*(("▀", f"{CELL_STYLES[up]} on {CELL_STYLES[low]}") for up, low in row)) for row in pairs]
        legend = line((CELL_GLYPHS[WRONG] if plain else "■", CELL_STYLES[WRONG]), (f" wrong, of n = {subject.n}", MUTED))
        if (outlined := subject.block or subject.rect) is not None:
            sign = line((CELL_GLYPHS[OUTLINE] if plain else "□", CELL_STYLES[OUTLINE]))
            return [*lines, legend, *hung(line(sign, " "), f"{words(outlined)}: where it began", width, MUTED)]
        return [*lines, legend]


def wrong_pixels(where: Where, width: int, height: int) -> Pixels:
    """The cells on a grid, none of them too small to be seen; the outline is around its rectangle, with a margin for that."""
    cells, n = where.cells(), where.n
    across, down = max(1, width - 2), max(1, height - 2)
    grid = [bytearray(width) for _ in range(height)]

    def span(first: int, end: int, pixels: int) -> range:
        first, end = (min(max(place, 0), n) for place in (first, end))
        return range(1 + first * pixels // n, 1 + max(-(-end * pixels // n), first * pixels // n + 1))

    outlined = where.block or where.rect
    if outlined is not None:
        rows, columns = span(outlined.top, outlined.bottom, down), span(outlined.left, outlined.right, across)
        for y in range(rows.start - 1, rows.stop + 1):
            for x in range(columns.start - 1, columns.stop + 1):
                if (y not in rows or x not in columns) and y < height and x < width:
                    grid[y][x] = OUTLINE
    for i, j in zip(*(places.tolist() for places in cells.nonzero()), strict=True):
        for y in span(i, i + 1, down):
            for x in span(j, j + 1, across):
                if y < height and x < width:
                    grid[y][x] = WRONG
    return grid
