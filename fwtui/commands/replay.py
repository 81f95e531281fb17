"""Replay a recorded session; into a pipe or a file, or with --table or --json, print its results."""

from __future__ import annotations

import argparse
import sys

from fwtui.analysis.report import result
from fwtui.commands.support.display_options import add_display_options, check_speed, merge_settings, parse_time
from fwtui.commands.support.printing import add_json_option, runs
from fwtui.commands.support.stderr_reporter import session_exit_code
from fwtui.common import gc_pause
from fwtui.common.as_json import as_json
from fwtui.sessions.library import load_model, resolve
from fwtui.stream.model import Model
from fwtui.stream.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", help="session file, or a name from `fwtui list`")
    form = add_json_option(parser, "one JSON object per run")
    form.add_argument("--table", action="store_true", help="print a table of the runs, also on a terminal")
    parser.add_argument("--speed", type=float, default=1.0, help="playback speed, 0.25 to 64 (default: 1)")
    parser.add_argument(
        "--at", metavar="TIME", help="start of the replay, such as 12.5 or 1:30 (default: the first timed repetition)"
    )
    parser.add_argument(
        "--max-gap",
        type=float,
        metavar="SECONDS",
        help="longest idle gap; longer ones are shortened (default: 1 between runs in your sessions, else unlimited)",
    )
    add_display_options(parser)


@gc_pause.paused()  # results are many, and none is freed before the end
def execute(args: argparse.Namespace) -> int:
    from fwtui.tui import run_replay

    start = parse_time(args.at) if args.at is not None else 0.0
    check_speed(args.speed, args.max_gap)
    as_table = not args.json
    on_screen = as_table and not args.table and sys.stdout.isatty()
    how = {"speed": args.speed, "start": start, "max_gap": args.max_gap}
    path = resolve(args.session)
    if on_screen:
        return run_replay(path, settings=merge_settings(args), **how)
    model, complete = load_model(path)
    if as_table:
        _print_table(model)
    for run in () if as_table else model.runs.values():
        _print_result(model, run)
    return session_exit_code(path, complete)


def _print_table(model: Model) -> None:
    print("\n".join(runs(model)))


def _print_result(model: Model, run: Run) -> None:
    print(as_json(result(model, run)), flush=True)
