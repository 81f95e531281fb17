"""Answers as text: a summary, one path, how the time was spent."""

from __future__ import annotations

import numpy as np

from fwtui import units
from fwtui.graphs.adjacency import Adjacency, weights_along
from fwtui.graphs.vertices import Vertices
from fwtui.solving.result import Result, Stats
from fwtui.solving.summary import Summary
from fwtui.text import brief

_BAR = 40
_SHADES = " ░▒▓█"
_NO_PATH = "·"
_CENTRES = 6


def number(value: float) -> str:
    """A distance: whole numbers in full, others with as many digits as float32 has."""
    return f"{value:,.0f}" if value == int(value) else f"{value:.7g}"


def summary_lines(summary: Summary, vertices: Vertices, stats: Stats) -> list[str]:
    """The summary as aligned lines, then the histogram and the map of distances."""
    s = summary
    facts = [
        ("vertices", f"{s.n:,}"),
        ("edges", f"{stats.edges:,}"),
        ("reachable", f"{units.percent(s.share)} of {s.pairs:,} ordered pairs"),
        ("strong components", f"{s.components:,}, the largest of {s.largest:,} vertices"),
    ]
    if s.diameter is not None and s.farthest is not None and s.mean is not None:
        ends = " to ".join(brief(vertices.name(v)) for v in s.farthest)
        note = "" if s.reachable == s.pairs else ", of the pairs that have a path"
        facts.append(("diameter", f"{number(s.diameter)}, from {ends}{note}"))
        facts.append(("mean distance", number(round(s.mean, 4))))
    if s.radius is not None:
        names = ", ".join(brief(vertices.name(v)) for v in s.centre[:_CENTRES])
        more = f" and {len(s.centre) - _CENTRES:,} more" if len(s.centre) > _CENTRES else ""
        facts.append(("radius", f"{number(s.radius)}, from the centre: {names}{more}"))
    elif s.n > 1:
        facts.append(("radius", "none: no vertex reaches all others"))
    facts.append(("computed in", f"{stats.dtype}, {stats.proof}{'' if stats.exact else ' (sums are rounded)'}"))
    width = max(len(name) for name, _ in facts)
    lines = [f"{name:<{width}}  {value}" for name, value in facts]
    if len(s.counts):
        lines += ["", "pairs by distance", *_histogram(s)]
        lines += ["", *_map(s)]
    return lines


def _histogram(summary: Summary) -> list[str]:
    whole = bool((summary.edges == np.rint(summary.edges)).all())
    labels = []
    for low, high in zip(summary.edges[:-1], summary.edges[1:], strict=True):
        last = high - 1 if whole else high
        labels.append(number(low) if whole and last == low else f"{number(low)} to {number(last)}")
    width, most = max(map(len, labels)), int(summary.counts.max())
    return [
        f"{label:>{width}}  {'█' * round(_BAR * count / most):<{_BAR}}  {count:,}"
        for label, count in zip(labels, summary.counts.tolist(), strict=True)
    ]


def _map(summary: Summary) -> list[str]:
    """Mean distances of blocks of pairs as shades: sources down, targets across."""
    heat = summary.heat
    known = heat[np.isfinite(heat)]
    low, high = float(known.min(initial=0)), float(known.max(initial=0))
    lines = [f"mean distance, sources down, targets across: '{_SHADES[1]}' near to '{_SHADES[-1]}' far, '{_NO_PATH}' no path"]
    for row in heat:
        cells = []
        for value in row:
            if not np.isfinite(value):
                cells.append(_NO_PATH)
            else:
                cells.append(
                    _SHADES[1 + int((len(_SHADES) - 2) * (value - low) / (high - low) + 0.5)] if high > low else _SHADES[1]
                )
        lines.append("".join(cells))
    return lines


def path_lines(result: Result, adjacency: Adjacency, source: int, target: int) -> list[str]:
    """One path with its edges, their weights and how far each vertex is; a line alone where there is none."""
    vertices = result.vertices
    path = result.path(source, target)
    if not path:
        return [f"there is no path from {brief(vertices.name(source))} to {brief(vertices.name(target))}"]
    names = [brief(vertices.name(v)) for v in path]
    weights = weights_along(adjacency, path)
    reached = np.concatenate([[0.0], np.cumsum(weights)])
    total = float(result.distances[source, target])
    count = f"{len(weights)} edge{'' if len(weights) == 1 else 's'}"
    lines = [f"from {names[0]} to {names[-1]}: {number(total)} over {count}"]
    rows = [("from", "to", "weight", "distance")]
    rows += [
        (a, b, number(w), number(round(d, 6)))
        for a, b, w, d in zip(names[:-1], names[1:], weights.tolist(), reached[1:].tolist(), strict=True)
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines += [
        f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {w:>{widths[2]}}  {d:>{widths[3]}}"
        for a, b, w, d in (rows if len(path) > 1 else [])
    ]
    return lines


def spent(seconds: dict[str, float]) -> str:
    """Where the time went, and the share of it that was neither a copy nor a kernel."""
    total = sum(seconds.values())
    outside = total - sum(seconds.get(name, 0.0) for name in ("copy in", "kernels", "copy out"))
    parts = ", ".join(f"{name} {units.duration(value)}" for name, value in seconds.items())
    return f"{units.duration(total)}: {parts}; {units.percent(outside / total if total else None)} outside copies and kernels"
