"""Write a session's runs, phases, telemetry ... as CSV, JSON lines, Markdown or Parquet."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from fwtui.analysis import export
from fwtui.analysis.export import FORMATS, TABLES, Row
from fwtui.commands.support.narrating import say_incomplete
from fwtui.common.atomic_file import new_file
from fwtui.common.errors import Refused, why
from fwtui.common.exit_codes import OK, WRONG
from fwtui.common.text import clean, shown
from fwtui.sessions.library import resolve
from fwtui.sessions.reader import load

ORDER = 100
WRITERS: dict[str, Callable[[list[Row], TextIO], None]] = {
    "csv": export.write_csv,
    "jsonl": export.write_json_lines,
    "md": export.write_markdown,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", help="a file, or the name of a session that `fwtui list` shows")
    parser.add_argument("what", nargs="?", choices=TABLES, default="runs", help="which table; default: runs")
    parser.add_argument("--format", choices=tuple(FORMATS), help="default: what the name of the file says, else csv")
    parser.add_argument("-o", "--out", metavar="FILE", help="a new file; default: standard output")


def execute(given: argparse.Namespace) -> int:
    form = _format(given)
    in_parquet = export.parquet_writer() if form == "parquet" else None
    path = resolve(given.session)
    loaded = load(path)
    rows = export.human_rows(loaded) if (form, given.what) == ("md", "runs") else export.rows_of(loaded, given.what)
    if in_parquet is not None:
        os.close(new_file(given.out))
        in_parquet(rows, given.out)
    elif given.out is None:
        WRITERS[form](rows, sys.stdout)
    else:
        _write(given.out, WRITERS[form], rows)
    if not loaded.complete:
        say_incomplete(path)
    return OK if loaded.complete else WRONG


def _format(given: argparse.Namespace) -> str:
    if given.out is None and given.format == "parquet":
        raise Refused("Parquet is not written to standard output; name a file with -o")
    if given.out is None or given.format is not None:
        return given.format or "csv"
    out = Path(given.out)
    for name, ending in FORMATS.items():
        if out.suffix == ending:
            return name
    raise Refused(f"{shown(out.name)} ends in none of {', '.join(FORMATS.values())}; choose one of them or give --format")


def _write(name: str, writer: Callable[[list[Row], TextIO], None], rows: list[Row]) -> None:
    whole = io.StringIO()
    writer(rows, whole)
    descriptor = new_file(name)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(whole.getvalue())
    except OSError as error:
        os.unlink(name)
        raise Refused(f"{clean(name)} cannot be written: {why(error)}; choose another place") from None
