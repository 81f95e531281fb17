"""The log: its entries, the log line, and the banner of a fault."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from typing import NamedTuple

from textual.content import Content

from fwtui.common import units
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.widgets import run_labels
from fwtui.tui.widgets.text_panel import MUTED, TextPanel, line, whole_clauses

LEVELS = {"warning": ("! ", "$text-warning"), "error": ("✗ ", "$text-error")}  # sign and style


class LogEntry(NamedTuple):
    """A message of the log and its session time in seconds."""

    t: float
    text: str
    level: str = "info"

    def row(self) -> tuple[Content, str]:
        """Return the time with the sign of the level, and the text."""
        return line((f"{units.clock(self.t):>7}  ", MUTED), LEVELS.get(self.level, "")), self.text

    def content(self) -> Content:
        head, text = self.row()
        return line(head, (text, LEVELS.get(self.level, ("", ""))[1]))


def entries(model: Model) -> list[LogEntry]:
    """Return the complete log: notices, markers, and the beginning and end of every run, in order of time."""
    notices = (LogEntry(n.t, n.text, n.level) for n in model.log)
    markers = (_of_marker(m) for m in model.markers)
    runs = sorted(entry for run in model.runs.values() for entry in _of_run(run))
    return list(merge(notices, markers, runs, key=lambda entry: entry.t))


def latest(model: Model, live: bool = True) -> LogEntry | None:
    """Return the last entry of the log without building all of it; without `live` no notice but an error."""
    last = [LogEntry(n.t, n.text, n.level) for n in model.log[-1:] if live or n.level == "error"]
    last += [_of_marker(m) for m in model.markers[-1:]]
    if model.run is not None:
        last += _of_run(model.run)[-1:]
    return max(last, key=lambda entry: entry.t, default=None)


def _of_marker(marker: events.Marker) -> LogEntry:
    from fwtui.learn.questions import cue_of  # the first frame has no marker

    return LogEntry(marker.t, f"marker: {cue_of(marker).in_short}")


def _of_run(run: Run) -> list[LogEntry]:
    begun = LogEntry(run.started, f"run {run.id} started: {run_labels.describe_kernel(run, 60)}")
    ended = run.finished or run.started
    match run.state:
        case "done":
            word, _ = run_labels.verdict(run, part=False)
            how = f", {run.verdict.how}" if run.verdict is not None and run.verdict.how and run.verified else ""
            return [begun, LogEntry(ended, f"run {run.id} finished: {word}{how}", "error" if run.wrong else "info")]
        case "cancelled":
            return [begun, LogEntry(ended, f"run {run.id} cancelled")]
        case "refused":
            why = f": {run.done.message}" if run.done is not None and run.done.message else ""
            return [begun, LogEntry(ended, f"run {run.id} refused{why}", "error")]
    return [begun]


class LogLine(TextPanel[tuple[LogEntry, str] | None]):
    """The last entry; if it does not fit, with the key that opens the log."""

    DEFAULT_CSS = "LogLine { height: 1; padding: 0 1; }"
    NOTHING = (line((f"{'':>7}  the log is empty", MUTED)),)

    def draw(self, subject: tuple[LogEntry, str], width: int) -> Sequence[Content]:
        entry, key = subject
        whole = entry.content()
        if whole.cell_length <= width:
            return [whole]
        more = f"  {key}: all of it"
        room = width - entry.row()[0].cell_length - len(more)
        return [line(entry._replace(text=whole_clauses(entry.text, room)).content(), (more, MUTED))]


class Banner(TextPanel[tuple[events.Fault, str] | None]):
    """A fault, above the run that it ended, until the next run starts; with the key that opens the log."""

    DEFAULT_CSS = "Banner { background: $error 15%; padding: 0 1; text-wrap: wrap; }"

    def draw(self, subject: tuple[events.Fault, str], width: int) -> Sequence[Content]:
        fault, key = subject
        more = f"  {key}: the log and the last output" if fault.stderr else ""
        whole = line(("✗ ", "bold $text-error"), (fault.message, "bold"), (more, MUTED))
        return whole.wrap(width)[:4]
