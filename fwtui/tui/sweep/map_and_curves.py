"""Charts of a sweep: a map of squares, curves over a numeric axis, and a dot per run of a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from rich.style import Style
from rich.text import Text
from textual.content import Content
from textual.coordinate import Coordinate
from textual.events import Click
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
from fwtui.tui.charts.figure import COLOURS, MARKERS, rate_text, sign
from fwtui.tui.charts.scale import Scale
from fwtui.tui.widgets import run_labels
from fwtui.tui.widgets.run_table import TextTable
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
MAX_CELL = 16  # maximum cells of a square under a kernel's name
SIGN = 2  # cells of a kernel's sign and the space after it
MAX_NAME = 34  # maximum cells of a row's name
EDGE = "│"  # after the names, which stay where they are while the squares scroll
MAX_SERIES = 10  # more curves would be illegible
NAME, NUMBER, STEP = 24, 9, 11  # cells of a name, of a number, and of the speedup over the run above
MIN = 8  # minimum cells of the scale
MIN_MARKED = 3  # minimum lines in which the first and the last may state the number of hidden lines
WAY = "·"
SPARSE = 0.02  # density below which its axis is logarithmic


class DotSubject(NamedTuple):
    squares: Squares | None
    measure: str
    cursor: tuple[int, int]  # row, column
    height: int


class HeatMap(GridCursor, TextTable):
    """A map of runs: each square has the number of a run, and a shade and a colour by its speed. The first column has names."""

    DEFAULT_CSS = """
    HeatMap { height: auto; min-height: 3; scrollbar-size-horizontal: 1; }
    HeatMap > .datatable--fixed { background: $background; color: $foreground; }
    """ + "".join(
        [f"HeatMap .heat--sign-{number} {{ color: {colour}; }} " for number, colour in enumerate(COLOURS)]
        + [f"HeatMap .heat--shade-{level} {{ background: $primary {10 + 50 * level // 4}%; }} " for level in range(len(SHADES))]
    )
    COMPONENT_CLASSES: ClassVar = {
        *(f"heat--sign-{number}" for number in range(len(COLOURS))),
        *(f"heat--shade-{level}" for level in range(len(SHADES))),
    }
    BINDINGS: ClassVar = [*DOWN, *ACROSS, CHOOSE]

    def __init__(self, moved: Callable[[], object], on_choice: Callable[[int], object]) -> None:
        """`moved` is called after the cursor has moved, `on_choice` with the chosen run."""
        super().__init__()
        self.cursor_type, self.cell_padding, self.fixed_columns = "cell", 0, 1
        self._moved, self._chosen = moved, on_choice
        self.squares: Squares | None = None
        self._made_for = "", ""  # measure and theme of the cells
        self._placed = False  # True once the user has moved the cursor

    @property
    def square(self) -> Square | None:
        row, column = self.cursor
        return self.squares.rows[row].squares[column] if self.squares is not None and self.squares.rows else None

    @property
    def extent(self) -> tuple[int, int]:
        squares = self.squares
        return (len(squares.rows), len(squares.across.values)) if squares is not None else (0, 0)

    @property
    def cursor(self) -> tuple[int, int]:
        return self.cursor_row, self.cursor_column - 1

    def validate_cursor_coordinate(self, value: Coordinate) -> Coordinate:
        """Keep the cursor off the names."""
        row, column = super().validate_cursor_coordinate(value)
        return Coordinate(max(row, 0), max(column, 1))

    def put(self, row: int, column: int) -> None:
        self._placed = True
        self.move_cursor(row=row, column=column + 1)

    def take(self, squares: Squares | None, measure: str) -> None:
        """Show these squares. The cursor marks the best finished run until the user moves it."""
        made_for = measure, self.app.theme
        if squares is self.squares and made_for == self._made_for:
            return
        row, column = self.cursor if self._placed or squares is None or squares is self.squares else squares.best_place
        self.squares, self._made_for = squares, made_for
        self.clear(columns=True)
        if squares is None:
            return
        across, rows = squares.across, [*zip(self._signs(squares), squares.rows, strict=True)]
        longest = max(len(across.name), *(len(mark) + len(one.name) for mark, one in rows))
        name, is_kernel = min(longest, MAX_NAME), across.name == "kernel"
        cell = min(max(CELL, *(len(value) + SIGN for value in across.values)), MAX_CELL) if is_kernel else CELL
        self.add_column(Text(f"{cut_middle(across.name, name):>{name}}{EDGE}"), width=name + len(EDGE))
        for value in across.values:
            mark = self._sign(value if is_kernel else "")
            self.add_column(Text(" ", justify="right") + mark + cut_middle(value, cell - len(mark)), width=cell + GAP)
        best, spread = squares.best_speed, squares.speed_range
        for mark, one in rows:
            texts = [self._text(square, measure, best, spread) for square in one.squares]
            self.add_row(mark + f"{cut_middle(one.name, name - len(mark)):<{name - len(mark)}}{EDGE}", *texts)
        self.move_cursor(row=row, column=column + 1)

    def _sign(self, kernel: str) -> Text:
        """Return the kernel's sign and a space; empty without a kernel."""
        style = self.get_component_rich_style(f"heat--sign-{sign(kernel).place}")
        return Text(f"{sign(kernel).glyph} ", style) if kernel else Text()

    def _signs(self, squares: Squares) -> list[Text]:
        """Return for each row the sign of its curve: its number, or the sign of its kernel."""
        rows = zip(curve_numbers(squares), squares.rows, strict=True)
        return [Text(f"{number} ") if number else self._sign(row.kernel) for number, row in rows]

    def _text(self, square: Square, measure: str, best: float | None, spread: float) -> Text:
        """Return the cell of a square; `spread` is highest / lowest speed of the map."""
        run = square.run
        if square.state != ENDED or run is None:
            return Text(SIGNS.get(square.state, " "), "dim", justify="right")
        level = shade_level(speed(run) / best, spread) if best and run.counts else 0
        shade = self.get_component_rich_style(f"heat--shade-{level}") if level else Style()
        struck = Style(strike=run_labels.is_unreliable(run) and bool(run.rate))
        pieces = (SHADES[level], shade), (f"{measured(run, measure, best):>{CELL - 2}}", shade + struck), (" ", shade)
        return Text.assemble(*pieces, justify="right")

    def action_choose(self) -> None:
        if (square := self.square) is not None and square.run is not None:
            self._chosen(square.run.id)

    def on_click(self, event: Click) -> None:
        self._placed = True

    def on_data_table_cell_highlighted(self, event: TextTable.CellHighlighted) -> None:
        event.stop()
        self._moved()

    def on_data_table_cell_selected(self, event: TextTable.CellSelected) -> None:
        """Choose the square: a click on the square under the cursor."""
        event.stop()
        self.action_choose()


def first_shown(here: int, count: int, room: int) -> int:
    """Return the first of `count` items that is visible in a window of `room`, with `here` in its middle if possible."""
    return max(0, min(here - room // 2, count - room)) if room > 0 else 0


def curve_numbers(squares: Squares) -> list[str]:
    """Return the number of each row's curve; empty if the sign of its kernel identifies the row, or the axis has no curves."""
    curves, counts = amounts(squares.across.name), Counter(row.kernel for row in squares.rows)
    return [MARKERS[place % len(MARKERS)] if curves and counts[row.kernel] > 1 else "" for place, row in enumerate(squares.rows)]


def shade_level(speed_share: float, spread: float) -> int:
    """Return the level in SHADES of a share of the best speed, on a logarithmic scale if the speeds differ by MIN_LOG_RANGE.

    The logarithmic level of the slowest run is 1, not blank.
    """
    if spread >= MIN_LOG_RANGE and speed_share:
        least = 1 / (len(SHADES) - 1)
        speed_share = least + (1 - least) * Scale(1 / spread, 1.0, log=True).share(speed_share)
    return int(speed_share * (len(SHADES) - 1) + 0.5)


def legend(squares: Squares) -> str:
    """Describe the shades of a map."""
    spread = squares.speed_range
    return f"shade: speed, logarithmic over {units.gain(spread)}" if spread >= MIN_LOG_RANGE else "shade: share of the best speed"


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


class DotPlot(TextPanel[DotSubject]):
    """One dot per run, on a logarithmic scale because speeds may differ by thousands. No line joins unordered values."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "DotPlot { height: 1fr; margin-top: 1; }"

    def __init__(self, *, id: str | None = None):
        super().__init__(DotSubject(None, "", (0, 0), 0), id=id)

    def take(self, squares: Squares | None, measure: str, cursor: tuple[int, int]) -> None:
        self.show(DotSubject(squares, measure, cursor, self.size.height))

    def on_resize(self) -> None:
        self.show(self.subject._replace(height=self.size.height))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return container.height

    def draw(self, subject: DotSubject, width: int) -> Sequence[Content]:
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
