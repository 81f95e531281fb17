"""A row of numbers as small blocks, one cell each."""

from __future__ import annotations

import math
from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"


def spark(history: Sequence[float | None], low: float, high: float) -> str:
    """Return one block per number, and a space for None and for values that are not finite."""

    def block(value: float | None) -> str:
        if value is None or not math.isfinite(value) or high <= low:
            return " "
        share = min(1.0, max(0.0, (value - low) / (high - low)))
        return BARS[min(len(BARS) - 1, int(share * len(BARS)))]

    return "".join(map(block, history))
