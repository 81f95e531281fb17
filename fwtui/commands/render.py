"""Draw one moment of a recorded session as an SVG (or as text, where the file ends in .txt)."""

from __future__ import annotations

import argparse
from pathlib import Path

from fwtui.commands.support.looking import add_look, preferred
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK
from fwtui.machine.settings import Settings
from fwtui.sessions.library import resolve
from fwtui.tui.frame.places import place_names

ORDER = 230


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", help="a file, or the name of a session that `fwtui list` shows")
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="where to write; ends in .svg or .txt")
    parser.add_argument("--at", type=float, metavar="SECONDS", help="moment of the session; default: its end")
    first, *others = place_names()
    words = f"which screen: {', '.join((first, *others))}; default: {first}"
    parser.add_argument("--screen", default=first, metavar="NAME", help=words)
    parser.add_argument("--size", default="120x40", metavar="WxH", help="columns x rows of the terminal")
    add_look(parser)


def execute(given: argparse.Namespace) -> int:
    from fwtui.tui import check_moment, render

    if given.at is not None:
        check_moment(given.at)
    width, x, height = given.size.partition("x")
    if not (x and width.isdecimal() and height.isdecimal() and 1 <= int(width) <= 500 and 1 <= int(height) <= 200):
        raise Refused(f"size {given.size!r} is not columns x rows up to 500x200; give something like 120x40")
    out = Path(given.out)
    if out.suffix not in (".svg", ".txt"):
        raise Refused(f"{out.name!r} ends in neither .svg nor .txt; choose one of them")
    # flags alone: a picture is the same whatever its maker prefers
    look = preferred(given, Settings(Path()))
    render(resolve(given.session), given.at, (int(width), int(height)), out, given.screen, look)
    return OK
