"""The roofline as a figure: the peak rate for each arithmetic intensity, and every run as a point below it."""

from __future__ import annotations

from collections.abc import Sequence

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
DOUBTFUL = "unreliable"
MAX_POINTS = 400


def _rate(value: float) -> str:
    return units.scaled(value, "")


def intensity(model: Model, run: Run) -> float | None:
    """Return relaxations per byte: of the DRAM traffic if it was measured, else of the cost model; None without one."""
    if not (run.n and run.device_bytes):
        return None
    modelled, requested = run.needed / run.device_bytes, share_of_peak(run, model.gpu_of(run))
    dram, _ = dram_share(run, model.evidence(run), *((one.key, one.seconds) for one in run.phases))
    return modelled * requested / dram if requested and dram else modelled


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
    runs = comparable(model, run)
    this_run = f"run {run.id} {run.experiment.kernel}"
    groups: dict[str, list[Run]] = {}
    for other in runs:
        name = this_run if other.id == run.id else DOUBTFUL if run_labels.is_unreliable(other) else other.experiment.kernel
        groups.setdefault(name, []).append(other)
    order = sorted(groups, key=lambda name: (name != this_run, name == DOUBTFUL, name))
    series = [_points(model, name, groups[name], name == this_run) for name in order]
    ids = [tuple(r.id for r in groups[name]) for name in order]
    rules = _rules(model, roofs, run)
    if runs:
        slopes = _bandwidth_roofs(model, roofs, runs, rules)
        series += slopes
        ids += [()] * len(slopes)
    # the memory roof starts at the axis
    x = Axis("relaxations/byte", plain, log=True, low=series[-1].xs[0] if ids and not ids[-1] else None)
    empty = f"{run.title or run.experiment.kernel} has no cost model of its bytes, so it has no point here"
    up = Axis("relax/s", _rate, log=True)
    return Figure(tuple(series), x, up, rules, pointwise=True, empty=empty if run.seconds else NO_TIME), tuple(ids)


def _points(model: Model, name: str, runs: Sequence[Run], strong: bool) -> Series:
    return Series(
        name,
        tuple(intensity(model, r) for r in runs),
        tuple(r.rate for r in runs),
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
    for name, rate in (("shared-memory", shared), ("issue-rate", roofs.issued_per_second)):
        if rate:
            short = f"run {run.id}: {name.replace('-', ' ')} {_rate(rate)}"
            rules.append(Rule(rate, f"{name} ceiling of run {run.id}: {units.rate(rate)}", short=short))
    return tuple(rules)


def _bandwidth_roofs(model: Model, roofs: Roofs, runs: Sequence[Run], rules: Sequence[Rule]) -> list[Series]:
    """Return the bandwidth lines of the L2 cache and of memory, from left of all runs up to the peak rate or the highest mark."""
    named = [("L2 cache", roofs.l2_bytes_per_second), (roofs.memory.removeprefix("device "), roofs.bytes_per_second)]
    measured = [(name, rate) for name, rate in named if rate]
    if not measured:
        return []
    top = roofs.relaxations_per_second or max([r.rate or 0.0 for r in runs] + [rule.value for rule in rules])
    left = min([*(intensity(model, r) or 1.0 for r in runs), *(top / rate for _, rate in measured)]) / 2
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
    if not run.device_bytes:
        notes.append("no cost model of its bytes")
    if roofs.noisy:
        notes.append(f"{roofs.noisy} measured on a busy machine")
    return " · ".join(notes)
