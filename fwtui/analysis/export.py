"""Exports a session's numbers as tables for other programs: plain rows and their files."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import msgspec

from fwtui.analysis.columns import PRINTED, head, printed
from fwtui.analysis.report import markdown, result
from fwtui.common import gc_pause, units
from fwtui.common.as_json import as_json
from fwtui.sessions.library import load_model
from fwtui.sessions.reader import open_session
from fwtui.stream import events
from fwtui.stream.codec import Line
from fwtui.stream.model import Model
from fwtui.stream.run import Run

Row = dict[str, Any]
TABLES = ("runs", "phases", "samples", "rounds", "counters", "telemetry", "markers")
_UNITS: dict[str, Callable[[float], str]] = {  # by the end of a column's name
    "relaxations_per_second": units.rate,
    "bytes_per_second": units.bandwidth,
    "relaxations": lambda count: units.scaled(count, ""),
    "bytes": lambda count: units.scaled(count, "B"),
    "seconds": units.duration,
    "share": units.percent,
}
FORMATS = {"csv": ".csv", "jsonl": ".jsonl", "md": ".md"}
# parts of a result that have their own rows, and the version of its fields
_OWN_TABLE = ("phase_details", "phases", "counters", "version")
_NESTED = ("ranks", "samples")  # parts of a result that no cell can hold
_FORMULA = re.compile(r"[=+\-@\t\r]")  # first characters of spreadsheet formulas
_MARKS = re.compile(r"([\\`*_\[\]~])")


class _EventRows:
    """Events as rows, each converted on demand: rows with all fields take several times the memory of packed lines."""

    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[Row]:
        return (msgspec.structs.asdict(line.event) for line in self._lines)


def read_rows(path: Path, table: str) -> tuple[Iterable[Row], bool]:
    """Read one of TABLES from a session; return its rows, and True if the session is complete.

    The rows can be iterated more than once; only lines that have rows stay in memory. Rows of runs are in file order. Units are
    seconds, bytes, relaxations and shares of 1; None if a value is unavailable.
    """
    if table not in _EVENTS:
        model, complete = load_model(path)
        return rows_of_runs(model, table), complete
    kind = _EVENTS[table]
    with open_session(path) as session, gc_pause.paused():
        return _EventRows([line.packed() for line in session.lines() if line.kind is kind]), session.condition.complete


def rows_of_runs(model: Model, table: str) -> list[Row]:
    """Return the rows of a table to which each run contributes rows."""
    return [row for run in model.runs.values() for row in _OF_A_RUN[table](model, run)]


def human_rows(model: Model) -> list[Row]:
    """Return the runs under the columns of `fwtui run`."""
    return [dict(zip(head(PRINTED, "±"), printed(model, run), strict=True)) for run in model.runs.values()]


def complete_rows(model: Model) -> list[Row]:
    """Return the rows of the runs with their devices and PC samples as objects, for JSON."""
    results = (result(model, run) for run in model.runs.values())
    return [_run_row(whole) | {name: whole[name] for name in _NESTED} for whole in results]


def _runs(model: Model, run: Run) -> Iterator[Row]:
    yield _run_row(result(model, run))


def _run_row(whole: Row) -> Row:
    return _flat({name: value for name, value in whole.items() if name not in (*_OWN_TABLE, *_NESTED)})


def _phases(model: Model, run: Run) -> Iterator[Row]:
    for detail in result(model, run)["phase_details"]:
        yield {"run": run.id, "kernel": run.experiment.kernel, "n": run.n, **detail}


def _counters(model: Model, run: Run) -> Iterator[Row]:
    for op, values in run.counters.items():
        for name, value in values.items():
            yield {"run": run.id, "kernel": run.experiment.kernel, "op": op, "counter": name, "value": value}


def _rounds(model: Model, run: Run) -> Iterator[Row]:
    for phase_round in run.rounds:
        for name, seconds in zip(run.phase_names, phase_round.seconds, strict=False):
            yield {"run": run.id, "index": phase_round.index, "first": phase_round.first, "phase": name.key, "seconds": seconds}


_EVENTS: dict[str, type[events.Event]] = {"samples": events.Sample, "telemetry": events.Telemetry, "markers": events.Marker}
_OF_A_RUN: dict[str, Callable[[Model, Run], Iterator[Row]]] = {
    "runs": _runs,
    "phases": _phases,
    "rounds": _rounds,
    "counters": _counters,
}


def _flat(value: Row, before: str = "") -> Row:
    flat: Row = {}
    for name, inner in value.items():
        if isinstance(inner, dict):
            flat |= _flat(inner, f"{before}{name}_")
        elif isinstance(inner, (list, tuple)):
            flat[before + name] = " ".join(map(str, inner))
        else:
            flat[before + name] = inner
    return flat


def _columns(rows: Iterable[Row]) -> list[str]:
    if isinstance(rows, _EventRows):
        rows = islice(rows, 1)  # all of one kind
    return list(dict.fromkeys(name for row in rows for name in row))


def write_csv(rows: Iterable[Row], out: TextIO) -> None:
    """Write RFC 4180 CSV: a header line, empty cells for unknown values, no spreadsheet formulas, lists with an item per line."""
    columns = _columns(rows)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([None if cell is None else _csv_cell(cell) for cell in map(row.get, columns)])


def write_json_lines(rows: Iterable[Row], out: TextIO) -> None:
    """Write one JSON object per row; an unknown value is null."""
    for row in rows:
        out.write(as_json(row, ensure_ascii=False) + "\n")


def write_markdown(rows: Iterable[Row], out: TextIO) -> None:
    """Write a Markdown table for a report: numbers have units as on the screens; markup in cells is escaped."""
    columns = _columns(rows)
    # the value of a counter has the unit of that counter
    named = ([(row.get("counter", name) if name == "value" else name, row.get(name)) for name in columns] for row in rows)
    cells = ([_markdown_cell(_with_unit(*one)) for one in row] for row in named)
    out.writelines(f"{line}\n" for line in markdown([name.replace("_", " ") for name in columns], cells))


def _csv_cell(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        value = "\n".join(map(str, value))
    if isinstance(value, str) and _FORMULA.match(value):
        return f"'{value}"
    return msgspec.json.encode(value).decode() if isinstance(value, (dict, bool)) else value


def _with_unit(column: str, value: Any) -> Any:
    """Format a number with the unit of its column; other values stay as they are."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return value
    unit = next((unit for ending, unit in _UNITS.items() if column.endswith(ending)), None)
    return unit(value) if unit is not None else units.digits(value) if isinstance(value, float) else value


def _markdown_cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    whole = " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    text = whole.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKS.sub(r"\\\1", text)
