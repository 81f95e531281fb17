"""`fwtui replay FILE`: a recorded session on the screen, or its results where there is no screen."""

from __future__ import annotations

import argparse
import json
import sys

from fwtui.commands import OK, WRONG
from fwtui.commands.looking import add_look, preferred
from fwtui.report import COLUMNS, result, row, table
from fwtui.sessions.library import load_model, resolve

NAME = "replay"
HELP = "replay a recorded session; without a terminal, or with --json or --table, print its results"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", help="a file, or the name of a session that `fwtui list` shows")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object per run on stdout")
    form.add_argument("--table", action="store_true", help="a table of the runs on stdout")
    parser.add_argument("--speed", type=float, default=1.0, help="0.25 to 16")
    parser.add_argument("--at", type=float, default=0.0, metavar="SECONDS", help="where to begin")
    add_look(parser)


def execute(given: argparse.Namespace) -> int:
    from fwtui.tui import check_moment, check_speed, run_replay

    check_speed(given.speed)
    check_moment(given.at)
    path = resolve(given.session)
    if sys.stdout.isatty() and not (given.json or given.table):
        return run_replay(path, speed=given.speed, start=given.at, settings=preferred(given))
    model, complete = load_model(path)
    if given.table:
        print("\n".join(table([COLUMNS, *(row(model, run) for run in model.runs.values())])))
    else:
        for run in model.runs.values():
            print(json.dumps(result(model, run)))
    if not complete:
        print(f"fwtui: {path.name} is incomplete; `fwtui check` says what is missing", file=sys.stderr)
    return OK if complete else WRONG
