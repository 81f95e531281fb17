"""The command line: each file here is a command.

The first paragraph of its docstring is its help, and `ORDER = 10` its place in `fwtui --help`. It offers
`add_arguments(parser: argparse.ArgumentParser) -> None` and `execute(given: argparse.Namespace) -> int`, which returns the exit
code; Refused and NoGpu are reported by its caller.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Collection

from fwtui.common.module_header import Outline, module_files, outlines


def names() -> Collection[str]:
    """Every command; none of them is read."""
    return module_files(__path__)


def helps(command: str = "") -> dict[str, str]:
    """The help of one command or of all, in the order of `fwtui --help`; none of them is imported."""
    told = [Outline(command, module_files(__path__)[command])] if command else outlines(__path__, Outline)
    return {o.name: o.about[:1].lower() + o.about[1:].removesuffix(".") for o in told}


def add_command(parser: argparse.ArgumentParser, name: str) -> None:
    """Give a parser the options of that command, and what carries it out; only this command is imported."""
    module = importlib.import_module(f"fwtui.commands.{name}")
    module.add_arguments(parser)
    parser.set_defaults(execute=module.execute, parser=parser)


def arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """What a parser takes, `--help` first; argparse has no public list of it."""
    return parser._actions
