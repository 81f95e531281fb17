"""The dashboard: choose an experiment, run it, watch it, keep it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from fwtui.analysis.answers import why_none
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment, kernel_named, settle
from fwtui.machine import hardware
from fwtui.machine.telemetry.facts import Hardware
from fwtui.tui.background import in_background
from fwtui.tui.frame import bindings
from fwtui.tui.frame.dialogs import FormScreen
from fwtui.tui.frame.palette import Command
from fwtui.tui.frame.view import View
from fwtui.tui.run.history import HistoryTable
from fwtui.tui.run.session_screen import SessionScreen
from fwtui.tui.widgets import wording
from fwtui.tui.widgets.draft import Draft
from fwtui.tui.widgets.drawn import MUTED, line
from fwtui.tui.widgets.form import ExperimentForm
from kernels import registry
from kernels.auto import AUTO
from kernels.plan import Kernel

UNITS = {"cpu": "CPU", "cuda": "GPU"}


class RunScreen(SessionScreen):
    DEFAULT_CSS = """
    RunScreen #left ExperimentForm { height: 1fr; }
    RunScreen #buttons { height: 1; margin-top: 1; }
    RunScreen Button { margin-right: 1; min-width: 14; }
    RunScreen #line { display: none; height: 1; padding: 0 1; }
    RunScreen.-narrow #line, RunScreen.-presenter #line { display: block; }
    """
    AUTO_FOCUS = "#field-kernel"
    BINDINGS: ClassVar = [
        replace(bindings.bound("r,ctrl+r", "run", "Run", "start what the form says (ctrl+r also while typing)"), key_display="r"),
        bindings.CANCEL,
        bindings.hidden("a", "again", "Again", "repeat the run that is shown, and put it into the form"),
        bindings.RECORD,
        bindings.MARK,
        bindings.PAUSE,
        bindings.MOTION,
        bindings.bound("e", "edit", "Edit", "the form, where the screen is too narrow to keep it open"),
        bindings.ANSWERS,
        bindings.COUNTERS,
        bindings.BASELINE,
        *bindings.COMMON,
    ]

    def __init__(self, view: View):
        super().__init__(view)
        assert view.source is not None
        self.source = view.source
        self.draft = Draft(view.experiment, self._simulated, self._settled)
        self._wrong = False  # whether the form says what cannot run
        self._awaited: int | None = None  # the run whose answers are to open when they come

    def body(self) -> ComposeResult:
        yield Static(id="line", markup=False)
        yield from super().body()

    def left(self) -> Widget:
        return Vertical(
            Static(Content("EXPERIMENT"), classes="heading", markup=False),
            ExperimentForm(self.draft),
            Horizontal(
                Button(Content(f"Run  {self.key_of('run')}"), id="run", compact=True, variant="primary", action="screen.run"),
                Button(Content(f"Cancel  {self.key_of('cancel')}"), id="cancel", compact=True, action="screen.cancel"),
                id="buttons",
            ),
            id="left",
        )

    def on_mount(self) -> None:
        self._say_draft()

    def begun(self) -> None:
        super().begun()
        self._focus_what_is_seen()  # Textual gave the focus to the form, perhaps since the last resize
        if self.view.found is None:
            in_background(self, hardware.gpus, self._looked, "hardware")

    def on_resize(self) -> None:
        self.call_after_refresh(self._say_draft)
        self.call_after_refresh(self._focus_what_is_seen)

    def action_presenter(self) -> None:
        super().action_presenter()
        self.call_after_refresh(self._focus_what_is_seen)

    def _focus_what_is_seen(self) -> None:
        """Where the form is hidden, the arrows are the table's."""
        if self.narrow and (self.focused is None or self.query_one("#left") in self.focused.ancestors):
            self.query_one(HistoryTable).focus()

    def _looked(self, found: Hardware) -> None:
        self.view.found = found
        self.query_one(ExperimentForm).sync()
        self._check(self.draft.errors())
        self.update(True)

    def advice(self) -> tuple[str, ...]:
        kernel = self.draft.kernel
        first = f"Press {self.key_of('run')} to run the experiment{'' if self.narrow else ' on the left'}."
        return (
            first,
            "",
            f"{kernel.title}: {kernel.summary}",
            "",
            f"{self.key_of('help')} shows every key and what the words mean.",
        )

    def state(self) -> object:
        return (self._wrong, self.draft.kernel.id, self.view.found is None)

    def show(self) -> None:
        busy = self.view.busy
        self.query_one("#cancel", Button).disabled = not busy
        self.query_one("#run", Button).disabled = busy or self._wrong
        super().show()
        self._open_awaited(busy)

    def _open_awaited(self, busy: bool) -> None:
        """Answers that were asked for open by themselves, unless the user has gone on to something else meanwhile."""
        run = self.view.run
        if self._awaited is None or (run is not None and run.id == self._awaited and busy):
            return
        wanted, self._awaited = self._awaited, None
        if run is not None and run.id == wanted and run.answers is not None and self.app.screen is self:
            super().action_answers()

    def _simulated(self, kernel: Kernel, device: str) -> bool:
        if kernel.backend != "cuda":
            return False
        if device == "simulator":
            return True
        return not self.view.found.gpus if self.view.found is not None else not hardware.driver_present()

    def _settled(self, experiment: Experiment) -> Experiment:
        if self.view.found is None:  # asking would wait for the driver; start() asks again
            return settle(experiment, self._simulated(kernel_named(experiment.kernel), experiment.device))
        return self.source.settled(experiment)[0]

    def _rough(self) -> Experiment:
        """What the form says as far as it can be read."""
        with contextlib.suppress(Refused):
            return self.draft.experiment()
        return Experiment(kernel=self.draft.kernel.id)

    def _say_draft(self) -> None:
        errors = self.draft.errors()
        self._wrong = bool(errors)
        edit = f"   {self.key_of('edit')} edit"
        room = self.app.size.width - 2 - len(edit)
        words = wording.summary(self._rough(), room) if not errors else next(iter(errors.values()))
        style = "" if not errors else "$text-error"
        self.query_one("#line", Static).update(line((words, style), (edit, MUTED)))

    def _check(self, errors: dict[str, str]) -> None:
        self.query_one(ExperimentForm).say(errors)
        self._say_draft()
        sentence = next(iter(errors.values()), "")
        if sentence or (self.view.told is not None and self.view.told.level == "warning"):
            self.say(sentence, "warning")
        else:
            self.update()

    def on_experiment_form_changed(self, event: ExperimentForm.Changed) -> None:
        event.stop()
        self._check(event.errors)

    def on_experiment_form_submitted(self, event: ExperimentForm.Submitted) -> None:
        event.stop()
        self.action_run()

    def action_run(self) -> None:
        try:
            if self.view.campaign is not None:
                raise Refused(f"the experiments of {self.view.campaign.name} are running; cancel them or wait for their end")
            experiment = self.draft.experiment()
            if self.view.found is None and self.draft.kernel.backend != "cpu":
                raise Refused("still looking for GPUs; try again in a moment, or choose a CPU kernel")
            number = self.source.start(experiment)
        except Refused as refusal:
            self._check(self.draft.errors())
            self.say(str(refusal), "warning")
            return
        self.view.selected = None
        self.view.resume()
        self.say(f"run {number} is starting")

    def action_again(self) -> None:
        if self.view.run is not None:
            # an event names a file without its folder; what was asked names the whole path
            self.draft.take(self.source.asked.get(self.view.run.id, self.view.run.experiment))
            self.query_one(ExperimentForm).sync()
            self._say_draft()
            self.action_run()

    @property
    def _askable(self) -> bool:
        """Whether the distances of the run that is shown could be asked about."""
        run = self.view.run
        return run is not None and run.id in self.source.asked and not self.view.busy and not why_none(run)

    def action_answers(self) -> None:
        run = self.view.run
        if run is None or (self.told is not None and self.told.vertices):
            super().action_answers()
            return
        with self.saying():
            self.source.answer(run.id)
            self._awaited = run.id
            again = run.id != self.model.current and run.seconds is not None
            once_more = f", computed once more (about {units.duration(run.seconds)})" if again else ""
            self.say(f"summarising run {run.id}{once_more}; {self.key_of('cancel')} cancels")

    def action_cancel(self) -> None:
        self._awaited = None
        super().action_cancel()

    @property
    def _countable(self) -> bool:
        """Whether there are counters to show, or a run whose counters could be asked for."""
        run = self.view.run
        if run is None:
            return False
        return bool(run.counted or (run.state == "done" and run.id in self.source.asked and not self.view.busy))

    def action_counters(self) -> None:
        run = self.view.run
        if run is None or run.counted:
            super().action_counters()
            return
        with self.saying():
            self.source.count(run.id)
            self.say(f"profiling the kernels of run {run.id} again; nothing is timed meanwhile")

    def action_back(self) -> None:
        if self.view.selected is None and self.view.busy and not isinstance(self.focused, Input):
            self.action_cancel()
        else:
            super().action_back()

    def recording_title(self) -> str:
        return self.draft.kernel.id

    def action_edit(self) -> None:
        def done(answer: str | None) -> None:
            self.query_one(ExperimentForm).sync()
            self._check(self.draft.errors())
            if answer == "run":
                self.action_run()

        self.app.push_screen(FormScreen(self.draft), done)

    def choose(self, kernel: str) -> None:
        """Put a kernel into the form."""
        self.draft.set("kernel", kernel)
        self.query_one(ExperimentForm).sync()
        self._check(self.draft.errors())

    def commands(self) -> Iterator[Command]:
        yield from super().commands()
        for kernel in (*registry().values(), AUTO):
            where = f" ({kernel.backend})" if kernel is not AUTO else ""
            yield Command(f"Kernel: {kernel.id}", partial(self.choose, kernel.id), f"{kernel.title}{where}")
        backends = ("cpu", "cuda") if self.view.found and self.view.found.gpus else ("cpu",)
        for backend in backends if not self.view.busy else ():
            words = f"Measure what this {UNITS[backend]} can do at most"
            yield Command(words, partial(self.measure, backend), "the limit that rates are shown as a share of; kept for later")

    def measure(self, backend: str) -> None:
        """Have the limit of the CPU or of the GPU that the form names measured."""
        with self.saying():
            device = DeviceId.parse(self.draft.text("device"))
            self.source.measure_limits(backend, device.index if backend == "cuda" else 0)
            self.say(f"measuring what this {UNITS[backend]} can do at most; some ten seconds")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        busy = self.view.busy
        match action:
            case "run":
                return not busy
            case "again":
                return not busy and self.view.run is not None
            case "back":
                return busy or bool(super().check_action(action, parameters))
            case "edit":
                return self.narrow
            case "answers":
                return self.told is not None or self._askable
            case "counters":
                return self._countable
        return super().check_action(action, parameters)

    def why_not(self, action: str) -> str:
        run = self.view.run
        if self.view.busy and action in ("run", "again", "answers", "counters"):
            return self.busy_words
        match action:
            case "edit":
                return "the form is open already, on the left"
            case "again" if run is None:
                return "no run has begun yet that could be repeated"
            case "answers" | "counters" if run is not None and run.id not in self.source.asked:
                return f"nothing more can be asked of run {run.id}; {self.key_of('again')} repeats it"
            case "answers" if run is not None:
                return why_none(run)
            case "counters" if run is not None:
                return f"run {run.id} did not come to its end, so that there is nothing to count"
        return super().why_not(action)
