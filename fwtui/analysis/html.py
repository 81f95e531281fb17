"""Runs as HTML: the rows of their table, for the exported page and for notebooks, and a whole session for a notebook.

The HTML of a session has no script and no style sheet: its colours are those of the notebook, and it is readable as plain text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence

from fwtui.analysis.columns import PRINTED, TableRow, columns_of, texts
from fwtui.analysis.run_summary import Assessment, fastest
from fwtui.common import units
from fwtui.common.text import clean
from fwtui.sessions.library import recorded_ladder
from fwtui.stream.model import Model
from fwtui.stream.run import Run

NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
BAR = 40  # characters of the bar of a whole run
MAX_RUNS = 200  # in a notebook
LEFT, RIGHT = ' style="text-align: left"', ' style="text-align: right"'  # notebooks align cells to the right


def escaped(text: str) -> str:
    """Return the text for an element or an attribute of HTML or XML, without characters that a reader's program would obey."""
    return html.escape(NOT_XML.sub("", clean(text)))


def head_row(titles: Sequence[str], attributes: Mapping[int, str] = {}) -> str:
    """Return the row of titles. `attributes` are those of the cells of a column, by its place."""
    cells = (f'<th scope="col"{attributes.get(place, "")}>{escaped(title)}</th>' for place, title in enumerate(titles))
    return f"<tr>{''.join(cells)}</tr>"


def table_row(name: str, others: Sequence[str], attributes: Mapping[int, str] = {}) -> str:
    """Return a row: its name, which is HTML, and the texts of the other columns, whose first has place 1."""
    cells = (f"<td{attributes.get(place, '')}>{escaped(text)}</td>" for place, text in enumerate(others, 1))
    return f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>'


def session_html(model: Model, title: str, origin: str, problem: str = "") -> str:
    """Return a session as a fragment of HTML: its summary, the per-phase times of each run, and the table of runs.

    `origin` is where and when it was recorded, `problem` what is missing from it.
    """
    return "\n".join(_session(model, title, origin, problem))


def _session(model: Model, title: str, origin: str, problem: str) -> Iterator[str]:
    summary, runs = fastest(model, recorded_ladder()), [*model.runs.values()][:MAX_RUNS]
    yield f"<h3>{escaped(summary.headline if summary is not None else title)}</h3>"
    yield f"<p>{escaped(f'{title} · {origin}' if summary is not None and title else origin)}</p>"
    if problem:
        yield f"<p><strong>This recording is incomplete: {escaped(problem)}.</strong></p>"
    if summary is not None:
        yield f"<ul>{''.join(f'<li>{escaped(label)}: {escaped(words)}</li>' for label, words in summary.parts())}</ul>"
    for run in runs:
        yield from _phases(model, run, summary)
    if runs:
        yield from _table(model, runs)
    if len(runs) < len(model.runs):
        yield f"<p>Only the first {len(runs)} of {len(model.runs):,} runs are shown.</p>"


def _phases(model: Model, run: Run, summary: Assessment | None) -> Iterator[str]:
    """Yield the per-phase times of a run, and its bottleneck; open for the two runs of the summary."""
    if not run.phases:
        return
    shown = summary is not None and run in (summary.run, summary.baseline)
    kernel, total, reason = texts(TableRow(model, run), "asked", "total", "why")
    yield f"<details{' open' * shown}><summary>{escaped(f'run {run.id}, {kernel}, {total}: per-phase times')}</summary>"
    sides = {1: LEFT, 2: RIGHT, 3: RIGHT}
    yield f"<table><thead>{head_row(('phase', '', 'time', 'share'), sides)}</thead><tbody>"
    for phase in run.phases:
        bar = "█" * max(round(BAR * phase.share), phase.seconds > 0)
        yield table_row(escaped(phase.title), (bar, units.duration(phase.seconds), units.percent(phase.share)), sides)
    yield f"</tbody></table><p>{escaped(reason)}</p></details>"


def _table(model: Model, runs: Sequence[Run]) -> Iterator[str]:
    columns = [column for column in columns_of(PRINTED) if column.key != "why"]  # the reason stands below the phases
    sides = {place: RIGHT if column.right else LEFT for place, column in enumerate(columns)}
    yield f"<table><thead>{head_row([column.title or '±' for column in columns], sides)}</thead><tbody>"
    for run in runs:
        number, *others = (column.text(TableRow(model, run, model.first_run_of(run))) for column in columns)
        yield table_row(escaped(number), others, sides)
    yield "</tbody></table>"
