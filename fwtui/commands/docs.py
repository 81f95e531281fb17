"""`fwtui docs`: what the README says of kernels, made from the kernels and from a recorded session."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fwtui.commands import OK, WRONG
from fwtui.docs import README, rewrite

NAME = "docs"
HELP = 'rewrite the README\'s generated parts: the ladder (from the newest shipped session titled "ladder ...") and the kernels'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 where the file differs from what would be written"
    )
    parser.add_argument("file", nargs="?", default=str(README), help="default: the README.md of this source tree")


def execute(given: argparse.Namespace) -> int:
    path = Path(given.file)
    changed = rewrite(path, check=given.check)
    if changed and given.check:
        print(f"fwtui: {path.name} is not what `fwtui docs` writes; run it", file=sys.stderr)
        return WRONG
    if changed:
        print(f"fwtui: {path.name} rewritten", file=sys.stderr)
    return OK
