"""`fwtui check FILE`: whether a session is whole."""

from __future__ import annotations

import argparse
import sys

from fwtui.sessions.check import check

NAME = "check"
HELP = "say whether a session file is whole and closed (0), or what is left of it (1)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", help="a session file")


def execute(given: argparse.Namespace) -> int:
    return check(given.session, sys.stdout)
