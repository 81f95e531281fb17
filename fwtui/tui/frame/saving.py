"""Saving the screen or its table in a new file and on the clipboard."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from textual.app import App

from fwtui.analysis.columns import PRINTED_HEAD, printed
from fwtui.analysis.export import write_markdown
from fwtui.common.atomic_file import atomic_write
from fwtui.common.errors import Refused, as_refused
from fwtui.common.text import sanitise
from fwtui.common.user_folders import data_folder
from fwtui.tui.frame.view import View
from fwtui.tui.textual_internals import strips

Table = Sequence[Sequence[str]]  # a row of titles, then rows of cells
MAX_COPIED = 100_000  # characters: terminals drop longer ones, or hang
SHOWN_SECONDS = 12
# a picture must not load fonts from a web server
_FONTS = re.compile(r"@font-face\s*\{[^}]*\}\s*")
_OUT_OF_NAMES = re.compile(r"[^a-z0-9-]+")


def screen_svg(app: App[Any]) -> str:
    """Return the screen as SVG; it loads nothing from other machines."""
    svg = _FONTS.sub("", app.export_screenshot(title="fwtui"))
    return svg.replace("<svg ", '<svg xml:space="preserve" ', 1)  # librsvg and Inkscape drop spaces at the ends of texts


def screen_text(app: App[Any]) -> str:
    """Return the screen as lines of plain text."""
    return "\n".join(strip.text.rstrip() for strip in strips(app.screen)).rstrip("\n") + "\n"


def tsv(table: Table) -> str:
    """Return tab-separated lines; a tab within a cell becomes a space."""
    return "".join("\t".join(_flat(row)) + "\n" for row in table)


def markdown(table: Table) -> str:
    titles = [title or "±" for title in table[0]]
    out = io.StringIO()
    write_markdown([dict(zip(titles, _flat(row), strict=True)) for row in table[1:]], out)
    return out.getvalue()


def _flat(row: Sequence[str]) -> list[str]:
    return [re.sub(r"\s", " ", cell) for cell in row]


class SavingChoice(NamedTuple):
    """A file format of the Save dialog."""

    title: str
    suffix: str
    text: Callable[[App[Any], Table], str]
    copied: bool = True  # whether the text is also copied to the clipboard


FORMS: dict[str, SavingChoice] = {
    "table-tsv": SavingChoice("the table, for a spreadsheet (TSV)", ".tsv", lambda app, table: tsv(table)),
    "table-markdown": SavingChoice("the table as Markdown", ".md", lambda app, table: markdown(table)),
    "screen-svg": SavingChoice("the screen as a picture (SVG)", ".svg", lambda app, table: screen_svg(app), copied=False),
    "screen-text": SavingChoice("the screen as text", ".txt", lambda app, table: screen_text(app)),
}


def folder() -> Path:
    """Return the folder of saved files, which may not exist yet."""
    return data_folder() / "saved"


def write(name: str, suffix: str, text: str) -> Path:
    """Write a new file, named after its content and the time (UTC), and return its path. Raises Refused on failure."""
    where = folder()
    stem = f"{_OUT_OF_NAMES.sub('-', name.lower()).strip('-') or 'fwtui'}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    with as_refused(f"nothing was saved in {sanitise(str(where))}", "make room there, or set XDG_DATA_HOME"):
        where.mkdir(parents=True, exist_ok=True)
    for attempt in range(100):
        path = where / f"{stem}{f'-{attempt + 1}' if attempt else ''}{suffix}"
        if not os.path.lexists(path):
            with atomic_write(path, "saved", f"make room in {sanitise(str(where))}, or set XDG_DATA_HOME", force=False) as file:
                file.write(text.encode())
            return path
    raise Refused(f"nothing was saved: {sanitise(str(where))} has a hundred files named after this second; try again")


def savable(table: Table) -> list[str]:
    """Return the formats with content."""
    return [name for name in FORMS if table or not name.startswith("table")]


def save(app: App[Any], name: str, place: str, table: Table) -> Path:
    """Save in that format, show the complete path, and return it. Raises Refused."""
    form = FORMS[name]
    text = form.text(app, table)
    path = write(f"fwtui-{place}-{name}", form.suffix, text)
    copied = form.copied and len(text) <= MAX_COPIED
    if copied:
        app.copy_to_clipboard(text)
    also = "also sent to the clipboard, if the terminal allows it" if copied else ""
    # the path may be too long for the log line
    app.notify(f"{path}\n{also}".strip(), title="Saved", markup=False, timeout=SHOWN_SECONDS)
    return path


def table_of_runs(view: View) -> Table:
    """Return titles, then a row for each run."""
    if not view.model.runs:
        return ()
    baseline = view.baseline_run.experiment.kernel if view.baseline_run is not None else None
    return [PRINTED_HEAD, *(printed(view.model, run, baseline) for run in view.model.runs.values())]
