"""The user's settings and the source of each: an option, the environment, the file, or the default.

The earlier of these wins. The file is TOML, in the user's configuration folder (XDG_CONFIG_HOME on Linux) or at
FWTUI_CONFIG:

    theme = "textual-light"
    present = true

Every key has a variable: FWTUI_THEME, FWTUI_PRESENT.
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

LARGEST_FILE = 2**20  # bytes
PREFIX = "FWTUI_"
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
        return PREFIX + self.name.upper()


class Value(NamedTuple):
    """A setting's text and its source: "option", "environment", "file" or "default"."""

    text: str
    origin: str
    where: str = ""  # the option, the variable, or the file


def _one_of(name: str, choices: Sequence[str]) -> Callable[[str], object]:
    """Return a parser that accepts one of the values."""

    def read(text: str) -> object:
        if text not in choices:
            offered = " or ".join(choices) if len(choices) == 2 else ", ".join(choices)
            raise Refused(f"{name} {quoted(text)} is not supported; choose {offered}")
        return text

    return read


def _seconds(text: str) -> object:
    with suppress(ValueError):
        if 1 <= float(text) <= 3600:
            return float(text)
    raise Refused(f"rank_timeout {quoted(text)} is not a number from 1 to 3600; pass seconds in this range")


KEYS = {
    key.name: key
    for key in (
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
    )
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's settings by key; `values` has only keys that were set."""

    path: Path
    values: Mapping[str, Value] = field(default_factory=dict)

    def value(self, key: str) -> Value:
        """Return the effective value of a key of KEYS."""
        return self.values.get(key) or Value(KEYS[key].default, "default")

    def text(self, key: str) -> str:
        return self.value(key).text

    def everything(self) -> Iterator[tuple[str, Value]]:
        """Yield every key with its effective value."""
        yield from ((name, self.value(name)) for name in KEYS)

    def with_options(self, options: Mapping[str, str | None]) -> Settings:
        """Return the settings with command-line options on top; None means not given."""
        overrides = {name: text for name, text in options.items() if text is not None}
        for name, text in overrides.items():
            KEYS[name].read(text)
        return Settings(
            self.path, {**self.values, **{name: Value(text, "option", f"--{name}") for name, text in overrides.items()}}
        )


def file_path(environment: Mapping[str, str] | None = None) -> Path:
    """Return the path of the file, which may not exist."""
    named = (os.environ if environment is None else environment).get(f"{PREFIX}CONFIG", "")
    return Path(named) if named else config_folder() / "config.toml"


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from the file and the environment. Raises Refused with the file and the key."""
    environment = os.environ if environment is None else environment
    path = file_path(environment)
    values: dict[str, Value] = {}
    for name, text in _texts(_read(path, needed=f"{PREFIX}CONFIG" in environment), path):
        values[name] = Value(_checked(name, text, f"{sanitise(path.name)}: {name}"), "file", str(path))
    for name, key in KEYS.items():
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


def _texts(table: Mapping[str, Any], path: Path) -> Iterator[tuple[str, str]]:
    """Yield the settings of the file as texts. Raises Refused for an unknown name and for a value of another type."""
    for name, value in table.items():
        if name not in KEYS:
            raise Refused(f"{sanitise(path.name)}: {quoted(name)} is not a setting; {suggest(name, KEYS)}")
        match value:
            case bool():
                yield name, "yes" if value else "no"
            case str() | int() | float():
                yield name, str(value)
            case _:
                raise Refused(f"{sanitise(path.name)}: {name} is not text, a number, true or false; write one of these")


def _checked(name: str, text: str, where: str) -> str:
    """Return the text without terminal control characters. Raises Refused with the source of the setting."""
    text = sanitise(text)
    try:
        KEYS[name].read(text)
    except Refused as refusal:
        raise Refused(f"{where}: {refusal}") from None
    return text
