"""A heat map of runs: one axis across, every combination of the others as a row, a cursor on one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from textual import events as ui
from textual.content import Content
from textual.geometry import Size

from fwtui.campaigns.sweep.squares import ENDED, LEFT_OUT, RUNNING, WAITING, Square, Squares
from fwtui.common import units
from fwtui.common.text import cut
from fwtui.stream.run import Run
from fwtui.tui.arrow_keys import ACROSS, CHOOSE, DOWN, Arrowed
from fwtui.tui.charts.kernel_signs import sign
from fwtui.tui.widgets import wording
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, Piece, line

# what a square can say, and how; a rate goes without its unit
MEASURES: dict[str, Callable[[float | None], str]] = {
    "rate": lambda rate: units.scaled(rate, "").rstrip(),
    "time": units.duration,
    "of best": units.percent,
}
SHADES = " ░▒▓█"
SIGNS = {WAITING: "·", RUNNING: "…", LEFT_OUT: "-"}
CELL, GAP = 9, 1  # cells of a square and between two of them
MOST_CELL, MOST_ALL = 16, 20  # of a square under the name of a kernel: where not all columns have room, and where they have
SIGN = 2  # cells of a kernel's sign and the space after it
LEAST_NAME, MOST_NAME = 6, 34


class HeatMapSubject(NamedTuple):
    squares: Squares | None
    measure: str
    cursor: tuple[int, int]  # row, column
    height: int


class HeatMap(Arrowed, Drawn[HeatMapSubject], can_focus=True):
    """A square is as strongly coloured as its rate is near the best, and says its number; the same again by its shade."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "HeatMap { height: 1fr; min-height: 3; }"
    BINDINGS: ClassVar = [*DOWN, *ACROSS, CHOOSE]

    def __init__(self, moved: Callable[[], object], chosen: Callable[[int], object]) -> None:
        """`moved` is called when the cursor is on another square, `chosen` with the run that was chosen."""
        super().__init__(HeatMapSubject(None, "rate", (0, 0), 0))
        self._moved, self._chosen = moved, chosen
        self._placed = False  # whether the user has put the cursor somewhere

    @property
    def square(self) -> Square | None:
        squares, (row, column) = self.subject.squares, self.cursor
        return squares.rows[row].squares[column] if squares is not None and squares.rows else None

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column, inside of what is shown."""
        squares, (row, column) = self.subject.squares, self.subject.cursor
        if squares is None or not squares.rows:
            return 0, 0
        return min(max(row, 0), len(squares.rows) - 1), min(max(column, 0), len(squares.across.values) - 1)

    def take(self, squares: Squares | None, measure: str) -> None:
        """Show these squares; the cursor stays where it was put, and is on the best one of finished runs before."""
        before, cursor = self._natural, self.subject.cursor
        if not self._placed and squares is not None and squares is not self.subject.squares:
            cursor = squares.best_place
        self.show(self.subject._replace(squares=squares, measure=measure, cursor=cursor))
        if self._natural != before:
            self.refresh(layout=True)

    @property
    def _natural(self) -> int:
        """Rows that show everything."""
        squares = self.subject.squares
        return len(squares.rows) + 1 if squares is not None else 0

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._natural

    def on_resize(self) -> None:
        self.show(self.subject._replace(height=self.size.height))

    def action_arrow(self, rows: int, columns: int) -> None:
        row, column = self.cursor
        self._put(row + rows, column + columns)

    def action_choose(self) -> None:
        if (square := self.square) is not None and square.run is not None:
            self._chosen(square.run.id)

    def on_click(self, event: ui.Click) -> None:
        offset = event.get_content_offset(self)
        squares = self.subject.squares
        if offset is None or squares is None or offset.y < 1:
            return
        name, cell, first, count = _columns(squares, self.size.width, self.cursor[1])
        column = (offset.x - name - GAP) // (cell + GAP)
        row = offset.y - 1 + first_shown(self.cursor[0], len(squares.rows), self.size.height - 1)
        if 0 <= column < count and row < len(squares.rows):
            event.stop()
            if (row, first + column) == self.cursor:
                self.action_choose()
            self._put(row, first + column)

    def _put(self, row: int, column: int) -> None:
        self._placed = True
        self.show(self.subject._replace(cursor=(row, column)))
        self.show(self.subject._replace(cursor=self.cursor))
        self._moved()

    def on_focus(self) -> None:
        self._width = -1
        self.refresh()

    on_blur = on_focus

    def draw(self, subject: HeatMapSubject, width: int) -> Sequence[Content]:
        squares = subject.squares
        if squares is None or not squares.rows:
            return []
        row, column = self.cursor
        name, cell, first, count = _columns(squares, width, column)
        values = squares.across.values[first : first + count]
        height = (subject.height or self._natural) - 1
        top = first_shown(row, len(squares.rows), height)
        head = f"{'‹ ' if first else ''}{squares.across.name}{' ›' if first + count < len(squares.across.values) else ''}"
        below = len(squares.rows) - top - max(height, 0)  # rows without room
        signs = " ".join(f"{sign}{rows}" for sign, rows in (("↑", top), ("↓", below)) if rows > 0)
        head = f"{signs}{head:>{name - len(signs)}}" if len(signs) + len(head) < name else f"{cut(head, name):>{name}}"
        signed = squares.across.name == "kernel"
        lines = [line((head, MUTED), *(piece for v in values for piece in (" " * GAP, *_head(v, signed, cell))))]
        best, room = squares.best_rate, name - SIGN * any(shown.kernel for shown in squares.rows)
        for index, shown in list(enumerate(squares.rows))[top : top + height]:
            here = index == row
            pieces: list[Piece] = [*_signed(shown.kernel), (f"{cut(shown.name, room):<{room}}", STRONG if here else "")]
            for place, square in list(enumerate(shown.squares))[first : first + count]:
                marked = here and place == column and self.has_focus
                pieces += [" " * (GAP + cell - CELL), *_square(square, subject.measure, best, marked)]
            lines.append(line(*pieces))
        return lines


def _columns(squares: Squares, width: int, column: int) -> tuple[int, int, int, int]:
    """Cells of the names and of a column, the first column that is shown, and how many are."""
    count = len(squares.across.values)
    longest = max([len(row.name) + SIGN * bool(row.kernel) for row in squares.rows] + [len(squares.across.name)])
    most = min(MOST_NAME, max(LEAST_NAME, width - min(count, 4) * (CELL + GAP)))
    name = max(LEAST_NAME, min(longest, most))
    cell = max([CELL, *(len(value) + SIGN for value in squares.across.values if squares.across.name == "kernel")])
    if min(cell, MOST_ALL) * count + GAP * count > width - name:
        cell = min(cell, MOST_CELL)
    cell = min(cell, MOST_ALL)
    room = max(1, (width - name) // (cell + GAP))
    if room < count:  # the signs for it stand beside the axis' name
        name = max(name, min(len(f"‹ {squares.across.name} ›"), most))
        room = max(1, (width - name) // (cell + GAP))
    return name, cell, first_shown(column, count, room), min(room, count)


def first_shown(here: int, count: int, room: int) -> int:
    """The first of `count` things that is shown where only `room` of them can be, with `here` in their middle if possible."""
    return max(0, min(here - room // 2, count - room)) if room > 0 else 0


def _signed(kernel: str) -> list[Piece]:
    """The kernel's sign and a space, if there is a kernel."""
    return [(f"{sign(kernel).glyph} ", sign(kernel).colour)] if kernel else []


def _head(value: str, kernel: bool, cell: int) -> list[Piece]:
    """A value over its column; a kernel with its sign."""
    room = cell - SIGN if kernel else cell
    text = cut(value, room)
    return [" " * (room - len(text)), *_signed(value if kernel else ""), (text, MUTED)]


def _square(square: Square, measure: str, best: float | None, marked: bool) -> list[Piece]:
    run = square.run
    if square.state != ENDED or run is None:
        return [(f"{SIGNS.get(square.state, ' '):>{CELL}}", "reverse" if marked else MUTED)]
    share = run.rate / best if run.rate and best and not wording.doubtful(run) else 0.0
    text = measured(run, measure, best)
    struck = "strike " if wording.doubtful(run) and run.rate else ""
    shade = SHADES[min(len(SHADES) - 1, int(share * (len(SHADES) - 1) + 0.5))]
    colour = f"on $primary {round(10 + 50 * min(share, 1.0))}%" if share else ""
    style = "reverse" if marked else colour
    return [(shade, style), (f"{text:>{CELL - 2}}", f"{struck}{style}".strip()), (" ", style)]


def number(run: Run | None, measure: str, best: float | None) -> float | None:
    """What the run comes to in one of MEASURES; `best` is the greatest rate of all."""
    if run is None:
        return None
    if measure == "time":
        return run.seconds
    if measure == "rate":
        return run.rate or None
    return run.rate / best if run.rate and best else None


def measured(run: Run, measure: str, best: float | None) -> str:
    """The same as a square says it."""
    return MEASURES[measure](number(run, measure, best)) if run.state == "done" else run.state[:7]
