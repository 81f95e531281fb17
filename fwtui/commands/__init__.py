"""The command line: each file here is a command.

The first paragraph of its docstring is its help, and `ORDER = 10` its place in its `GROUP` of `fwtui --help`, which tells those
with `RARE = True` only with --all. It offers
`add_arguments(parser: argparse.ArgumentParser) -> None` and `execute(given: argparse.Namespace) -> int`, which returns the exit
code; Refused and NoGpu are reported by its caller.
"""

from __future__ import annotations

import argparse
import importlib
import textwrap
from collections.abc import Collection

from fwtui.common.module_header import Outline, module_files, outlines

GROUPS = ("use", "measure", "record", "teach", "maintain")
NAME_CELLS = 14


def names() -> Collection[str]:
    """Every command; none of them is read."""
    return module_files(__path__)


def helps(command: str = "") -> dict[str, str]:
    """The help of one command or of all, in the order of `fwtui --help`; none of them is imported."""
    told = [Outline(command, module_files(__path__)[command])] if command else outlines(__path__, Outline)
    return {o.name: o.about[:1].lower() + o.about[1:].removesuffix(".") for o in told}


class CommandOutline(Outline):
    """A command, read without importing it."""

    def __init__(self, name: str, path: str):
        super().__init__(name, path)
        self.group = self.constant("GROUP", str, GROUPS[0])
        self.rare = self.constant("RARE", bool, False)


def overview(width: int, rare: bool) -> list[str]:
    """The commands in their groups, each with its help."""
    lines: list[str] = []
    told = outlines(__path__, CommandOutline)
    for group in GROUPS:
        lines += ["", f"{group}:"]
        for one in told:
            if one.group == group and (rare or not one.rare):
                about = one.about[:1].lower() + one.about[1:].removesuffix(".")
                first = f"  {one.name:<{NAME_CELLS}}"
                lines += textwrap.wrap(about, width, initial_indent=first, subsequent_indent=" " * len(first))
    hidden = sum(one.rare for one in told)
    return lines if rare else [*lines, "", f"{hidden} more: fwtui --help --all"]


def add_command(parser: argparse.ArgumentParser, name: str) -> None:
    """Give a parser the options of that command, and what carries it out; only this command is imported."""
    module = importlib.import_module(f"fwtui.commands.{name}")
    module.add_arguments(parser)
    parser.set_defaults(execute=module.execute, parser=parser)


def arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """What a parser takes, `--help` first; argparse has no public list of it."""
    return parser._actions
