"""The live Sweep screen: a form for axes and time, and the map while the sweep runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult

from fwtui.campaigns.sweep.axis import ALL, DEVICES, SweepAxis, names, read_axis, value
from fwtui.campaigns.sweep.grid import Grid, Settle
from fwtui.campaigns.sweep.running import MAX_WITHIN, MIN_WITHIN, PASSES_SECONDS, Sweep
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.common.text import quoted
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment, Settled, as_it_ran, changed, defaults, kernel_named, settle
from fwtui.experiment.fields import FIELDS
from fwtui.experiment.user_kernel_registry import find_kernel_file, is_path, known_kernels, name_of_file, path_of
from fwtui.tui.actions import bound, hidden
from fwtui.tui.frame import bindings
from fwtui.tui.frame.form_panel import FormLine, FormPanel
from fwtui.tui.frame.palette import Command
from fwtui.tui.frame.view import View
from fwtui.tui.sweep.screen import LOOKS, SweepScreen
from fwtui.tui.watch.kernel_file_picker import allowed, load, pick
from fwtui.tui.widgets.draft import MAIN, OPTION, Draft, FormRow, loaded_kernel
from fwtui_kernels.auto import AUTO
from fwtui_kernels.plan import Kernel

WITHIN = "within"
DEFAULT_WITHIN = "120"
DEFAULT_SIZES = {"cpu": "64..512", "cuda": "256..4096", "any": "64..512"}
# axes that only some kernels have
HAVING: Mapping[str, Callable[[Kernel], object]] = {DEVICES: lambda k: k.ranked, "tile": lambda k: k.tiles}
OPEN = "each kernel's own"
HELP = {
    "n": "sizes: 256,512 or 256..4096 (doubling) or 256..4096+256",
    DEVICES: "numbers of devices that share one graph, like 1,2,4: the first GPUs, or processes on CPUs",
    WITHIN: "seconds for all runs together; runs that do not fit are skipped",
}


class SweepDraft(Draft):
    """The content of the sweep form."""

    def __init__(self, experiment: Experiment, settled: Callable[[], Settle], texts: Mapping[str, str] = {}):
        """`settled()` is called at each use, because GPUs may be found later; `texts` are those of a former form."""
        self._settled = settled
        self._texts: dict[str, str] = {}
        self.take(experiment)
        self._texts |= texts

    def take(self, experiment: Experiment) -> None:
        """Sweep sizes and tiles around this experiment, on generated graphs; what the kernel chooses itself stays open.

        Raises Refused.
        """
        kernel = loaded_kernel(experiment)
        plain = changed(experiment, code="", tile=0, options={}, launch="", devices="", file="", auto="")
        self.base = changed(plain, budget=PASSES_SECONDS, repeats=0)
        defaults = {"memory": Experiment().memory, "launch": kernel.launch_modes[-1], "tile": "", DEVICES: "1"}
        defaults |= {o.name: str(o.default) for o in kernel.options}
        texts = {name: value(experiment, name) for name in names()}
        self._texts = {name: "" if text == defaults.get(name) else text for name, text in texts.items()}
        self._texts |= {"n": DEFAULT_SIZES[kernel.backend], "tile": ALL if kernel.tiles else "", WITHIN: DEFAULT_WITHIN}
        self.last = ""

    @property
    def files(self) -> tuple[str, ...]:
        """The user kernels in the form that are not loaded yet, so that their options are unknown."""
        entries = (name.strip() for name in self._texts["kernel"].split(","))
        return tuple(name for name in entries if is_path(name) and not name_of_file(name))

    def name_kernel(self, file: str, kernel: str) -> None:
        """Replace a file in the form by its kernel, or add the kernel if the form does not name the file."""
        entries = [name.strip() for name in self._texts["kernel"].split(",") if name.strip()]
        named = [kernel if name == file else name for name in (entries if file in entries else [*entries, file])]
        self._texts["kernel"] = ",".join(dict.fromkeys(named))

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels in the form; the kernel of the base experiment if the text is invalid."""
        try:
            return tuple(kernel_named(name) for name in read_axis("kernel", self._texts["kernel"], ()).values)
        except Refused:
            return (kernel_named(self.base.kernel),)

    def rows(self) -> tuple[FormRow, ...]:
        """Return a row for every axis of the kernels, and the time."""
        kernels = self.kernels
        offered = {o.name for kernel in kernels for o in kernel.options}
        options = {o.name: o.help for kernel in known_kernels().values() for o in kernel.options}
        titles = {f.name: f.title for f in FIELDS}
        helps = {f.name: f"{f.help}; several, separated by commas, or all" for f in FIELDS}
        helps |= {name: f"{text}; several, separated by commas, or all" for name, text in options.items()} | HELP
        rows: list[FormRow] = []
        for name in names():
            there = name in offered or name not in options
            if name in HAVING:
                there = any(map(HAVING[name], kernels))
            key, title = (OPTION if name in options else "") + name, titles.get(name) or name.replace("_", " ").capitalize()
            text = self._texts.get(name, "")  # an option of a kernel loaded after the form was filled
            hint = "1" if name == DEVICES else OPEN
            main = name in (*MAIN, DEVICES)
            changed = text not in ("", value(Experiment(), name))
            rows.append(FormRow(key, title, helps[name], text, None, there, hint, more=not main, changed=changed))
        rows.sort(key=lambda row: MAIN.index(row.key) if row.key in MAIN else len(MAIN))
        return (*rows, FormRow(WITHIN, "Budget, s", HELP[WITHIN], self._texts[WITHIN], None))

    def texts(self) -> dict[str, str]:
        """Return the texts to save. User kernels are named by their files, because their names exist only after loading."""
        kernels = ",".join(path_of(word.strip()) or word for word in self._texts["kernel"].split(","))
        return {**self._texts, "kernel": kernels}

    def set(self, key: str, text: str) -> None:
        self._texts[key.removeprefix(OPTION)] = text
        self.last = key

    def misread(self) -> dict[str, str]:
        errors: dict[str, str] = {}
        for row in self.rows():
            try:
                if row.key == WITHIN:
                    self.within()
                elif row.key != WITHIN and row.shown and row.text.strip() and not (row.key == "kernel" and self.files):
                    self._axis(row)
            except Refused as refusal:
                errors[row.key] = str(refusal)
        return errors

    def within(self) -> float:
        """Return the seconds for all runs together. Raises Refused."""
        text = self._texts[WITHIN]
        try:
            seconds = float(text)
        except ValueError:
            raise Refused(f"time {quoted(text)} is not a number of seconds; give {MIN_WITHIN} to {MAX_WITHIN}") from None
        if not MIN_WITHIN <= seconds <= MAX_WITHIN:
            raise Refused(f"{seconds:g} s for a sweep is outside {MIN_WITHIN} to {MAX_WITHIN}; choose a time in between")
        return seconds

    def grid(self) -> Grid:
        """Return the grid of runs. Raises Refused with the first error."""
        for sentence in self.misread().values():
            raise Refused(sentence)
        rows = [row for row in self.rows() if row.shown and row.text.strip()]
        axes = [self._axis(row) for row in rows if row.key != WITHIN]
        if all(len(axis.values) < 2 for axis in axes):
            raise Refused("nothing varies; pass several values of an option, such as n 256..4096")
        return Grid(self.base, axes, self._settled())

    def check(self) -> None:
        if not self.files:
            self.grid()

    def summary(self) -> str:
        """Describe the axes in a line: n 64..512 · tile all."""
        fields = [(row.title.lower(), row.text) for row in self.rows() if row.shown and row.key not in ("kernel", WITHIN)]
        varied = [f"{title} {text}" for title, text in fields if text == ALL or "," in text or ".." in text]
        return " · ".join([self._texts["kernel"], *varied, f"budget {self._texts[WITHIN]} s"])

    def toggle(self, kernel: str) -> None:
        """Add a kernel to the sweep or remove it; the last one stays."""
        have = [k.id for k in self.kernels]
        now = [k for k in have if k != kernel] if kernel in have else [*have, kernel]
        self.set("kernel", ",".join(now or have))

    def _axis(self, row: FormRow) -> SweepAxis:
        return read_axis(row.key.removeprefix(OPTION), row.text, self.kernels)


class LiveSweepScreen(SweepScreen):
    DEFAULT_CSS = """
    LiveSweepScreen.-narrow #left { display: none; }
    LiveSweepScreen.-narrow FormLine { display: block; }
    """
    BINDINGS: ClassVar = [
        bound(
            "r,ctrl+r", "run", "Sweep", "run the form; finished runs are not repeated", bindings.is_busy, "sweep", deliberate=True
        ),
        *LOOKS,
        hidden("f", "around", "From run", "copy the shown run into the form", bindings.no_run, "sweep.around", deliberate=True),
        bound("e", "edit", "Edit", "go to the form's first field; on a narrow screen open the form", id="sweep.edit"),
        *bindings.SHARED,
    ]

    def __init__(self, view: View):
        super().__init__(view)
        assert view.source is not None
        self.source = view.source
        base = defaults(False) if self._simulated(view.experiment) else view.experiment
        texts = view.form_texts(self.PLACE)
        self.draft = view.drafts[self.PLACE] = SweepDraft(base, lambda: self._settled, texts)

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
            "Separate values with commas, write `all` for all of them, and 64..512 for sizes that double.",
            "Small sizes run first; runs that would exceed the time are skipped.",
        )

    def _simulated(self, experiment: Experiment) -> bool:
        return kernel_named(experiment.kernel).backend == "cuda" and not self.view.has_gpu

    def _settled(self, experiment: Experiment) -> Settled:
        if self._simulated(experiment):
            return as_it_ran(experiment, DeviceId("simulator"))
        if self.view.found is None and experiment.kernel != AUTO.id:  # settling would wait for the driver
            return settle(experiment)
        return self.source.settled(experiment)

    def summary(self) -> tuple[str, ...]:
        """Describe the axes in a line."""
        return (self.draft.summary(),)

    def checked(self) -> None:
        self.update(True)

    def action_run(self) -> None:
        with self.reporting():
            if file := next(iter(self.draft.files), ""):  # loaded first, because the kernel's options are unknown
                allowed(self, find_kernel_file(file), partial(self._register, file, self.action_run))
                return
            sweep = self.view.sweep = Sweep(self.source, self.draft.grid(), self.draft.within())
            sweep.start()
            sweep.tick()
            self.show_message(f"sweeping {units.counted(len(sweep.grid.order), 'run')}, {sweep.done} of them done before")

    def choose_own(self) -> None:
        """Prompt for the file of a user kernel, and add the kernel to the sweep."""
        pick(self, lambda path: self._register(str(path), lambda: None, path), "Sweep with your kernel")

    def _register(self, file: str, then: Callable[[], None], path: Path) -> None:
        def take(kernel: str) -> None:
            self.show_message("")
            self.draft.name_kernel(file, kernel)
            self.query_one(FormPanel).sync()
            then()

        load(self, path, take)

    def action_around(self) -> None:
        run = self.view.run
        if run is not None:
            with self.reporting():
                self.draft.take(run.experiment)
                self.query_one(FormPanel).sync()
                self.show_message(f"the form sweeps around run {run.id}")

    def action_edit(self) -> None:
        self.query_one(FormPanel).edit()

    def commands(self) -> Iterator[Command]:
        yield from super().commands()
        kernels = {kernel.id for kernel in self.draft.kernels}
        yield Command("Sweep with your kernel…", self.choose_own, "a file with plan and build, such as `fwtui new` writes")
        for kernel in known_kernels().values():
            preposition = "without" if kernel.id in kernels else "with"
            yield Command(f"Sweep {preposition} {kernel.id}", partial(self._toggle, kernel.id), kernel.title)

    def _toggle(self, kernel: str) -> None:
        self.draft.toggle(kernel)
        self.query_one(FormPanel).sync()
