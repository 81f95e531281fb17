"""Horizontal bars, drawn by plotext: one row of plain characters for each value, coloured by whoever shows it."""

from __future__ import annotations

from functools import lru_cache

from fwtui.tui.charts.finite import finite

BLOCK = "▆"


@lru_cache(maxsize=64)
def bars(values: tuple[float | None, ...], width: int) -> tuple[str, ...]:
    """One horizontal bar per value on a common scale from 0, as rows of exactly `width` cells.

    A value above 0 is at least one cell long; a gap is an empty row.
    """
    if width < 1 or not values:
        return tuple("" for _ in values)
    series = [max(value or 0.0, 0.0) for value in finite(values)]
    longest = max(series)
    if longest <= 0 or width < 2:  # plotext cannot fill a bar that has no width
        return tuple(" " * width for _ in series)
    # plotext fills the cell under 0 as well, so c cells end at c - 1, and it cannot draw a bar of no length
    cells = [max(1, round(value / longest * width)) - 1 + 0.25 for value in series]
    rows = _plot([(index, length) for index, length in enumerate(cells) if series[index] > 0], len(series), width)
    return tuple(row if series[index] > 0 else " " * width for index, row in enumerate(rows))


def _plot(lengths: list[tuple[int, float]], count: int, width: int) -> list[str]:
    import plotext  # 20 ms that only the first result needs

    plotext.clear_figure()
    plotext.theme("clear")
    plotext.limit_size(False, False)
    plotext.plot_size(width, count)
    plotext.frame(False)
    for axis in (plotext.xaxes, plotext.yaxes):
        axis(False, False)
    # the first value is the top row
    places = [count - index for index, _ in lengths]
    plotext.bar(places, [length for _, length in lengths], orientation="horizontal", width=0.01, marker=BLOCK)
    plotext.xticks([])
    plotext.yticks([])  # only now: bar() sets ticks of its own
    plotext.xlim(0, max(width - 1, 0) + 0.25)
    plotext.ylim(1, max(count, 2))
    rows = plotext.uncolorize(plotext.build()).split("\n")
    plotext.clear_figure()
    return [row.rstrip().ljust(width)[:width] for row in [*rows, *[""] * count][:count]]
