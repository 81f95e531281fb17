"""Run a paper's experiments again and evaluate its claims: holds, refuted, or not testable here."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from fwtui.campaigns.claims import PAPERS, RULE, Paper, evaluate, evidence_of, papers
from fwtui.campaigns.evidence import Evidence
from fwtui.campaigns.reproduction import Reproduction
from fwtui.commands.support.printing import add_json_option, folded, table
from fwtui.commands.support.recording_options import add_recording_options, close_session, live_session, with_progress
from fwtui.commands.support.stderr_reporter import print_message, session_exit_code
from fwtui.common.as_json import as_json
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import SIGNALLED
from fwtui.common.signals import Stopped, on_signals, restore_handlers, stop
from fwtui.machine import hardware
from fwtui.sessions.library import load_model, resolve

ALL = "all"
COLUMNS = ("id", "claim", "document", "here", "answer")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("document", choices=(*PAPERS, ALL), metavar="NAME", help=f"paper: {', '.join(PAPERS)} or {ALL}")
    parser.add_argument("--quick", action="store_true", help="use smaller sizes, less than a minute per paper")
    add_json_option(parser, "one JSON object per claim")
    parser.add_argument("--counters", action="store_true", help="also profile hardware counters with ncu, if permitted")
    about = "evaluate a recorded session instead of running; claims about two GPUs compare it with the further sessions"
    parser.add_argument("--from", dest="sessions", nargs="+", metavar="SESSION", help=about)
    add_recording_options(parser)
    parser.set_defaults(telemetry_hz=1.0)


def execute(args: argparse.Namespace) -> int:
    selected = [papers()[name] for name in PAPERS if args.document in (name, ALL)]
    is_only = len(selected) == 1
    if args.sessions:
        if args.record is not None:
            raise Refused("--record and --from cannot be combined; pass only one")
        sessions = [(path, *load_model(path)) for path in map(resolve, args.sessions)]
        first, *others = (model for _, model, _ in sessions)
        for paper in selected:
            _print(args, paper, evidence_of(first, paper, others))
        return max(session_exit_code(path, complete) for path, _, complete in sessions)
    if not is_only and args.record and os.path.isfile(args.record):
        raise Refused(f"{Path(args.record).name} is a file, and {ALL} records one session for each paper; pass a folder")
    with restore_handlers():
        on_signals(stop)
        try:
            return max(_reproduce(args, paper, is_only) for paper in selected)
        except Stopped as stopped:
            return SIGNALLED + stopped.signum


def _reproduce(args: argparse.Namespace, paper: Paper, is_only: bool) -> int:
    """Run one paper in a separate session and print the results of its claims; return OK or NOT_RECORDED."""
    live = live_session(argparse.Namespace(**{**vars(args), "record": None}))
    reason = "closed"
    try:
        reproduction = Reproduction(live, paper, hardware.gpu_present(), args.quick, print_message)
        if args.record is not None:
            place = Path(args.record) if args.record else None  # a file, or a folder for all papers
            title = args.title or reproduction.title
            live.record(None if is_only else place, place if is_only else None, title)
        with_progress(live)
        reproduction.runner.run()
        if args.counters:
            reproduction.count()
        _print(args, paper, reproduction.evidence)
    except Stopped:
        reason = "signal"
        raise
    finally:
        recorded = close_session(live, args, reason)
    return recorded


def _print(args: argparse.Namespace, paper: Paper, found: Evidence) -> None:
    answers = [(claim, evaluate(claim, found)) for claim in paper.claim]
    if args.json:
        for claim, answer in answers:
            fields = {"preset": paper.name, "id": claim.id, "claim": claim.claim, "document": claim.document, "how": claim.how}
            fields |= {"here": answer.value, "answer": answer.verdict, "reason": answer.reason, "note": answer.note}
            print(as_json(fields))
        return
    cells = [COLUMNS, *((c.id, c.claim, c.document, a.value, a.verdict) for c, a in answers)]
    lines = [paper.heading(found.model), "", *table(cells, ("document",), [1, 3], only_text=True)]
    lines += folded(f"{c.id} {a.verdict}: {a.reason}" for c, a in answers if a.reason)
    lines += folded(f"{c.id} note: {a.note}" for c, a in answers if a.note)
    rule = [f"Rule: {RULE}.", *(f"Skipped: {text}" for text in found.skipped())]
    print("\n".join([*lines, "", *folded(rule), ""]), flush=True)
