"""The stopping rule of timed repetitions, and the spread of their median."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence

from fwtui.stream.stages import ENOUGH_PASSES, ENOUGH_SECONDS

MAX_RUNS = 10_000  # repetitions of kernels so short that half a second would hold more
MAX_OVERRUN = 1.1  # times the budget: the end of the last repetition, so that a budget of 0.5 s is not left at 0.49 s
MAX_OVERHEAD = 2  # times the budget: the limit including restoring the input and reporting
STABLE = 0.005


class Samples(list[float]):
    """Seconds of the timed repetitions so far, their sum, median and spread; sorted as they arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0.0
        self._ordered: list[float] = []

    def take(self, seconds: float) -> None:
        """Add a repetition."""
        self.append(seconds)
        insort(self._ordered, seconds)
        self.total += seconds

    @property
    def middle(self) -> float:
        """The median. Raises IndexError before the first repetition."""
        return _middle(self._ordered)

    @property
    def width(self) -> float | None:
        """The spread."""
        return _half_width(self._ordered)


def spread_evenly(samples: Sequence[float], most: int) -> tuple[float, ...]:
    """Return that many evenly spaced samples: the first ones do not represent a run that drifts.

    They have a clock's precision: seven digits, and none below a nanosecond, which is noise after days of uptime.
    """
    return tuple(round(float(f"{samples[place * len(samples) // most]:.7g}"), 9) for place in range(most))


def spread(samples: Sequence[float]) -> float | None:
    """Return the half-width of the median's 95 % interval, relative to it; None for fewer than two samples.

    The interval is between order statistics (binomial, normal approximation), so it assumes no distribution; for few
    samples it is their whole range, which covers the median in 94 % of cases at five of them.
    """
    return _half_width(sorted(samples))


def _half_width(ordered: Sequence[float]) -> float | None:
    count = len(ordered)
    if count < 2:
        return None
    reach = 1.96 * math.sqrt(count) / 2
    low = max(0, math.floor(count / 2 - reach))
    high = min(count - 1, math.ceil(count / 2 + reach) - 1)
    middle = _middle(ordered)
    return (ordered[high] - ordered[low]) / 2 / middle if middle > 0 else None


def _middle(ordered: Sequence[float]) -> float:
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def has_low_confidence(samples: Samples) -> bool:
    """Return True for too few repetitions or too little time to be more than a hint."""
    return len(samples) < ENOUGH_PASSES or samples.total < ENOUGH_SECONDS


def is_converged(samples: Samples, repeats: int, budget: float, wall: float) -> bool:
    """Return True at the requested number of repetitions, at a stable median, or at the end of the time budget.

    `wall` is the time since the first repetition began, including everything between repetitions.
    """
    if repeats:
        return len(samples) >= repeats
    if not samples:
        return False
    spent = samples.total >= budget or samples.total + samples.middle > MAX_OVERRUN * budget
    if spent or wall > MAX_OVERHEAD * budget or len(samples) >= MAX_RUNS:
        return True
    return not has_low_confidence(samples) and samples.width is not None and samples.width < STABLE


def expected_seconds(samples: Samples, one: float, repeats: int, budget: float, wall: float = 0.0) -> float:
    """Estimate the time until is_converged(), from the seconds of one repetition and the time between repetitions."""
    between = max(1.0, wall / samples.total) if samples.total else 1.0
    if repeats:
        return (repeats - len(samples)) * one * between
    likely = min(max(ENOUGH_PASSES * one, ENOUGH_SECONDS), MAX_RUNS * one)
    if samples and samples.width:  # the width shrinks with the square root of the number of repetitions
        likely = max(likely, samples.total * (samples.width / STABLE) ** 2)
    rest = max(0.0, min(likely, budget) - samples.total)
    return max(0.0, min(rest * between, MAX_OVERHEAD * budget - wall))
