"""A row of numbers as small blocks, one cell each."""

from __future__ import annotations

import math
from collections.abc import Sequence

BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.:-=+*#"


def spark(history: Sequence[float | None], low: float, high: float, bars: str = BARS) -> str:
    """One block per number; where there is none it stays empty."""

    def block(value: float | None) -> str:
        if value is None or not math.isfinite(value) or high <= low:
            return " "
        share = min(1.0, max(0.0, (value - low) / (high - low)))
        return bars[min(len(bars) - 1, int(share * len(bars)))]

    return "".join(map(block, history))
