"""Say whether a session file is whole and closed (0), or what is left of it (1)."""

from __future__ import annotations

import argparse
import sys

from fwtui.sessions.check import check

ORDER = 90


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", help="a session file")


def execute(given: argparse.Namespace) -> int:
    return check(given.session, sys.stdout)
