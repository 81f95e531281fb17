"""Conversion of raw driver values to event values: an impossible value becomes None, never 0."""

from __future__ import annotations

from fwtui.common.units import LARGEST


def within(value: float | None, low: float, high: float) -> float | None:
    """Return the value if it is in low..high; None for anything else, NaN included."""
    return value if value is not None and low <= value <= high else None


def share(percent: float | None) -> float | None:
    """Return a percentage as a share of 1. Counters overshoot a little; above 150 % the value is invalid."""
    value = within(percent, 0, 150)
    return None if value is None else value / 100


def in_unit(value: float | None, factor: float) -> float | None:
    """Return an amount in another unit; None for the driver's "unknown" (all bits set) and negative values."""
    value = within(value, 0, LARGEST)
    return None if value is None or value in (2**32 - 1, 2**64 - 1) else value * factor


def count(value: int | None) -> int | None:
    """Return a count below 2**60, else None."""
    return value if value is not None and 0 <= value < 2**60 else None


def significant(value: float, digits: int = 4) -> float:
    """Round to significant digits: sensors are no better, and session files stay small."""
    return float(f"{value:.{digits}g}")
