"""Scales of axes: their ends, their ticks, and the position of a value; finite and thinned series."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

MAX_TICKS = 50
MIN_LOG = 10  # a logarithmic scale covers a decade at least
LARGEST = 1e15
MIN_POSITIVE = 1e-15  # on a log axis


def finite(values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return the series with a gap (None) for each value that cannot be drawn."""
    return tuple(None if value is None or not math.isfinite(value) or abs(value) > LARGEST else float(value) for value in values)


def positive(values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return the series for a log axis, with a gap for each value that is not positive."""
    return tuple(None if value is None or value < MIN_POSITIVE else value for value in finite(values))


def decimated(xs: Sequence[float | None], ys: Sequence[float | None], cells: int) -> list[tuple[float, float] | None]:
    """Thin out a series to at most four points (and gaps) in each of `cells` buckets: first, minimum, maximum and last.

    The points stay in order, with None at each break of the line; spikes stay visible.
    """
    points = [None if x is None or y is None else (x, y) for x, y in zip(xs, ys, strict=False)]
    most = max(1, cells)
    if len(points) <= 4 * most:
        return points
    thinned: list[tuple[float, float] | None] = []
    for bucket in range(most):
        part = points[bucket * len(points) // most : (bucket + 1) * len(points) // most]
        there = [(place, point) for place, point in enumerate(part) if point is not None]
        if len(there) < len(part):
            thinned.append(None)
        if there:
            ends = (there[0], there[-1], min(there, key=lambda p: p[1][1]), max(there, key=lambda p: p[1][1]))
            thinned += [point for _, point in sorted(dict(ends).items())]
    return thinned


class Scale(NamedTuple):
    """A range of numbers, linear or logarithmic; `low` < `high`, and positive if it is logarithmic."""

    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """Return the position of a value: 0 to 1 between the ends, outside of that range beyond them."""
        if self.log:
            low, high = math.log10(self.low), math.log10(self.high)
            return (math.log10(max(value, 1e-300)) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)


def scale(
    values: Sequence[float], log: bool = False, low: float | None = None, high: float | None = None, base: int = 10
) -> Scale:
    """Return the scale of finite values (positive ones on a log axis), with rounded ends; given ends are not rounded.

    A linear scale begins at 0 unless a value is negative. Without values it is 0..1, or 1..10 if logarithmic.
    """
    if log:
        return _log(values, low, high, base)
    least = min(values, default=0.0) if low is None else low
    most = max(values, default=1.0) if high is None else high
    if low is None:
        least = min(least, 0.0)
    if most <= least:
        most = least + (abs(least) or 1.0)
    step = nice(most - least, 4)
    below = least if low is not None else math.floor(least / step) * step
    above = most if high is not None else math.ceil(most / step - 1e-9) * step
    return Scale(below, above if above > below else below + step)


def _log(values: Sequence[float], low: float | None, high: float | None, base: int) -> Scale:
    there = [value for value in values if value > 0]
    bottom, top = (end if end is not None and end > 0 else None for end in (low, high))
    below = bottom or _power(min(there, default=1.0), base, math.floor)
    above = top or _power(max(there, default=(bottom or 1.0) * base), base, math.ceil)
    while base == 10 and low is None and high is None and above < MIN_LOG * below:  # a single point gets room on both sides
        below, above = _power(below * 0.99, base, math.floor), _power(above * 1.01, base, math.ceil)
    return Scale(below, above if above > below * 1.0001 else below * base, True)


def _power(value: float, base: int, rounded: Callable[[float], int]) -> float:
    """Round to a power of the base, or for base 10 to 1, 2 or 5 times a power; `rounded` is math.floor or math.ceil."""
    if base != 10:
        return float(base) ** rounded(round(math.log(value, base), 9))
    whole = math.floor(round(math.log10(value), 9))
    steps = [factor * 10.0 ** (whole + up) for up in (0, 1) for factor in (1, 2, 5)]
    if rounded is math.floor:
        return max((step for step in steps if step <= value * 1.000001), default=10.0**whole)
    return min((step for step in steps if step >= value * 0.999999), default=10.0 ** (whole + 1))


def nice(span: float, count: int) -> float:
    """Return a step of 1, 2 or 5 times a power of ten that divides the span into about `count` steps."""
    rough = span / max(count, 1)
    if not math.isfinite(rough) or rough < 1e-300:
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= rough * 0.999), 10 * power)


def ticks(scale: Scale, most: int, base: int = 10) -> tuple[float, ...]:
    """Return at most `most` round numbers on the scale, in ascending order."""
    if most < 1:
        return ()
    found = _log_ticks(scale, most, base) if scale.log else _linear_ticks(scale, most)
    different = [*dict.fromkeys(found)]  # near the last digit of a float, several places of a scale are one number
    return tuple(different[: min(most, MAX_TICKS)])


def _linear_ticks(scale: Scale, most: int) -> list[float]:
    span = scale.high - scale.low
    for count in range(most, 0, -1):
        step = nice(span, count)
        first = math.ceil(scale.low / step - 1e-9)
        last = math.floor(scale.high / step + 1e-9)
        if 0 <= last - first < most:
            return [round(place * step, 12) if abs(step) > 1e-9 else place * step for place in range(first, last + 1)]
    return []


def _log_ticks(scale: Scale, most: int, base: int) -> list[float]:
    first = math.ceil(math.log(scale.low, base) - 1e-9)
    last = math.floor(math.log(scale.high, base) + 1e-9)
    powers = [float(base) ** power for power in range(first, last + 1)]
    if base == 10 and len(powers) <= 2:
        whole = range(math.floor(math.log10(scale.low)), last + 1)
        finer = [factor * 10.0**power for power in whole for factor in (1, 2, 5)]
        finer = [value for value in finer if scale.low * 0.999999 <= value <= scale.high * 1.000001]
        if len(finer) <= most:
            return finer
    every = max(1, -(-len(powers) // most))
    return powers[::every]
