"""User kernels on the command line: the user trusts each folder once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from pathlib import Path

from fwtui.common.errors import Refused
from fwtui.common.text import quoted, sanitise
from fwtui.experiment.user_kernel_registry import find_kernel_file, is_path, register_kernel
from fwtui.machine import trust


def add_trust_option(parser: argparse.ArgumentParser) -> None:
    """Add `--trust`, the option of commands that run kernels."""
    about = "run your kernel file without asking for confirmation, and trust its folder permanently"
    parser.add_argument("--trust", action="store_true", help=about)


def register_kernels(kernels: str | None, trusting: bool) -> str | None:
    """Load the files among these kernels, and return the names of all, separated by commas. Raises Refused."""
    if kernels is None:
        return None
    registered: list[str] = []
    for word in map(str.strip, kernels.split(",")):
        if is_path(word):
            path = find_kernel_file(word)
            confirm_trust(path, trusting)
            word = register_kernel(path)
        registered.append(word)
    return ",".join(registered)


def confirm_trust(path: Path, trusting: bool) -> None:
    """Ensure that the user trusts the file, with a prompt for a new folder. Raises Refused."""
    if trust.is_trusted(path):
        return
    if not trusting and not _ask_for_trust(path):
        raise Refused(f"{sanitise(path.name)} was not run; read the code, then answer y or pass --trust")
    trust.trust(path)


def parse_kernel_options(args: argparse.Namespace, offered: Collection[str]) -> None:
    """Parse `--option NAME=VALUE` like an option of that name. Raises Refused for an unknown option."""
    for pair in args.option:
        name, equals, value = pair.partition("=")
        if not equals or name not in offered:
            names = ", ".join(offered)
            raise Refused(f"--option {quoted(pair)} is not NAME=VALUE with the name of a kernel option; choose one of {names}")
        setattr(args, f"option_{name}", value)


def _ask_for_trust(path: Path) -> bool:
    """Prompt for trust in the file's folder; return the answer. Raises Refused without a terminal."""
    warning = trust.warning(path)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(f"{warning}; pass --trust to run it and trust its folder permanently")
    print(f"fwtui: {warning}.\nRun it and trust its folder permanently? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
