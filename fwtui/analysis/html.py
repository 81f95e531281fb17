"""Runs as HTML: the rows of their table, for the exported page and for notebooks, and a whole session for a notebook.

The HTML of a session has no script and no style sheet: its colours are those of the notebook, and it is readable as plain text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fwtui.analysis.columns import PRINTED, TableRow, columns_of, texts
from fwtui.analysis.run_summary import Assessment, fastest
from fwtui.common import units
from fwtui.common.text import sanitise
from fwtui.sessions.library import recorded_ladder, recorded_on
from fwtui.stream.events import Header
from fwtui.stream.model import Model
from fwtui.stream.run import Run

NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
BAR = 40  # characters of the bar of a whole run
MAX_RUNS = 200  # runs shown in a notebook


def escaped(text: str) -> str:
    """Return the text for an element or an attribute of HTML or XML, without control characters."""
    return html.escape(NOT_XML.sub("", sanitise(text)))


def head_row(titles: Sequence[str], attributes: Mapping[int, str] = {}) -> str:
    """Return the row of titles. `attributes` maps the place of a column to the attributes of its cells."""
    cells = (f'<th scope="col"{attributes.get(place, "")}>{escaped(title)}</th>' for place, title in enumerate(titles))
    return f"<tr>{''.join(cells)}</tr>"


def table_row(name: str, others: Sequence[str], attributes: Mapping[int, str] = {}) -> str:
    """Return a row: its name, which is HTML, and the texts of the other columns, whose first has place 1."""
    cells = (f"<td{attributes.get(place, '')}>{escaped(text)}</td>" for place, text in enumerate(others, 1))
    return f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>'


def session_html(model: Model, header: Header, problem: str = "") -> str:
    """Return a session as HTML: summary, per-phase times, table of runs. `problem` is the reason if it is incomplete."""
    return "\n".join(_session(model, header, problem))


def _session(model: Model, header: Header, problem: str) -> Iterator[str]:
    summary, runs = fastest(model, recorded_ladder()), [*model.runs.values()][:MAX_RUNS]
    gpu = next((device.name for device in model.devices.values() if device.present and device.name), "")
    yield f"<h3>{escaped(summary.headline if summary is not None else header.title)}</h3>" if summary or header.title else ""
    yield f"<p>{escaped(' · '.join(filter(None, (summary and header.title, recorded_on(header, gpu)))))}</p>"
    if problem:
        yield f"<p><strong>This recording is incomplete: {escaped(problem)}.</strong></p>"
    if summary is not None:
        yield f"<ul>{''.join(f'<li>{escaped(label)}: {escaped(text)}</li>' for label, text in summary.parts())}</ul>"
    yield from (_phases(model, run, summary) for run in runs if run.phases)
    columns = [column for column in columns_of(PRINTED) if column.key != "why"]  # the reason is shown below the phases
    rows = [[column.text(TableRow(model, run, model.first_run_of(run))) for column in columns] for run in runs]
    yield _table([column.title or "±" for column in columns], rows, [column.right for column in columns])
    if len(runs) < len(model.runs):
        yield f"<p>Only the first {len(runs)} of {len(model.runs):,} runs are shown.</p>"


def _phases(model: Model, run: Run, summary: Assessment | None) -> str:
    """Return the per-phase times of a run, and its bottleneck; open for the two runs of the summary."""
    kernel, total, reason = texts(TableRow(model, run), "asked", "total", "why")
    bars = ["█" * max(round(BAR * phase.share), phase.seconds > 0) for phase in run.phases]
    times = [(units.duration(phase.seconds), units.percent(phase.share)) for phase in run.phases]
    rows = [(phase.title, bar, *both) for phase, bar, both in zip(run.phases, bars, times, strict=True)]
    title = escaped(f"run {run.id}, {kernel}, {total}: per-phase times")
    shown = " open" * (summary is not None and run in (summary.run, summary.baseline))
    table = _table(("phase", "", "time", "share"), rows, (False, False, True, True))
    return f"<details{shown}><summary>{title}</summary>{table}<p>{escaped(reason)}</p></details>"


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool]) -> str:
    sides = {place: f' style="text-align: {"right" if aligned else "left"}"' for place, aligned in enumerate(right)}
    body = "\n".join(table_row(escaped(first), others, sides) for first, *others in rows)
    return f"<table><thead>{head_row(titles, sides)}</thead><tbody>\n{body}\n</tbody></table>"
