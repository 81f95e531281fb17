"""The roofline as a figure: the peak rate for each arithmetic intensity, and every run as a point below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fwtui.analysis.bottleneck import dram_share
from fwtui.analysis.limits import limit_of, share_of_peak
from fwtui.analysis.phase_table import Roofs, phase_rows, roofs_of, slowest_line
from fwtui.common import units
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.charts import Axis, Figure, Rule, Series
from fwtui.tui.charts.figure import plain
from fwtui.tui.widgets import run_labels

NO_TIME = "no run with a time yet"
DRAM, REQUESTED = "relax/byte of DRAM", "relax/byte requested"  # titles of the x axis
DOUBTFUL, ISSUE_RATE = "unreliable", "issue-rate"
MAX_POINTS = 400
Mark = tuple[float | None, float | None]  # relaxations per byte and per second


def _rate(value: float) -> str:
    return units.scaled(value, "")


def intensity(model: Model, run: Run, measured: bool = False) -> float | None:
    """Return relaxations per requested byte (cost model), or with `measured` per byte of DRAM traffic; None if unknown."""
    if not (run.n and run.device_bytes):
        return None
    modelled, requested = run.needed / run.device_bytes, share_of_peak(run, model.gpu_of(run))
    if not measured:
        return modelled
    dram, _ = dram_share(run, model.evidence(run), *((one.key, one.seconds) for one in run.phases))
    return modelled * requested / dram if requested and dram else None


def comparable(model: Model, run: Run) -> list[Run]:
    """Return the runs below the same roofs that have a time and bytes, newest last.

    They have the same device, data type and peak rate, which differs with the sign of the weights.
    """

    def roofed(one: Run) -> tuple[object, ...]:
        limit = limit_of(model, one)
        return one.device, one.device_count, one.experiment.dtype, limit.form if limit is not None else None

    there = [one for one in model.runs.values() if roofed(one) == roofed(run) and one.rate and one.n and one.device_bytes]
    return sorted(there, key=lambda r: r.id)[-MAX_POINTS:]


def figure(model: Model, run: Run | None) -> tuple[Figure, tuple[tuple[int, ...], ...]]:
    """Return the figure, and for each series the ids of the runs that are its points."""
    if run is None or run.simulated:
        return Figure(empty=NO_TIME if run is None else run_labels.simulated(run)), ()
    roofs = roofs_of(model, run)
    measured = intensity(model, run, measured=True) is not None
    runs = [one for one in comparable(model, run) if intensity(model, one, measured)]  # one unit for all marks
    this_run = f"run {run.id} {run.experiment.kernel} {_rate(run.rate or 0.0)}"
    groups: dict[str, list[Run]] = {}
    for other in runs:
        name = this_run if other.id == run.id else DOUBTFUL if run_labels.is_unreliable(other) else other.experiment.kernel
        groups.setdefault(name, []).append(other)
    order = sorted(groups, key=lambda name: (name != this_run, name == DOUBTFUL, name))
    marks = {one.id: (intensity(model, one, measured), one.rate) for one in runs}
    series = [_points(name, groups[name], marks, name == this_run) for name in order]
    ids = [tuple(r.id for r in groups[name]) for name in order]
    rules = _rules(model, roofs, run)
    if runs:
        slopes = _bandwidth_roofs(roofs, [*marks.values()], rules, measured)
        series += slopes
        ids += [()] * len(slopes)
    low, bottom, top = None, None, None
    if ids and not ids[-1]:
        # the memory roof starts at the axis; the lowest mark and the highest roof end the other axis, so that rows are fine
        low, heights = series[-1].xs[0], [y for one in series for y in one.ys if y is not None]
        bottom, top = min(heights), max(*heights, *(rule.value for rule in rules))
    x = Axis(DRAM if measured else REQUESTED, plain, log=True, low=low, ends=True)
    empty = f"{run.title or run.experiment.kernel} has no cost model of its bytes, so it has no point here"
    empty = empty if run.seconds else f"run {run.id} has no time yet"
    up = Axis("relax/s", _rate, log=True, low=bottom, high=top)
    return Figure(tuple(series), x, up, rules, pointwise=True, empty=empty), tuple(ids)


def _points(name: str, runs: Sequence[Run], marks: Mapping[int, Mark], strong: bool) -> Series:
    return Series(
        name,
        *zip(*(marks[r.id] for r in runs), strict=True),
        line=False,
        names=tuple(_named(r) for r in runs),
        strong=strong,
        kernel=runs[0].experiment.kernel if name != DOUBTFUL else "",
        marker="✖" if name == DOUBTFUL else "",
    )


def _named(run: Run) -> str:
    warning = f" ({run.verdict.verdict if run.verdict is not None else 'unverified'})" if run_labels.is_unreliable(run) else ""
    return f"run {run.id} {run_labels.describe_kernel(run, 40)}{warning}"


def _rules(model: Model, roofs: Roofs, run: Run) -> tuple[Rule, ...]:
    rules = []
    if roofs.relaxations_per_second:
        most = roofs.relaxations_per_second
        rules.append(Rule(most, f"peak rate {units.rate(most)} ({roofs.form}, measured)", short=f"peak {_rate(most)}"))
    slowest = slowest_line(phase_rows(model, run))
    shared = slowest.relaxations / slowest.shared_seconds if slowest is not None and slowest.shared_seconds else None
    for name, rate in (("shared-memory", shared), (ISSUE_RATE, roofs.issued_per_second)):
        if rate:
            short = f"run {run.id}: {name.replace('-', ' ')} {_rate(rate)}"
            loop = " (inner loop)" * (name == ISSUE_RATE)
            rules.append(Rule(rate, f"{name} ceiling of run {run.id}{loop}: {units.rate(rate)}", short=short))
    return tuple(rules)


def _bandwidth_roofs(roofs: Roofs, marks: Sequence[Mark], rules: Sequence[Rule], dram: bool) -> list[Series]:
    """Return the bandwidth lines from left of all marks up to the peak rate or the highest mark; DRAM traffic has no L2 line."""
    l2 = None if dram else roofs.l2_bytes_per_second
    named = [("L2 cache", l2), (roofs.memory.removeprefix("device "), roofs.bytes_per_second)]
    measured = [(name, rate) for name, rate in named if rate]
    if not measured:
        return []
    top = roofs.relaxations_per_second or max([rate or 0.0 for _, rate in marks] + [rule.value for rule in rules])
    left = min([*(each or 1.0 for each, _ in marks), *(top / rate for _, rate in measured)]) / 2
    noisy = " (noisy)" * ("bandwidth" in roofs.noisy)
    return [
        Series(f"{name} {units.bandwidth(rate)}{noisy}", (left, top / rate), (left * rate, top), points=False, limit=True)
        for name, rate in measured
    ]


def missing(model: Model, run: Run | None, how: str) -> str:
    """Name the roofs that are not measured and the way to measure them; empty if all are."""
    if run is None or run.simulated:
        return ""
    roofs = roofs_of(model, run)
    missing_roofs = [
        roof
        for roof, rate in (("peak rate", roofs.relaxations_per_second), ("bandwidth", roofs.bytes_per_second))
        if rate is None
    ]
    notes = [f"{'peaks' if len(missing_roofs) > 1 else missing_roofs[0]} not measured {how}"] if missing_roofs else []
    if run.relaxations and not run.device_bytes:  # after its plan
        notes.append("no cost model of its bytes")
    if roofs.noisy:
        notes.append(f"{roofs.noisy} measured on a busy machine")
    return " · ".join(notes)
