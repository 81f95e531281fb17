"""Choose what varies and how long it may take, and watch the map fill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult

from fwtui.campaigns.sweep.running import Sweep
from fwtui.common.errors import Refused
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment, Settled, as_it_ran, defaults, kernel_named, settle
from fwtui.experiment.own_kernels import known_kernels, located, name_for
from fwtui.machine.kernel_folder import kernel_files
from fwtui.tui.actions import bound, hidden, unless
from fwtui.tui.frame import bindings, palette
from fwtui.tui.frame.form_panel import FormLine, FormPanel
from fwtui.tui.frame.view import View
from fwtui.tui.sweep.form_model import SweepDraft
from fwtui.tui.sweep.screen import LOOKS, SweepScreen
from fwtui.tui.watch.opening import allowed, load, pick
from fwtui_kernels.auto import AUTO


class LiveSweepScreen(SweepScreen):
    DEFAULT_CSS = """
    LiveSweepScreen.-narrow #left { display: none; }
    LiveSweepScreen.-narrow FormLine { display: block; }
    """
    SUBMITS = "Sweep"
    BINDINGS: ClassVar = [
        bound(
            *("r,ctrl+r", "run", "Sweep", "run what the form says; finished runs are not repeated"),
            *(bindings.is_busy, "sweep"),
            key_display="r",
        ),
        *LOOKS,
        hidden(
            *("f", "around", "From run", "put the run that is shown into the form"),
            *(unless(attrgetter("view.run"), "no run has begun yet to fill the form from"), "sweep.around"),
            rare=True,
        ),
        bound("e", "edit", "Edit", "the form, where the screen is too narrow to keep it open", bindings.form_open, "sweep.edit"),
        *bindings.SHARED,
    ]

    def __init__(self, view: View):
        super().__init__(view)
        assert view.source is not None
        self.source = view.source
        usual = defaults(False) if self._simulated(view.experiment) else view.experiment
        self._offered: dict[str, Path] = {}
        with suppress(Refused):  # settings that cannot be read were told when the program began
            self._offered = {name_for(path): path for path in kernel_files()}
        self.draft = SweepDraft(usual, lambda: self._settled, self._offered)

    def body(self) -> ComposeResult:
        yield FormLine()
        yield from super().body()

    def left(self) -> ComposeResult:
        yield FormPanel(self, "WHAT VARIES", self.draft, "sweep", "sweep.edit")

    def show(self) -> None:
        super().show()
        going = self.view.sweep is not None and self.view.sweep.going
        self.query_one(FormPanel).allow(self.view.busy, cancel=going)

    def advice(self) -> tuple[str, ...]:
        return (
            f"Press {self.key_of('sweep')} to run every combination of the values"
            + (f" ({self.key_of('sweep.edit')} edits them)." if self.narrow else " on the left."),
            "Several values with commas, all of them with `all`, sizes that double with 64..512.",
            "Small sizes run first; what would not fit into the time is left out.",
        )

    def _simulated(self, experiment: Experiment) -> bool:
        return kernel_named(experiment.kernel).backend == "cuda" and not self.view.has_gpu

    def _settled(self, experiment: Experiment) -> Settled:
        if self._simulated(experiment):
            return as_it_ran(experiment, DeviceId("simulator"))
        if self.view.found is None and experiment.kernel != AUTO.id:  # asking would wait for the driver
            return settle(experiment)
        return self.source.settled(experiment)

    def summary(self) -> tuple[str, ...]:
        """What varies, in a line."""
        return (self.draft.summary(),)

    def checked(self) -> None:
        self.update(True)

    def action_run(self) -> None:
        file = next(iter(self.draft.files), "")
        if not file:
            self.query_one(FormPanel).begin(self._start)
            return
        with self.saying():  # what it offers is not known before
            allowed(self, self._offered.get(file) or located(file), partial(self._admit, file, self.action_run))

    def _start(self) -> str:
        if self.view.busy:
            raise Refused("a run is still going; cancel it or wait for its end")
        sweep = self.view.sweep = Sweep(self.source, self.draft.grid(), self.draft.within())
        sweep.start()
        sweep.tick()
        runs = len(sweep.grid.order)
        return f"sweeping {runs} run{'s' * (runs != 1)}, {sweep.done} of them done before"

    def choose_own(self) -> None:
        """Ask for a user's kernel file, and put it among those that are swept."""
        pick(self, "Sweep with a kernel of your own", lambda path: self._admit(str(path), lambda: None, path))

    def _admit(self, file: str, then: Callable[[], None], path: Path) -> None:
        def loaded(kernel: str) -> None:
            self.say("")
            self.draft.loaded(file, kernel)
            self.query_one(FormPanel).sync()
            then()

        load(self, path, loaded)

    def action_around(self) -> None:
        run = self.view.run
        if run is not None:
            with self.saying():
                self.draft.take(run.experiment)
                self.query_one(FormPanel).sync()
                self.say(f"the form sweeps around run {run.id}")

    def action_edit(self) -> None:
        self.query_one(FormPanel).edit()

    def commands(self) -> Iterator[palette.Command]:
        yield from super().commands()
        chosen = {kernel.id for kernel in self.draft.kernels}
        yield palette.Command("Sweep with your own…", self.choose_own, "a file with plan and build, such as `fwtui new` writes")
        for kernel in known_kernels().values():
            words = "without" if kernel.id in chosen else "with"
            yield palette.Command(f"Sweep {words} {kernel.id}", partial(self._toggle, kernel.id), kernel.title)

    def _toggle(self, kernel: str) -> None:
        self.draft.toggle(kernel)
        self.query_one(FormPanel).sync()
