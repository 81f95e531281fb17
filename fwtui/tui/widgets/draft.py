"""What the form says, without a screen: texts, choices that follow the kernel, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment, kernel_named, settle
from fwtui.experiment.fields import FIELDS, Field
from kernels import registry
from kernels.plan import Kernel, Option

OPTION = "option-"  # begins the key of a kernel's own option
UNITS = {"SECONDS": "s"}
Simulated = Callable[[Kernel, str], bool]  # (kernel, device) -> whether it would run in the simulator
Settled = Callable[[Experiment], Experiment]  # raises Refused for what cannot run here


class Row(NamedTuple):
    """One line of the form. Choices are None for free text and empty where the kernel has nothing to choose."""

    key: str
    title: str
    help: str
    text: str
    choices: tuple[str, ...] | None
    shown: bool = True
    hint: str = ""  # what an empty text means


class Drafted(Protocol):
    """Whatever a form can show and change."""

    def rows(self) -> tuple[Row, ...]: ...
    def text(self, key: str) -> str: ...
    def set(self, key: str, text: str) -> None: ...
    def misread(self) -> dict[str, str]: ...
    def errors(self) -> dict[str, str]: ...


def titled(field: Field) -> str:
    """The field's title, with its unit where it has one."""
    return f"{field.title}, {UNITS[field.metavar]}" if field.metavar in UNITS else field.title


class Draft:
    """An experiment in the making. What a user picked is remembered when another kernel does not offer it."""

    def __init__(self, experiment: Experiment, simulated: Simulated, settled: Settled):
        self._simulated = simulated
        self._settled = settled
        self._wishes: dict[str, str] = {}
        self.last = ""  # the row that was changed last
        self.take(experiment)

    @property
    def kernel(self) -> Kernel:
        return kernel_named(self._wishes["kernel"])

    @property
    def simulated(self) -> bool:
        return self._simulated(self.kernel, self._wishes.get("device", "auto"))

    def take(self, experiment: Experiment) -> None:
        """Say what this experiment says."""
        self._wishes = {"kernel": experiment.kernel, "device": experiment.device, "n": str(experiment.n), "file": experiment.file}
        self.last = ""
        usual = self._usual()
        for field in FIELDS:
            text = field.show(experiment)
            choices = self._choices(field)
            if choices is None or (text in choices and text != field.show(usual)):
                self._wishes[field.name] = text
        self._wishes["kernel"] = experiment.kernel
        for option in self.kernel.options:
            value = experiment.options.get(option.name, option.default)
            if value != option.default:
                self._wishes[OPTION + option.name] = str(value)

    def set(self, key: str, text: str) -> None:
        """The user changed a row."""
        self._wishes[key] = text
        self.last = key

    def text(self, key: str) -> str:
        """What the row shows."""
        if key.startswith(OPTION):
            option = next((o for o in self.kernel.options if OPTION + o.name == key), None)
            return self._option_text(option) if option is not None else ""
        return self._field_text(next(f for f in FIELDS if f.name == key))

    def rows(self) -> tuple[Row, ...]:
        """Every field, with the kernels' own options after the tile; those of other kernels are not shown."""
        rows: list[Row] = []
        for field in FIELDS:
            rows.append(Row(field.name, titled(field), field.help, self._field_text(field), self._choices(field)))
            if field.name == "tile":
                rows += self._option_rows()
        return tuple(rows)

    def experiment(self) -> Experiment:
        """The experiment as it would run here. Raises Refused with the first thing that is wrong."""
        for sentence in self.misread().values():
            raise Refused(sentence)
        return self._settled(self._read())

    def errors(self) -> dict[str, str]:
        """What is wrong, by row. What no single row is to blame for is said under the one changed last ("" if none)."""
        errors = self.misread()
        if not errors:
            try:
                self._settled(self._read())
            except Refused as refusal:
                errors[self.last] = str(refusal)
        return errors

    def misread(self) -> dict[str, str]:
        """Rows whose text cannot be read at all."""
        errors: dict[str, str] = {}
        for field in FIELDS:
            if self._choices(field) != ():
                try:
                    field.read(self._field_text(field))
                except Refused as refusal:
                    errors[field.name] = str(refusal)
        return errors

    def _read(self) -> Experiment:
        changes = {}
        for field in FIELDS:
            if self._choices(field) != ():
                changes.update(field.read(self._field_text(field)))
        options = {o.name: int(self._option_text(o)) for o in self.kernel.options}
        return Experiment(**changes, options=options)

    def _choices(self, field: Field) -> tuple[str, ...] | None:
        return None if field.choices is None else field.choices(self.kernel, self.simulated)

    def _field_text(self, field: Field) -> str:
        wish = self._wishes.get(field.name)
        choices = self._choices(field)
        if choices is None:
            return wish or ""
        if wish in choices:
            return wish or ""
        usual = field.show(self._usual())
        return usual if usual in choices else (choices[0] if choices else "")

    def _option_text(self, option: Option) -> str:
        wish = self._wishes.get(OPTION + option.name)
        return wish if wish is not None and wish in map(str, option.values) else str(option.default)

    def _option_rows(self) -> list[Row]:
        own = {o.name: o for o in self.kernel.options}
        rows: dict[str, Row] = {}
        for option in (o for kernel in registry().values() for o in kernel.options):
            mine = own.get(option.name)
            shown = mine or option
            rows[option.name] = Row(
                OPTION + option.name,
                option.name.replace("_", " ").capitalize(),
                shown.help,
                self._option_text(shown) if mine else "",
                tuple(map(str, shown.values)) if mine else (),
                mine is not None,
            )
        return list(rows.values())

    def _usual(self) -> Experiment:
        """The kernel's own choices for a graph of that size."""
        kernel = self.kernel
        dtype = Experiment().dtype if Experiment().dtype in kernel.dtypes else kernel.dtypes[0]
        for n in (self._n(), 1):
            with suppress(Refused):
                return settle(Experiment(kernel=kernel.id, n=n, dtype=dtype), self.simulated)
        return Experiment(kernel=kernel.id, n=1, dtype=dtype)

    def _n(self) -> int:
        """The size that is asked for; of a file, which is not read yet, the largest."""
        text = self._wishes.get("n", "")
        if self._wishes.get("file"):
            return self.kernel.max_n
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 1
