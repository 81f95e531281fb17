"""The Explain screen: stall reasons, roofline, phase table, and the occupancy of a GPU or the caches of a CPU."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.cpu import CpuFacts, cpu_facts, phase_facts
from fwtui.analysis.explanation import explain
from fwtui.analysis.phase_table import phase_rows, roofs_of
from fwtui.stream.run import Run, of_phase
from fwtui.tui.actions import ACROSS, CHOOSE, ENDS, first_reason, hidden, hidden_look, look, require
from fwtui.tui.background import ladder_for
from fwtui.tui.charts.chart import Chart
from fwtui.tui.explain import roofline
from fwtui.tui.explain.number_panels import CountersTable, CpuPanel, CpuSubject, PhaseTable, PhaseTableSubject
from fwtui.tui.explain.occupancy_panel import OccupancyPanel
from fwtui.tui.explain.panels import OF_CPU_WITHOUT_BYTES, TITLES, panels_of
from fwtui.tui.explain.warp_panel import (
    LETTERS,
    InstructionsScreen,
    WarpHead,
    WarpLoop,
    WarpSubject,
    WarpTable,
    kernel_functions,
    slowest_op,
    warp_subject,
)
from fwtui.tui.frame import bindings
from fwtui.tui.frame.dialogs import Dialog, ScrollableText, source_rows
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.view import View
from fwtui.tui.run.run_panel import RunPanel
from fwtui.tui.widgets.text_panel import MUTED, STRONG, line

ROWS, SAMPLED_ROWS = 32, 40  # minimum screen heights at which all panels are shown, without and with PC samples

_no_other_run = require(lambda screen: len(screen.model.runs) > 1, "there is no other run")
_one_operation = require(lambda screen: len(screen.ops) > 1, "no data for another kernel function")
_no_warps = require(
    lambda screen: not screen.is_mounted or screen.single in ("", "warps"),
    "press {key[explain.view]} for the source lines with their stall reasons",
)
_no_source = require(
    lambda screen: screen.view.run is not None and screen.view.run.source,
    "no source was recorded; --record-source records that of your kernel",
)
_NO_LINE = first_reason(_no_warps, require(attrgetter("hot"), "no PC samples for this kernel function"))


def _cannot_count(screen: ExplainScreen) -> str | None:
    run, source = screen.view.run, screen.view.source
    if run is None or run.counted:
        return bindings.no_run(screen)
    if source is None:
        return f"run {run.id} was recorded without hardware counters"
    reason = first_reason(bindings.is_busy, bindings.not_started_here)(screen)
    return reason or (None if run.state == "done" else f"run {run.id} did not finish, so its counters cannot be read")


class ExplainScreen(Frame):
    DEFAULT_CSS = """
    ExplainScreen #panels, ExplainScreen #upper, ExplainScreen .tall { height: 1fr; }
    ExplainScreen .panel { padding: 0 1; scrollbar-size-vertical: 1; }
    ExplainScreen #upper { border-bottom: solid $border-blurred; }
    ExplainScreen #occupancy { width: 50; height: 1fr; border-left: solid $border-blurred; }
    ExplainScreen #cpu { width: 56; border-right: solid $border-blurred; }
    ExplainScreen.-narrow #cpu { width: 1fr; height: auto; max-height: 100%; border-right: none; }
    ExplainScreen.-narrow #upper { height: auto; max-height: 75%; }
    ExplainScreen #ledger { height: auto; max-height: 50%; }
    ExplainScreen.-short TelemetryStrip, ExplainScreen.-flat TelemetryStrip { display: none; }
    ExplainScreen .title { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    ExplainScreen #which { height: 1; padding: 0 1; }
    ExplainScreen #warps VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; margin-top: 1; }
    ExplainScreen.-short #warps VerticalScroll, ExplainScreen.-flat #warps VerticalScroll { margin-top: 0; }
    ExplainScreen.-flat WarpLoop { display: none; }
    ExplainScreen.-with-warps #warps { height: auto; border-bottom: solid $border-blurred; }
    ExplainScreen.-with-warps #warps VerticalScroll { height: 3; margin-top: 0; }
    ExplainScreen.-with-warps.-high #warps VerticalScroll { height: 9; }
    ExplainScreen.-one #upper { height: 1fr; max-height: 100%; border-bottom: none; }
    ExplainScreen.-one #occupancy, ExplainScreen.-one #cpu { width: 1fr; height: 1fr; border-left: none; border-right: none; }
    ExplainScreen.-one #ledger { height: 1fr; max-height: 100%; }
    """
    PLACE = "explain"
    PANEL = "#ledger"
    AUTO_FOCUS = ""
    WORDS = (
        ("roofline", "each run of this data type is below two roofs: memory bandwidth (slope) and compute (flat)"),
        ("relax/byte", "arithmetic intensity: relaxations / bytes of DRAM traffic; / requested bytes if this run has no reading"),
        ("at most 1.2x", "speedup of the run without that stall, or if that phase took its roofline time"),
        ("issue-rate ceiling", "if an SM issued nothing but the inner loop, in every cycle; other code fills further slots"),
        ("shared-memory ceiling", "of this run: 128 B per clock and SM, with its counted accesses and bank conflicts"),
        ("letters", f"{LETTERS}; the glossary has advice for each"),
        ("per cycle", "relaxations per cycle of a busy core, and the measured peak"),
        ("◀ matrix", "the nearest cache that holds the matrix; bandwidths are measured by updating cells in place"),
    )
    MOVES: ClassVar = ("In charts ({key[cursor]})", (*ACROSS, *ENDS, CHOOSE))
    BINDINGS: ClassVar = [
        look("v", "panel", "View", "enlarge the next panel; after the last one, show all", bindings.no_run, "explain.view"),
        bindings.CURSOR,
        hidden_look("j", "other(-1)", "Previous run", "explain the run before this one", _no_other_run, "explain.older"),
        hidden_look("J", "other(1)", "Next run", "explain the run after this one", _no_other_run, "explain.newer"),
        look("O", "op", "Function", "the next kernel function of this run", _one_operation, "explain.op"),
        look("down", "hotspot(1)", "Next hotspot", "the source line that is next by PC samples", _NO_LINE, "explain.next_line"),
        hidden_look("up", "hotspot(-1)", "Previous hotspot", "the previous line by samples", _NO_LINE, "explain.previous_line"),
        look("enter", "instructions", "Instructions", "the machine instructions of that line", _NO_LINE, "explain.instructions"),
        hidden("s", "source", "Source", "the source of your kernel, if it was recorded", _no_source, "explain.source"),
        bindings.LIMITS,
        replace(bindings.COUNTERS, unavailable=_cannot_count),
        *bindings.SHARED,
    ]

    def __init__(self, view: View):
        super().__init__(view)
        self._op = ""  # the kernel function whose occupancy and samples are shown; empty for the slowest
        self._hotspot = 0  # position of the shown source line among the hotspots
        self._points: tuple[tuple[int, ...], ...] = ()  # runs of the roofline's series

    def body(self) -> ComposeResult:
        yield Static(id="which", markup=False)
        with Vertical(id="panels"):
            with Horizontal(id="upper"):
                with VerticalScroll(id="cpu", classes="panel", can_focus=False):
                    yield CpuPanel(None)
                with Vertical(id="roofline", classes="panel"):
                    yield Static(id="roofs", classes="title", markup=False)
                    yield Chart(on_choice=self._choose, hint="arrows or the mouse: runs · Enter: explain that run", id="roof")
                yield RunPanel()
                yield OccupancyPanel(None, id="occupancy", classes="panel")
            with Vertical(id="warps", classes="panel tall"):
                yield WarpHead(None)
                yield WarpLoop(None)
                with VerticalScroll(id="source", can_focus=False):
                    yield WarpTable(None)
            with VerticalScroll(id="ledger", classes="panel", can_focus=False):
                yield PhaseTable(None)
            with VerticalScroll(id="counters", classes="panel tall", can_focus=False):
                yield CountersTable(None)

    @property
    def single(self) -> str:
        """The panel that fills the screen; empty if all are shown."""
        return self.view.panel if self.view.panel in self._panels else self._panels[0] if self._crowded else ""

    @property
    def _panels(self) -> tuple[str, ...]:
        return panels_of(self.model, self.view.run)

    @property
    def _crowded(self) -> bool:
        """Return whether only one panel fits; two short ones always fit."""
        run = self.view.run
        if run is None or self._panels == OF_CPU_WITHOUT_BYTES:
            return False
        return self.narrow or self.app.size.height < (SAMPLED_ROWS if run.warps else ROWS)

    def panel(self) -> Widget:
        """The widget that the page keys scroll: the counters, the source lines, or the phase table."""
        if self.single == "counters":
            return self.query_one("#counters")
        return self.query_one("#source" if self.single == "warps" else self.PANEL)

    def state(self) -> object:
        return (self.view.panel, self._op, self._hotspot)

    def on_mount(self) -> None:
        # the available keys depend on the displayed panels, which the layout determines
        self.screen_layout_refresh_signal.subscribe(self, lambda _: self._refresh_keys())

    def show(self) -> None:
        single, run, model = self.single, self.view.run, self.model
        facts = cpu_facts(model, run) if run is not None else None
        self.set_class(bool(single), "-one")
        self._lay_out(single)
        figure, self._points = roofline.figure(model, run)
        self.query_one("#roof", Chart).show(figure)
        how = "in this recording" if self.view.source is None else f"yet; press {self.key_of('limits')}"
        missing = roofline.missing(model, run, how)
        self.query_one("#roofs", Static).update(line(("ROOFLINE  ", f"{STRONG} $text-primary"), (missing, "$text-warning")))
        reason = missing if single == "ledger" else ""
        lines = phase_rows(model, run) if run is not None else ()
        if self.look.details:
            lines = tuple(one._replace(limiter=one.limiter.sourced) for one in lines)
        formulas = self.look.details
        brief = not self.has_class("-high") and (self.has_class("-with-warps") or (run is not None and bool(run.ranks)))
        table = PhaseTableSubject(run, roofs_of(model, run), lines, reason, formulas, brief) if run is not None else None
        self.query_one(PhaseTable).show(table)
        self.query_one(CountersTable).show(run if single == "counters" else None)
        visible = self.query_one("#warps").display
        self._show_warps(self._warps(run, self._op) if visible and run is not None else None)
        if run is not None and facts is not None:
            self.query_one(CpuPanel).show(self._cpu(run, facts))
            if self._panels == OF_CPU_WITHOUT_BYTES:
                self.query_one(RunPanel).show(model, run, self.view.baseline_of(run), (), recorded=ladder_for(self))
        evidence = model.evidence(run) if run is not None and run.backend == "cuda" else None
        self.query_one(OccupancyPanel).follow(model, run, evidence, self._op)

    def _lay_out(self, single: str) -> None:
        """Show the panel that fills the screen, or all panels with content."""
        run, order = self.view.run, self._panels
        with_warps = not single and run is not None and bool(run.warps)
        self.set_class(with_warps, "-with-warps")
        others = {name for name in order if name != "counters" and (name != "warps" or with_warps)}
        if run is not None and self.has_class("-high") and roofline.comparable(self.model, run):
            others.add("roofline")  # shows the other runs if this one has no byte count
        visible = {single} if single else others
        for name in TITLES:
            self.query_one(f"#{name}").display = name in visible
        self.query_one(RunPanel).display = order == OF_CPU_WITHOUT_BYTES and not (single or self.narrow)
        self.query_one("#upper").display = bool(visible & {"cpu", "roofline", "occupancy"})
        which = self.query_one("#which", Static)
        which.display = bool(single)
        names = [(f" {TITLES[name]} ", f"{STRONG} reverse" if name == single else MUTED) for name in order]
        which.update(line(*names, (f"   {self.key_of('explain.view')}: next", MUTED)))

    def action_panel(self) -> None:
        order = self._panels if self._crowded else ("", *self._panels)
        self.view.panel = order[(order.index(self.single) + 1) % len(order)]
        self.set_focus(None)
        self.update()

    def action_counters(self) -> None:
        """Show only the counters, or all panels again; if the run has no counters, profile its kernels first."""
        run, source = self.view.run, self.view.source
        if run is not None and run.counted:
            self.view.panel = "" if self.view.panel == "counters" else "counters"
            self.update()
        elif run is not None and source is not None:
            with self.reporting():
                source.count(run.id)
                self.show_message(f"profiling the kernels of run {run.id} again; no run is timed until it ends")

    def action_other(self, direction: int) -> None:
        """Show the run before or after the present one."""
        run = self.view.run
        if run is not None:
            ids = sorted(self.model.runs)
            place = ids.index(run.id) + direction
            if 0 <= place < len(ids):
                self._explain(ids[place])
            else:
                self.show_message(f"run {run.id} is the {'newest' if direction > 0 else 'oldest'} one")

    def _explain(self, run: int) -> None:
        self.view.selected = None if run == self.model.current else run
        self._op, self._hotspot = "", 0
        self.update()

    def action_op(self) -> None:
        ops, op = self.ops, self._op or slowest_op(self.view.run)
        self._hotspot = 0
        self._op = ops[(ops.index(op) + 1) % len(ops) if op in ops else 0]
        self.update()

    def _cpu(self, run: Run, facts: CpuFacts) -> CpuSubject:
        """Return the facts of a run on a CPU in the phase of the displayed kernel function, with its loop."""
        op = self._op or slowest_op(run)
        phase = next((one for one in run.phases if one.key == op or len(run.phases) == 1), None)
        facts = phase_facts(facts, phase) if phase is not None else facts
        roofs, limits = roofs_of(self.model, run), self.model.measured.get(run.device)
        why = explain(ComparedRun(self.model, run), None)._replace(cpu="").sentence(sourced=self.look.details)
        levels = limits.levels if limits is not None else ()
        return CpuSubject(run.id, run.phase_title(op), facts, of_phase(run.loops, op), roofs.relaxations_per_second, levels, why)

    @property
    def ops(self) -> list[str]:
        return kernel_functions(self.view.run)

    def _warps(self, run: Run, op: str) -> WarpSubject:
        """Return the PC samples of a kernel function of the run, by default the slowest one."""
        return warp_subject(self.model, run, op or slowest_op(run), self._hotspot)

    def _show_warps(self, subject: WarpSubject | None) -> None:
        table, before = self.query_one(WarpTable), self.query_one(WarpTable).subject
        for widget in (self.query_one(WarpHead), self.query_one(WarpLoop), table):
            widget.show(subject)
        position = subject and (subject.run, subject.op, subject.chosen)
        if position and (before is None or position != (before.run, before.op, before.chosen)):
            self.call_after_refresh(table.reveal)

    @property
    def hot(self) -> list[int]:
        """The sampled source lines of the displayed kernel function, hottest first."""
        subject = self.query_one(WarpTable).subject if self.is_mounted else None
        return subject.hotspots if subject is not None else []

    def action_hotspot(self, direction: int) -> None:
        if self.hot:
            self._hotspot = (self._hotspot + direction) % len(self.hot)
            self.update()

    def action_instructions(self) -> None:
        subject = self.query_one(WarpTable).subject
        if subject is not None and subject.listing is not None and self.hot:
            self.open_dialog(InstructionsScreen(subject, subject.listing), opener="explain.instructions")

    def action_source(self) -> None:
        run = self.view.run
        if run is not None:
            heading = f"Source of {run.experiment.kernel}, as recorded with run {run.id}"
            self.open_dialog(Dialog(heading, ScrollableText([*source_rows(run.source)])), opener="explain.source")

    def _choose(self, series: int, point: int) -> None:
        if point < len(runs := self._points[series]):  # a roof has none
            self._explain(runs[point])
