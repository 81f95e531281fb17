"""The live Run screen: the form, the present run, and the table of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.events import ScreenResume
from textual.widgets import Input

from fwtui.analysis.explanation import COUNTERS, LIMITS
from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment, kernel_named, settle
from fwtui.experiment.user_kernel_registry import find_kernel_file, known_kernels, path_of
from fwtui.machine import hardware
from fwtui.stream.requests import Hardware
from fwtui.tui.actions import bound, first_reason, hidden, hidden_look
from fwtui.tui.background import in_background, ladder_data_for
from fwtui.tui.frame import bindings
from fwtui.tui.frame.form_panel import FormLine, FormPanel
from fwtui.tui.frame.palette import Command
from fwtui.tui.frame.view import UNITS, View
from fwtui.tui.run.machine_facts import MachineFacts
from fwtui.tui.run.run_panel import RunPanel
from fwtui.tui.run.session_screen import BASELINE, CURSOR, FILTER, NEXT_RUNG, SORT, SessionScreen
from fwtui.tui.watch.kernel_file_picker import allowed, load, pick, watch
from fwtui.tui.widgets import run_labels
from fwtui.tui.widgets.draft import ExperimentDraft
from fwtui.tui.widgets.ladder_chart import Ladder
from fwtui.tui.widgets.run_table import HistoryTable
from fwtui.tui.widgets.text_panel import Update
from fwtui_kernels.auto import AUTO
from fwtui_kernels.own import source_of
from fwtui_kernels.plan import Kernel

FLAGSHIP = "h200-n4096-naive-blocked.fwt.jsonl.gz"
LONG = 1000  # cells; longer than every summary


_cannot_repeat = first_reason(bindings.cannot_run, bindings.no_run)


class RunScreen(SessionScreen):
    DEFAULT_CSS = "RunScreen.-narrow FormLine, RunScreen.-presenter FormLine { display: block; }"
    MOVES: ClassVar = (
        "Table of runs",
        (*bindings.MARKS, hidden_look("enter", "", "Show", "show the marked run; on the present run, try the next rung")),
    )
    BINDINGS: ClassVar = [
        bound("r,ctrl+r", "run", "Run", "start the experiment of the form", bindings.cannot_run, deliberate=True),
        bindings.CANCEL,
        hidden("a", "again", "Again", "repeat the run that is shown, and put it into the form", _cannot_repeat, deliberate=True),
        NEXT_RUNG,
        hidden_look("space", "flagship", "Play", "replay two runs on an H200 with an 8x speedup", deliberate=True),
        bindings.RECORD,
        bindings.MARK,
        bindings.PAUSE,
        bound("e", "edit", "Edit", "focus the form's first field; on a narrow screen, open the form"),
        CURSOR,
        BASELINE,
        SORT,
        FILTER,
        hidden("W", "watch", "Watch", "check and benchmark your kernel on every save", deliberate=True),
    ]

    def __init__(self, view: View):
        super().__init__(view)
        assert view.source is not None
        self.source = view.source
        texts = view.form_texts(self.PLACE)
        self.draft = view.drafts[self.PLACE] = ExperimentDraft(view.experiment, self._simulated, self._settled, texts)

    def body(self) -> ComposeResult:
        yield FormLine()
        yield from super().body()

    def left(self) -> ComposeResult:
        yield FormPanel(self, "EXPERIMENT", self.draft, "run", "edit", MachineFacts())

    def begun(self) -> None:
        super().begun()
        self._focus_what_is_seen()  # Textual gave the focus to the form, perhaps since the last resize
        if self.view.found is None:
            in_background(self, hardware.gpus, self._looked, "hardware")
        if ladder_data_for(self) is not None:
            self.update(True)
        self._run_requested()

    def on_screen_resume(self, event: ScreenResume) -> None:
        if self._complete:
            self._run_requested()

    def _run_requested(self) -> None:
        """Start the experiment that another screen has requested."""
        requested, self.view.requested = self.view.requested, None
        if requested is not None:
            self.draft.take(requested)
            self.query_one(FormPanel).sync()
            self.action_run()

    def ladders(self) -> list[Ladder]:
        """Return the ladders; none until they have been read."""
        if self.view.ladder_data is None:
            return []
        from fwtui.tui.frame.ladder_data import ladders

        return ladders(self.view)

    def on_resize(self) -> None:
        self.call_after_refresh(self._focus_what_is_seen)

    def action_presenter(self) -> None:
        super().action_presenter()
        self.call_after_refresh(self._focus_what_is_seen)

    def _focus_what_is_seen(self) -> None:
        """Focus the table of runs if the form is hidden."""
        if self.narrow and (self.focused is None or self.query_one("#left") in self.focused.ancestors):
            self.query_one(HistoryTable).focus()

    def _looked(self, found: Hardware) -> None:
        self.view.found = found
        self._restore_runnable()
        self.query_one(FormPanel).sync()
        self.update(True)

    def _restore_runnable(self) -> None:
        """Replace the form of the last visit if its kernel needs a GPU and cannot run on this machine."""
        default: Experiment = self.app.experiment  # type: ignore[attr-defined]
        restored = self.draft.kernel
        if restored.backend == "cuda" and default.kernel != restored.id and not self.draft.last and self.draft.errors():
            self.draft.take(default)
            self.show_message(f"{restored.id} needs a GPU, and this machine has none; the form now has {default.kernel}")

    def advice(self) -> tuple[str, ...]:
        """Return the first steps for a new user."""
        kernel = self.draft.kernel
        texts = {
            "run": f"run the experiment: {kernel.title}{'' if self.narrow else ', as set in the form on the left'}",
            "flagship": "replay two runs on an H200 with an 8x speedup (20 s)",
            "learn.course": "take the course, from three nested loops to the fastest kernel",
            "watch": "check and benchmark your kernel on every save",
        }
        texts |= {"climb": "go through the ladder, rung by rung"} if self.ladders() else {"help": "every key, and the glossary"}
        keys = {name: self.key_of(name) for name in texts}
        room = max(map(len, keys.values()))
        return tuple(f"{keys[name]:<{room}}  {about}" for name, about in texts.items())

    def state(self) -> object:
        form = bool(self.query_one(FormPanel).errors), self.draft.kernel.id
        return *form, self.view.found is None

    def show(self) -> None:
        busy = self.view.busy
        self.query_one(FormPanel).allow(not self.view.accepts_run, cancel=busy)
        self.query_one(MachineFacts).follow(self.model, self.key_of("limits"), self.draft.kernel)
        super().show()
        ladders = self.ladders() if self.view.run is None else []
        self.query_one(RunPanel).show_ladder(ladders[0] if ladders else None, len(self.query_one(Update).lines) + 1)

    def _simulated(self, kernel: Kernel, device: str) -> bool:
        return kernel.backend == "cuda" and (device == "simulator" or not self.view.has_gpu)

    def _settled(self, experiment: Experiment) -> Experiment:
        if self.view.found is not None:
            return self.source.settled(experiment)
        if experiment.kernel == AUTO.id:  # settled() would wait for the driver
            return experiment
        return settle(experiment, self._simulated(kernel_named(experiment.kernel), experiment.device))

    def summary(self) -> tuple[str, ...]:
        """Return the experiment in one line, in a long and a short form."""
        # saved as the form of the next start
        experiment = self.view.experiment = self.draft.experiment()
        return run_labels.summary(experiment, LONG), run_labels.summary(experiment, 0)

    def checked(self) -> None:
        """Show the first error of the form on the log line, or clear it."""
        sentence = next(iter(self.query_one(FormPanel).errors.values()), "")
        if sentence or (self.view.notice is not None and self.view.notice.level == "warning"):
            self.show_message(sentence, "warning")
        else:
            self.update()

    def action_run(self) -> None:
        with self.reporting():
            experiment = self.draft.typed()
            if self.view.found is None and self.draft.kernel.backend != "cpu":
                raise Refused("GPU detection is still running; try again in a moment, or choose a CPU kernel")
            number = self.source.start(self.source.settled(experiment))
            self.view.selected = None
            self.view.resume()
            self.query_one(HistoryTable).focus()
            later = f"starts after the measurement; {self.key_of('cancel')} cancels both"
            self.show_message(f"run {number} {later if self.view.limits_device is not None else 'is starting'}")

    def action_again(self) -> None:
        if self.view.run is not None:
            with self.reporting():
                # an event has only the name of a file; the request has its path
                self.draft.take(self.source.experiments.get(self.view.run.id, self.view.run.experiment))
                self.query_one(FormPanel).sync()
                self.action_run()

    def action_next_rung(self) -> None:
        if self.view.run is not None and self.next_rung is not None:
            with self.reporting():
                self.draft.take(self.source.experiments.get(self.view.run.id, self.view.run.experiment))
                self.choose(self.next_rung.kernel)
                self.action_run()

    def fixes(self) -> Mapping[str, str]:
        return {
            COUNTERS: f"{self.key_of('counters')}: hardware counters would show it",
            LIMITS: f"press {self.key_of('limits')} to measure the peak rates of this CPU",
        }

    def action_flagship(self) -> None:
        from fwtui.sessions.folders import shipped_folder
        from fwtui.tui.frame.loaded_recording import SessionWanted

        self.post_message(SessionWanted(shipped_folder() / FLAGSHIP))

    @property
    def way_back(self) -> Callable[[], object] | None:
        cancels = self.view.selected is None and self.view.busy and not isinstance(self.focused, Input)
        return self.action_cancel if cancels else super().way_back

    def action_edit(self) -> None:
        self.query_one(FormPanel).edit()

    def on_experiment_form_own_wanted(self) -> None:
        self.choose_own()

    def choose_own(self) -> None:
        """Choose a user kernel file for the form."""
        pick(self, self._load, "Your kernel")

    def action_watch(self) -> None:
        """Watch the form's kernel if it is a user kernel, else choose a file."""
        path = path_of(self.draft.kernel.id)
        if path:
            with self.reporting():
                allowed(self, find_kernel_file(path), self._watch)
        else:
            self.choose_watched()

    def choose_watched(self) -> None:
        pick(self, self._watch)

    def _watch(self, path: Path) -> None:
        watch(self, path, self.draft.text("device"))

    def _load(self, path: Path) -> None:
        def chosen(kernel: str) -> None:
            self.show_message(f"{self.key_of('watch')} checks {sanitise(source_of(path).name)} on every save")
            self.choose(kernel)

        load(self, path, chosen)

    def choose(self, kernel: str) -> None:
        self.draft.set("kernel", kernel)
        self.query_one(FormPanel).sync()

    def commands(self) -> Iterator[Command]:
        yield from super().commands()
        yield Command("Kernel: your kernel…", self.choose_own, "a file with plan and build, such as `fwtui new` writes")
        yield Command("Watch a kernel file…", self.choose_watched, "check and benchmark it on every save")
        for kernel in (*known_kernels().values(), AUTO):
            where = f" ({kernel.backend})" if kernel is not AUTO else ""
            yield Command(f"Kernel: {kernel.id}", partial(self.choose, kernel.id), f"{kernel.title}{where}")
        backends = ("cpu", "cuda") if self.view.found and self.view.found.gpus else ("cpu",)
        for backend in backends if not self.view.busy else ():
            title = f"Measure the peak rates of this {UNITS[backend]}"
            yield Command(title, partial(self.measure, backend), "for % of peak; the result is saved")

    def measure(self, backend: str) -> None:
        """Measure the peak rates of the CPU, or of the GPU that the form names."""
        with self.reporting():
            self.show_message(self.view.measure_limits(DeviceId.parse(self.draft.text("device")).on(backend)))
