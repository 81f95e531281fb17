"""The dashboard: choose an experiment, run it, watch it, keep it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from threading import Thread
from typing import ClassVar

from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Static

from fwtui import hardware, units
from fwtui.errors import Refused
from fwtui.experiment import Experiment, kernel_named, settle
from fwtui.reproduce.campaign import Campaign
from fwtui.reproduce.preset import Scale
from fwtui.telemetry.facts import Hardware
from fwtui.tui import claims, commands, wording
from fwtui.tui.dialogs import FormScreen, MarkerScreen
from fwtui.tui.draft import Draft
from fwtui.tui.drawn import MUTED, line
from fwtui.tui.form import ExperimentForm
from fwtui.tui.screen import BASELINE, COMMON, SessionScreen
from fwtui.tui.source import Looked, Source
from fwtui.tui.topbar import Top
from kernels.plan import Kernel


class RunScreen(SessionScreen):
    DEFAULT_CSS = """
    RunScreen #left ExperimentForm { height: 1fr; }
    RunScreen #buttons { height: 1; margin-top: 1; }
    RunScreen Button { margin-right: 1; min-width: 14; }
    """
    AUTO_FOCUS = "#field-kernel"
    BINDINGS: ClassVar = [
        Binding(
            "r,ctrl+r", "run", "Run", id="run", key_display="r", tooltip="start what the form says (ctrl+r also while typing)"
        ),
        Binding("c", "cancel", "Cancel", id="cancel", tooltip="stop the run before its next step"),
        Binding("a", "again", "Again", id="again", show=False, tooltip="repeat the run that is shown, and put it into the form"),
        Binding("R", "record", "Record", id="record", key_display="R", tooltip="recording on and off"),
        Binding("m", "mark", "Marker", id="mark", tooltip="leave a marker with a few words in the recording"),
        Binding("e", "edit", "Edit", id="edit", tooltip="the form, where the screen is too narrow to keep it open"),
        Binding("escape", "back", "Back", id="back", show=False, tooltip="back to the newest run; cancels a run that is going"),
        BASELINE,
        *COMMON,
    ]
    NAME = "Run"

    def __init__(self, source: Source, experiment: Experiment, found: Hardware | None = None):
        super().__init__(source.model)
        self.source = source
        self._found = found  # what GPUs are here; None until somebody has looked
        self.draft = Draft(experiment, self._simulated, self._settled)
        self._recording_since = 0.0
        self._campaign: Campaign | None = None
        self._wrong = False  # whether the form says what cannot run

    def left(self) -> Widget:
        return Vertical(
            Static(Content("EXPERIMENT"), classes="heading", markup=False),
            ExperimentForm(self.draft),
            Horizontal(
                Button(Content("Run  r"), id="run", compact=True, variant="primary"),
                Button(Content("Cancel  c"), id="cancel", compact=True),
                id="buttons",
            ),
            id="left",
        )

    def on_mount(self) -> None:
        super().on_mount()
        if self._found is None:
            Thread(target=self._look, name="hardware", daemon=True).start()
        self._say_draft()

    def on_resize(self) -> None:
        super().on_resize()
        self.call_after_refresh(self._say_draft)

    def _look(self) -> None:
        # in a daemon thread: where a driver hangs, leaving must not wait for it
        with contextlib.suppress(Exception):
            self.post_message(Looked(hardware.gpus()))

    def on_looked(self, event: Looked) -> None:
        self._found = event.found
        self.query_one(ExperimentForm).sync()
        self._check(self.draft.errors())
        self.update(True)

    def top(self) -> Top:
        recorder = self.source.recorder
        recording = ""
        if recorder is not None:
            recording = f"{units.clock(self.source.now - self._recording_since)} · {units.memory(recorder.bytes)}"
        return Top(self.NAME, wording.device(self.model), recording)

    def advice(self) -> tuple[str, ...]:
        kernel = self.draft.kernel
        first = "Press r to run the experiment" + ("" if self.narrow else " on the left") + "."
        return (first, "", f"{kernel.title}: {kernel.summary}", "", "? shows every key and what the words mean.")

    def state(self) -> object:
        recording = self.source.recorder
        seconds = int(self.source.now) if recording is not None else None
        return (self.busy, seconds, self.draft.kernel.id, self._found is None)

    def update(self, forced: bool = False) -> None:
        if not self.is_mounted:
            return
        busy = self.busy
        self.query_one("#cancel", Button).disabled = not busy
        self.query_one("#run", Button).disabled = busy or self._wrong
        super().update(forced)

    @property
    def busy(self) -> bool:
        return self.source.busy or self._campaign is not None

    def reproduce(self, name: str, quick: bool) -> None:
        """Run a document's experiments one after the other, then show its claims with their answers."""
        try:
            if self.busy:
                raise Refused("something is still running; cancel it or wait for its end")
            if self._found is None:
                raise Refused("still looking for GPUs; try again in a moment")
            scale = Scale(gpu=bool(self._found.gpus), quick=quick)
            self._campaign = Campaign(self.source, name, scale, self.say)
        except Refused as refusal:
            self.say(str(refusal), "warning")
            return
        self.selected = None
        self._recording_since = self.source.now
        self.update()

    def tick(self) -> None:
        """Go on with what runs one after the other, and agree with the model."""
        campaign = self._campaign
        if campaign is not None and not campaign.tick():
            self._end_campaign()
            self.ask_claims(campaign.name)
        self.update()

    def _end_campaign(self) -> None:
        campaign, self._campaign = self._campaign, None
        if campaign is not None:
            campaign.close()

    def _simulated(self, kernel: Kernel, device: str) -> bool:
        if kernel.backend != "cuda":
            return False
        if device == "simulator":
            return True
        return not self._found.gpus if self._found is not None else not hardware.driver_present()

    def _settled(self, experiment: Experiment) -> Experiment:
        if self._found is None:  # asking would wait for the driver; start() asks again
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
        edit = "   e edit"
        room = self.app.size.width - 2 - len(edit)
        words = wording.summary(self._rough(), room) if not errors else next(iter(errors.values()))
        style = "" if not errors else "$text-error"
        self.query_one("#line", Static).update(line((words, style), (edit, MUTED)))

    def _check(self, errors: dict[str, str]) -> None:
        self.query_one(ExperimentForm).say(errors)
        self._say_draft()
        sentence = next(iter(errors.values()), "")
        if sentence or (self._told is not None and self._told.level == "warning"):
            self.say(sentence, "warning")
        else:
            self.update()

    def on_experiment_form_changed(self, event: ExperimentForm.Changed) -> None:
        event.stop()
        self._check(event.errors)

    def on_experiment_form_submitted(self, event: ExperimentForm.Submitted) -> None:
        event.stop()
        self.action_run()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "run":
            self.action_run()
        else:
            self.action_cancel()

    def action_run(self) -> None:
        try:
            experiment = self.draft.experiment()
            if self._found is None and self.draft.kernel.backend != "cpu":
                raise Refused("still looking for GPUs; try again in a moment, or choose a CPU kernel")
            number = self.source.start(experiment)
        except Refused as refusal:
            self._check(self.draft.errors())
            self.say(str(refusal), "warning")
            return
        self.selected = None
        self.say(f"run {number} is starting")

    def action_cancel(self) -> None:
        self._end_campaign()
        if self.source.busy:
            self.source.cancel()
            self.say("cancelling; what does not end by itself is killed after 2 s")

    def action_again(self) -> None:
        if self.run is not None:
            # an event names a file without its folder; what was asked names the whole path
            self.draft.take(self.source.asked.get(self.run.id, self.run.experiment))
            self.query_one(ExperimentForm).sync()
            self._say_draft()
            self.action_run()

    @property
    def _countable(self) -> bool:
        """Whether there are counters to show, or a run whose counters could be asked for."""
        run = self.run
        return run is not None and bool(run.counted or (run.state == "done" and run.id in self.source.asked and not self.busy))

    def action_counters(self) -> None:
        run = self.run
        if run is None or run.counted:
            super().action_counters()
            return
        try:
            self.source.count(run.id)
        except Refused as refusal:
            self.say(str(refusal), "warning")
            return
        self.say(f"profiling the kernels of run {run.id} again; nothing is timed meanwhile")

    def action_back(self) -> None:
        if self.selected is not None:
            self.selected = None
            self.update()
        else:
            self.action_cancel()

    def action_record(self) -> None:
        recorder = self.source.recorder
        if recorder is not None:
            self.source.stop_recording()
            self.say(f"recorded {units.memory(recorder.bytes)} in {recorder.path}")
            return
        try:
            recorder = self.source.record(title=self.draft.kernel.id)
        except Refused as refusal:
            self.say(str(refusal), "error")
            return
        self._recording_since = self.source.now
        self.say(f"recording to {recorder.path}")

    def action_mark(self) -> None:
        def leave(words: str | None) -> None:
            if words:
                self.source.mark(words)

        self.app.push_screen(MarkerScreen(), leave)

    def action_edit(self) -> None:
        def done(answer: str | None) -> None:
            self.query_one(ExperimentForm).sync()
            self._check(self.draft.errors())
            if answer == "run":
                self.action_run()

        self.app.push_screen(FormScreen(self.draft), done)

    def action_leave(self) -> None:
        if self.source.busy:
            self.source.cancel()
        self.app.exit(return_code=0)

    def choose(self, kernel: str) -> None:
        """Put a kernel into the form."""
        self.draft.set("kernel", kernel)
        self.query_one(ExperimentForm).sync()
        self._check(self.draft.errors())

    def commands(self) -> Iterator[commands.Command]:
        yield from super().commands()
        yield from commands.kernels(self.choose)
        yield from claims.starting(self.reproduce)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        busy = self.busy
        match action:
            case "run":
                return not busy
            case "cancel":
                return busy
            case "again":
                return not busy and self.run is not None
            case "back":
                return busy or self.selected is not None
            case "mark":
                return self.source.recorder is not None
            case "edit":
                return self.narrow
            case "counters":
                return self._countable
        return super().check_action(action, parameters)
