"""Charts of a sweep: a map of squares, curves over a numeric axis, and a dot per run of a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from textual import events as ui
from textual.content import Content
from textual.geometry import Size

from fwtui.campaigns.sweep.axis import DEVICES, amounts
from fwtui.campaigns.sweep.findings import Findings
from fwtui.campaigns.sweep.scaling import Scaling
from fwtui.campaigns.sweep.squares import ENDED, LEFT_OUT, RUNNING, WAITING, Square, Squares, SweepRow, speed
from fwtui.common import units
from fwtui.common.text import cut_middle
from fwtui.stream.run import Run
from fwtui.tui.actions import ACROSS, CHOOSE, DOWN
from fwtui.tui.charts import Axis, Figure, Rule, Series
from fwtui.tui.charts.base import GridCursor
from fwtui.tui.charts.figure import MARKERS, rate_text, sign
from fwtui.tui.charts.scale import Scale
from fwtui.tui.widgets import run_labels
from fwtui.tui.widgets.text_panel import MUTED, STRONG, Piece, TextPanel, line

# the measures of a square and their formats; rates have no unit
MEASURES: dict[str, Callable[[float | None], str]] = {
    "rate": lambda rate: units.scaled(rate, "").rstrip(),
    "time": units.duration,
    "share of best": units.percent,
}
SHADES = " ░▒▓█"
MIN_LOG_RANGE = 10.0  # highest / lowest speed from which the shades are logarithmic; linear ones would be blank for most squares
SIGNS = {WAITING: "·", RUNNING: "…", LEFT_OUT: "-"}
CELL, GAP = 9, 1  # cells of a square and between two of them
MAX_CELL, MAX_ALL = 16, 20  # maximum cells of a square under a kernel's name: if not all columns fit, and if they do
SIGN = 2  # cells of a kernel's sign and the space after it
MIN_NAME, MAX_NAME = 6, 34
MAX_SERIES = 10  # more curves would be illegible
NAME, NUMBER, STEP = 24, 9, 11  # cells of a name, of a number, and of the speedup over the run above
MIN = 8  # minimum cells of the scale
MIN_MARKED = 3  # minimum lines in which the first and the last may state the number of hidden lines
WAY = "·"
SPARSE = 0.02  # density below which its axis is logarithmic


class HeatMapSubject(NamedTuple):
    squares: Squares | None
    measure: str
    cursor: tuple[int, int]  # row, column
    height: int


class HeatMap(GridCursor, TextPanel[HeatMapSubject], can_focus=True):
    """A map of runs: each square has the number of a run, and a shade and a colour by its speed."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "HeatMap { height: 1fr; min-height: 3; }"
    BINDINGS: ClassVar = [*DOWN, *ACROSS, CHOOSE]

    def __init__(self, moved: Callable[[], object], on_choice: Callable[[int], object]) -> None:
        """`moved` is called after the cursor has moved, `on_choice` with the chosen run."""
        super().__init__(HeatMapSubject(None, "rate", (0, 0), 0))
        self._moved, self._chosen = moved, on_choice
        self._placed = False  # True once the user has moved the cursor

    @property
    def square(self) -> Square | None:
        squares, (row, column) = self.subject.squares, self.cursor
        return squares.rows[row].squares[column] if squares is not None and squares.rows else None

    @property
    def extent(self) -> tuple[int, int]:
        squares = self.subject.squares
        return (len(squares.rows), len(squares.across.values)) if squares is not None else (0, 0)

    @property
    def cursor(self) -> tuple[int, int]:
        (row, column), (rows, columns) = self.subject.cursor, self.extent  # the map may have shrunk
        return max(0, min(row, rows - 1)), max(0, min(column, columns - 1))

    def take(self, squares: Squares | None, measure: str) -> None:
        """Show these squares. The cursor marks the best finished run until the user moves it."""
        before, cursor = self._natural, self.subject.cursor
        if not self._placed and squares is not None and squares is not self.subject.squares:
            cursor = squares.best_place
        self.show(self.subject._replace(squares=squares, measure=measure, cursor=cursor))
        if self._natural != before:
            self.refresh(layout=True)

    @property
    def _natural(self) -> int:
        """The height of the whole map."""
        squares = self.subject.squares
        return len(squares.rows) + 1 if squares is not None else 0

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._natural

    def on_resize(self) -> None:
        self.show(self.subject._replace(height=self.size.height))

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
            self.put(row, first + column)

    def put(self, row: int, column: int) -> None:
        self._placed = True
        self.show(self.subject._replace(cursor=(row, column)))
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
        head = f"{signs}{head:>{name - len(signs)}}" if len(signs) + len(head) < name else f"{cut_middle(head, name):>{name}}"
        signed = squares.across.name == "kernel"
        lines = [line((head, MUTED), *(piece for v in values for piece in (" " * GAP, *_head(v, signed, cell))))]
        best, spread, marks = squares.best_speed, squares.speed_range, _row_signs(squares)
        for index, row_squares in list(enumerate(squares.rows))[top : top + height]:
            here = index == row
            room = name - SIGN * bool(marks[index])
            pieces: list[Piece] = [*marks[index], (f"{cut_middle(row_squares.name, room):<{room}}", STRONG if here else "")]
            for place, square in list(enumerate(row_squares.squares))[first : first + count]:
                marked = here and place == column and self.has_focus
                pieces += [" " * (GAP + cell - CELL), *_square(square, subject.measure, best, spread, marked)]
            lines.append(line(*pieces))
        return lines


def _columns(squares: Squares, width: int, column: int) -> tuple[int, int, int, int]:
    """Return the cells of the names and of a column, the first visible column, and the number of visible columns."""
    count = len(squares.across.values)
    names = [len(row.name) + SIGN * bool(mark) for row, mark in zip(squares.rows, _row_signs(squares), strict=True)]
    longest = max([*names, len(squares.across.name)])
    most = min(MAX_NAME, max(MIN_NAME, width - min(count, 4) * (CELL + GAP)))
    name = max(MIN_NAME, min(longest, most))
    cell = max([CELL, *(len(value) + SIGN for value in squares.across.values if squares.across.name == "kernel")])
    if min(cell, MAX_ALL) * count + GAP * count > width - name:
        cell = min(cell, MAX_CELL)
    cell = min(cell, MAX_ALL)
    room = max(1, (width - name) // (cell + GAP))
    if room < count:  # the arrows are next to the name of the axis
        name = max(name, min(len(f"‹ {squares.across.name} ›"), most))
        room = max(1, (width - name) // (cell + GAP))
    return name, cell, first_shown(column, count, room), min(room, count)


def first_shown(here: int, count: int, room: int) -> int:
    """Return the first of `count` items that is visible in a window of `room`, with `here` in its middle if possible."""
    return max(0, min(here - room // 2, count - room)) if room > 0 else 0


def _signed(kernel: str) -> list[Piece]:
    """Return the kernel's sign and a space; empty without a kernel."""
    return [(f"{sign(kernel).glyph} ", sign(kernel).colour)] if kernel else []


def curve_numbers(squares: Squares) -> list[str]:
    """Return the number of each row's curve; empty if the sign of its kernel identifies the row, or the axis has no curves."""
    curves, counts = amounts(squares.across.name), Counter(row.kernel for row in squares.rows)
    return [MARKERS[place % len(MARKERS)] if curves and counts[row.kernel] > 1 else "" for place, row in enumerate(squares.rows)]


def _row_signs(squares: Squares) -> list[list[Piece]]:
    """Return for each row the sign of its curve: its number, or the sign of its kernel."""
    rows = zip(curve_numbers(squares), squares.rows, strict=True)
    return [[(f"{number} ", "")] if number else _signed(row.kernel) for number, row in rows]


def _head(value: str, kernel: bool, cell: int) -> list[Piece]:
    """Return the head of a column; a kernel has its sign."""
    room = cell - SIGN if kernel else cell
    text = cut_middle(value, room)
    return [" " * (room - len(text)), *_signed(value if kernel else ""), (text, MUTED)]


def shade_share(speed_share: float, spread: float) -> float:
    """Return the shade (0 to 1) of a share of the best speed: the share, or logarithmic if the speeds differ by MIN_LOG_RANGE.

    The logarithmic shade of the slowest run is one level of SHADES, not blank.
    """
    if spread < MIN_LOG_RANGE or not speed_share:
        return speed_share
    least = 1 / (len(SHADES) - 1)
    return least + (1 - least) * Scale(1 / spread, 1.0, log=True).share(speed_share)


def legend(squares: Squares) -> str:
    """Describe the shades of a map."""
    spread = squares.speed_range
    return f"shade: speed, logarithmic over {units.gain(spread)}" if spread >= MIN_LOG_RANGE else "shade: share of the best speed"


def _square(square: Square, measure: str, best: float | None, spread: float, marked: bool) -> list[Piece]:
    """Return the pieces of a square; `spread` is highest / lowest speed of the map."""
    run = square.run
    if square.state != ENDED or run is None:
        return [(f"{SIGNS.get(square.state, ' '):>{CELL}}", "reverse" if marked else MUTED)]
    share = shade_share(speed(run) / best, spread) if best and run.counts else 0.0
    text = measured(run, measure, best)
    struck = "strike " if run_labels.is_unreliable(run) and run.rate else ""
    shade = SHADES[int(share * (len(SHADES) - 1) + 0.5)]
    colour = f"on $primary {round(10 + 50 * share)}%" if share else ""
    style = "reverse" if marked else colour
    return [(shade, style), (f"{text:>{CELL - 2}}", f"{struck}{style}".strip()), (" ", style)]


def number(run: Run | None, measure: str, best: float | None) -> float | None:
    """Return the run's value of a measure, one of MEASURES; `best` is the greatest speed of all runs."""
    if run is None:
        return None
    if measure == "time":
        return run.seconds
    if measure == "rate":
        return run.rate or None
    return speed(run) / best if best else None


def measured(run: Run, measure: str, best: float | None) -> str:
    """Return the run's value of a measure as text, or its state if it is not finished."""
    return MEASURES[measure](number(run, measure, best)) if run.state == "done" else run.state[:7]


def _counted(row: SweepRow) -> list[Run | None]:
    """Return the runs of a row, with None for those whose times do not count."""
    return [square.run if square.run is not None and square.run.counts else None for square in row.squares]


def figure(squares: Squares | None, measure: str, found: Findings | None, row: int) -> Figure:
    """Return the curves of the rows, at most MAX_SERIES around the marked one. Only verified runs are drawn.

    Over sizes both axes are logarithmic, so that a power of n is a straight line. Curves have the signs of their kernels, or
    numbers if rows share a kernel.
    """
    if squares is None:
        return Figure(empty="curves appear with the first results")
    name = squares.across.name
    if name == DEVICES:
        return efficiencies(found.scalings if found is not None else (), squares, row)
    first = first_shown(row, len(squares.rows), MAX_SERIES)
    xs = tuple(float(v) for v in squares.across.values)
    lines, numbers = [], curve_numbers(squares)
    for place, row_squares in list(enumerate(squares.rows))[first : first + MAX_SERIES]:
        ys = tuple(number(run, measure, squares.best_speed) for run in _counted(row_squares))
        if any(y is not None for y in ys):
            kernel = "" if numbers[place] else row_squares.kernel
            lines.append(Series(row_squares.name, xs, ys, strong=place == row, kernel=kernel, marker=numbers[place]))
    doubling = min(xs) > 0 and max(xs) / min(xs) >= 4 and (name != "density" or max(xs) < SPARSE)
    across = Axis(name, log=doubling, base=2 if doubling and name != "density" else 10)
    ups = {"time": Axis("time", units.duration, log=True), "rate": Axis("rate", rate_text, log=doubling)}
    up = ups.get(measure, Axis("share of best", _percent, low=0.0, high=1.0))
    there = [c for c in found.crossovers if c.axis == name] if found is not None else []
    rules = tuple(Rule(c.at, f"{c.place}: {c.late} overtakes {c.early}", vertical=True) for c in there)
    return Figure(tuple(lines), across, up, rules, pointwise=True, empty="curves appear with the first verified results")


def efficiencies(scalings: Sequence[Scaling], squares: Squares, marked: int) -> Figure:
    """Return the efficiencies by the number of devices, of the marked row and of those around it, with the signs of the rows."""
    rows = {id(square.run): place for place, row in enumerate(squares.rows) for square in row.squares if square.run is not None}
    places = [next((rows[id(p.run)] for p in one.points if id(p.run) in rows), -1) for one in scalings]
    numbers = curve_numbers(squares)
    first = first_shown(places.index(marked) if marked in places else -1, len(scalings), MAX_SERIES)
    lines = tuple(
        Series(
            one.name,
            tuple(float(p.ranks) for p in one.points),
            tuple(p.efficiency for p in one.points),
            strong=place == marked,
            kernel=squares.rows[place].kernel if place >= 0 and not numbers[place] else "",
            marker=numbers[place] if place >= 0 else "",
        )
        for one, place in list(zip(scalings, places, strict=True))[first : first + MAX_SERIES]
    )
    up = Axis("efficiency", _percent, low=0.0)
    ideal = (Rule(1.0, "ideal: each device is as fast as a single one", short="ideal"),)
    empty = "efficiencies appear with verified runs on two numbers of devices"
    return Figure(lines, Axis(DEVICES, log=True, base=2), up, ideal * bool(lines), pointwise=True, empty=empty)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


class DotPlot(TextPanel[HeatMapSubject]):
    """One dot per run, on a logarithmic scale because speeds may differ by thousands. No line joins unordered values."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "DotPlot { height: 1fr; margin-top: 1; }"

    def __init__(self, *, id: str | None = None):
        super().__init__(HeatMapSubject(None, "", (0, 0), 0), id=id)

    def take(self, squares: Squares | None, measure: str, cursor: tuple[int, int]) -> None:
        self.show(HeatMapSubject(squares, measure, cursor, self.size.height))

    def on_resize(self) -> None:
        self.show(self.subject._replace(height=self.size.height))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return container.height

    def draw(self, subject: HeatMapSubject, width: int) -> Sequence[Content]:
        squares, (marked, column), room = subject.squares, subject.cursor, width - NAME - NUMBER - STEP
        if squares is None or not squares.rows or room < MIN or subject.height < 2:
            return []
        best, row = squares.best_speed, squares.rows[min(max(marked, 0), len(squares.rows) - 1)]
        runs = _counted(row)
        amounts = [number(run, subject.measure, best) for run in runs]
        positive = [amount for amount in amounts if amount]
        if not positive:
            return [line(("dots appear with the first verified results", MUTED))]
        low, high = min(positive), max(positive)
        before: dict[str, float] = {}  # by data type, because narrower types move fewer bytes
        lines = []
        for place, (name, run, amount) in enumerate(zip(squares.across.values, runs, amounts, strict=True)):
            here = place == column
            label = f"{cut_middle(name, NAME - 1):<{NAME - 1}} "
            if run is None or amount is None:
                lines.append(line((label, MUTED), f"{'':{room}}", (f"{units.ABSENT:>{NUMBER}}", MUTED)))
                continue
            at = round((room - 1) * (Scale(low, high, log=True).share(amount) if high > low else 1.0))
            last = before.get(run.experiment.dtype)
            gain = 0.0 if last is None else last / amount if subject.measure == "time" else amount / last
            step, style = units.gain(gain) if gain else "", STRONG if here else ""
            mark = sign(run.experiment.kernel)
            dot: list[Piece] = [(WAY * at, MUTED), (mark.glyph, f"{mark.colour} {style}"), " " * (room - 1 - at)]
            value = f"{measured(run, subject.measure, best):>{NUMBER}}"
            lines.append(line((label, style), *dot, (value, style), (f"{step:>{STEP}}", MUTED)))
            before[run.experiment.dtype] = amount
        head = f"{'rate in relax/s' if subject.measure == 'rate' else subject.measure}, logarithmic"
        title = line((f"{squares.across.name:<{NAME}}{head:<{room}}{'':{NUMBER}}{'vs above':>{STEP}}", MUTED))
        return [title, *_window(lines, column, subject.height - 1)]


def _window(lines: Sequence[Content], here: int, most: int) -> Sequence[Content]:
    """Return at most `most` lines around line `here`; the first and the last state the number of hidden lines."""
    first = first_shown(here, len(lines), most)
    visible, below = list(lines[first : first + most]), len(lines) - first - most
    if most < MIN_MARKED:
        return visible
    if first:
        visible[0] = line((f"… {first + 1} more above", MUTED))
    if below > 0:
        visible[-1] = line((f"… {below + 1} more below", MUTED))
    return visible
