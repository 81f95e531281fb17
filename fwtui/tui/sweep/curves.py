"""The rows of a map as curves over its axis, with what they say drawn in."""

from __future__ import annotations

from fwtui.campaigns.sweep.findings import Findings, counts
from fwtui.campaigns.sweep.squares import Squares
from fwtui.common import units
from fwtui.tui.charts import Axis, Figure, Rule, Series
from fwtui.tui.charts.figure import rate_text
from fwtui.tui.sweep.heat_map import number

MOST_SERIES = 10  # more lines than that are a thicket


def figure(squares: Squares | None, measure: str, found: Findings | None, row: int) -> Figure:
    """Time or rate of every row over amounts; of many rows those around the marked one. Only verified times are drawn.

    Both axes are logarithmic where the values are sizes: a power of n is a straight line then.
    """
    if squares is None:
        return Figure(empty="curves appear with the first results")
    name = squares.across.name
    first = max(0, min(row - MOST_SERIES // 2, len(squares.rows) - MOST_SERIES))
    xs = tuple(float(v) for v in squares.across.values)
    lines = []
    for shown in squares.rows[first : first + MOST_SERIES]:
        runs = [square.run if square.run is not None and counts(square.run) else None for square in shown.squares]
        ys = tuple(number(run, measure, squares.best_rate) if run is not None else None for run in runs)
        if any(y is not None for y in ys):
            lines.append(Series(shown.name, xs, ys))
    doubling = name != "density" and min(xs) > 0 and max(xs) / min(xs) >= 4
    across = Axis(name, log=doubling, base=2 if doubling else 10)
    if measure == "time":
        up = Axis("time", units.duration, log=True)
    elif measure == "rate":
        up = Axis("rate", rate_text, log=doubling)
    else:
        up = Axis("of best", _percent, low=0.0, high=1.0)
    rules: tuple[Rule, ...] = ()
    if name == "n" and found is not None:
        rules = tuple(Rule(c.at, f"n = {c.at:.0f}: {c.late} overtakes {c.early}", vertical=True) for c in found.break_evens)
    return Figure(tuple(lines), across, up, rules, empty="curves appear with the first verified results")


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
