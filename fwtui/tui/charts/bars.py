"""Horizontal bars: one row of plain characters for each value, coloured by the widget that shows it."""

from __future__ import annotations

from fwtui.tui.charts.finite import finite

BLOCK = "▆"


def bars(values: tuple[float | None, ...], width: int) -> tuple[str, ...]:
    """One horizontal bar per value on a common scale from 0, as rows of exactly `width` cells.

    A value above 0 is at least one cell long; a gap is an empty row.
    """
    if width < 1 or not values:
        return tuple("" for _ in values)
    series = [max(value or 0.0, 0.0) for value in finite(values)]
    longest = max(series)
    if longest <= 0 or width < 2:
        return tuple(" " * width for _ in series)
    return tuple((BLOCK * max(1, round(value / longest * width)) if value else "").ljust(width) for value in series)
