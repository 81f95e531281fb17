"""Answers as text: a summary, one path, how the time was spent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fwtui.analysis import answers
from fwtui.common import units
from fwtui.common.text import brief
from fwtui.graphs.adjacency import Adjacency, weights_along
from fwtui.graphs.vertices import Vertices
from fwtui.solver.result import Result, Stats

if TYPE_CHECKING:
    from fwtui.graphs.summary import Summary

ONCE = ("set-up", "compile")  # imports, the GPU's context, kernels loaded or compiled: a second answer does without
INSIDE = ("copy in", "kernels", "copy out")
ORDER = ("read", "copy in", "prepare", "allocate", "kernels", "copy out", "paths", "write")


def summary_lines(summary: Summary, vertices: Vertices, stats: Stats) -> list[str]:
    """The summary as aligned lines, then the histogram and the map of distances."""
    told = answers.stated(summary, vertices)
    facts = answers.facts(told, stats.edges)
    facts.append(("computed in", f"{stats.dtype}, {stats.proof}{'' if stats.exact else ' (sums are rounded)'}"))
    return answers.lines(told, facts)


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
    lines = [f"from {names[0]} to {names[-1]}: {answers.number(total)} over {count}"]
    rows = [("from", "to", "weight", "distance")]
    rows += [
        (a, b, answers.number(w), answers.number(round(d, 6)))
        for a, b, w, d in zip(names[:-1], names[1:], weights.tolist(), reached[1:].tolist(), strict=True)
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines += [
        f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {w:>{widths[2]}}  {d:>{widths[3]}}"
        for a, b, w, d in (rows if len(path) > 1 else [])
    ]
    return lines


def spent(seconds: Mapping[str, float]) -> str:
    """Where the time went: what a process does once, all else, and the share of that which was neither a copy nor a kernel."""
    once = sum(seconds.get(name, 0.0) for name in ONCE)
    then = sum(seconds.values()) - once
    inside = sum(seconds.get(name, 0.0) for name in INSIDE)
    parts = ", ".join(f"{name} {units.duration(seconds[name])}" for name in ORDER if name in seconds)
    share = units.percent((then - inside) / then if then else None)
    return f"set-up {units.duration(once)} once; then {units.duration(then)}: {parts}; {share} of that outside copies and kernels"
