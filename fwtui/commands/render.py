"""Draw one moment of a recorded session as SVG or text."""

from __future__ import annotations

import argparse
from pathlib import Path

from fwtui.commands import add_force_option
from fwtui.commands.support.display_options import (
    add_display_options,
    add_screen_options,
    check_time,
    merge_settings,
    parse_screen,
)
from fwtui.commands.support.stderr_reporter import session_exit_code
from fwtui.common.atomic_file import check_writable
from fwtui.common.errors import Refused
from fwtui.machine.settings import Settings
from fwtui.sessions.library import resolve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", help="session file, or a name from `fwtui list`")
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="output file, .svg or .txt")
    add_force_option(parser)
    parser.add_argument("--at", type=float, metavar="SECONDS", help="moment of the session (default: its end)")
    add_screen_options(parser)
    add_display_options(parser)


def execute(args: argparse.Namespace) -> int:
    from fwtui.tui import render

    if args.at is not None:
        check_time(args.at)
    screen, size = parse_screen(args)
    out = Path(args.out)
    if out.suffix not in (".svg", ".txt"):
        raise Refused(f"{out.name!r} ends in neither .svg nor .txt; choose one of them")
    # only options, not settings: the same command draws the same picture everywhere
    look = merge_settings(args, Settings(Path()))
    path = resolve(args.session)
    check_writable(out, str(path), force=args.force)
    return session_exit_code(path, render(path, args.at, size, out, screen, look))
