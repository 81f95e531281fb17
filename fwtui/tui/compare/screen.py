"""The Compare screen: runs of this session and of others against a baseline, with verdicts, phases, stall reasons and a race."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import DataTable

from fwtui.analysis.columns import COMPARED_HEAD, comparison_cells
from fwtui.analysis.compare import ComparedRun, compare
from fwtui.analysis.race_timeline import can_race
from fwtui.analysis.run_summary import summarise
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.sessions.library import load_model, paths, resolve
from fwtui.stream.model import Model
from fwtui.tui.actions import Action, first_reason, hidden_look, look, require
from fwtui.tui.background import in_background, ladder_data_for, ladder_for
from fwtui.tui.compare.detail import MAX_ROWS, CompareRow, CompareTable, CompareVerdict, Deltas, Pair
from fwtui.tui.compare.race import RaceScreen
from fwtui.tui.explain.warp_panel import VersusHead, VersusTable, versus
from fwtui.tui.frame import bindings
from fwtui.tui.frame.dialogs import PickFile
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.loaded_recording import named
from fwtui.tui.frame.palette import Command
from fwtui.tui.frame.saving import Table
from fwtui.tui.frame.view import View
from fwtui.tui.run.run_panel import RunPanel

MAX_SESSIONS = 8  # other sessions


def read(name: str) -> tuple[str, Model | str]:
    """Read a session by its name or path; return its name, and its runs or the error."""
    title = sanitise(Path(name).name)
    try:
        path = resolve(name)
        title = named(path)
        return title, load_model(path)[0]
    except Refused as refusal:
        return title, str(refusal)
    except Exception as error:
        return title, f"{title} could not be read: {error}"


_none_ended = require(attrgetter("entrants"), "no run has ended yet")
_no_race = first_reason(
    require(attrgetter("pair"), "a race needs a baseline and another marked run"),
    require(lambda screen: all(can_race(one.run) for one in screen.pair[:2]), "only runs with a time can race"),
)
_still_read = require(lambda screen: screen.view.source is None or screen.view.ladder_data, "the ladder is still being read")


class CompareScreen(Frame):
    DEFAULT_CSS = """
    CompareScreen #body { padding: 0 1; }
    CompareScreen CompareTable { height: auto; min-height: 3; max-height: 35%; }
    CompareScreen.-high CompareTable { max-height: 55%; }
    CompareScreen.-high.-sampled CompareTable { max-height: 35%; }
    CompareScreen CompareVerdict { margin-top: 1; }
    CompareScreen #parts { height: 1fr; min-height: 3; margin-top: 1; }
    CompareScreen #deltas { scrollbar-size-vertical: 1; }
    CompareScreen RunPanel { padding: 0; display: none; }
    CompareScreen.-single RunPanel { display: block; }
    CompareScreen.-sampled VersusHead { margin-top: 1; }
    CompareScreen.-single #deltas { display: none; }
    CompareScreen.-short CompareVerdict, CompareScreen.-flat CompareVerdict { margin-top: 0; }
    CompareScreen.-short #parts, CompareScreen.-flat #parts { margin-top: 0; }
    CompareScreen.-flat #body { overflow-y: auto; scrollbar-size-vertical: 1; }
    CompareScreen.-flat #parts, CompareScreen.-flat #deltas { height: auto; }
    """
    AUTO_FOCUS = "CompareTable"
    PLACE = "compare"
    PANEL = "#deltas"
    BINDINGS: ClassVar = [
        look("b", "pin", "Baseline", "compare all other runs with the marked run", _none_ended, "compare.baseline"),
        hidden_look("B", "bring", "Side by side", "compare with runs of another session", id="compare.open"),
        look("g", "race", "Race", "the marked run races the baseline", _no_race, "compare.race"),
        replace(bindings.CLIMB, unavailable=_still_read),
        *bindings.SHARED,
    ]
    MOVES = ("Table of runs", (*bindings.MARKS, Action("enter", "", "Mark", tooltip="compare this run with the baseline")))
    WORDS = (
        ("reason", "the quantities that changed; the interval follows the verdict; a disturbed run is never FASTER"),
        ("race", "both runs at the same time after their start, slowed down; from the instrumented repetition"),
    )

    def __init__(self, view: View):
        super().__init__(view)
        self._others: dict[str, Model] = {}  # other sessions by name
        self.pinned = ""  # label of the baseline; empty: the first run that is verified
        self._marked = ""  # label of the run under the cursor
        self._visit = -1  # visit of the screen at which a compared run was marked
        self.pair: Pair | None = None

    def body(self) -> ComposeResult:
        with Vertical(id="body"):
            yield CompareTable()
            yield CompareVerdict("")
            with Vertical(id="parts"):
                with VerticalScroll(id="deltas", can_focus=False):
                    yield Deltas(None)
                    yield VersusHead(None)
                    yield VersusTable(None)
                yield RunPanel()

    def panel(self) -> Widget:
        return self.query_one("#body" if self.has_class("-flat") else self.PANEL)

    def state(self) -> object:
        return (tuple(self._others), self.pinned, self.view.visits)

    def table(self) -> Table:
        """Return the verdicts with their reasons."""
        rows = [comparison_cells(line.entrant, line.comparison) for line in self._lines(self.entrants)]
        return [COMPARED_HEAD, *rows] if rows else ()

    @property
    def entrants(self) -> list[ComparedRun]:
        """Return all finished runs, the newest of this session first, then those of other sessions."""
        ours = [ComparedRun(self.model, run) for run in reversed([*self.model.runs.values()])]
        others = [ComparedRun(model, run, name) for name, model in self._others.items() for run in model.runs.values()]
        return [entrant for entrant in ours + others if entrant.run.state != "running"]

    def baselines(self, entrants: Sequence[ComparedRun]) -> Callable[[ComparedRun], ComparedRun | None]:
        """Return a function from a run to its baseline.

        That is the pinned run, else the baseline of the other screens, else the first verified run of its graph (on the fewest
        devices), else the first verified run; None if there is none.
        """
        label = self.pinned or f"run {self.view.baseline}"
        pinned = next((e for e in entrants if e.label == label), None)
        ours = [e for e in reversed(entrants) if not e.session] + [e for e in entrants if e.session]
        good = [e for e in ours if e.run.verified and e.run.seconds]
        first: dict[tuple[object, ...], ComparedRun] = {}
        for e in sorted(good, key=lambda e: e.run.device_count):
            graph = e.run.experiment.graph
            first.setdefault(graph, e)
            first.setdefault((*graph, e.run.experiment.dtype), e)

        def baseline(e: ComparedRun) -> ComparedRun | None:
            graph = e.run.experiment.graph
            key = graph if e.run.device_count == 1 else (*graph, e.run.experiment.dtype)
            return pinned or first.get(key) or next(iter(good), None)

        return baseline

    def show(self) -> None:
        entrants = self.entrants
        lines = self._lines(entrants)
        table = self.query_one(CompareTable)
        table.show(lines, self.app.size.width - 2)
        self._open_on_other(lines)
        self._marked = table.key or ""
        marked = next((line for line in lines if line.entrant.label == self._marked), None)
        found, pair = marked.comparison if marked is not None else None, None
        if found is not None:
            assessment = summarise(found.entrant, found.baseline, ladder_for(self), found)
            pair = Pair(found.entrant, found.baseline, found, assessment, self.look.details)
        self.pair = pair
        self.query_one(CompareVerdict).show(pair or self._advice(entrants, marked))
        self.query_one(Deltas).show(pair)
        stalls = versus(pair.entrant, pair.baseline) if pair is not None else None
        self.set_class(stalls is not None, "-sampled")
        self.query_one(VersusHead).show(stalls)
        self.query_one(VersusTable).show(stalls)
        self.set_class(pair is None and marked is not None, "-single")
        if pair is None and marked is not None:
            self.query_one(RunPanel).show(marked.entrant.model, marked.entrant.run, None, (), recorded=ladder_for(self))

    def _open_on_other(self, lines: Sequence[CompareRow]) -> None:
        """Mark the run that other screens show, else the first compared run."""
        table, run = self.query_one(CompareTable), self.view.run
        others = {line.entrant.label: row for row, line in enumerate(lines) if line.comparison is not None}
        if self._visit != self.view.visits and others and table.key not in others:
            row = others.get(f"run {run.id}" if run is not None else "", min(others.values()))
            table.move_cursor(row=row)
        self._visit = self.view.visits if others else self._visit

    def _advice(self, entrants: Sequence[ComparedRun], marked: CompareRow | None) -> str:
        other, pin = self.key_of("compare.open"), self.key_of("compare.baseline")
        recorded = self.view.playback is not None
        if not entrants:
            fix = "" if recorded else "run two experiments, or "
            return f"no run has ended yet; {fix}press {other} for runs of another session"
        if marked is None or not marked.pinned:
            return "no verified run to compare with yet"
        label = marked.entrant.label
        if len(entrants) == 1:
            fix = "no other run has ended yet;" if recorded else "run another experiment, or"
            return f"{label} is the baseline; {fix} press {other} for runs of another session"
        return f"{label} is the baseline; mark another run to compare it, or press {pin} to make that run the baseline"

    def _lines(self, entrants: Sequence[ComparedRun]) -> list[CompareRow]:
        """Return at most MAX_ROWS runs: the newest, runs of other sessions, and the baseline of the newest."""
        ours, others = [e for e in entrants if not e.session], [e for e in entrants if e.session][: MAX_ROWS // 2]
        runs, baseline = [*ours[: MAX_ROWS - len(others) - 1], *others], self.baselines(entrants)
        first = baseline(runs[0]) if runs else None
        if first is not None and all(e.label != first.label for e in runs):
            runs.append(first)

        def row(entrant: ComparedRun) -> CompareRow:
            base = baseline(entrant)
            if base is None or base.label == entrant.label:
                return CompareRow(entrant, None, base is not None)
            return CompareRow(entrant, compare(entrant, base))

        return [*map(row, runs)]

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        label = self.query_one(CompareTable).key or ""  # an empty table also sends this event
        if label != self._marked:
            self._marked = label
            self.update(True)

    def action_pin(self) -> None:
        label = self.query_one(CompareTable).key
        entrant = next((e for e in self.entrants if e.label == label), None)
        if entrant is None:
            return
        self.pinned = entrant.label
        self.view.baseline = entrant.run.id if not entrant.session else None
        self.show_message(f"{entrant.label} is the baseline")
        self.update(True)

    def action_race(self) -> None:
        if self.pair is not None:
            self.open_dialog(RaceScreen(self.pair.entrant, self.pair.baseline), opener="compare.race")

    def begun(self) -> None:
        super().begun()
        if self.view.source is not None:
            ladder_data_for(self)

    def action_climb(self) -> None:
        from fwtui.tui.compare.ladder_screen import LadderScreen, offers, take
        from fwtui.tui.frame.ladder_data import ladders

        if found := ladders(self.view):
            self.open_dialog(LadderScreen(found, partial(offers, self.view)), partial(take, self), opener="climb")
        else:
            self.show_message("a ladder needs verified runs of two kernels on one graph, of which the later one is faster")

    def action_bring(self) -> None:
        names = [named(path) for path in paths()]
        self.open_dialog(PickFile("Another session", zip(names, names, strict=True), "or the path of a session file"), self.bring)

    def bring(self, name: str) -> None:
        """Read another session in the background."""
        self.show_message(f"opening {sanitise(Path(name).name)}")
        in_background(self, partial(read, name), self.add_session, "reader")

    def add_session(self, found: tuple[str, Model | str]) -> None:
        name, model = found
        if isinstance(model, str):
            self.show_message(sanitise(model), "error")
        elif not model.runs:
            self.show_message(f"{name} contains no runs", "warning")
        elif len(self._others) >= MAX_SESSIONS and name not in self._others:
            self.show_message(f"at most {MAX_SESSIONS} other sessions can be compared; reopen this screen for others", "warning")
        else:
            self._others[name] = model
            self.show_message(f"{units.counted(len(model.runs), 'run')} of {name}")

    def commands(self) -> Iterator[Command]:
        yield from super().commands()
        for path in paths():
            yield Command(f"Compare with: {named(path)}", partial(self.bring, str(path)), looks=True)
