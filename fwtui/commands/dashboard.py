"""Open the dashboard (also without any command)."""

from __future__ import annotations

import argparse

from fwtui.commands.support.display_options import add_display_options, merge_settings
from fwtui.commands.support.recording_options import add_recording_options, live_session
from fwtui.common.errors import Refused


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "show only replays and the course; run, record, save and change nothing (`fwtui serve` shows this in a browser)"
    parser.add_argument("--read-only", action="store_true", help=about)
    about = "with --read-only: also offer this session; repeatable, the first one opens first"
    parser.add_argument("--offer", action="append", default=[], metavar="SESSION", help=about)
    add_recording_options(parser)
    add_display_options(parser)


def execute(args: argparse.Namespace) -> int:
    from fwtui.tui import run_dashboard, run_read_only

    if args.offer and not args.read_only:
        raise Refused("--offer names sessions for --read-only; pass it too, or open one with `fwtui replay`")
    if args.read_only and args.record is not None:
        raise Refused("--read-only and --record cannot be combined; pass only one")
    settings = merge_settings(args)
    if args.read_only:
        from fwtui.sessions.library import resolve  # late import, for the time to the first frame

        return run_read_only([resolve(name).absolute() for name in args.offer], settings)
    return run_dashboard(live_session(args), settings=settings)
