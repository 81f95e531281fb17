"""`fwtui`: the dashboard on whatever this machine has."""

from __future__ import annotations

import argparse

from fwtui.commands.run import add_recording, live_session

NAME = "dashboard"
HELP = "open the dashboard (also without any command)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recording(parser)


def execute(given: argparse.Namespace) -> int:
    from fwtui.tui import run_dashboard

    return run_dashboard(live_session(given))
