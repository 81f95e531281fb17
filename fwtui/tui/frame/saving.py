"""What is on the screen as a new file, and in the clipboard where the terminal lets it: screen, table, results."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import platformdirs

from fwtui.analysis import report
from fwtui.analysis.export import write_csv, write_markdown
from fwtui.common.errors import Refused, why
from fwtui.common.text import clean
from fwtui.stream.model import Model
from fwtui.tui.frame.dialogs import ChoiceScreen
from fwtui.tui.frame.screenshot import screen_svg, screen_text

Table = Sequence[Sequence[str]]  # a row of titles, then rows of cells
MOST_COPIED = 100_000  # characters: terminals drop longer ones, or hang
SHOWN_SECONDS = 12
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


class Shown(Protocol):
    """A screen whose content can be saved."""

    PLACE: ClassVar[str]

    @property
    def app(self) -> Any: ...
    @property
    def model(self) -> Model: ...
    def table(self) -> Table: ...
    def say(self, text: str, level: str = "info") -> None: ...
    def call_after_refresh(self, callback: Callable[..., object], *args: object) -> bool: ...


class Form(NamedTuple):
    """One way to keep what is shown."""

    title: str
    suffix: str
    text: Callable[[Shown], str]
    copied: bool = True  # whether the clipboard gets it as well


FORMS: dict[str, Form] = {
    "table-tsv": Form("the table, for a spreadsheet (TSV)", ".tsv", lambda shown: tsv(shown.table())),
    "table-markdown": Form("the table as Markdown", ".md", lambda shown: markdown(shown.table())),
    "results-csv": Form("everything known of every run, as CSV", ".csv", lambda shown: results_csv(shown.model)),
    "results-json": Form("everything known of every run, as JSON", ".json", lambda shown: results_json(shown.model)),
    "screen-svg": Form("the screen as a picture (SVG)", ".svg", lambda shown: screen_svg(shown.app), copied=False),
    "screen-text": Form("the screen as text", ".txt", lambda shown: screen_text(shown.app)),
}


def savable(shown: Shown) -> list[str]:
    """The forms in which there is something to save."""
    gone = ("table" if not shown.table() else "", "results" if not shown.model.runs else "")
    return [name for name in FORMS if name.partition("-")[0] not in gone]


def ask(shown: Shown) -> None:
    """Ask in which form, and save that."""

    def chosen(name: str | None) -> None:
        if name is not None:
            save_soon(shown, name)

    hint = "Enter saves it in a new file and says where; text goes to the clipboard too, if the terminal lets it"
    shown.app.push_screen(ChoiceScreen("Save", ((name, FORMS[name].title) for name in savable(shown)), hint), chosen)


def save_soon(shown: Shown, name: str) -> None:
    """Save it, but not before what asked for it is gone from the screen."""
    shown.call_after_refresh(save, shown, name)


def save(shown: Shown, name: str) -> None:
    """Keep what is shown in one of FORMS, and say where."""
    form = FORMS[name]
    text = form.text(shown)
    try:
        path = write(f"fwtui-{shown.PLACE}-{name}", form.suffix, text)
    except Refused as refusal:
        shown.say(str(refusal), "error")
        return
    copied = form.copied and len(text) <= MOST_COPIED
    if copied:
        shown.app.copy_to_clipboard(text)
    also = "also sent to the clipboard, which not every terminal takes" if copied else ""
    # the log line may be too short for the path; this is not
    shown.app.notify(f"{path}\n{also}".strip(), title="Saved", markup=False, timeout=SHOWN_SECONDS)
    shown.say(f"saved {path}")


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
