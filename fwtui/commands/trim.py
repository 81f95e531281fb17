"""Write a part of a session as a new one: a stretch of time, some runs, less telemetry, or no rounds."""

from __future__ import annotations

import argparse
import math

from fwtui.commands.merge import report_written
from fwtui.common.errors import Refused
from fwtui.common.text import instead, quoted
from fwtui.sessions.library import resolve
from fwtui.sessions.rewrite import PASSING, SessionCut, trim

LEAST_HZ, MOST_HZ = 0.001, 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", help="a file, or the name of a session that `fwtui list` shows")
    parser.add_argument("--from", dest="start", type=float, default=0.0, metavar="SECONDS", help="leave out what was before")
    parser.add_argument("--to", dest="stop", type=float, default=math.inf, metavar="SECONDS", help="leave out what came later")
    parser.add_argument("--runs", metavar="1,3", help="these runs and what happened during them")
    parser.add_argument("--hz", type=float, metavar="HZ", help="keep at most this many readings of telemetry per second")
    about = f"leave out {' or '.join(PASSING)}, which no result needs; several with commas"
    parser.add_argument("--without", metavar="KIND,...", help=about)
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="a new file")


def execute(args: argparse.Namespace) -> int:
    cut = _cut(args)
    return report_written(trim(resolve(args.session), cut, args.out), args.out)


def _cut(args: argparse.Namespace) -> SessionCut:
    if not (math.isfinite(args.start) and 0 <= args.start <= args.stop):  # also for NaN
        raise Refused(f"from {args.start:g} to {args.stop:g} is not a stretch of seconds; give something like --from 10 --to 20")
    if args.hz is not None and not LEAST_HZ <= args.hz <= MOST_HZ:
        raise Refused(f"{args.hz:g} readings per second is outside {LEAST_HZ} to {MOST_HZ}; give something like --hz 2")
    runs = None if args.runs is None else frozenset(map(_run, args.runs.split(",")))
    without = frozenset() if args.without is None else frozenset(map(_kind, args.without.split(",")))
    cut = SessionCut(args.start, args.stop, runs, args.hz, without)
    if cut == SessionCut():
        raise Refused("there is nothing to leave out; give --from, --to, --runs, --hz or --without")
    return cut


def _kind(text: str) -> str:
    if text.strip() not in PASSING:
        raise Refused(f"{quoted(text)} cannot be left out; {instead(text.strip(), PASSING)}")
    return text.strip()


def _run(text: str) -> int:
    if not text.strip().isascii() or not text.strip().isdigit():
        raise Refused(f"{quoted(text)} is not a run's number; give numbers as `fwtui replay` shows them: --runs 1,3")
    return int(text[:20])
