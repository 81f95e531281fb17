"""Choose what varies and how long it may take, and watch the map fill."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Static

from fwtui.campaigns.sweep.running import Sweep
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment, defaults, kernel_named, settle
from fwtui.machine import hardware
from fwtui.tui.frame import bindings, palette
from fwtui.tui.frame.dialogs import FormScreen
from fwtui.tui.frame.view import View
from fwtui.tui.sweep.draft import SweepDraft
from fwtui.tui.sweep.screen import LOOKS, SweepScreen
from fwtui.tui.widgets.drawn import MUTED, line
from fwtui.tui.widgets.form import ExperimentForm
from kernels import registry


class LiveSweepScreen(SweepScreen):
    DEFAULT_CSS = """
    LiveSweepScreen #left { width: 36; padding: 0 1; border-right: solid $border-blurred; }
    LiveSweepScreen #left ExperimentForm { height: 1fr; }
    LiveSweepScreen #buttons { height: 1; margin-top: 1; }
    LiveSweepScreen Button { margin-right: 1; min-width: 14; }
    LiveSweepScreen #line { display: none; height: 1; padding: 0 1; }
    LiveSweepScreen.-narrow #left { display: none; }
    LiveSweepScreen.-narrow #line { display: block; }
    """
    BINDINGS: ClassVar = [
        Binding(
            "r,ctrl+r",
            "sweep",
            "Sweep",
            id="sweep",
            key_display="r",
            tooltip="run what the form says; what is done is not run again",
        ),
        *LOOKS,
        Binding("f", "around", "From run", id="sweep.around", show=False, tooltip="put the run that is shown into the form"),
        Binding("e", "edit", "Edit", id="sweep.edit", tooltip="the form, where the screen is too narrow to keep it open"),
        *bindings.SHARED,
    ]

    def __init__(self, view: View):
        super().__init__(view)
        assert view.source is not None
        self.source = view.source
        self.draft = SweepDraft(self._usual(), lambda: self._settled)
        self._errors: dict[str, str] = {}  # what the form says wrong

    def body(self) -> ComposeResult:
        yield Static(id="line", markup=False)
        yield from super().body()

    def left(self) -> ComposeResult:
        with Vertical(id="left"):
            yield Static(Content("WHAT VARIES"), classes="heading", markup=False)
            yield ExperimentForm(self.draft)
            with Horizontal(id="buttons"):
                yield Button(Content(f"Sweep  {self.key_of('sweep')}"), id="run", compact=True, variant="primary")
                yield Button(Content(f"Cancel  {self.key_of('cancel')}"), id="cancel", compact=True)

    def on_mount(self) -> None:
        self._say_draft()

    def on_resize(self) -> None:
        self.call_after_refresh(self._say_draft)

    def show(self) -> None:
        super().show()
        going = self.view.sweep is not None and self.view.sweep.going
        self.query_one("#run", Button).disabled = self.view.busy or bool(self._errors)
        self.query_one("#cancel", Button).disabled = not going

    def advice(self) -> tuple[str, ...]:
        return (
            f"Press {self.key_of('sweep')} to run every combination of the values"
            + (f" ({self.key_of('sweep.edit')} edits them)." if self.narrow else " on the left."),
            "Several values with commas, all of them with `all`, sizes that double with 64..512.",
            "Small sizes run first; what would not fit into the time is left out.",
        )

    def _usual(self) -> Experiment:
        experiment = self.view.experiment
        return defaults(False) if self._simulated(experiment) else experiment

    def _simulated(self, experiment: Experiment) -> bool:
        if kernel_named(experiment.kernel).backend != "cuda":
            return False
        return not self.view.found.gpus if self.view.found is not None else not hardware.driver_present()

    def _settled(self, experiment: Experiment) -> tuple[Experiment, bool]:
        if self._simulated(experiment):
            return experiment, True
        if self.view.found is None:  # asking would wait for the driver
            return settle(experiment), False
        return self.source.settled(experiment)

    def _say_draft(self) -> None:
        self._errors = self.draft.errors()
        words = next(iter(self._errors.values()), "") or self.draft.summary()
        edit = f"   {self.key_of('sweep.edit')} edit"
        self.query_one("#line", Static).update(line((words, "$text-error" if self._errors else ""), (edit, MUTED)))

    def _check(self) -> None:
        self._say_draft()
        self.query_one(ExperimentForm).say(self._errors)
        self.update(True)

    def on_experiment_form_changed(self, event: ExperimentForm.Changed) -> None:
        event.stop()
        if self.draft.last == "kernel":
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
        try:
            if self.view.busy:
                raise Refused("a run is still going; cancel it or wait for its end")
            sweep = Sweep(self.source, self.draft.grid(), self.draft.within())
        except Refused as refusal:
            self._check()
            self.say(str(refusal), "warning")
            return
        self.view.sweep = sweep
        sweep.start()
        sweep.tick()
        runs = len(sweep.grid.order)
        self.say(f"sweeping {runs} run{'s' * (runs != 1)}, {sweep.done} of them done before")

    def action_around(self) -> None:
        run = self.view.run
        if run is not None:
            self.draft.take(run.experiment)
            self.query_one(ExperimentForm).sync()
            self._check()
            self.say(f"the form sweeps around run {run.id}")

    def action_edit(self) -> None:
        def done(answer: str | None) -> None:
            self.query_one(ExperimentForm).sync()
            self._check()
            if answer == "run":
                self.action_sweep()

        self.app.push_screen(FormScreen(self.draft), done)

    def commands(self) -> Iterator[palette.Command]:
        yield from super().commands()
        chosen = {kernel.id for kernel in self.draft.kernels}
        for kernel in registry().values():
            words = "without" if kernel.id in chosen else "with"
            yield palette.Command(f"Sweep {words} {kernel.id}", partial(self._toggle, kernel.id), kernel.title)

    def _toggle(self, kernel: str) -> None:
        self.draft.toggle(kernel)
        self.query_one(ExperimentForm).sync()
        self._check()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "sweep":
                return not self.view.busy
            case "around":
                return self.view.run is not None
            case "edit":
                return self.narrow
        return super().check_action(action, parameters)

    def why_not(self, action: str) -> str:
        match action:
            case "sweep":
                return self.busy_words
            case "around":
                return "no run has begun yet that the form could be filled from"
            case "edit":
                return "the form is open already, on the left"
        return super().why_not(action)
