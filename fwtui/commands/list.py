"""`fwtui list`: sessions that can be replayed."""

from __future__ import annotations

import argparse
import sys

from fwtui.commands import OK
from fwtui.sessions.library import print_list

NAME = "list"
HELP = "list the shipped and your own recorded sessions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def execute(given: argparse.Namespace) -> int:
    print_list(sys.stdout)
    return OK
