"""Open the course: step by step from one core to the fastest kernel, with questions that recorded runs answer."""

from __future__ import annotations

import argparse

from fwtui.commands.support.display_options import add_display_options, merge_settings
from fwtui.commands.support.printing import add_json_option, table
from fwtui.commands.support.recording_options import add_recording_options, live_session
from fwtui.common.as_json import as_json
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK
from fwtui.common.text import quoted
from fwtui.experiment.experiment import defaults
from fwtui.learn.course import step_named
from fwtui.learn.lessons import lessons, step_rows
from fwtui.machine import hardware


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("step", nargs="?", help="number or name of the first step (default: your last step)")
    parser.add_argument("--list", action="store_true", help="print the steps with their kernels and recorded runs")
    add_json_option(parser, "one JSON object per step, with --list,")
    add_recording_options(parser)
    add_display_options(parser)


def execute(args: argparse.Namespace) -> int:
    course = lessons()
    if args.list and args.step is not None:
        raise Refused(f"--list prints all steps, not {quoted(args.step)}; pass only one of them")
    if args.json and not args.list:
        raise Refused("--json is for the list of steps; pass --list too, or omit --json")
    if args.list:
        titles, *rows = step_rows(course)
        lines = [course.name, "", *table([titles, *rows], ("kernel", "asks", "run", "name"))]
        print("\n".join([as_json(dict(zip(titles, row, strict=True))) for row in rows] if args.json else lines))
        return OK
    step = step_named(course.course, args.step).name if args.step is not None else ""
    from fwtui.tui import run_dashboard

    return run_dashboard(live_session(args), defaults(hardware.driver_present()), merge_settings(args), "learn", step)
