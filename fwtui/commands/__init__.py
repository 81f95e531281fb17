"""The command line: one module per command, listed in `GROUPS`.

The first paragraph of a module's docstring is the help of its command. The module defines
`add_arguments(parser: argparse.ArgumentParser) -> None` and `execute(given: argparse.Namespace) -> int`, which returns the exit
code. Its caller reports Refused and NoGpu.
"""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path
from typing import Any, Protocol

GROUPS = {  # the order of `fwtui --help`
    "use": ("dashboard", "run", "solve", "replay", "list", "kernels"),
    "measure": ("sweep", "compare", "reproduce", "graph"),
    "record": ("check", "export", "mark", "render"),
    "teach": ("new", "watch", "learn", "serve"),
    "maintain": ("doctor", "config"),
}
COMMANDS = tuple(name for group in GROUPS.values() for name in group)
# listed only with --all
RARE = {"reproduce", "graph", "check", "render"}
NAME_CELLS = 14


def about(name: str) -> str:
    """Return a command's help, read without importing it."""
    docstring = Path(__path__[0], f"{name}.py").read_text(encoding="utf-8").split('"""')[1]
    summary = " ".join(docstring.split("\n\n")[0].split())
    return summary[:1].lower() + summary[1:].removesuffix(".")


def overview(width: int, rare: bool) -> list[str]:
    """Return the commands in their groups, each with its help."""
    lines: list[str] = []
    for group, members in GROUPS.items():
        lines += ["", f"{group}:"]
        for name in members:
            if rare or name not in RARE:
                first = f"  {name:<{NAME_CELLS}}"
                lines += textwrap.wrap(about(name), width, initial_indent=first, subsequent_indent=" " * len(first))
    return lines if rare else [*lines, "", f"{len(RARE)} more: fwtui --help --all"]


def add_force_option(parser: TakesArguments) -> None:
    parser.add_argument("--force", action="store_true", help="overwrite an existing output file")


class TakesArguments(Protocol):
    """A parser or one of its groups."""

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action: ...
