"""Charts of results. plotext draws the lines; axes, ticks, legends and the cursor are drawn here, alike everywhere."""

from __future__ import annotations

from fwtui.tui.charts.bars import BLOCK, bars
from fwtui.tui.charts.figure import Axis, Figure, Rule, Series
from fwtui.tui.charts.finite import finite

__all__ = ["BLOCK", "Axis", "Figure", "Rule", "Series", "bars", "finite"]
