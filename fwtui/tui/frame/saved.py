"""What is saved of a screen: tables and results as text, and the new file that each becomes."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import platformdirs

from fwtui.analysis import report
from fwtui.analysis.export import write_csv, write_markdown
from fwtui.common.errors import Refused, why
from fwtui.common.text import clean
from fwtui.stream.model import Model

Table = Sequence[Sequence[str]]  # a row of titles, then rows of cells
_OUT_OF_NAMES = re.compile(r"[^a-z0-9-]+")


def tsv(table: Table) -> str:
    """Tab-separated lines; a tab in a cell is a space."""
    return "".join("\t".join(_flat(row)) + "\n" for row in table)


def markdown(table: Table) -> str:
    titles = [title or "±" for title in table[0]]
    out = io.StringIO()
    write_markdown([dict(zip(titles, _flat(row), strict=True)) for row in table[1:]], out)
    return out.getvalue()


def _flat(row: Sequence[str]) -> list[str]:
    return [re.sub(r"\s", " ", cell) for cell in row]


def results_json(model: Model) -> str:
    """A list of one object per run, as `fwtui run --json` has them."""
    return json.dumps([report.result(model, run) for run in model.runs.values()], indent=2) + "\n"


def results_csv(model: Model) -> str:
    """One line per run: what is a single value, the experiment, and the seconds of each phase."""
    rows: list[dict[str, Any]] = []
    for run in model.runs.values():
        whole = report.result(model, run)
        row = {name: value for name, value in whole.items() if not isinstance(value, dict | list)}
        row |= {f"experiment_{name}": value for name, value in whole["experiment"].items()}
        rows.append(row | {f"phase_{name}_seconds": value for name, value in whole["phases"].items()})
    out = io.StringIO()
    write_csv(rows, out)
    return out.getvalue()


def folder() -> Path:
    """Where saved things go; it need not exist yet."""
    return platformdirs.user_data_path("fwtui") / "saved"


def write(name: str, suffix: str, text: str, where: Path | None = None) -> Path:
    """Into a new file whose name says what and when (UTC), and return its path. Raises Refused where that cannot be."""
    where = where or folder()
    stem = f"{_OUT_OF_NAMES.sub('-', name.lower()).strip('-') or 'fwtui'}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    try:
        where.mkdir(parents=True, exist_ok=True)
        for attempt in range(100):
            path = where / f"{stem}{f'-{attempt + 1}' if attempt else ''}{suffix}"
            try:
                with open(path, "x", encoding="utf-8") as file:
                    file.write(text)
            except FileExistsError:
                continue
            return path
    except OSError as error:
        raise Refused(f"nothing was saved in {clean(str(where))}: {why(error)}; make room there, or set XDG_DATA_HOME") from None
    raise Refused(f"nothing was saved: {clean(str(where))} has a hundred files of this second; try again")
