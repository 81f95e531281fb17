"""List the shipped and your own recorded sessions."""

from __future__ import annotations

import argparse
import sys

from fwtui.common.exit_codes import OK
from fwtui.sessions.listing import ORDERS, print_list

ORDER = 80


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", help="only sessions with all these words in name, title, machine, kernels, state ...")
    parser.add_argument("--sort", choices=tuple(ORDERS), default="date", help="default: newest first")


def execute(given: argparse.Namespace) -> int:
    print_list(sys.stdout, " ".join(given.words), given.sort)
    return OK
