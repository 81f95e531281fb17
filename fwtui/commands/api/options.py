"""Conversion of Python arguments to command-line options, so that errors are those of the command."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from fwtui.commands.support.command_parser import CommandParser

FLAGS = ("all", "counters", "record", "record_source", "trust")  # options without a value


def parse(
    command: str, add_options: Callable[[argparse.ArgumentParser], None], options: Mapping[str, object], *arguments: str
) -> argparse.Namespace:
    """Parse the arguments and options of a command; None omits an option, as False omits a flag. Raises Refused."""
    parser = CommandParser(prog=f"fwtui {command}")
    add_options(parser)
    args, unknown = parser.parse_known_args([*arguments, *_arguments(options)])
    if unknown:
        parser.refuse_unknown(unknown)
    return args


def _arguments(options: Mapping[str, object]) -> Iterator[str]:
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if name in FLAGS and isinstance(value, bool):
            yield from [flag] * value
        elif isinstance(value, Mapping):
            yield from (f"{flag}={key}={_text(inner)}" for key, inner in value.items())
        elif value is not None:
            yield f"{flag}={_text(value)}"


def _text(value: object) -> str:
    """Format a value for the command: several values with commas, a Boolean as yes or no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | os.PathLike):
        return os.fspath(value)
    return ",".join(map(_text, value)) if isinstance(value, Iterable) else str(value)
