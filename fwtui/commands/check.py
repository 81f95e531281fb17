"""`fwtui check FILE`: whether a session is whole."""

from __future__ import annotations

import argparse
import sys

from fwtui.sessions.check import check


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", help="a session file")


def execute(given: argparse.Namespace) -> int:
    return check(given.session, sys.stdout)
