"""The roofline as a figure: what the device could do at most for each intensity, and every run as a point under it."""

from __future__ import annotations

from collections.abc import Sequence

from fwtui.analysis.ledger import Roofs, ledger, roofs_of, slowest_line
from fwtui.common import units
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.charts import Axis, Figure, Rule, Series
from fwtui.tui.charts.figure import plain
from fwtui.tui.widgets import wording

NO_TIME = "no run with a time yet"
DOUBTFUL = "not to be trusted"
MOST_POINTS = 400


def _rate(value: float) -> str:
    return units.scaled(value, "")


def intensity(run: Run) -> float | None:
    """Relaxations for each byte that the kernel's model asks of memory; None if it has no such model."""
    return run.needed / run.device_bytes if run.n and run.device_bytes else None


def comparable(model: Model, run: Run) -> list[Run]:
    """Runs with a time and an intensity on the same device, newest last."""
    there = [r for r in model.runs.values() if r.device == run.device and r.rate and intensity(r)]
    return sorted(there, key=lambda r: r.id)[-MOST_POINTS:]


def figure(model: Model, run: Run | None) -> tuple[Figure, tuple[tuple[int, ...], ...]]:
    """The figure, and for each of its series the ids of the runs that are its points."""
    if run is None or run.simulated:
        return Figure(empty=NO_TIME if run is None else wording.simulated(run)), ()
    roofs = roofs_of(model, run)
    runs = comparable(model, run)
    this_run = f"run {run.id}"
    groups: dict[str, list[Run]] = {}
    for other in runs:
        name = this_run if other.id == run.id else DOUBTFUL if wording.doubtful(other) else other.experiment.kernel
        groups.setdefault(name, []).append(other)
    order = sorted(groups, key=lambda name: (name != this_run, name == DOUBTFUL, name))
    series = [_points(name, groups[name], name == this_run) for name in order]
    ids = [tuple(r.id for r in groups[name]) for name in order]
    rules = _rules(model, roofs, run)
    if runs:
        slopes = _bandwidth_roofs(roofs, runs, rules)
        series += slopes
        ids += [()] * len(slopes)
    # where memory's roof is known, it begins at the axis
    x = Axis("relaxations/byte", plain, log=True, low=series[-1].xs[0] if ids and not ids[-1] else None)
    empty = f"how many bytes {run.title or run.experiment.kernel} moves is not known, so it has no place here"
    up = Axis("relax/s", _rate, log=True)
    return Figure(tuple(series), x, up, rules, pointwise=True, empty=empty if run.seconds else NO_TIME), tuple(ids)


def _points(name: str, runs: Sequence[Run], strong: bool) -> Series:
    return Series(
        name,
        tuple(intensity(r) for r in runs),
        tuple(r.rate for r in runs),
        line=False,
        names=tuple(_named(r) for r in runs),
        strong=strong,
        kernel=runs[0].experiment.kernel if name != DOUBTFUL else "",
        marker="✖" if name == DOUBTFUL else "",
    )


def _named(run: Run) -> str:
    doubt = f" ({run.verdict.verdict if run.verdict is not None else 'unverified'})" if wording.doubtful(run) else ""
    return f"run {run.id} {wording.kernel_words(run, 40)}{doubt}"


def _rules(model: Model, roofs: Roofs, run: Run) -> tuple[Rule, ...]:
    rules = []
    if roofs.relaxations_per_second:
        most = roofs.relaxations_per_second
        rules.append(Rule(most, f"limit {units.rate(most)} ({roofs.form}, measured)", short=f"limit {_rate(most)}"))
    slowest = slowest_line(ledger(model, run))
    if slowest is not None and slowest.by_shared:
        rate = slowest.relaxations / slowest.by_shared
        rules.append(Rule(rate, f"shared memory, by its accesses: {units.rate(rate)}", short=f"shared memory {_rate(rate)}"))
    if roofs.issued_per_second:
        rate = roofs.issued_per_second
        rules.append(Rule(rate, f"its instructions, without a wait: {units.rate(rate)}", short=f"issue {_rate(rate)}"))
    return tuple(rules)


def _bandwidth_roofs(roofs: Roofs, runs: Sequence[Run], rules: Sequence[Rule]) -> list[Series]:
    """The slopes of the L2 cache and of memory, from left of all runs up to the limit (or as high as anything is drawn)."""
    named = [("L2 cache", roofs.l2_bytes_per_second), (roofs.memory.removeprefix("device "), roofs.bytes_per_second)]
    measured = [(name, rate) for name, rate in named if rate]
    if not measured:
        return []
    top = roofs.relaxations_per_second or max([r.rate or 0.0 for r in runs] + [rule.value for rule in rules])
    left = min([*(intensity(r) or 1.0 for r in runs), *(top / rate for _, rate in measured)]) / 2
    noisy = " (noisy)" * ("bandwidth" in roofs.noisy)
    return [
        Series(f"{name} {units.bandwidth(rate)}{noisy}", (left, top / rate), (left * rate, top), points=False, limit=True)
        for name, rate in measured
    ]


def missing(model: Model, run: Run | None, how: str) -> str:
    """What the roofline lacks, and how it can be measured; empty if it lacks nothing."""
    if run is None or run.simulated:
        return ""
    roofs = roofs_of(model, run)
    missing_roofs = [
        words for words, rate in (("limit", roofs.relaxations_per_second), ("bandwidth", roofs.bytes_per_second)) if rate is None
    ]
    words = [f"{'limits' if len(missing_roofs) > 1 else missing_roofs[0]} not measured {how}"] if missing_roofs else []
    if not intensity(run):
        words.append("bytes moved not known")
    if roofs.noisy:
        words.append(f"{roofs.noisy} measured while other programs ran")
    return " · ".join(words)
