"""The user's kernels on the command line: confirmed once for each folder, then known by their names."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from pathlib import Path

from fwtui.common.errors import Refused
from fwtui.common.text import clean, shown
from fwtui.experiment.own_kernels import admit, is_path, located
from fwtui.machine import trust


def add_own(parser: argparse.ArgumentParser) -> None:
    """Flags of every command that runs kernels."""
    about = "run your own kernel's file without a question; its folder is trusted from now on"
    parser.add_argument("--trust", action="store_true", help=about)


def admitted(kernels: str | None, given: argparse.Namespace) -> str | None:
    """The kernels that were asked for; files are loaded and replaced by their kernels' names. Raises Refused."""
    if kernels is None:
        return None
    return ",".join(admitted_file(located(word.strip()), given.trust) if is_path(word) else word for word in kernels.split(","))


def admitted_file(path: Path, trusting: bool) -> str:
    """The name of that file's kernel, once the user lets it run. Raises Refused."""
    if not trust.trusted(path):
        if not trusting and not _agreed(path):
            raise Refused(f"{clean(path.name)} was not run; look at what it does, then say y, or --trust")
        trust.trust(path)
    return admit(path)


def take_options(given: argparse.Namespace, offered: Collection[str]) -> None:
    """`--option NAME=VALUE`, read like a flag of that name. Raises Refused for an option that no kernel has."""
    for pair in given.option:
        name, equals, value = pair.partition("=")
        if not equals or name not in offered:
            known = ", ".join(offered)
            raise Refused(f"--option {shown(pair)} is not NAME=VALUE of an option that a kernel has; there are {known}")
        setattr(given, f"option_{name}", value)


def _agreed(path: Path) -> bool:
    """Whether the user says yes. Raises Refused without a terminal to ask on."""
    words = trust.warning(path)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(f"{words}; say --trust to run it, and from now on what else is in its folder")
    print(f"fwtui: {words}.\nRun it, and from now on what else is in its folder? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
