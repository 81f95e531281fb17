"""A map's rows in another form: curves over an axis of amounts, else a dot for each run of a row on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

from textual.content import Content
from textual.geometry import Size

from fwtui.analysis.scaling import doublings
from fwtui.campaigns.sweep.axis import DEVICES
from fwtui.campaigns.sweep.findings import Findings
from fwtui.campaigns.sweep.scaling import Scaling
from fwtui.campaigns.sweep.squares import Squares, SweepRow
from fwtui.common import units
from fwtui.common.text import cut
from fwtui.stream.run import Run
from fwtui.tui.charts import Axis, Figure, Rule, Series
from fwtui.tui.charts.figure import rate_text
from fwtui.tui.charts.kernel_signs import sign
from fwtui.tui.sweep.heat_map import HeatMapSubject, first_shown, measured, number
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, Piece, line

MOST_SERIES = 10  # more lines than that are a thicket
NAME, NUMBER, STEP = 24, 9, 11  # cells of a name, of a number, and of how often as fast as the one before of its type it is
LEAST = 8  # cells of the scale
LEAST_MARKED = 3  # lines from which on the row of the cursor is neither the first nor the last where there are more
WAY = "·"
SPARSE = 0.02  # density below which its axis is logarithmic
FARTHEST = 64  # devices to which the model's curve goes at least


def _counted(row: SweepRow) -> list[Run | None]:
    """The runs of a row whose times may be used."""
    return [square.run if square.run is not None and square.run.counts else None for square in row.squares]


def figure(squares: Squares | None, measure: str, found: Findings | None, row: int) -> Figure:
    """Time or rate of every row over amounts; of many rows those around the marked one. Only verified times are drawn.

    Both axes are logarithmic where the values are sizes: a power of n is a straight line then. Where kernels differ, rows
    have their kernels' signs.
    """
    if squares is None:
        return Figure(empty="curves appear with the first results")
    name = squares.across.name
    if name == DEVICES:
        marked = squares.rows[min(row, len(squares.rows) - 1)] if squares.rows else None
        return efficiencies(found.scalings if found is not None else (), marked)
    first = first_shown(row, len(squares.rows), MOST_SERIES)
    xs = tuple(float(v) for v in squares.across.values)
    lines = []
    for place, shown in list(enumerate(squares.rows))[first : first + MOST_SERIES]:
        ys = tuple(number(run, measure, squares.best_rate) for run in _counted(shown))
        if any(y is not None for y in ys):
            lines.append(Series(shown.name, xs, ys, kernel=shown.kernel, strong=place == row))
    doubling = min(xs) > 0 and max(xs) / min(xs) >= 4 and (name != "density" or max(xs) < SPARSE)
    across = Axis(name, log=doubling, base=2 if doubling and name != "density" else 10)
    ups = {"time": Axis("time", units.duration, log=True), "rate": Axis("rate", rate_text, log=doubling)}
    up = ups.get(measure, Axis("of best", _percent, low=0.0, high=1.0))
    there = [c for c in found.break_evens if c.axis == name] if found is not None else []
    rules = tuple(Rule(c.at, f"{c.place}: {c.late} overtakes {c.early}", vertical=True) for c in there)
    return Figure(tuple(lines), across, up, rules, pointwise=True, empty="curves appear with the first verified results")


def efficiencies(scalings: Sequence[Scaling], marked: SweepRow | None) -> Figure:
    """How well devices are used: the measured points, and through them the model's curve, which goes on beyond them."""
    runs = {id(square.run) for square in marked.squares} if marked is not None else set()
    here = next((place for place, one in enumerate(scalings) if any(id(p.run) in runs for p in one.points)), -1)
    first = first_shown(here, len(scalings), MOST_SERIES // 2)
    points: list[Series] = []
    curves: list[Series] = []
    most = max([FARTHEST, *(one.points[-1].ranks for one in scalings)])
    for place, one in list(enumerate(scalings))[first : first + MOST_SERIES // 2]:
        xs, ys = tuple(float(p.ranks) for p in one.points), tuple(p.efficiency for p in one.points)
        points.append(Series(one.name, xs, ys, line=False, strong=place == here))
        modelled = {float(ranks): one.predicted(ranks) for ranks in doublings(most)}
        if None not in modelled.values():
            told = Series(f"{one.name}, model", tuple(modelled), tuple(modelled.values()), points=False, listed=False)
            curves.append(told._replace(like=len(points) - 1))
    lines = [*points, *curves]
    up = Axis("efficiency (curves: model)" if curves else "efficiency", _percent, low=0.0)
    ideal = (Rule(1.0, "ideal: each device does as much as one alone", short="ideal"),)
    empty = "efficiencies appear with verified runs on two numbers of devices"
    return Figure(tuple(lines), Axis(DEVICES, log=True, base=2), up, ideal * bool(lines), pointwise=True, empty=empty)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


class DotPlot(Drawn[HeatMapSubject]):
    """On a logarithmic scale, as the fastest may be thousands of times the slowest; no line joins unordered values."""

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
        if squares is None or not squares.rows or room < LEAST or subject.height < 2:
            return []
        best, row = squares.best_rate, squares.rows[min(max(marked, 0), len(squares.rows) - 1)]
        runs = _counted(row)
        amounts = [number(run, subject.measure, best) for run in runs]
        told = [amount for amount in amounts if amount]
        if not told:
            return [line(("dots appear with the first verified results", MUTED))]
        low, high = min(told), max(told)
        before: dict[str, float] = {}  # by number type: half the bytes are another problem
        lines = []
        for place, (name, run, amount) in enumerate(zip(squares.across.values, runs, amounts, strict=True)):
            here = place == column
            label = f"{cut(name, NAME - 1):<{NAME - 1}} "
            if run is None or amount is None:
                lines.append(line((label, MUTED), f"{'':{room}}", (f"{units.ABSENT:>{NUMBER}}", MUTED)))
                continue
            at = round((room - 1) * log10(amount / low) / log10(high / low)) if high > low else room - 1
            last = before.get(run.experiment.dtype)
            gain = 0.0 if last is None else last / amount if subject.measure == "time" else amount / last
            step, style = units.gain(gain) if gain else "", STRONG if here else ""
            mark = sign(run.experiment.kernel)
            dot: list[Piece] = [(WAY * at, MUTED), (mark.glyph, f"{mark.colour} {style}"), " " * (room - 1 - at)]
            words = f"{measured(run, subject.measure, best):>{NUMBER}}"
            lines.append(line((label, style), *dot, (words, style), (f"{step:>{STEP}}", MUTED)))
            before[run.experiment.dtype] = amount
        head = f"{'rate in relax/s' if subject.measure == 'rate' else subject.measure}, logarithmic"
        title = line((f"{squares.across.name:<{NAME}}{head:<{room}}{'':{NUMBER}}{'vs above':>{STEP}}", MUTED))
        return [title, *_window(lines, column, subject.height - 1)]


def _window(lines: Sequence[Content], here: int, most: int) -> Sequence[Content]:
    """At most that many lines around one of them; the first and the last say how many more there are."""
    first = first_shown(here, len(lines), most)
    shown, below = list(lines[first : first + most]), len(lines) - first - most
    if most < LEAST_MARKED:
        return shown
    if first:
        shown[0] = line((f"… {first + 1} more above", MUTED))
    if below > 0:
        shown[-1] = line((f"… {below + 1} more below", MUTED))
    return shown
