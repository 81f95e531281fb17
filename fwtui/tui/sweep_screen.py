"""Many runs at once: choose what varies and how long it may take, watch the map fill, read what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Static

from fwtui import hardware, units
from fwtui.errors import Refused
from fwtui.experiment import Experiment, defaults, kernel_named, settle
from fwtui.model import Model
from fwtui.run import Run
from fwtui.sweep.findings import Findings, findings
from fwtui.sweep.running import Sweep
from fwtui.sweep.squares import NOTHING, Square, Squares, of_runs, of_sweep
from fwtui.tui import bindings, commands, readout, wording
from fwtui.tui.charts import Chart
from fwtui.tui.dialogs import FormScreen
from fwtui.tui.drawn import MUTED, STRONG, Drawn, Piece, line
from fwtui.tui.form import ExperimentForm
from fwtui.tui.frame import Frame
from fwtui.tui.sweep_chart import figure
from fwtui.tui.sweep_draft import SweepDraft
from fwtui.tui.sweep_map import MEASURES, HeatMap
from fwtui.tui.topbar import TopBar
from fwtui.tui.view import View
from kernels import registry

STATUS_BAR = 24  # cells of the bar


class Told(Drawn[tuple[str, ...]]):
    """Sentences, each on lines of its own; the first one matters most."""

    def draw(self, subject: tuple[str, ...], width: int) -> Sequence[Content]:
        first, *others = subject or ("",)
        lines = list(line((first, STRONG)).wrap(width)) if first else []
        for other in others:
            lines += line((other, MUTED)).wrap(width)
        return lines


class Where(Drawn[str]):
    """What is under the cursor, in one line."""

    def draw(self, subject: str, width: int) -> Sequence[Content]:
        return [line((subject, MUTED))]


class Status(Drawn[tuple[Sweep | None, tuple[object, ...]]]):
    """How far the sweep is. The second part of its subject is whatever changes while the sweep stays the same object."""

    def draw(self, subject: tuple[Sweep | None, tuple[object, ...]], width: int) -> Sequence[Content]:
        sweep = subject[0]
        if sweep is None:
            return [line(("runs of this session", MUTED))]
        total = len(sweep.grid.order)
        state = "sweeping" if sweep.going else "done" if sweep.done == total else "stopped"
        pieces: list[Piece] = [(f"{state:<10}", "$primary" if sweep.going else STRONG)]
        pieces += readout.meter(sweep.done / total if total else None, min(STATUS_BAR, max(4, width - 60)))
        pieces.append(f"{sweep.done:>5} of {total}")
        pieces.append((f"   {units.clock(sweep.spent)} of {units.clock(sweep.within)}", MUTED))
        if sweep.left_out:
            pieces.append((f"   {len(sweep.left_out)} left out", "$text-warning"))
        return [line(*pieces)]


class SweepScreen(Frame):
    DEFAULT_CSS = """
    SweepScreen #body { height: 1fr; border-bottom: solid $border-blurred; }
    SweepScreen #left { width: 36; padding: 0 1; border-right: solid $border-blurred; }
    SweepScreen #left ExperimentForm { height: 1fr; }
    SweepScreen #buttons { height: 1; margin-top: 1; }
    SweepScreen Button { margin-right: 1; min-width: 14; }
    SweepScreen #right { padding: 0 1; }
    SweepScreen Status, SweepScreen Where { height: 1; }
    SweepScreen #charts { height: 1fr; margin-top: 1; }
    SweepScreen HeatMap { height: auto; max-height: 50%; }
    SweepScreen Chart { margin-top: 1; }
    SweepScreen #said { height: auto; max-height: 9; margin-top: 1; scrollbar-size-vertical: 1; }
    SweepScreen #line { display: none; height: 1; padding: 0 1; }
    SweepScreen.-narrow #left { display: none; }
    SweepScreen.-narrow #line { display: block; }
    SweepScreen.-short #said, SweepScreen.-flat #said { max-height: 4; margin-top: 0; }
    SweepScreen.-short #charts, SweepScreen.-flat #charts { margin-top: 0; }
    SweepScreen.-short HeatMap, SweepScreen.-flat HeatMap { height: 1fr; max-height: 100%; }
    SweepScreen.-short Chart, SweepScreen.-flat Chart { display: none; margin-top: 0; }
    SweepScreen.-curves.-short Chart, SweepScreen.-curves.-flat Chart { display: block; }
    SweepScreen.-curves.-short HeatMap, SweepScreen.-curves.-flat HeatMap { display: none; }
    SweepScreen.-short #body, SweepScreen.-flat #body { border-bottom: none; }
    """
    AUTO_FOCUS = "HeatMap"
    PLACE = "sweep"
    BINDINGS: ClassVar = [
        Binding(
            "r,ctrl+r",
            "sweep",
            "Sweep",
            id="sweep",
            key_display="r",
            tooltip="run what the form says; what is done is not run again",
        ),
        Binding("x", "across", "Across", id="sweep.across", tooltip="another axis across"),
        Binding("y", "measure", "Measure", id="sweep.measure", tooltip="rate, time, or share of the best"),
        Binding("v", "view", "View", id="sweep.view", tooltip="the map or the curves, where there is no room for both"),
        Binding("e", "edit", "Edit", id="sweep.edit", tooltip="the form, where the screen is too narrow to keep it open"),
        *bindings.SHARED,
    ]
    MOVES = ("Map of runs", tuple(b for b in HeatMap.BINDINGS if isinstance(b, Binding)))
    WORDS = (
        ("square", "a run: the fuller and the more coloured, the nearer its rate is to the best one here"),
        ("· … -", "waiting, running, left out (it cannot run here, or would take longer than the time that is left)"),
        ("n^2.98", "exponent of n with which time grows, by least squares of log time against log n; ± its standard error"),
        ("from about n", "break-even: the size at which two configurations take equally long, between two that were measured"),
    )

    def __init__(self, view: View):
        super().__init__(view)
        self.draft = SweepDraft(self._usual(), lambda: self._settled) if view.source is not None else None
        self._across = ""
        self._measure = MEASURES[0]
        self._found: tuple[object, Findings | None] = (None, None)
        self._laid_out: tuple[object, Squares | None] = (None, None)

    def body(self) -> ComposeResult:
        if self.draft is not None:
            yield Static(id="line", markup=False)
        with Horizontal(id="body"):
            if self.draft is not None:
                yield self._left(self.draft)
            with Vertical(id="right"):
                yield Status((None, ()))
                with Vertical(id="charts"):
                    yield HeatMap()
                    yield Chart(id="curves")
                yield Where("")
                with VerticalScroll(id="said", can_focus=False):
                    yield Told((), id="found")

    def _left(self, draft: SweepDraft) -> Widget:
        return Vertical(
            Static(Content("WHAT VARIES"), classes="heading", markup=False),
            ExperimentForm(draft),
            Horizontal(
                Button(Content("Sweep  r"), id="run", compact=True, variant="primary"),
                Button(Content("Cancel  c"), id="cancel", compact=True),
                id="buttons",
            ),
            id="left",
        )

    def on_mount(self) -> None:
        super().on_mount()
        self._say_draft()

    def on_resize(self) -> None:
        super().on_resize()
        self.call_after_refresh(self._say_draft)

    def panel(self) -> Widget:
        return self.query_one("#said")

    def state(self) -> object:
        sweep = self.view.sweep
        going = (sweep.going, int(sweep.spent)) if sweep is not None else None
        return (*self._layout_key, going, self._measure, self.query_one(HeatMap).size)

    @property
    def _layout_key(self) -> tuple[object, ...]:
        """Whatever decides which square says what: a run began or ended, a cell was left out, another axis is wanted."""
        sweep, run = self.view.sweep, self.model.run
        latest = (len(self.model.runs), run.id, run.state) if run is not None else None
        return (self._across, latest, sweep, *((sweep.current, len(sweep.left_out)) if sweep is not None else ()))

    def show(self) -> None:
        sweep = self.view.sweep
        squares = self._squares()
        self.query_one(Status).show((sweep, (self.state(),)))
        self.query_one(HeatMap).take(squares, self._measure)
        self._say_where()
        self.query_one("#found", Told).show(self._sentences(squares))
        self._draw_curves(squares)
        if self.draft is not None:
            going = sweep is not None and sweep.going
            self.query_one("#run", Button).disabled = going or bool(self._errors)
            self.query_one("#cancel", Button).disabled = not going

    def _draw_curves(self, squares: Squares | None) -> None:
        row = self.query_one(HeatMap).cursor[0]
        self.query_one(Chart).show(figure(squares, self._measure, self._found[1], row))

    def _squares(self) -> Squares | None:
        """Made again only when it would be another one."""
        key = self._layout_key
        if key != self._laid_out[0]:
            sweep = self.view.sweep
            squares = of_sweep(sweep, self._across) if sweep is not None else of_runs(self.model, self._across)
            self._laid_out = (key, squares)
        return self._laid_out[1]

    def _sentences(self, squares: Squares | None) -> tuple[str, ...]:
        if squares is None:
            self._found = (None, None)
            return self._advice()
        runs = [run for run in squares.runs if run.state == "done"]
        if self._found[0] != runs:
            self._found = (runs, findings(self.model, runs))
        found = self._found[1]
        return tuple(found.sentences) if found is not None and found.sentences else ("no run of this sweep counts yet",)

    def _advice(self) -> tuple[str, ...]:
        if self.draft is None:
            return ("Nothing varies among the runs up to here.", "A sweep shows sessions in which several runs differ.")
        return (
            "Press r to run every combination of the values" + (" (e edits them)." if self.narrow else " on the left."),
            "Several values with commas, all of them with `all`, sizes that double with 64..512.",
            "Small sizes run first; what would not fit into the time is left out.",
        )

    def _say_where(self) -> None:
        heat = self.query_one(HeatMap)
        squares, square = heat.subject.squares, heat.square
        if squares is None or square is None:
            self.query_one(Where).show("")
            return
        row, column = heat.cursor
        name = f"{squares.across.name} {squares.across.values[column]} · {squares.rows[row].name}"
        self.query_one(Where).show(f"{name}: {described(square, squares, self.model)}")

    def on_heat_map_moved(self, event: HeatMap.Moved) -> None:
        event.stop()
        self._say_where()
        self._draw_curves(self.query_one(HeatMap).subject.squares)

    def on_heat_map_picked(self, event: HeatMap.Picked) -> None:
        event.stop()
        self.view.selected = event.run
        self.post_message(TopBar.Chosen("run"))

    def _usual(self) -> Experiment:
        experiment = self.view.experiment
        return defaults(False) if self._simulated(experiment) else experiment

    def _simulated(self, experiment: Experiment) -> bool:
        if kernel_named(experiment.kernel).backend != "cuda":
            return False
        return not self.view.found.gpus if self.view.found is not None else not hardware.driver_present()

    def _settled(self, experiment: Experiment) -> tuple[Experiment, bool]:
        source = self.view.source
        if self._simulated(experiment):
            return experiment, True
        if self.view.found is None or source is None:  # asking would wait for the driver
            return settle(experiment), False
        return source.settled(experiment)

    def _say_draft(self) -> None:
        if self.draft is None:
            return
        self._errors = self.draft.errors()
        words = next(iter(self._errors.values()), "") or self.draft.summary()
        self.query_one("#line", Static).update(line((words, "$text-error" if self._errors else ""), ("   e edit", MUTED)))

    def _check(self) -> None:
        self._say_draft()
        self.query_one(ExperimentForm).say(self._errors)
        self.update(True)

    def on_experiment_form_changed(self, event: ExperimentForm.Changed) -> None:
        event.stop()
        if self.draft is not None and self.draft.last == "kernel":
            self.query_one(ExperimentForm).sync()
        self._check()

    def on_experiment_form_submitted(self, event: ExperimentForm.Submitted) -> None:
        event.stop()
        self.action_sweep()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "run":
            self.action_sweep()
        else:
            self.action_cancel()

    def action_sweep(self) -> None:
        source = self.view.source
        if source is None or self.draft is None:
            return
        try:
            if self.view.busy:
                raise Refused("a run is still going; cancel it or wait for its end")
            sweep = Sweep(source, self.draft.grid(), self.draft.within())
        except Refused as refusal:
            self._check()
            self.say(str(refusal), "warning")
            return
        self.view.sweep = sweep
        sweep.start()
        sweep.tick()
        self.say(f"sweeping {len(sweep.grid.order)} runs, {sweep.done} of them done before")

    def action_across(self) -> None:
        squares = self.query_one(HeatMap).subject.squares
        if squares is not None:
            place = squares.choices.index(squares.across.name)
            self._across = squares.choices[(place + 1) % len(squares.choices)]
            self.update()

    def action_measure(self) -> None:
        self._measure = MEASURES[(MEASURES.index(self._measure) + 1) % len(MEASURES)]
        self.say(f"squares show {'the rate in relaxations/s' if self._measure == 'rate' else self._measure}")

    def action_view(self) -> None:
        self.toggle_class("-curves")
        self.query_one(Chart if self.has_class("-curves") else HeatMap).focus()

    def action_edit(self) -> None:
        if self.draft is None:
            return

        def done(answer: str | None) -> None:
            self.query_one(ExperimentForm).sync()
            self._check()
            if answer == "run":
                self.action_sweep()

        self.app.push_screen(FormScreen(self.draft), done)

    def offered(self) -> list[Binding]:
        own = {"sweep", "edit"} if self.draft is None else set()
        return [binding for binding in super().offered() if binding.action not in own]

    def commands(self) -> Iterator[commands.Command]:
        yield from super().commands()
        if self.draft is not None:
            chosen = {kernel.id for kernel in self.draft.kernels}
            for kernel in registry().values():
                words = "without" if kernel.id in chosen else "with"
                yield commands.Command(f"Sweep {words} {kernel.id}", partial(self._toggle, kernel.id), kernel.title)

    def _toggle(self, kernel: str) -> None:
        if self.draft is not None:
            self.draft.toggle(kernel)
            self.query_one(ExperimentForm).sync()
            self._check()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        sweep = self.view.sweep
        match action:
            case "sweep":
                return self.view.source is not None and not self.view.busy
            case "edit":
                return self.draft is not None and self.narrow
            case "cancel":
                return (sweep is not None and sweep.going) or bool(super().check_action(action, parameters))
            case "across":
                squares = self._squares()
                return squares is not None and len(squares.choices) > 1
            case "view":
                return self.has_class("-short") or self.has_class("-flat")
            case "measure":
                return self._squares() is not None
        return super().check_action(action, parameters)


def described(square: Square, squares: Squares, model: Model) -> str:
    """Everything about one square in a line."""
    run: Run | None = square.run
    if run is None or run.state != "done":
        return square.why or (wording.outcome(run) if run is not None else square.state or NOTHING or "not run")
    best = squares.best_rate
    words = [f"run {run.id}", f"{units.duration(run.seconds)} {units.spread(run.done.spread if run.done else None)}".strip()]
    words.append(units.rate(run.rate))
    if run.rate and best:
        words.append(f"{units.percent(run.rate / best)} of the best")
    evidence = model.evidence(run) if run.backend == "cuda" else None
    return " · ".join([*words, wording.outcome(run, evidence.throttled if evidence is not None else ())])
