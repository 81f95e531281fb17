"""The one place where a series becomes something that can be drawn: finite, and no longer than a picture is wide."""

from __future__ import annotations

import math
from collections.abc import Sequence

LARGEST = 1e15
LEAST_POSITIVE = 1e-15  # on a log axis


def finite(values: Sequence[float | None]) -> tuple[float | None, ...]:
    """The series with a gap (None) for whatever is not a number that can be drawn."""
    return tuple(None if value is None or not math.isfinite(value) or abs(value) > LARGEST else float(value) for value in values)


def positive(values: Sequence[float | None]) -> tuple[float | None, ...]:
    """The same for a log axis: what is not above 0 is a gap as well."""
    return tuple(None if value is None or value < LEAST_POSITIVE else value for value in finite(values))


def decimated(xs: Sequence[float | None], ys: Sequence[float | None], cells: int) -> list[tuple[float, float] | None]:
    """Points in order, None where the line is broken; of every bucket of `cells` the first, least, greatest and last.

    Spikes stay visible, and there are at most four points (and gaps) for each of the buckets.
    """
    points = [None if x is None or y is None else (x, y) for x, y in zip(xs, ys, strict=False)]
    most = max(1, cells)
    if len(points) <= 4 * most:
        return points
    kept: list[tuple[float, float] | None] = []
    for bucket in range(most):
        part = points[bucket * len(points) // most : (bucket + 1) * len(points) // most]
        there = [(place, point) for place, point in enumerate(part) if point is not None]
        if len(there) < len(part):
            kept.append(None)
        if there:
            ends = (there[0], there[-1], min(there, key=lambda p: p[1][1]), max(there, key=lambda p: p[1][1]))
            kept += [point for _, point in sorted(dict(ends).items())]
    return kept
