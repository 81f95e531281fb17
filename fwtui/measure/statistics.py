"""When a median is good enough, and how good it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

ENOUGH_RUNS = 10
ENOUGH_SECONDS = 0.5
FEWEST_RUNS = 5
STABLE = 0.005


def spread(samples: Sequence[float]) -> float | None:
    """Half-width of the median's 95 % interval, relative to it; None for fewer than two samples.

    The interval is between order statistics (binomial, normal approximation), so it assumes no distribution; up to five
    samples it is the whole range.
    """
    count = len(samples)
    if count < 2:
        return None
    ordered = sorted(samples)
    reach = 1.96 * math.sqrt(count) / 2
    low = max(0, math.floor(count / 2 - reach))
    high = min(count - 1, math.ceil(count / 2 + reach) - 1)
    middle = median(ordered)
    return (ordered[high] - ordered[low]) / 2 / middle if middle > 0 else None


def indicative(samples: Sequence[float]) -> bool:
    """Too few runs or too little time to be more than a hint."""
    return len(samples) < ENOUGH_RUNS or sum(samples) < ENOUGH_SECONDS


def enough(samples: Sequence[float], repeats: int, budget: float) -> bool:
    """Whether to stop repeating: the number asked for, or a stable median, or the time budget."""
    if repeats:
        return len(samples) >= repeats
    if not samples:
        return False
    total = sum(samples)
    if total + median(samples) > budget:
        return True
    width = spread(samples)
    return len(samples) >= FEWEST_RUNS and not indicative(samples) and width is not None and width < STABLE


def expected_seconds(samples: Sequence[float], one: float, repeats: int, budget: float) -> float:
    """A guess at the time until `enough`, from one pass's seconds."""
    if repeats:
        return (repeats - len(samples)) * one
    likely = max(ENOUGH_RUNS * one, ENOUGH_SECONDS)
    spent = sum(samples)
    # a median that is not stable by then may take the whole budget
    return max(0.0, (min(likely, budget) if spent < likely else budget) - spent)
