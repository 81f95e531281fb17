"""Options of commands that open or draw screens, and the settings that they override."""

from __future__ import annotations

import argparse

from fwtui.commands import TakesArguments
from fwtui.common.errors import Refused
from fwtui.common.text import quoted, suggest
from fwtui.machine import settings
from fwtui.machine.settings import Settings
from fwtui.tui.frame.places import MIN, place_names

DEFAULT_SIZE = "120x40"
MAX_DIGITS = 3  # digits of columns and of rows
MIN_GAP, MAX_GAP = 0.01, 3600.0  # seconds


def add_screen_options(parser: TakesArguments) -> None:
    """Add the options for the screen to draw and its size; their values are None if omitted."""
    first, *others = place_names()
    about = f"screen: {', '.join((first, *others))} (default: {first})"
    parser.add_argument("--screen", metavar="NAME", help=about)
    parser.add_argument("--size", metavar="WxH", help=f"columns x rows of the terminal (default: {DEFAULT_SIZE})")


def parse_screen(args: argparse.Namespace) -> tuple[str, tuple[int, int]]:
    """Return the requested screen and its size (columns, rows). Raises Refused."""
    size = DEFAULT_SIZE if args.size is None else args.size
    width, _, height = size.partition("x")
    sides = [int(side) if side.isdecimal() and len(side) <= MAX_DIGITS else 0 for side in (width, height)]
    if not (1 <= sides[0] <= 500 and 1 <= sides[1] <= 200):
        raise Refused(f"size {quoted(size)} is not columns x rows up to 500x200; pass something like 120x40")
    if sides[0] < MIN[0] or sides[1] < MIN[1]:
        raise Refused(f"size {size} is too small for a screen; pass at least {MIN[0]}x{MIN[1]}")
    screen = place_names()[0] if args.screen is None else args.screen
    if screen not in place_names():
        raise Refused(f"there is no screen {quoted(screen)} in a replay; {suggest(screen, place_names())}")
    return screen, (sides[0], sides[1])


def parse_time(text: str) -> float:
    """Return the seconds of a time in a session. Raises Refused."""
    from fwtui.sessions.player import clock_seconds

    seconds = clock_seconds(text)
    if seconds is None:
        raise Refused(f"moment {quoted(text)} is not a non-negative time; pass seconds (--at 12.5) or minutes (--at 1:30)")
    return seconds


def check_speed(speed: float, max_gap: float | None) -> None:
    """Raise Refused for an unsupported speed or an invalid longest gap; None leaves gaps unchanged."""
    from fwtui.sessions.player import SPEEDS  # late import, for the time to the first frame

    if speed not in SPEEDS:
        raise Refused(f"speed {speed:g} is not supported; choose one of {', '.join(f'{s:g}' for s in SPEEDS)}")
    if max_gap is not None and not MIN_GAP <= max_gap <= MAX_GAP:
        raise Refused(f"a gap of {max_gap:g} s is outside {MIN_GAP:g} to {MAX_GAP:g} s; pass something like --max-gap 1")


def add_display_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the appearance of screens."""
    group = parser.add_argument_group("look")
    group.add_argument("--theme", metavar="NAME", help="colour theme; the palette (ctrl+p) lists the names")
    about = "large figures, fewer panels, for a projector; cue cards one by one (`render`: see --card; `export`: none)"
    group.add_argument("--present", action="store_true", help=about)


def merge_settings(args: argparse.Namespace, base: Settings | None = None) -> Settings:
    """Return the user's settings, or `base`, with these options taking precedence."""
    options = {"theme": args.theme, "present": "yes" if args.present else None}
    return (settings.load() if base is None else base).with_options(options)
