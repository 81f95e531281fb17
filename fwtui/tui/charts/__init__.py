"""Charts of results. plotext draws the lines; axes, ticks, legends and the cursor are drawn here, alike everywhere."""

from __future__ import annotations

from collections.abc import Sequence

from fwtui.tui.charts.figure import Axis, Figure, Rule, Series
from fwtui.tui.charts.scale import finite

__all__ = ["BLOCK", "Axis", "Figure", "Rule", "Series", "bars", "finite"]
BLOCK, SLIVER = "▆", "▏"


def bars(values: Sequence[float | None], width: int) -> tuple[str, ...]:
    """Draw one horizontal bar per value on a common scale that begins at 0, as rows of exactly `width` cells.

    A positive value of less than half a cell is a sliver; a gap is an empty row.
    """
    if width < 1:
        return ("",) * len(values)
    lengths = [max(value or 0.0, 0.0) for value in finite(values)]
    most = max(lengths, default=0.0) if width > 1 else 0.0
    return tuple((BLOCK * round(v / most * width) or SLIVER if v and most else "").ljust(width) for v in lengths)
