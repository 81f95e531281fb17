"""Check whether session files are complete (exit code 0) or lack something (1)."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TextIO

from fwtui.commands.support.stderr_reporter import print_message
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK, USAGE, WRONG
from fwtui.common.text import sanitise
from fwtui.sessions.library import resolve, summarise
from fwtui.sessions.reader import Condition, TooNew, open_session
from fwtui.stream.events import Header


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "session file, or a name from `fwtui list`; for several sessions the highest exit code counts"
    parser.add_argument("sessions", nargs="+", metavar="session", help=about)


def execute(args: argparse.Namespace) -> int:
    return max(check(path, sys.stdout, named=len(args.sessions) > 1) for path in args.sessions)


def check(path: str | os.PathLike[str], out: TextIO, named: bool = False) -> int:
    """Print the contents of the session and its faults, below its name if `named`; return the exit code."""
    if named:
        print(f"{sanitise(os.fspath(path))}:", file=out)
    try:
        with open_session(resolve(os.fspath(path))) as session:
            summary = summarise(session)
    except Refused as refusal:
        if isinstance(refusal, TooNew):
            print(_origin(refusal.header), file=out)
        print_message(str(refusal))
        return USAGE
    condition = summary.condition
    runs = units.counted(summary.runs, "run") + (f" on {summary.gpu}" if summary.gpu else "")
    what = f"{units.counted(condition.whole, 'event')}, {runs}, {units.duration(condition.duration)}."
    print(_origin(session.header), what, _verdict(condition), sep="\n", file=out)
    return OK if condition.complete else WRONG


def _origin(header: Header) -> str:
    machine = ", ".join(word for word in (header.machine.system, header.machine.cpu) if word)
    title = f"{header.title}: " if header.title else ""
    return f"{title}recorded {header.created} by {header.program}{f' on {machine}' if machine else ''}."


def _verdict(condition: Condition) -> str:
    ended = f" (ended by {condition.end.reason})" if condition.end is not None and condition.end.reason != "closed" else ""
    if condition.missing:
        return f"Incomplete{ended}: {condition.missing}. {units.counted(condition.whole, 'event')} can be replayed."
    return f"Complete{ended}."
