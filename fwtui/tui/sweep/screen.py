"""The Sweep screen: the runs of a recording or a live session as a map and as curves over one axis, with the findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import ContentSwitcher, Static

from fwtui.analysis.sparsity import rate_text
from fwtui.campaigns.sweep.axis import amounts
from fwtui.campaigns.sweep.findings import Findings, findings
from fwtui.campaigns.sweep.running import Sweep
from fwtui.campaigns.sweep.squares import Square, Squares, of_runs, of_sweep, speed
from fwtui.common import units
from fwtui.stream.model import Model
from fwtui.tui.actions import ACROSS, CHOOSE, DOWN, first_reason, look, require
from fwtui.tui.background import complete_recording, ladder_for
from fwtui.tui.charts.chart import Chart
from fwtui.tui.frame import bindings
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.saving import Table
from fwtui.tui.frame.topbar import TopBar
from fwtui.tui.frame.view import View
from fwtui.tui.run.run_panel import RunPanel
from fwtui.tui.sweep.map_and_curves import MEASURES, DotPlot, HeatMap, figure, legend
from fwtui.tui.widgets import run_labels, run_text
from fwtui.tui.widgets.text_panel import MUTED, STRONG, Piece, TextPanel, Update, justify, line, whole_clauses

STATUS_BAR = 24  # cells of the bar
MIN_CURVES, MIN_DOTS = 12, 4  # minimum lines of curves and dots next to a map
MIN_RUN = 5  # minimum lines below map and dots for the panel of the marked run


_no_map = require(lambda screen: screen.squares() is not None, "there is no map yet: no two runs differ")
_one_axis = require(lambda screen: len(screen.squares().choices) > 1, "there is no other axis to put across")
_both_shown = require(
    lambda screen: not screen.has_class("-both") and (screen.has_class("-short") or screen.has_class("-flat")),
    "map and curves are both shown",
)

LOOKS = (
    look("z", "across", "Across", "show the next axis as columns", first_reason(_no_map, _one_axis), "sweep.across"),
    look("U", "measure", "Unit", "show rates, times, or shares of the best speed", _no_map, "sweep.measure"),
    look("v", "view", "View", "show the map or the curves, if there is no room for both", _both_shown, "sweep.view"),
    bindings.CURSOR,
)


class Status(TextPanel[tuple[Sweep | None, str, str, object]]):
    """The progress of a sweep or the origin of the runs, and the legend; the last part changes while the sweep progresses."""

    def draw(self, subject: tuple[Sweep | None, str, str, object], width: int) -> Sequence[Content]:
        sweep, origin, legend, _ = subject
        status = line(*_progress(sweep, width)) if sweep is not None else line((origin, MUTED))
        fits = status.cell_length + 3 + len(legend) <= width
        return [justify(status, line((legend, MUTED)), width) if fits else status]


def _progress(sweep: Sweep, width: int) -> list[Piece]:
    total = len(sweep.grid.order)
    state = "sweeping" if sweep.going else "done" if sweep.done == total else "stopped"
    pieces: list[Piece] = [(f"{state:<10}", "$primary" if sweep.going else STRONG)]
    pieces += run_text.meter(sweep.done / total if total else None, min(STATUS_BAR, max(4, width - 60)))
    pieces.append(f"{sweep.done:>5} of {total}")
    pieces.append((f"   {units.clock(sweep.queue.spent)} of {units.clock(sweep.queue.seconds)}", MUTED))
    if sweep.left_out:
        pieces.append((f"   {len(sweep.left_out)} skipped", "$text-warning"))
    return pieces


class SweepScreen(Frame):
    """The common part of a live sweep and a recorded one, which have different keys."""

    DEFAULT_CSS = """
    SweepScreen #right { padding: 0 1; }
    SweepScreen Status, SweepScreen #where { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    SweepScreen #charts { height: 1fr; margin-top: 1; }
    SweepScreen HeatMap { height: auto; max-height: 50%; }
    SweepScreen #lines { height: 1fr; }
    SweepScreen RunPanel { display: none; height: 1fr; padding: 0; margin-top: 1; }
    SweepScreen.-run RunPanel { display: block; }
    SweepScreen.-run-alone #lines { display: none; }
    SweepScreen Chart { margin-top: 1; }
    SweepScreen #said { height: auto; max-height: 9; margin-top: 1; scrollbar-size-vertical: 1; }
    SweepScreen.-short #said, SweepScreen.-flat #said { max-height: 4; margin-top: 0; }
    SweepScreen.-short #charts, SweepScreen.-flat #charts { margin-top: 0; }
    SweepScreen.-short HeatMap, SweepScreen.-flat HeatMap { height: 1fr; max-height: 100%; }
    SweepScreen.-short #lines, SweepScreen.-flat #lines { display: none; }
    SweepScreen.-short Chart, SweepScreen.-flat Chart, SweepScreen.-short DotPlot, SweepScreen.-flat DotPlot { margin-top: 0; }
    SweepScreen.-curves.-short #lines, SweepScreen.-curves.-flat #lines { display: block; }
    SweepScreen.-curves.-short HeatMap, SweepScreen.-curves.-flat HeatMap { display: none; }
    SweepScreen.-both HeatMap { display: block; height: auto; max-height: 50%; }
    SweepScreen.-both #lines { display: block; }
    """
    AUTO_FOCUS = "HeatMap"
    PLACE = "sweep"
    PANEL = "#said"
    MOVES = ("Map of runs", (*DOWN, *ACROSS, CHOOSE))
    WORDS = (
        ("square", "a run: the fuller and the more coloured, the faster; shades are logarithmic if speeds differ by 10x or more"),
        ("· … -", "waiting, running, skipped (it cannot run here, or would take longer than the remaining time)"),
        ("n^2.98", "the exponent in time ~ n^x: a least-squares fit over at least four sizes, ± its standard error"),
        ("from about n", "break-even: the size at which two configurations take the same time, between a SLOWER and a FASTER"),
    )

    def __init__(self, view: View):
        super().__init__(view)
        self._across = ""
        self._measure = ""  # chosen with a key; empty: the default of these runs
        self._state: object = None
        self._found: tuple[object, Findings | None] = (None, None)
        self._laid_out: tuple[object, Squares | None] = (None, None)

    def body(self) -> ComposeResult:
        with Horizontal(id="body"):
            yield from self.left()
            with Vertical(id="right"):
                yield Status((None, "", "", ()))
                with Vertical(id="charts"):
                    yield HeatMap(self._moved, self._choose)
                    with ContentSwitcher(initial="curves", id="lines"):
                        yield Chart(id="curves")
                        yield DotPlot(id="dots")
                    yield RunPanel()
                yield Static(id="where", markup=False)
                with VerticalScroll(id="said", can_focus=False):
                    yield Update((), id="found")

    def left(self) -> ComposeResult:
        yield from ()

    def state(self) -> object:
        if not self.view.paused or self._state is None:  # a sweep continues while its view is paused
            sweep = self.view.sweep
            going = (sweep.going, int(sweep.queue.spent)) if sweep is not None else None
            self._state = (*self._layout_key, going, self.measure, self.query_one(HeatMap).size)
        return self._state

    def table(self) -> Table:
        """Return the map as a table, with time and rate in every cell."""
        squares = self.squares()
        if squares is None:
            return ()
        rows = [(row.name, *(_saved(square) for square in row.squares)) for row in squares.rows]
        return [(squares.across.name, *squares.across.values), *rows]

    @property
    def charted(self) -> Model:
        """The model of the runs on the map."""
        return self.model

    @property
    def measure(self) -> str:
        """The chosen measure; by default the rate, or the time if a kernel skips work."""
        squares = self._laid_out[1]
        return self._measure or ("time" if squares is not None and squares.skips_work else "rate")

    @property
    def _layout_key(self) -> tuple[object, ...]:
        """Everything that changes the content of a square: the latest run and its state, skipped runs, the axis across."""
        sweep, run = self.view.sweep, self.charted.run
        latest = (len(self.charted.runs), run.id, run.state) if run is not None else None
        return (self._across, latest, sweep, *((sweep.current, len(sweep.left_out)) if sweep is not None else ()))

    def show(self) -> None:
        squares = self.squares()
        shades = legend(squares) if squares is not None else ""
        origin = f"runs of this {'session' if self.view.playback is None else 'recording'}"
        self.query_one(Status).show((self.view.sweep, origin, shades, self.state()))
        self.query_one(HeatMap).take(squares, self.measure)
        self._say_where()
        self.query_one("#found", Update).show(self._sentences(squares))
        self._draw_curves(squares)

    def _draw_curves(self, squares: Squares | None) -> None:
        cursor, chart, dots = self.query_one(HeatMap).cursor, self.query_one(Chart), self.query_one(DotPlot)
        as_curves = squares is None or amounts(squares.across.name)
        self.query_one("#lines", ContentSwitcher).current = "curves" if as_curves else "dots"
        rows, room = len(squares.rows) + 1 if squares is not None else 0, self.query_one("#charts").size.height
        self.set_class(squares is not None and room - rows >= (MIN_CURVES if as_curves else MIN_DOTS), "-both")
        self._tell_run(squares, as_curves, room)
        if as_curves:
            chart.show(figure(squares, self.measure, self._found[1], cursor[0]))
        else:
            dots.take(squares, self.measure, cursor)

    def _tell_run(self, squares: Squares | None, as_curves: bool, room: int) -> None:
        """Show the marked run below the dots of few runs, or without a map, if there is room."""
        square = self.query_one(HeatMap).square if squares is not None else None
        run = square.run if square is not None else self.view.run
        lines = 0 if squares is None else len(squares.across.values) + 2
        used = 0 if squares is None else lines + min(len(squares.rows) + 1, room // 2)
        shows_run = run is not None and (squares is None or not as_curves) and room - used >= MIN_RUN
        self.set_class(shows_run, "-run")
        self.set_class(shows_run and squares is None, "-run-alone")
        self.query_one("#lines").styles.height = lines if shows_run else None
        if shows_run and run is not None:
            model = self.charted if square is not None else self.model
            baseline = self.view.baseline_run or model.first_run_of(run)
            self.query_one(RunPanel).show(model, run, baseline, (), recorded=ladder_for(self))

    def squares(self) -> Squares | None:
        """Return the map, laid out again only if it has changed."""
        if self.view.paused and self._laid_out[1] is not None:
            return self._laid_out[1]
        key = self._layout_key
        if key != self._laid_out[0]:
            sweep = self.view.sweep
            squares = of_sweep(sweep, self._across) if sweep is not None else of_runs(self.charted, self._across)
            self._laid_out = (key, squares)
        return self._laid_out[1]

    def _sentences(self, squares: Squares | None) -> tuple[str, ...]:
        if squares is None:
            self._found = (None, None)
            return self.advice()
        runs = [run for run in squares.runs if run.state == "done"]
        if self._found[0] != runs:
            self._found = (runs, findings(self.charted, runs))
        found, row = self._found[1], self.query_one(HeatMap).cursor[0]
        told = found.sentences(squares.rows[row].name if row < len(squares.rows) else "") if found is not None else []
        return tuple(told) or ("no run of this sweep is verified yet",)

    def advice(self) -> tuple[str, ...]:
        """Return sentences about how to begin, for an empty screen."""
        return ("The runs so far do not differ.", "This screen compares runs of different sizes, tiles, kernels or options.")

    def _say_where(self) -> None:
        heat = self.query_one(HeatMap)
        squares, square, (row, column), sentence = heat.squares, heat.square, heat.cursor, ""
        if squares is not None and square is not None:
            name = f"{squares.across.name} {squares.across.values[column]} · {squares.rows[row].name}"
            sentence = f"{name}: {_described(square, squares, self.charted)}"
        self.query_one("#where", Static).update(line((whole_clauses(sentence, heat.size.width or len(sentence)), MUTED)))

    def _moved(self) -> None:
        squares = self.query_one(HeatMap).squares
        self._say_where()
        self.query_one("#found", Update).show(self._sentences(squares))
        self._draw_curves(squares)

    def _choose(self, run: int) -> None:
        """Show the run on the Run screen; if it is later in the recording, at the end of that."""
        if run not in self.model.runs:
            self.action_move("seek", 1)
        self.view.selected = run
        self.post_message(TopBar.Chosen("run"))

    def action_across(self) -> None:
        squares = self.query_one(HeatMap).squares
        if squares is not None:
            place = squares.choices.index(squares.across.name)
            self._across = squares.choices[(place + 1) % len(squares.choices)]
            self.update()

    def action_measure(self) -> None:
        measures = [*MEASURES]
        self._measure = measures[(measures.index(self.measure) + 1) % len(measures)]
        self.show_message(f"the map shows the {self._measure}")

    def action_view(self) -> None:
        self.toggle_class("-curves")
        curves = self.has_class("-curves") and self.query_one("#lines", ContentSwitcher).current == "curves"
        # the dots follow the cursor of the map
        self.query_one(Chart if curves else HeatMap).focus()


class RecordedSweepScreen(SweepScreen):
    """The runs of a recording, without a form."""

    BINDINGS: ClassVar = [*LOOKS, *bindings.SHARED]

    @property
    def charted(self) -> Model:
        """The model of the complete recording; in a lecture only of the part before this position."""
        playback = self.view.playback
        partial_only = playback is None or playback.recording.marks.directed
        return (None if partial_only else complete_recording(self)) or self.model


def _described(square: Square, squares: Squares, model: Model) -> str:
    """Describe a square in one line."""
    run = square.run
    if run is None or run.state != "done":
        return square.why or (run_labels.outcome(run) if run is not None else square.state or "not run")
    best = squares.best_speed
    facts = [f"run {run.id}", f"{units.duration(run.seconds)} {units.spread(run.done.spread if run.done else None)}".strip()]
    facts.append(rate_text(run))
    if best:
        facts.append(f"{units.percent(speed(run) / best)} of the best")
    return " · ".join([*facts, run_labels.outcome(run, model)])


def _saved(square: Square) -> str:
    """Return a square's cell in a saved table: time, rate and remarks, or the state of an unfinished run."""
    run = square.run
    if run is None or run.state != "done":
        return square.state
    return f"{units.duration(run.seconds)}, {rate_text(run)}" + (", not verified" if run_labels.is_unreliable(run) else "")
