"""The format of rows on stdout, fitted to the terminal."""

from __future__ import annotations

import argparse
import math
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fwtui.commands import TakesArguments
from fwtui.commands.support.tables import fitted
from fwtui.common.units import ABSENT, duration

if TYPE_CHECKING:
    from fwtui.stream.model import Model

BAR = 32  # cells of the longer bar


def add_json_option(parser: argparse.ArgumentParser, objects: str) -> TakesArguments:
    """Add --json, which prints these objects, to a mutually exclusive group of options; return the group."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help=f"print {objects} instead of a table")
    return form


def width() -> float:
    """Return the cells of a line: COLUMNS, else the width of the terminal, else infinity."""
    return shutil.get_terminal_size((0, 0)).columns or math.inf


def table(
    rows: Sequence[Sequence[str]], least: Sequence[str] = (), wrapped: Sequence[int] = (-1,), only_text: bool = False
) -> list[str]:
    """Format rows as lines that fit the terminal; see tables.fitted()."""
    return fitted(rows, width(), least, wrapped, only_text)


def folded(lines: Iterable[str]) -> list[str]:
    """Fold sentences to the width of the terminal; continuation lines are indented."""
    room = width()
    if room == math.inf:
        return [*lines]
    return [part for line in lines for part in textwrap.wrap(line, max(int(room), 1), subsequent_indent="  ") or [""]]


def reasons(reasons: Iterable[tuple[str, str]]) -> list[str]:
    """Return one remark per item, after a blank line; empty without remarks."""
    lines = [f"{of}: {text}" for of, text in reasons if text not in ("", ABSENT, "-")]
    return ["", *folded(lines)] if lines else []


def verdict_on(model: Model, baseline: str | None = None) -> tuple[int | None, list[str]]:
    """Return the id of the fastest run of the newest graph and its summary against the baseline; None without a baseline."""
    from fwtui.analysis.run_summary import fastest
    from fwtui.sessions.library import recorded_ladder

    assessment = fastest(model, recorded_ladder(), baseline)
    if assessment is None:
        return None, []
    compared = [*filter(None, (assessment.baseline, assessment.run))]
    most = max(one.seconds or 0.0 for one in compared)
    bars = [[one.title, "#" * max(1, round(BAR * (one.seconds or 0.0) / most)), duration(one.seconds)] for one in compared]
    return assessment.run.id, [
        "",
        f"{assessment.headline_upper}{'   identical distances' * assessment.same_answer}",
        *table(bars),
        *folded(f"{label:<13} {text}" for label, text in assessment.parts()),
    ]


def runs(model: Model, baseline: str | None = None) -> list[str]:
    """Return all runs as a table, the bottleneck of each, and the summary of the fastest run."""
    from fwtui.analysis.columns import MIN, PRINTED, columns_of, printed  # most tables are not of runs

    place = [column.key for column in columns_of(PRINTED)].index("why")
    titles = [column.title for column in columns_of(PRINTED)]
    rows = [list(printed(model, run, baseline)) for run in model.runs.values()]
    best, verdict_lines = verdict_on(model, baseline)
    why = reasons([(f"run {row[0]}", text) for row in rows if (text := row.pop(place)) and row[0] != str(best)])
    del titles[place]
    return [*table([titles, *rows], MIN), *why, *verdict_lines]
