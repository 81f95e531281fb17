"""A summary of all distances as text and shares, for the command line and the dashboard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from fwtui.common import units
from fwtui.common.text import excerpt

if TYPE_CHECKING:
    from fwtui.graphs.summary import DistanceSummary
    from fwtui.graphs.vertices import Vertices
    from fwtui.stream import events
    from fwtui.stream.run import Run

# version of the JSON of run, replay and solve; incremented if a field is renamed, removed or redefined, not if one is added
RESULT_VERSION = 1
SHADES, NO_PATH = "░▒▓█", "·"  # near distances to far ones; no path
MAX = 32768  # vertices; above this it takes more than ten seconds
RIGHT = ("verified", "unverified")  # verdicts on distances that may be summarised
_BAR = 40
_MIN_ROUNDED = 1e6  # larger numbers are rounded to integers
CENTRES = 6  # named vertices of a centre
_MEAN_DIGITS = 4  # significant digits of a cell of the map: enough to show, and small in a session
MAP = "mean distance, sources down, targets across"


def distance(value: float) -> str:
    """Return a distance with all its digits: integers in full, others as the shortest text of their type."""
    if value == int(value):
        return number(value)
    from numpy import errstate, float32  # slow to import, and not needed for integers

    with errstate(over="ignore"):
        single = float32(value)
    return str(single) if float(single) == value else f"{value:.15g}"


def number(value: float) -> str:
    """Return a mean, or the edge of a bin: integers in full, others to seven digits; from a million, rounded to integers."""
    return f"{value:,.0f}" if value == int(value) or abs(value) >= _MIN_ROUNDED else f"{value:.7g}"


def stated(summary: DistanceSummary, vertices: Vertices, *, t: float = 0.0, run: int = 0, checksum: str = "") -> events.Answers:
    """Return the summary as an event, with the names of the vertices."""
    from fwtui.stream import events  # slow to import, and not needed for distances

    s = summary
    alike = {name: getattr(s, name) for name in ("reachable", "components", "largest", "diameter", "radius", "mean")}
    return events.Answers(
        t=t,
        run=run,
        vertices=s.n,
        **alike,
        farthest=tuple(excerpt(vertices.name(v)) for v in s.farthest or ()),
        centre=tuple(excerpt(vertices.name(v)) for v in s.centre[:CENTRES]),
        centres=len(s.centre),
        edges=tuple(s.edges.tolist()) if len(s.counts) else (),
        counts=tuple(s.counts.tolist()),
        heat=tuple(
            tuple(float(f"{mean:.{_MEAN_DIGITS}g}") if isfinite(mean) else None for mean in row) for row in s.heat.tolist()
        ),
        checksum=checksum,
    )


def as_row(answers: events.Answers | None) -> dict[str, Any] | None:
    """Return the summary as plain data, without the map; None if there is none."""
    if answers is None or not answers.vertices:
        return None
    import msgspec

    whole = msgspec.structs.asdict(answers)
    return {name: value for name, value in whole.items() if name not in ("t", "run", "vertices", "heat", "checksum", "note")}


def pairs(a: events.Answers) -> int:
    """Return the number of ordered pairs of different vertices."""
    return a.vertices * max(a.vertices - 1, 0)


def facts(a: events.Answers, edges: int | None = None) -> list[tuple[str, str]]:
    """Return the facts, each with a name and a line of text."""
    rows = [("vertices", f"{a.vertices:,}")]
    rows += [("edges", f"{edges:,}")] if edges is not None else []
    rows.append(("reachable", f"{_share(a)} of {pairs(a):,} ordered pairs"))
    rows.append(("strong components", f"{a.components:,}, the largest of {units.vertices(a.largest)}"))
    if a.diameter is not None and a.mean is not None:
        note = "" if a.reachable == pairs(a) else ", of the pairs that have a path"
        rows.append(("diameter", f"{distance(a.diameter)}, from {' to '.join(a.farthest)}{note}"))
        rows.append(("mean distance", number(round(a.mean, 4))))
    if a.radius is not None:
        more = f" and {a.centres - len(a.centre):,} more" if a.centres > len(a.centre) else ""
        centre = f"all {units.vertices(a.vertices)}" if a.centres == a.vertices else f"{', '.join(a.centre)}{more}"
        rows.append(("radius", f"{distance(a.radius)}; the centre: {centre}"))
    elif a.vertices > 1:
        rows.append(("radius", "none: no vertex reaches all others"))
    return rows


def in_short(a: events.Answers) -> list[str]:
    """A short form of the facts."""
    if a.note:
        return [a.note]
    parts = [f"{name} {distance(value)}" for name, value in (("diameter", a.diameter), ("radius", a.radius)) if value is not None]
    parts += [f"mean {number(round(a.mean, 2))}"] if a.mean is not None else []
    return [*parts, f"{_share(a)} reachable"]


def histogram(a: events.Answers) -> list[tuple[str, int]]:
    """Return the label of each bin of the histogram and its number of pairs."""
    whole = all(edge == int(edge) for edge in a.edges)
    bins = []
    for low, high, count in zip(a.edges, a.edges[1:], a.counts, strict=False):
        last = high - 1 if whole else high
        bins.append((number(low) if whole and last == low else f"{number(low)} to {number(last)}", count))
    return bins


def span(a: events.Answers) -> tuple[float, float] | None:
    """Return the minimum and maximum mean of the map; None if no block has a path."""
    means = [mean for row in a.heat for mean in row if mean is not None]
    return (min(means), max(means)) if means else None


def shares(a: events.Answers) -> list[list[float | None]]:
    """Return the map as shares of its range, from 0 (nearest) to 1 (farthest); None for no path."""
    ends = span(a)
    if ends is None:
        return [[None] * len(row) for row in a.heat]
    low, wide = ends[0], ends[1] - ends[0]
    return [[None if mean is None else (mean - low) / wide if wide > 0 else 0.0 for mean in row] for row in a.heat]


def lines(answers: events.Answers, facts: Sequence[tuple[str, str]]) -> list[str]:
    """Return the facts, the histogram and the map of distances as lines of text."""
    width = max(len(name) for name, _ in facts)
    rows = [f"{name:<{width}}  {value}" for name, value in facts]
    if answers.counts:
        bins = histogram(answers)
        width, most = max(len(label) for label, _ in bins), max(1, *(count for _, count in bins))
        bars = [f"{label:>{width}}  {'█' * round(_BAR * count / most):<{_BAR}}  {count:,}" for label, count in bins]
        head = f"{MAP}: '{SHADES[0]}' near to '{SHADES[-1]}' far, '{NO_PATH}' no path"
        shaded = ["".join(shade(share) for share in row) for row in shares(answers)]
        rows += ["", "pairs by distance", *bars, "", head, *shaded]
    return rows


def shade(share: float | None) -> str:
    """Return the character of a share of the map's range."""
    return NO_PATH if share is None else SHADES[int((len(SHADES) - 1) * min(max(share, 0.0), 1.0) + 0.5)]


def answers_of(run: Run, runs: Iterable[Run]) -> events.Answers | None:
    """Return the summary of the run's distances, else that of identical distances of another run on the same graph."""
    if run.answers is not None:
        return run.summary
    checksum = run.verdict.checksum if run.verdict is not None else ""
    answered = (r for r in runs if r.answers is not None and r.answers.checksum == checksum)
    return next((r.summary for r in answered if checksum and r.experiment.graph == run.experiment.graph), None)


def _share(a: events.Answers) -> str:
    return units.percent(a.reachable / pairs(a) if pairs(a) else None)


def why_no_summary(run: Run) -> str:
    """Return the reason why a run's distances cannot be summarised; empty if they can."""
    if run.state == "running":
        return f"run {run.id} has no distances yet; its answers are available when it ends"
    if run.state != "done" or run.verdict is None:
        return f"run {run.id} ended without distances; run it again"
    if run.verdict.verdict not in RIGHT or not run.verdict.checksum:
        return f"the distances of run {run.id} are not valid ({run.verdict.verdict}); run another experiment"
    if run.n > MAX:
        return f"the distances of {run.n:,} vertices take too long to summarise here; the maximum is {MAX:,}"
    return ""
