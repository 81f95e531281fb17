"""The columns of all tables of runs: titles, values and formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from fwtui.analysis.compare import (
    FASTER,
    NOT_COMPARED,
    SAME,
    SLOWER,
    UNCLEAR,
    ComparedRun,
    Comparison,
    compare,
    speedup,
)
from fwtui.analysis.data_sheet import fp32_flops
from fwtui.analysis.disturbances import disturbances
from fwtui.analysis.explanation import explain, speedup_causes
from fwtui.analysis.limits import limit_of, of_all_devices, share_of_peak
from fwtui.common import units
from fwtui.stream.model import Model
from fwtui.stream.run import WAIT, Run

NONE = "-"  # value that does not apply; an unknown value is n/a
# tables of runs: of `fwtui run` and exports, `compare`, `sweep`, and of two screens
PRINTED, COMPARED, SWEPT = "printed", "compared", "swept"
SCALED = "scaled"  # a sweep over numbers of devices
HISTORY, COMPARISON = "history", "comparison"
NARROW, WIDE, WIDEST, FULL = 72, 118, 140, 176  # cells of a screen
CHECKSUM_DIGITS = 8  # leading digits of the position-dependent sum
SHORT_DTYPES = {"float32": "f32", "int32": "i32", "int16": "i16", "float64": "f64"}
# verdicts of verification as recorded, and as shown
VERDICTS = {"wrong": "incorrect", "out of range": "overflow"}
SIGNS = {FASTER: "▲", SLOWER: "▼", SAME: "=", UNCLEAR: "?", NOT_COMPARED: "-"}


class TableRow(NamedTuple):
    """A run, and the runs and rates that it is compared with."""

    model: Model
    run: Run
    baseline: Run | None = None
    comparison: Comparison | None = None  # comparison with the baseline
    label: str = ""  # replaces the run's number
    ended: str = ""  # replaces the outcome
    best: float | None = None  # shortest time of the same n, in seconds


class Column(NamedTuple):
    """A column: its value for a run, and the tables that contain it, each with the minimum screen width in cells."""

    key: str
    title: str
    value: Callable[[TableRow], Any]  # a str is printed unchanged
    tables: Mapping[str, int]
    unit: Callable[[Any], str] = str
    cells: int = 8
    right: bool = False
    measured: bool = False  # struck through unless the distances are verified
    absent: str = units.ABSENT

    def text(self, row: TableRow) -> str:
        value = self.value(row)
        return value if isinstance(value, str) else self.absent if value is None else self.unit(value)


def simulated(run: Run) -> str:
    """Return the text that replaces the time of a simulated run; "correct" only after verification."""
    return f"simulated{': correct' if run.verified else ''}, not timed"


def short_dtype(dtype: str) -> str:
    return SHORT_DTYPES.get(dtype, dtype)


def _bare(rate: float) -> str:
    return units.scaled(rate, "").rstrip()


def _requested_kernel(row: TableRow) -> str:
    e = row.run.experiment
    return f"{e.kernel}{' (auto)' if e.auto else ''}{f' on {e.devices}' if e.devices else ''}"


def _total(row: TableRow) -> float | str | None:
    return "not timed" if row.run.simulated else row.run.seconds


def _spread(row: TableRow) -> float | None:
    return row.run.done.spread if row.run.done is not None else None


def _limit(row: TableRow) -> float | None:
    limit = limit_of(row.model, row.run)
    return limit.share if limit is not None else None


def _peak(row: TableRow) -> float | None:
    return share_of_peak(row.run, row.model.gpu_of(row.run))


def _against(row: TableRow) -> str | None:
    if row.comparison is None:
        return "baseline" if row.baseline is not None and row.baseline.id == row.run.id else ""
    return row.comparison.speedup_text or None


def _gained(row: TableRow) -> str | None:
    """Format the speedup with the verdict's sign; from the median times if there are too few repetitions."""
    if row.comparison is None:
        return _against(row)
    return f"{row.comparison.speedup_text or COLUMNS['vs'].text(row)} {SIGNS[row.comparison.verdict]}"


def _vs(row: TableRow) -> float | str | None:
    """Return the speedup over the baseline, or its lower bound as text if one of the runs was disturbed."""
    ratio, base = speedup(row.run, row.baseline), row.baseline
    if ratio is None or base is None or base.id == row.run.id:
        return ratio
    comparison = compare(ComparedRun(row.model, row.run), ComparedRun(row.model, base))
    return comparison.speedup_text if comparison.disturbed else ratio


def _gain(row: TableRow) -> float | None:
    """Return the ratio of relaxations/s to the baseline's, which may have another n."""
    base = row.baseline.rate if row.baseline is not None else None
    return row.run.rate / base if row.run.rate and base else None


def _efficiency(row: TableRow) -> float | None:
    gain, base = _gain(row), row.baseline
    return gain * max(1, len(base.experiment.places)) / max(1, len(row.run.experiment.places)) if gain and base else None


def _waiting(row: TableRow) -> float | None:
    """Return the share of the instrumented repetition in which a rank waits for the others."""
    return next((phase.share for phase in row.run.phases if phase.key == WAIT), None)


def _sent(row: TableRow) -> float | None:
    """Return the bytes per second that all ranks receive together."""
    parts = row.run.instrumented_repetition.parts if row.run.instrumented_repetition is not None else ()
    total = sum(part.link_bytes for part in parts)
    return total / row.run.seconds if total and row.run.seconds else None


def _end(row: TableRow, low: bool) -> str:
    """Format one end of the 95 % confidence interval of the speedup."""
    ends = row.comparison.interval if row.comparison is not None else None
    return units.gain(ends[0 if low else 1]) if ends is not None else ""


def _verdict(row: TableRow) -> str:
    return row.comparison.verdict if row.comparison is not None else ""


def _because(row: TableRow) -> str:
    return "; ".join(speedup_causes(row.comparison)) or row.comparison.why if row.comparison is not None else ""


def _phases(row: TableRow) -> str | None:
    shares = [f"{phase.title} {units.percent(phase.share)}" for phase in row.run.phases]
    return " ".join(shares) if len(shares) > 1 else None


def _checksum(row: TableRow) -> str | None:
    return row.run.verdict.checksum[:CHECKSUM_DIGITS] or None if row.run.verdict is not None else None


def flops_per_task(model: Model, run: Run) -> float | None:
    """Return peak FLOP/s / rate: the operations that the run's GPUs could do in the time of a relaxation (Lund and Smith)."""
    flops = of_all_devices(run, fp32_flops(model.gpu_of(run))) if run.backend == "cuda" else None
    return flops / run.rate if flops is not None and run.rate else None


def _why(row: TableRow) -> str | None:
    baseline = ComparedRun(row.model, row.baseline) if row.baseline is not None else None
    return explain(ComparedRun(row.model, row.run), baseline).sentence(sourced=True) or None


def baseline_run(model: Model, run: Run, baseline: str | None = None) -> Run | None:
    """Return the latest finished run of that kernel on the same graph, preferably with the same data type.

    Without a kernel: the first verified run on the same graph.
    """
    if baseline is None:
        return model.first_run_of(run)
    latest = model.once(_latest).get((baseline, run.experiment.graph), {})
    return latest.get(run.experiment.dtype) or max(latest.values(), key=lambda other: other.id, default=None)


def _latest(model: Model) -> dict[tuple[object, ...], dict[str, Run]]:
    """Map (kernel, graph) and data type to the finished run with the highest number."""
    latest: dict[tuple[object, ...], dict[str, Run]] = {}
    for run in sorted(model.runs.values(), key=lambda run: run.id):
        if run.state == "done" and run.seconds and not run.wrong:
            latest.setdefault((run.experiment.kernel, run.experiment.graph), {})[run.experiment.dtype] = run
    return latest


def outcome(model: Model, run: Run) -> str:
    """Describe the outcome of a run: verified, incorrect and where, cancelled, and its disturbances."""
    if run.state == "running":
        return "did not finish"
    if run.state != "done":
        message = run.done.message if run.done is not None else ""
        return run.state if message in ("", run.state) else f"{run.state}: {message}"
    parts = []
    if run.simulated:
        parts.append(simulated(run))
    verdict = run.verdict
    if verdict is not None:
        if verdict.verdict == "negative cycle":
            parts.append("negative cycle " + " -> ".join(map(str, (*verdict.cycle, *verdict.cycle[:1]))))
        elif verdict.verdict == "verified":
            parts += ["verified"] * (not run.simulated)
        else:
            parts.append(f"{VERDICTS.get(verdict.verdict, verdict.verdict).upper()}: {verdict.how}")
    parts += map(str, disturbances(run, model.evidence(run)))
    if run.indicative:
        parts.append(f"low confidence: {run.indicative}")
    return ", ".join(parts) or "unverified"


# tables that share several columns
_BOTH, _SMALL = {PRINTED: 0, COMPARED: 0}, {HISTORY: WIDE, COMPARISON: WIDE}
_MEASURED = {PRINTED: 0, SWEPT: 0, SCALED: 0}
_COMPARED = {COMPARED: 0, HISTORY: 0, COMPARISON: 0}
ALL = (
    Column("number", "#", lambda r: r.run.id, {HISTORY: 0}, cells=3, right=True),
    Column("run", "run", lambda r: r.label or str(r.run.id), {PRINTED: 0, COMPARED: 0, COMPARISON: 0}),
    Column("size", "n", lambda r: r.run.n or None, {SCALED: 0}, cells=6, right=True, absent=NONE),
    Column("asked", "kernel", _requested_kernel, {PRINTED: 0}, cells=20),
    Column("kernel", "kernel", lambda r: r.run.experiment.kernel, _COMPARED, cells=16),
    Column("n", "n", lambda r: r.run.n or None, {**_BOTH, HISTORY: 0, COMPARISON: NARROW}, str, 5, True, absent=NONE),
    Column("tile", "tile", lambda r: r.run.experiment.tile or None, {**_BOTH, **_SMALL}, str, 4, True, absent=NONE),
    Column("devices", "devices", lambda r: max(1, len(r.run.ranks)), _SMALL, str, 7, True),
    Column("dtype", "dtype", lambda r: r.run.experiment.dtype, _BOTH),
    Column("type", "type", lambda r: short_dtype(r.run.experiment.dtype), _SMALL, cells=4),
    Column("total", "median time", _total, {**_MEASURED, **_COMPARED}, units.duration, 11, True, True),
    Column("spread", "", _spread, {**_MEASURED, COMPARED: 0, HISTORY: FULL, COMPARISON: WIDE}, units.spread, 9, True, absent=""),
    Column("rate", "rate", lambda r: r.run.rate, _MEASURED, units.rate, right=True),
    Column("relax/s", "relax/s", lambda r: r.run.rate or None, {HISTORY: WIDE}, _bare, 7, True, True),
    Column("of limit", "% of peak", _limit, {PRINTED: 0, HISTORY: WIDE}, units.percent, 9, True, True),
    Column("speed-up", "speedup", _gain, {SCALED: 0}, units.gain, right=True),
    Column("efficiency", "efficiency", _efficiency, {SCALED: 0}, units.percent, 10, True),
    Column("waiting", "waiting", _waiting, {SCALED: 0}, units.percent, right=True, absent=NONE),
    Column("sent", "sent", _sent, {SCALED: 0}, units.bandwidth, 9, True, absent=NONE),
    Column(
        "of best", "of best", lambda r: r.best / r.run.seconds if r.best and r.run.seconds else None, {SWEPT: 0}, units.percent
    ),
    Column("vs", "speedup", _vs, {PRINTED: 0}, units.gain, absent=NONE),
    Column(
        "bandwidth", "eff. bandwidth", lambda r: r.run.bandwidth, {PRINTED: 0, HISTORY: FULL}, units.bandwidth, 14, True, True
    ),
    Column("of peak", "% peak BW", _peak, {PRINTED: 0, HISTORY: WIDEST}, units.percent, 9, True, True),
    Column("flops", "peak FLOP/relax", lambda r: flops_per_task(r.model, r.run), {PRINTED: 0}, units.digits),
    Column("phases", "per-phase times", _phases, {PRINTED: 0}, absent=NONE),
    Column("against", "speedup", _against, {COMPARED: 0}, absent=NONE),
    Column("vs base", "speedup", _against, {COMPARISON: 0}, right=True, absent=NONE),
    Column("from", "from", lambda r: _end(r, low=True), {COMPARED: 0}),
    Column("to", "to", lambda r: _end(r, low=False), {COMPARED: 0}),
    Column("checksum", "checksum", _checksum, {PRINTED: 0, HISTORY: FULL}, absent=NONE),
    Column("gained", "speedup", _gained, {HISTORY: WIDE}, right=True),
    Column("verdict", "verdict", _verdict, {COMPARED: 0, COMPARISON: 0, HISTORY: WIDEST}, cells=12),
    Column("because", "reason", _because, {COMPARED: 0, COMPARISON: 0}, cells=0),
    Column("result", "result", lambda r: r.ended or outcome(r.model, r.run), {**_MEASURED, HISTORY: 0}, cells=33),
    Column("why", "reason", _why, {PRINTED: 0}, absent=NONE),
)
COLUMNS = {column.key: column for column in ALL}
# columns that a printed table drops if it is too wide, in this order
_DISPENSABLE = (
    *("flops", "checksum", "phases", "bandwidth", "of peak", "dtype", "from", "to", "spread", "tile", "of limit"),
    *("of best", "rate", "vs"),
)
MIN = tuple(COLUMNS[key].title for key in _DISPENSABLE)


def columns_of(table: str, width: float = 0, runs: Iterable[Run] | None = None) -> tuple[Column, ...]:
    """Return the columns of a table for a screen of that width; without the devices if every run has one."""
    several = runs is None or any(run.ranks for run in runs)
    return tuple(
        c for c in COLUMNS.values() if table in c.tables and width >= c.tables[table] and (several or c.key != "devices")
    )


def texts(row: TableRow, *keys: str) -> tuple[str, ...]:
    """Return the texts of those columns for a run."""
    return tuple(COLUMNS[key].text(row) for key in keys)


def head(table: str, spread: str = "") -> tuple[str, ...]:
    """Return the titles of a table's columns; `spread` is the title of the spread."""
    return tuple(column.title or spread for column in columns_of(table))


def line(table: str, row: TableRow) -> tuple[str, ...]:
    """Return a run's row in that table."""
    return tuple(column.text(row) for column in columns_of(table))


PRINTED_HEAD, COMPARED_HEAD = head(PRINTED), head(COMPARED)


def printed(model: Model, run: Run, baseline: str | None = None) -> tuple[str, ...]:
    """Return the cells of a run under PRINTED_HEAD; `vs` compares it with a run of the kernel `baseline`."""
    return line(PRINTED, TableRow(model, run, baseline_run(model, run, baseline)))


def comparison_cells(entrant: ComparedRun, comparison: Comparison | None) -> tuple[str, ...]:
    """Return the cells of a run's comparison with the baseline under COMPARED_HEAD; the baseline's row has no comparison."""
    baseline = entrant.run if comparison is None else None
    return line(COMPARED, TableRow(entrant.model, entrant.run, baseline, comparison, entrant.label))
