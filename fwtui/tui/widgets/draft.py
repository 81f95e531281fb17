"""Drafts of forms: rows of texts and choices that follow the kernel, and the errors in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.experiment.experiment import Experiment, changed, for_kernel, kernel_named, settle
from fwtui.experiment.fields import FIELDS, Field, vertices
from fwtui.experiment.user_kernel_registry import known_kernels
from fwtui.graphs.file_options import FileOptions
from fwtui.graphs.formats import read_help
from fwtui_kernels.auto import AUTO
from fwtui_kernels.plan import Kernel, Option

OPTION = "option-"  # prefix of the row key of a kernel's option
OWN = "your kernel…"  # entry of the list of kernels that opens a dialog for a kernel file
UNITS = {"SECONDS": "s"}
Simulated = Callable[[Kernel, str], bool]  # (kernel, device) -> True if it would run in the simulator
Settled = Callable[[Experiment], Experiment]  # raises Refused for what cannot run here
GRAPH = "n"  # the row that takes a number of vertices or the path of a file
MAIN = ("kernel", GRAPH, "density", "dtype", "tile", "device")  # rows that are always visible, in this order


class FormRow(NamedTuple):
    """A row of the form. `choices` is None for free text, and empty if the kernel has none."""

    key: str
    title: str
    help: str
    text: str
    choices: tuple[str, ...] | None
    shown: bool = True
    hint: str = ""  # the meaning of an empty text
    names: Mapping[str, str] = {}  # displayed names of choices, if different
    more: bool = False  # hidden until More is pressed
    changed: bool = False  # differs from its default


class Draft(Protocol):
    """The content of a form."""

    last = ""  # the row that was changed last; "" after the whole draft was replaced
    _blamed = ("", "")  # an error that concerns several rows, and the row under which it is shown

    def rows(self) -> tuple[FormRow, ...]: ...
    def set(self, key: str, text: str) -> None: ...
    def texts(self) -> dict[str, str]: ...  # the texts of all rows, including invalid ones: the initial texts of another draft
    def misread(self) -> dict[str, str]: ...  # errors of rows whose text cannot be parsed
    def check(self) -> object: ...  # raises Refused with the first error

    def text(self, key: str) -> str:
        """Return the text of a row."""
        return next(row.text for row in self.rows() if row.key == key)

    def errors(self) -> dict[str, str]:
        """Return the errors by row; an error that concerns several rows belongs to the row that was changed last ("" if none)."""
        errors = self.misread()
        if not errors:
            try:
                self.check()
            except Refused as refusal:
                if self._blamed[0] != str(refusal):  # an unchanged error stays at its row
                    self._blamed = (str(refusal), self.last)
                errors[self._blamed[1]] = str(refusal)
        return errors


def titled(field: Field) -> str:
    """Return the title of a field, with its unit if it has one."""
    return f"{field.title}, {UNITS[field.metavar]}" if field.metavar in UNITS else field.title


def names_a_file(text: str) -> bool:
    """Return True if the text of the graph's row is a path: it is not a number, and has a separator or a suffix."""
    with suppress(ValueError):
        float(text)
        return False
    return any(sign in text for sign in "/\\.~")


def loaded_kernel(experiment: Experiment) -> Kernel:
    """Return the experiment's kernel. Raises Refused for a user kernel whose file was not chosen in this session."""
    if experiment.code and experiment.kernel not in known_kernels():
        raise Refused(f"{sanitise(experiment.kernel)} is a user kernel; choose its file first, with {OWN} in the list of kernels")
    return kernel_named(experiment.kernel)


class ExperimentDraft(Draft):
    """The draft of an experiment. It remembers choices that the present kernel does not have."""

    def __init__(self, experiment: Experiment, simulated: Simulated, settled: Settled, texts: Mapping[str, str] = {}):
        """`texts` are those of an earlier draft; they are ignored if their kernel is unknown."""
        self._simulated = simulated
        self._settled = settled
        self._wishes: dict[str, str] = {}
        self.take(experiment)
        if texts.get("kernel") in (*known_kernels(), AUTO.id):
            self._wishes = {**texts}

    @property
    def kernel(self) -> Kernel:
        return kernel_named(self._wishes["kernel"])

    @property
    def simulated(self) -> bool:
        return self._simulated(self.kernel, self._wishes.get("device", "auto"))

    def take(self, experiment: Experiment) -> None:
        """Replace the draft by an experiment. Raises Refused."""
        loaded_kernel(experiment)
        self._wishes = {"kernel": experiment.kernel, "device": experiment.device, "n": str(experiment.n), "file": experiment.file}
        self.last = ""
        default = self._defaults()
        for field in FIELDS:
            text = field.show(experiment)
            choices = self._choices(field)
            if choices is None or (text in choices and text != field.show(default)):
                self._wishes[field.name] = text
        self._wishes["kernel"] = experiment.kernel
        for option in self.kernel.options:
            value = experiment.options.get(option.name, option.default)
            if value != option.default:
                self._wishes[OPTION + option.name] = str(value)

    def texts(self) -> dict[str, str]:
        return {**self._wishes}

    def set(self, key: str, text: str) -> None:
        self._wishes[key] = text
        if key == GRAPH:
            self._wishes |= {"n": str(Experiment().n), "file": text} if names_a_file(text) else {"file": ""}
        self.last = key

    def rows(self) -> tuple[FormRow, ...]:
        """Return the main rows, then the options of the kernel and the other rows; options of other kernels are hidden."""
        default = self._defaults()
        rows = {field.name: self._row(field, default) for field in FIELDS}
        file, graph = rows.pop("file"), rows[GRAPH]
        help = f"vertices of a random graph, 1 to {self.kernel.max_n}, or a file: {read_help()}"
        rows[GRAPH] = graph._replace(title="Graph", text=file.text or graph.text, help=help)
        main = [rows.pop(key) for key in MAIN]
        rest = (row._replace(more=True, shown=row.choices is None or len(row.choices) > 1) for row in rows.values())
        return (*main, *self._option_rows(), *rest)

    def _row(self, field: Field, default: Experiment) -> FormRow:
        text, choices = self._field_text(field), self._choices(field)
        help = self.kernel.summary if field.name == "kernel" else field.help
        if field.name == "kernel" and choices is not None:
            choices = (*choices, OWN)
        names = {"": "one"} if field.name == "devices" else self._kernel_names() if field.name == "kernel" else {}
        changed = choices != () and text != field.show(default)
        return FormRow(field.name, titled(field), help, text, choices, names=names, changed=changed)

    def _kernel_names(self) -> dict[str, str]:
        """Mark the kernels that need a GPU, if there is none."""
        return {name: f"{name} (GPU)" for name, kernel in known_kernels().items() if self._simulated(kernel, "auto")}

    def typed(self) -> Experiment:
        """Return the experiment as typed. Raises Refused for invalid text."""
        changes, errors = self._read()
        for sentence in errors.values():
            raise Refused(sentence)
        return Experiment(**changes, options={o.name: int(self._option_text(o)) for o in self.kernel.options})

    def experiment(self) -> Experiment:
        """Return the experiment as it would run on this machine. Raises Refused with the first error."""
        return changed(self._settled(self.typed()))

    check = experiment

    def misread(self) -> dict[str, str]:
        return self._read()[1]

    def _read(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the fields of the experiment, and the errors of invalid ones by row."""
        changes: dict[str, Any] = {}
        errors: dict[str, str] = {}
        for field in FIELDS:
            if self._choices(field) != ():
                if field.name == "n":  # the row has one limit, that of the kernel
                    field = replace(field, parse=vertices(self.kernel.max_n))
                try:
                    changes |= field.read(self._field_text(field))
                except Refused as refusal:
                    errors[GRAPH if field.name == "file" else field.name] = str(refusal)
        return changes, errors

    def _choices(self, field: Field) -> tuple[str, ...] | None:
        if field.name in FileOptions._fields and not self._wishes.get("file"):
            return ()
        return None if field.choices is None else field.choices(self.kernel, self.simulated)

    def _field_text(self, field: Field) -> str:
        wish = self._wishes.get(field.name)
        choices = self._choices(field)
        if wish is not None and (choices is None or wish in choices):
            return wish
        default = field.show(self._defaults())
        if choices is None:
            return default
        return default if default in choices else (choices[0] if choices else "")

    def _option_text(self, option: Option) -> str:
        wish = self._wishes.get(OPTION + option.name, "")
        return wish if wish in map(str, option.values) else str(option.default)

    def _option_rows(self) -> list[FormRow]:
        options = {o.name: o for o in self.kernel.options}
        every = {o.name: o for kernel in known_kernels().values() for o in kernel.options} | options
        rows: list[FormRow] = []
        for name, option in every.items():
            there = name in options
            text, choices = (self._option_text(option), tuple(map(str, option.values))) if there else ("", ())
            title, changed = name.replace("_", " ").capitalize(), there and text != str(option.default)
            names = {str(value): word for word, value in option.value_names.items()}
            row = FormRow(OPTION + name, title, option.help, text, choices, there, names=names, more=True, changed=changed)
            rows.append(row)
        return rows

    def _defaults(self) -> Experiment:
        """Return the kernel's defaults for a graph of this size."""
        default = for_kernel(Experiment(), self.kernel)
        for n in (self._n(), 1):
            with suppress(Refused):
                return settle(changed(default, n=n), self.simulated)
        return changed(default, n=1)

    def _n(self) -> int:
        """Return n; for a file, which has not been read yet, the kernel's maximum."""
        text = self._wishes.get("n", "")
        if self._wishes.get("file"):
            return self.kernel.max_n
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 1
