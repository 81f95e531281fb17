"""Draw one moment of a recorded session as SVG or text."""

from __future__ import annotations

import argparse
from pathlib import Path

from fwtui.commands import add_force_option
from fwtui.commands.support.display_options import (
    add_display_options,
    add_screen_options,
    merge_settings,
    parse_screen,
    parse_time,
)
from fwtui.commands.support.stderr_reporter import print_message, session_exit_code
from fwtui.common.atomic_file import check_writable
from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.machine.settings import Settings
from fwtui.sessions.library import resolve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", help="session file, or a name from `fwtui list`")
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="output file, .svg or .txt")
    add_force_option(parser)
    parser.add_argument("--at", metavar="TIME", help="moment of the session, such as 12.5 or 1:30 (default: its end)")
    parser.add_argument("--card", type=int, metavar="N", help="cue card of a lecture, from 1, as --present shows it")
    parser.add_argument("--answer", action="store_true", help="with --card: with the answer to its question")
    add_screen_options(parser)
    add_display_options(parser)


def execute(args: argparse.Namespace) -> int:
    from fwtui.tui import render

    at = parse_time(args.at) if args.at is not None else None
    if args.answer and args.card is None:
        raise Refused("--answer needs a cue card; pass --card N, too")
    args.present |= args.card is not None
    screen, size = parse_screen(args)
    out = Path(args.out)
    if out.suffix not in (".svg", ".txt"):
        raise Refused(f"{out.name!r} ends in neither .svg nor .txt; choose one of them")
    # only options, not settings: the same command draws the same picture everywhere
    look = merge_settings(args, Settings(Path()))
    path = resolve(args.session)
    check_writable(out, str(path), force=args.force)
    complete = render(path, at, size, out, screen, look, args.card, args.answer)
    print_message(f"{sanitise(out.name)} is a picture of the screen {screen}, {size[0]} x {size[1]}")
    return session_exit_code(path, complete)
