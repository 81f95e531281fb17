"""Open the course: step by step from one core to the fastest kernel, with questions that recorded runs answer."""

from __future__ import annotations

import argparse

from fwtui.commands.support.display_options import add_display_options, merge_settings
from fwtui.commands.support.recording_options import add_recording_options, live_session
from fwtui.experiment.experiment import defaults
from fwtui.learn.course import step_named
from fwtui.learn.lessons import lessons
from fwtui.machine import hardware


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("step", nargs="?", help="number or name of the first step (default: your last step)")
    add_recording_options(parser)
    add_display_options(parser)


def execute(args: argparse.Namespace) -> int:
    step = step_named(lessons().course, args.step).name if args.step is not None else ""
    from fwtui.tui import run_dashboard

    return run_dashboard(live_session(args), defaults(hardware.driver_present()), merge_settings(args), "learn", step)
