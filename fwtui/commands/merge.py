"""Write several sessions of one machine after each other as a new one."""

from __future__ import annotations

import argparse

from fwtui.commands import OK, WRONG
from fwtui.commands.support.narrating import say
from fwtui.common.errors import Refused
from fwtui.sessions.library import resolve
from fwtui.sessions.rewrite import Written, merge

ORDER = 120


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sessions", nargs="+", metavar="session", help="two or more files or names of sessions, in order")
    parser.add_argument("--title", default="", help="title of the new session; default: that of the first")
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="a new file")


def execute(given: argparse.Namespace) -> int:
    if len(given.sessions) < 2:
        raise Refused("one session is nothing to merge; give two or more")
    written = merge([resolve(name) for name in given.sessions], given.out, given.title)
    tell(written, given.out)
    return OK if written.complete else WRONG


def tell(written: Written, out: str) -> None:
    """What was written, on stderr."""
    say(f"{written.kept:,} of {written.of:,} events are in {out}{lost(written)}")


def lost(written: Written) -> str:
    """What to say of a source that is not whole."""
    return "" if written.complete else "; what was lost in the source is missing here too"
