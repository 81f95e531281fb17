"""The Run screen, common to live sessions and replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import DataTable

from fwtui.analysis.explanation import COUNTERS, LIMITS
from fwtui.analysis.run_summary import NextRung
from fwtui.common import units
from fwtui.common.text import quoted
from fwtui.experiment.experiment import kernel_named
from fwtui.learn.questions import cue_of
from fwtui.stream import events
from fwtui.tui.actions import bound, first_reason, hidden_look, look, require
from fwtui.tui.background import ladder_for
from fwtui.tui.frame import bindings
from fwtui.tui.frame.base_screens import Giveaways
from fwtui.tui.frame.bindings import cannot_run, no_run
from fwtui.tui.frame.dialogs import PromptScreen
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.view import View
from fwtui.tui.run.run_panel import RunPanel
from fwtui.tui.widgets.ladder_chart import ladder_of
from fwtui.tui.widgets.matrix import MatrixPicture
from fwtui.tui.widgets.run_labels import is_beginning
from fwtui.tui.widgets.run_table import NEWEST, ORDERS, HistoryTable
from fwtui.tui.widgets.run_text import BANDWIDTH, NARROW_LABELS, PEAK_RATE, THEORETICAL
from fwtui.tui.widgets.text_panel import SHARES

POINTED = {  # selectors of the panels that a marker can name; other names are classes on the Run panel
    "total": ".total, Figures",
    "matrix": "MatrixPicture",
    "runs": "HistoryTable",
    "telemetry": "TelemetryStrip",
}


MIN_RUNGS = 4  # rungs of a recording that ends on its ladder
ALL = ("",)  # numbers of every line
SPEED = {"Figures Large, .reason, .next, HistoryTable": None, "Figures Headline, .total, .phases": ALL}
SHARE = {"Figures Headline, .total": (SHARES,), ".reason, .next, HistoryTable": None}
# selectors of the panels that would give the answer away, by kind of question: hidden, or only the numbers of lines that begin so
GIVEAWAYS: Mapping[str, Mapping[str, tuple[str, ...] | None]] = {
    **dict.fromkeys(("speedup", "seconds"), SPEED),
    "peak": {**SHARE, ".meters": (BANDWIDTH, NARROW_LABELS[BANDWIDTH])},
    "limit": {**SHARE, ".meters": (PEAK_RATE,)},
    "phase": {".phases": ALL, ".reason, .next, .outside": None},
    "limiter": {".meters": (THEORETICAL, NARROW_LABELS[THEORETICAL]), ".reason, .next": None},
}


_no_next_rung = first_reason(
    no_run, require(attrgetter("next_rung"), "no rung of the ladder is predicted to be faster"), cannot_run
)

BASELINE = look("b", "baseline", "Baseline", "use the marked run as baseline; again: the first run of each graph", no_run)
CURSOR = replace(bindings.CURSOR, show=False)
_next_rung = "run the rung that removes this run's bottleneck, on the same graph"
NEXT_RUNG = bound("n", "next_rung", "Try next", _next_rung, _no_next_rung, deliberate=True)
SORT = hidden_look("S", "sort_runs", "Sort", "sort the table of runs by the next of " + ", ".join(ORDERS), no_run, "runs.sort")
FILTER = hidden_look("slash", "filter_runs", "Filter", "only runs that contain a text", no_run, "runs.filter", key_display="/")


class SessionScreen(Frame):
    """The present run, the panel on its left, and the table of runs."""

    DEFAULT_CSS = """
    SessionScreen #body { min-height: 4; }
    SessionScreen #history { height: auto; max-height: 9; border-bottom: solid $border-blurred; padding: 0 1; }
    SessionScreen HistoryTable { height: auto; max-height: 8; }
    SessionScreen.-short RunPanel TextPanel, SessionScreen.-flat RunPanel TextPanel { margin-top: 0; }
    SessionScreen.-short RunPanel Figures { margin-top: 0; }
    SessionScreen.-narrow #left { display: none; }
    SessionScreen.-high #history { max-height: 18; }
    SessionScreen.-high HistoryTable { max-height: 17; }
    SessionScreen.-short #history { max-height: 4; border-bottom: none; }
    SessionScreen.-flat #history { max-height: 3; border-bottom: none; }
    SessionScreen.-short HistoryTable, SessionScreen.-flat HistoryTable { max-height: 100%; }
    SessionScreen RunPanel.-awaits .phases, SessionScreen RunPanel.-awaits .progress { display: none; }
    SessionScreen RunPanel.-awaits Figures, SessionScreen RunPanel.-awaits .total { display: none; }
    SessionScreen .-pointed { background: $primary 25%; }
    SessionScreen.-presenter #left, SessionScreen.-presenter TelemetryStrip { display: none; }
    SessionScreen.-presenter #history { max-height: 5; }
    SessionScreen.-presenter.-short #history, SessionScreen.-presenter.-flat #history { max-height: 3; }
    SessionScreen.-flat Figures, SessionScreen.-tiny Figures { display: none; }
    SessionScreen.-flat .total, SessionScreen.-tiny .total { display: block; }
    SessionScreen.-flat .next { dock: bottom; max-height: 2; }
    SessionScreen.-flat .both, SessionScreen.-short .both { display: none; }
    SessionScreen.-flat .key-numbers, SessionScreen.-short .key-numbers { display: block; }
    SessionScreen.-presenter Figures { display: block; }
    SessionScreen.-presenter .total, SessionScreen.-presenter .check, SessionScreen.-presenter .key-numbers { display: none; }
    SessionScreen.-presenter.-short .both { display: block; }
    SessionScreen.-presenter RunPanel .outside, SessionScreen.-presenting RunPanel .next { display: none; }
    SessionScreen.-presenting RunPanel .run-title { dock: top; }
    SessionScreen.-presenting #history { border-bottom: none; }
    SessionScreen.-presenting HistoryTable.-veiled { display: none; }
    SessionScreen.-presenting .-pointed { background: $background; border: heavy $primary; }
    SessionScreen.-presenting RunPanel .check.-pointed, SessionScreen.-presenting RunPanel .outside.-pointed { display: block; }
    SessionScreen.-presenting TelemetryStrip.-pointed { display: block; max-height: 4; }
    SessionScreen.-presenting RunPanel #picture.-around { display: block; }
    SessionScreen.-presenting #history.-around { height: auto; max-height: 9; border-bottom: none; }
    SessionScreen.-presenting.-flat #history.-around { height: 1fr; max-height: 100%; }
    SessionScreen.-presenter.-tall MatrixPicture, SessionScreen.-presenter.-high MatrixPicture { width: 34; height: 18; }
    """
    AUTO_FOCUS = "HistoryTable"
    PLACE = "run"
    MOVES: ClassVar = ("Table of runs", (*bindings.MARKS, hidden_look("enter", "", "Show", "show the marked run")))

    def __init__(self, view: View):
        super().__init__(view)
        self._order, self._filter = NEWEST, ""  # order and filter of the table of runs
        self._marked: int | None = None  # the marked run when the screen was left last; None: the newest

    def body(self) -> ComposeResult:
        with Horizontal(id="body"):
            yield from self.left()
            yield RunPanel()
        with Vertical(id="history"):
            yield HistoryTable(self._enter)

    def left(self) -> ComposeResult:
        """Yield the panel on the left."""
        yield from ()

    def advice(self) -> tuple[str, ...]:
        """Return the text before the first run."""
        raise NotImplementedError

    def show(self) -> None:
        run, playback, awaits_results = self.view.run, self.view.playback, self.awaits_results
        if run is not None and playback is not None and awaits_results:  # a card shows the plan before there are results
            run = playback.ahead(run, events.Planned, events.Plan, events.Ordered)
        baseline = self.view.baseline_of(run) if run is not None else None
        again, then = ("", "") if self.view.source is None else (self.key_of("again"), self.key_of("next_rung"))
        fixes, panel = self.fixes(), self.query_one(RunPanel)
        recorded = ladder_for(self) if run is not None else None
        panel.set_class(awaits_results, "-awaits")
        panel.show(self.model, run, baseline, self.advice(), self._moves(awaits_results), fixes, again, recorded, then)
        self._show_runs()

    def _show_runs(self) -> int:
        width, details = self.app.size.width - 2, self.look.details
        return self.query_one(HistoryTable).show(self.model, self.view.baseline_of, width, self._order, self._filter, details)

    def action_sort_runs(self) -> None:
        """Sort the table of runs by the next of ORDERS."""
        orders = [*ORDERS]
        self._order = orders[(orders.index(self._order) + 1) % len(orders)]
        self._show_runs()
        self.show_message(f"runs sorted by {self._order}" if self._order != NEWEST else "the newest run is first")

    def action_filter_runs(self) -> None:
        """Prompt for a text, and show only the runs that contain all of its terms."""

        def take(text: str) -> None:
            self._filter = text.strip()
            count = self._show_runs()
            found = f"{count} of {units.counted(len(self.model.runs), 'run')} with {quoted(self._filter)}"
            self.show_message(
                f"{found}; {self.key_of('runs.filter')} changes the filter" if self._filter else "all runs are shown"
            )

        hint = "Enter shows only the runs with all of these words, or all runs if empty; {key[dialog.close]} changes nothing"
        self.open_dialog(
            PromptScreen("Filter the runs", self._filter, "kernel, data type, n, outcome", hint), take, opener="runs.filter"
        )

    @property
    def awaits_results(self) -> bool:
        """True at a cue card of a run that has only started: its plan and source are shown instead of empty tables."""
        run, playback = self.view.run, self.view.playback
        at_card = playback is not None and playback.recording.marks.directed and self.view.marker is not None
        return at_card and run is not None and is_beginning(run)

    def _moves(self, awaits_results: bool) -> bool:
        """True if a plan plays in slow motion: before a run progresses; in a presentation, also on cards about the matrix."""
        if not self.view.presenting:
            return awaits_results
        over, marker = self.view.playback is not None and self.view.playback.over, self.view.marker
        return not over and marker is not None and (awaits_results or cue_of(marker[2]).panel == "matrix")

    def fixes(self) -> Mapping[str, str]:
        """Return the way to measure each kind of data that an explanation may lack."""
        raise NotImplementedError

    def giveaways(self, kind: str) -> Giveaways:
        selectors = GIVEAWAYS.get(kind, {".reason, .next": None})
        found: dict[Widget, tuple[str, ...] | None] = {}
        for selector, rows in selectors.items():
            found |= dict.fromkeys(self.query(selector).exclude(".both"), rows)
        run = self.view.run if selectors is SPEED else None
        return found | (dict.fromkeys(self.query(".both"), (run.title, f"run {run.id}")) if run is not None else {})

    def pointed(self, panel: str) -> Sequence[Widget]:
        there = self.query(POINTED.get(panel, f".{panel}")) if panel else ()
        return [one for one in there if not one.has_class("-empty") and (one.display or not isinstance(one, MatrixPicture))]

    @property
    def next_rung(self) -> NextRung | None:
        """The next rung for the present run; None if it needs a GPU and there is none."""
        run, assessment = self.view.run, self.query_one(RunPanel).verdict if self.is_mounted else None
        offered = assessment.next if assessment is not None and run is not None and assessment.run.id == run.id else None
        here = offered is not None and (self.view.has_gpu or kernel_named(offered.kernel).backend == "cpu")
        return offered if here else None

    def _enter(self) -> None:
        """Show the marked run; on the present run, try the next rung."""
        run, offered = self.view.run, self.view.source is not None and _no_next_rung(self) is None
        if offered and run is not None and self.query_one(HistoryTable).marked == run.id:
            self.action_next_rung()
        else:
            self._show_marked()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        self._show_marked()

    def leaving(self) -> None:
        """Let the other screens show the marked run, if the mark has moved."""
        super().leaving()
        marked = self.query_one(HistoryTable).marked if self.is_mounted else None
        if (other := None if marked == self.model.current else marked) != self._marked:
            self._marked = self.view.selected = other

    def _show_marked(self) -> None:
        marked = self.query_one(HistoryTable).marked
        self.view.selected = None if marked == self.model.current else marked
        self.update()

    def action_next_rung(self) -> None:
        raise NotImplementedError

    def action_baseline(self) -> None:
        table = self.query_one(HistoryTable)
        view = self.view
        run = table.marked if table.has_focus else view.run.id if view.run is not None else None
        view.baseline = None if run == view.baseline else run
        pinned = f"run {view.baseline} is the baseline; runs of the same graph are compared with it"
        self.show_message("the first run of each graph is its baseline" if view.baseline is None else pinned)

    def panel(self) -> Widget:
        return self.query_one(RunPanel)


class ReplayScreen(SessionScreen):
    DEFAULT_CSS = "ReplayScreen LadderChart { min-height: 100%; }"  # the last run is below it
    BINDINGS: ClassVar = [*bindings.TRANSPORT, BASELINE, CURSOR, SORT, FILTER]

    def show(self) -> None:
        super().show()
        at_end = self.view.playback is not None and self.view.playback.player.at_end and not self.view.presenting
        ladder = ladder_of(self.model.runs.values(), "this recording") if at_end and self.view.selected is None else None
        self.query_one(RunPanel).show_ladder(ladder if ladder is not None and len(ladder.rungs) >= MIN_RUNGS else None)

    def fixes(self) -> Mapping[str, str]:
        run, playback = self.view.run, self.view.playback
        ahead = playback.player.lines[playback.player.index :] if playback is not None else ()
        later = run is not None and any(isinstance(e := line.event, events.Counters) and e.run == run.id for line in ahead)
        ahead_of = f"hardware counters, recorded after the run, show it: {self.key_of('run.next')} goes there"
        lacking = "hardware counters would show it, but this recording has none"
        return {COUNTERS: ahead_of if later else lacking, LIMITS: "this recording lacks the CPU's limits"}

    def advice(self) -> tuple[str, ...]:
        playing = self.view.playback is not None and self.view.playback.player.playing
        state = "It is playing." if playing else f"Press {self.key_of('play')} to play it."
        keys = f"{self.key_of('run.next')} goes to the start of the next run, {self.key_of('help')} shows every key."
        return ("No run has begun yet at this position.", "", f"{state} {keys}")

    def state(self) -> object:
        return self.query_one(MatrixPicture).display  # a long plan shows its picture only after it has been processed
