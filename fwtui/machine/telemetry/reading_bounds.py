"""Turns raw readings into event values: an impossible value becomes None, never 0."""

from __future__ import annotations

from fwtui.common.units import LARGEST


def within(value: float | None, low: float, high: float) -> float | None:
    """The value if it lies in low..high; None for anything else, NaN included."""
    return value if value is not None and low <= value <= high else None


def share(percent: float | None) -> float | None:
    """A percentage as a share of 1. Counters overshoot a little; above 150 % the value is invalid."""
    value = within(percent, 0, 150)
    return None if value is None else value / 100


def in_unit(value: float | None, factor: float) -> float | None:
    """An amount in another unit; None for the driver's "unknown" (all bits set) and negative values."""
    value = within(value, 0, LARGEST)
    return None if value is None or value in (2**32 - 1, 2**64 - 1) else value * factor


def count(value: int | None) -> int | None:
    """A whole number of things, below 2**60."""
    return value if value is not None and 0 <= value < 2**60 else None


def significant(value: float, digits: int = 4) -> float:
    """Rounded to significant digits: sensors are no better, and session files stay small."""
    return float(f"{value:.{digits}g}")
