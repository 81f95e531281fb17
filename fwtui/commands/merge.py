"""Join several sessions of one machine, one after the other, into a new one."""

from __future__ import annotations

import argparse

from fwtui.commands.support.narrating import say
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK, WRONG
from fwtui.common.units import counted
from fwtui.sessions.library import resolve
from fwtui.sessions.rewrite import RewriteCounts, merge


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sessions", nargs="+", metavar="session", help="two or more files or names of sessions, in order")
    parser.add_argument("--title", default="", help="title of the new session; default: that of the first")
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="a new file")


def execute(args: argparse.Namespace) -> int:
    if len(args.sessions) < 2:
        raise Refused("one session is nothing to merge; give two or more")
    return report_written(merge([resolve(name) for name in args.sessions], args.out, args.title), args.out)


def report_written(written: RewriteCounts, out: str, what: str = "") -> int:
    """Say on stderr what was written, by default how many events; return the exit code."""
    note = "" if written.complete else "; events lost in the source are missing here too"
    kept = f"{written.events:,} of {counted(written.of, 'event')} are"
    say(f"{what or kept} in {out}{note}")
    return OK if written.complete else WRONG
