"""The user's settings and the source of each: an option, the environment, the file, or the default.

The earlier of these wins. The file is TOML, in the user's configuration folder (XDG_CONFIG_HOME on Linux) or at
FWTUI_CONFIG:

    theme = "textual-light"
    [experiment]
    kernel = "tiled-cpu"
    n = 2048

Every key has a variable: FWTUI_THEME, FWTUI_N, FWTUI_THREADS.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from fwtui.common.errors import Refused, os_error_reason
from fwtui.common.small_file import parse_toml, read_beginning
from fwtui.common.text import quoted, sanitise, suggest
from fwtui.common.user_folders import config_folder
from fwtui.experiment.experiment import Experiment, changed, defaults, for_kernel, kernel_named
from fwtui.experiment.fields import FIELDS, KERNEL_DEFAULT, Field, default_text
from fwtui_kernels import registry
from fwtui_kernels.plan import Kernel, Option

LARGEST_FILE = 2**20  # bytes
PREFIX = "FWTUI_"
EXPERIMENT = "experiment."
SAMPLES = ("auto", "on", "off")
_NO_YES = ("no", "yes")


class Key(NamedTuple):
    """A setting: its name, its default and its parser."""

    name: str
    default: str
    help: str
    read: Callable[[str], object]  # raises Refused

    @property
    def variable(self) -> str:
        return PREFIX + self.name.removeprefix(EXPERIMENT).upper()


class Value(NamedTuple):
    """A setting's text and its source: "option", "environment", "file" or "default"."""

    text: str
    origin: str
    where: str = ""  # the option, the variable, or the file


def _one_of(name: str, choices: Sequence[str], having: Sequence[Option] = ()) -> Callable[[str], object]:
    """Return a parser that accepts one of the values, or a value of any of these options."""

    def read(text: str) -> object:
        if text not in choices and not any(option.read(text) in option.values for option in having):
            offered = " or ".join(choices) if len(choices) == 2 else ", ".join(choices)
            raise Refused(f"{name} {quoted(text)} is not supported; choose {offered}")
        return text

    return read


def _seconds(text: str) -> object:
    with suppress(ValueError):
        if 1 <= float(text) <= 3600:
            return float(text)
    raise Refused(f"rank_timeout {quoted(text)} is not a number from 1 to 3600; pass seconds in this range")


def _of_some_kernel(one: Field) -> Callable[[str], object]:
    """Return a parser for the field that accepts values of any kernel."""
    if one.choices is None:
        return one.read
    offered = one.choices

    def read(text: str) -> object:
        choices = dict.fromkeys(word for k in registry().values() for s in (False, True) for word in offered(k, s))
        changes = one.read(text)
        if text not in choices:
            raise Refused(f"{one.name} {quoted(text)} is not supported by any kernel; {suggest(text, choices)}")
        return changes

    return read


def all_keys() -> dict[str, Key]:
    """Return every setting by its name."""
    listed = [
        Key("theme", "fwtui", "colour theme; the palette (ctrl+p) lists the names", str),
        Key("keep_sessions", "yes", "no: the dashboard does not save its sessions", _one_of("keep_sessions", _NO_YES)),
        Key("samples", "auto", "PC sampling of GPU runs for warp stall reasons: auto, on or off", _one_of("samples", SAMPLES)),
        Key(
            "rank_timeout",
            "8",
            "heartbeat timeout in seconds, 1 to 3600; a rank that is silent for longer aborts the run",
            _seconds,
        ),
        Key("present", "no", "yes: large figures; in a lecture, cue cards one by one", _one_of("present", _NO_YES)),
    ]
    listed += [Key(EXPERIMENT + one.name, default_text(one), one.help, _of_some_kernel(one)) for one in FIELDS]
    options: dict[str, list[Option]] = {}
    for option in (o for kernel in registry().values() for o in kernel.options):
        options.setdefault(option.name, []).append(option)
    for name, having in options.items():
        values = [*map(str, sorted({value for option in having for value in option.values}))]
        about = f"option of some kernels: {', '.join(values)}"
        listed.append(Key(EXPERIMENT + name, KERNEL_DEFAULT, about, _one_of(name, values, having)))
    return {key.name: key for key in listed}


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's settings by key; `values` has only keys that were set."""

    path: Path
    values: Mapping[str, Value] = field(default_factory=dict)

    def value(self, key: str) -> Value:
        """Return the effective value of a key of all_keys()."""
        return self.values.get(key) or Value(all_keys()[key].default, "default")

    def text(self, key: str) -> str:
        return self.value(key).text

    @property
    def kernel(self) -> str:
        """The preferred kernel, or empty text."""
        value = self.values.get(EXPERIMENT + "kernel")
        return value.text if value is not None else ""

    def everything(self) -> Iterator[tuple[str, Value]]:
        """Yield every key with its effective value."""
        yield from ((name, self.value(name)) for name in all_keys())

    def with_options(self, options: Mapping[str, str | None]) -> Settings:
        """Return the settings with command-line options on top; None means not given."""
        keys = all_keys()
        overrides = {name: text for name, text in options.items() if text is not None}
        for name, text in overrides.items():
            keys[name].read(text)
        return Settings(
            self.path, {**self.values, **{name: Value(text, "option", f"--{name}") for name, text in overrides.items()}}
        )

    def experiment(self, default: Experiment, simulated: Callable[[Kernel], bool], kernel: str = "") -> Experiment:
        """Return the experiment with the user's preferences, for `kernel` or the preferred one; open choices stay open.

        A value that the kernel does not support becomes the kernel's default: a preferred tile of 64 must not reject a
        kernel that has only 32. `simulated(kernel)` is True if the kernel would run in the simulator.
        """
        chosen_kernel = kernel_named(kernel or self.kernel or default.kernel)
        most = min(chosen_kernel.max_n, defaults(False).n) if chosen_kernel.backend == "cpu" else chosen_kernel.max_n
        experiment = changed(for_kernel(default, chosen_kernel), n=min(default.n, most))
        for one in FIELDS[1:]:
            value = self.values.get(EXPERIMENT + one.name)
            if value is not None and (one.choices is None or value.text in one.choices(chosen_kernel, simulated(chosen_kernel))):
                experiment = changed(experiment, **one.read(value.text))
        values = {option: self.values.get(EXPERIMENT + option.name) for option in chosen_kernel.options}
        read = {option: option.read(value.text) for option, value in values.items() if value is not None}
        offered = {option.name: value for option, value in read.items() if value is not None and value in option.values}
        return changed(experiment, options={**experiment.options, **offered})


def file_path(environment: Mapping[str, str] | None = None) -> Path:
    """Return the path of the file, which may not exist."""
    named = (os.environ if environment is None else environment).get(f"{PREFIX}CONFIG", "")
    return Path(named) if named else config_folder() / "config.toml"


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from the file and the environment. Raises Refused with the file and the key."""
    environment = os.environ if environment is None else environment
    path = file_path(environment)
    values: dict[str, Value] = {}
    for name, text in _flat(_read(path, needed=f"{PREFIX}CONFIG" in environment), path):
        values[name] = Value(_checked(name, text, f"{sanitise(path.name)}: {sanitise(name)}"), "file", str(path))
    for name, key in all_keys().items():
        text = environment.get(key.variable, "")
        if text:
            values[name] = Value(_checked(name, text, key.variable), "environment", key.variable)
    return Settings(path, values)


def _read(path: Path, needed: bool) -> dict[str, Any]:
    """Return the file's tables; empty if there is no file and FWTUI_CONFIG names none."""
    name = sanitise(path.name)
    try:
        data = read_beginning(path, LARGEST_FILE + 1)
    except (FileNotFoundError, NotADirectoryError):
        if needed:
            raise Refused(f"{PREFIX}CONFIG names {name}, which does not exist; create it, or unset the variable") from None
        return {}
    except OSError as error:
        raise Refused(f"{name} cannot be read: {os_error_reason(error)}; fix that, or move the file away") from None
    if len(data) > LARGEST_FILE:
        raise Refused(f"{name} is larger than {LARGEST_FILE} bytes, the limit for settings; choose another file")
    try:
        return parse_toml(data.decode())
    except ValueError as error:
        raise Refused(f"{name} is not TOML: {sanitise(str(error))}; correct it, or move the file away") from None


def _flat(tables: Mapping[str, Any], path: Path, before: str = "") -> Iterator[tuple[str, str]]:
    for key, value in tables.items():
        name = before + key
        if before == "" and name not in (*all_keys(), EXPERIMENT[:-1]):
            raise Refused(f"{sanitise(path.name)}: {quoted(name)} is not a setting; {_settings_like(name)}")
        match value:
            case dict() if name == EXPERIMENT[:-1]:
                yield from _flat(value, path, f"{name}.")
            case bool():
                yield name, "yes" if value else "no"
            case str() | int() | float():
                yield name, str(value)
            case _:
                raise Refused(f"{sanitise(path.name)}: {sanitise(name)} is not text, a number, true or false; write one of these")


def _settings_like(name: str) -> str:
    """Return a hint for a name that is not a setting."""
    hint = suggest(name.rpartition(".")[2], (key.rpartition(".")[2] for key in all_keys()))
    return hint if hint.endswith("?") else "`fwtui config` lists the settings"


def _checked(name: str, text: str, where: str) -> str:
    """Return the text without terminal control characters. Raises Refused with the source of the setting."""
    text = sanitise(text)
    if name not in all_keys():
        raise Refused(f"{where} is not a setting; {_settings_like(name)}")
    try:
        all_keys()[name].read(text)
    except Refused as refusal:
        raise Refused(f"{where}: {refusal}") from None
    return text
