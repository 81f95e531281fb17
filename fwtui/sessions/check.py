"""Is this session whole? The answer in a few sentences and an exit code."""

from __future__ import annotations

import os
from typing import TextIO

from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.sessions.library import summarise
from fwtui.sessions.reader import Condition, TooNew, open_session
from fwtui.stream.events import Header

WHOLE, DAMAGED, REFUSED = 0, 1, 2


def check(path: str | os.PathLike[str], out: TextIO) -> int:
    """Print what is in the session and how whole it is: 0 whole and closed, 1 cut or damaged, 2 no session to read."""
    try:
        with open_session(path) as session:
            summary = summarise(session)
    except TooNew as refusal:
        print(f"{_origin(refusal.header)}\n{refusal}.", file=out)
        return REFUSED
    except Refused as refusal:
        print(f"{refusal}.", file=out)
        return REFUSED
    condition = summary.condition
    runs = _count(summary.runs, "run") + (f" on {summary.gpu}" if summary.gpu else "")
    what = f"{_count(condition.whole, 'event')}, {runs}, {units.duration(condition.duration)}."
    print(_origin(session.header), what, _verdict(condition), sep="\n", file=out)
    return WHOLE if condition.closed else DAMAGED


def _origin(header: Header) -> str:
    machine = ", ".join(word for word in (header.machine.system, header.machine.cpu) if word)
    title = f"{header.title}: " if header.title else ""
    return f"{title}recorded {header.created} by {header.program}{f' on {machine}' if machine else ''}."


def _verdict(condition: Condition) -> str:
    if condition.closed:
        assert condition.end is not None
        dropped = f" {_count(condition.dropped, 'event')} had been lost before." if condition.dropped else ""
        ended = "" if condition.end.reason == "closed" else f" (ended by {condition.end.reason})"
        return f"Whole and closed{ended}.{dropped}"
    return f"Not whole: {missing(condition)}. {_count(condition.whole, 'event')} can be replayed."


def missing(condition: Condition) -> str:
    """What is not whole about a session that has been seen to its end, in words; empty where it is closed."""
    faults = []
    if condition.damaged:
        faults.append(f"{_count(condition.damaged, 'damaged line')} left out")
    if condition.torn:
        faults.append("the last line is torn and left out")
    if condition.end is None:
        faults.append("there is no end, so later events may be missing")
    elif condition.end.events != condition.whole - 1:
        faults.append(f"the end counts {_count(condition.end.events, 'event')} before it and {condition.whole - 1} are here")
    return "; ".join(faults)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
