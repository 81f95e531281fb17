"""The summary of all distances in a graph as lines of text, and as plain data."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fwtui.common import units
from fwtui.common.text import excerpt

if TYPE_CHECKING:
    from fwtui.graphs.summary import DistanceSummary
    from fwtui.graphs.vertices import Vertices

SHADES, NO_PATH = "░▒▓█", "·"  # near distances to far ones; no path
_BAR = 40  # cells of the longest bar
_MIN_ROUNDED = 1e6  # larger numbers are rounded to integers
_CENTRES = 6  # named vertices of a centre


def as_object(s: DistanceSummary, vertices: Vertices) -> dict[str, Any] | None:
    """Return the summary as plain data, with the names of the vertices and without the map; None without vertices."""
    if not s.n:
        return None
    return {
        "reachable": s.reachable,
        "components": s.components,
        "largest": s.largest,
        "diameter": s.diameter,
        "farthest": _names(s.farthest or (), vertices),
        "radius": s.radius,
        "centre": _names(s.centre[:_CENTRES], vertices),
        "centres": len(s.centre),
        "mean": s.mean,
        "edges": s.edges.tolist() if len(s.counts) else [],
        "counts": s.counts.tolist(),
    }


def facts(s: DistanceSummary, vertices: Vertices, edges: int) -> list[tuple[str, str]]:
    """Return the facts, each with a name and a line of text."""
    rows = [
        ("vertices", f"{s.n:,}"),
        ("edges", f"{edges:,}"),
        ("reachable", f"{units.percent(s.share)} of {s.pairs:,} ordered pairs"),
        ("strong components", f"{s.components:,}, the largest of {units.vertices(s.largest)}"),
    ]
    if s.diameter is not None and s.farthest is not None and s.mean is not None:
        note = "" if s.reachable == s.pairs else ", of the pairs that have a path"
        rows.append(("diameter", f"{_distance(s.diameter)}, from {' to '.join(_names(s.farthest, vertices))}{note}"))
        rows.append(("mean distance", _number(round(s.mean, 4))))
    if s.radius is not None:
        more = f" and {len(s.centre) - _CENTRES:,} more" if len(s.centre) > _CENTRES else ""
        named = ", ".join(_names(s.centre[:_CENTRES], vertices))
        centre = f"all {units.vertices(s.n)}" if len(s.centre) == s.n else f"{named}{more}"
        rows.append(("radius", f"{_distance(s.radius)}; the centre: {centre}"))
    elif s.n > 1:
        rows.append(("radius", "none: no vertex reaches all others"))
    return rows


def histogram_lines(s: DistanceSummary) -> list[str]:
    """Return one bar for each bin of the histogram, with its label and its number of pairs."""
    edges, counts = s.edges.tolist(), s.counts.tolist()
    whole = all(edge == int(edge) for edge in edges)
    labels = []
    for low, high in pairwise(edges):
        last = high - 1 if whole else high
        labels.append(_number(low) if whole and last == low else f"{_number(low)} to {_number(last)}")
    width, most = max(map(len, labels)), max(1, *counts)
    bars = ("█" * round(_BAR * count / most) for count in counts)
    return [f"{label:>{width}}  {bar:<{_BAR}}  {count:,}" for label, bar, count in zip(labels, bars, counts, strict=True)]


def map_lines(heat: np.ndarray) -> list[str]:
    """Return the map of mean distances (rows, columns), each block as its shade between the nearest and the farthest mean."""
    known = heat[np.isfinite(heat)]
    low, high = known.min(), known.max()
    shades = (heat - low) / ((high - low) or 1.0) * (len(SHADES) - 1)
    return ["".join(SHADES[int(shade + 0.5)] if shade < np.inf else NO_PATH for shade in row) for row in shades.tolist()]


def _names(chosen: tuple[int, ...], vertices: Vertices) -> list[str]:
    return [excerpt(vertices.name(v)) for v in chosen]


def _distance(value: float) -> str:
    """Format a distance with all its digits: integers in full, others as the shortest text of their type."""
    if value == int(value):
        return _number(value)
    with np.errstate(over="ignore"):
        single = np.float32(value)
    return str(single) if float(single) == value else f"{value:.15g}"


def _number(value: float) -> str:
    """Format a mean, or the edge of a bin: integers in full, others to seven digits; from a million, rounded to integers."""
    return f"{value:,.0f}" if value == int(value) or abs(value) >= _MIN_ROUNDED else f"{value:.7g}"
