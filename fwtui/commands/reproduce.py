"""Run a document's experiments again and answer its claims: holds, refuted, or not testable here."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from fwtui.campaigns.reproduce import DOCUMENTS, presets
from fwtui.campaigns.reproduce.campaign import RECORDED_HZ, Performer, results_of
from fwtui.campaigns.reproduce.claim import REFUTED, RULE, UNTESTABLE, Claim, ClaimAnswer
from fwtui.campaigns.reproduce.preset import Preset, Row, RunScale
from fwtui.campaigns.reproduce.results import Results
from fwtui.commands.support.narrating import code_of_session, say
from fwtui.commands.support.printing import add_forms, folded, table
from fwtui.commands.support.recording import add_recording, closed, live_session, narrated
from fwtui.common.as_json import as_json
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import SIGNALLED
from fwtui.common.signals import Stopped, handlers_kept, on_signals, stop
from fwtui.machine import hardware
from fwtui.sessions.library import load_model, resolve
from fwtui.stream.model import Model

ALL = "all"
COLUMNS = ("id", "claim", "document", "here", "answer")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("document", choices=(*DOCUMENTS, ALL), metavar="NAME", help=f"{', '.join(DOCUMENTS)} or {ALL}")
    parser.add_argument("--quick", action="store_true", help="smaller sizes: less than a minute for each document")
    add_forms(parser, "one JSON object per claim")
    parser.add_argument(
        "--counters", action="store_true", help="also hardware counters, from a separate profile by ncu if allowed"
    )
    about = "answer from a recorded session instead of running; further ones are compared with it where a claim is about that"
    parser.add_argument("--from", dest="sessions", nargs="+", metavar="SESSION", help=about)
    add_recording(parser)
    parser.set_defaults(telemetry_hz=RECORDED_HZ)


def execute(args: argparse.Namespace) -> int:
    selected = [preset for name, preset in presets().items() if args.document in (name, ALL)]
    if args.sessions:
        if args.record is not None:
            raise Refused("--record and --from do not go together; leave one of them out")
        (first, *others), codes = zip(*map(_recorded, args.sessions), strict=True)
        for preset in selected:
            _print(args, preset, results_of(first, preset.name, others))
        return max(codes)
    folder = _folder(args, several=len(selected) > 1)
    scale = RunScale(gpu=hardware.gpu_present(), quick=args.quick)
    with handlers_kept():
        on_signals(stop)
        try:
            return max(_one(args, preset, scale, folder, alone=len(selected) == 1) for preset in selected)
        except Stopped as stopped:
            return SIGNALLED + stopped.signum


def _one(args: argparse.Namespace, preset: Preset, scale: RunScale, folder: Path | None, alone: bool) -> int:
    """Run one preset in a session of its own and print its answers; OK, or NOT_RECORDED."""
    live = live_session(argparse.Namespace(**{**vars(args), "record": None}))
    reason = "closed"
    try:
        if args.record is not None:
            path = Path(args.record) if args.record and alone else None
            live.record(folder, path, args.title or preset.heading(scale), args.record_hz or None)
        narrated(live)
        performer = Performer(live, preset, scale, preset.limit(args.quick, alone), say)
        results = performer.perform()
        if args.counters:
            performer.count(results)
        _print(args, preset, results)
    except Stopped:
        reason = "signal"
        raise
    finally:
        recorded = closed(live, args, reason)
    return recorded


def _folder(args: argparse.Namespace, several: bool) -> Path | None:
    """The folder for the sessions of several documents; None is the user's data folder."""
    if not (several and args.record):
        return None
    folder = Path(args.record)
    if folder.exists() and not folder.is_dir():
        raise Refused(f"{folder.name} is a file, and {ALL} records one session for each document; give a folder")
    return folder


def _recorded(name: str) -> tuple[Model, int]:
    """All of a session, and its exit code."""
    path = resolve(name)
    model, complete = load_model(path)
    return model, code_of_session(path, complete)


def _print(args: argparse.Namespace, preset: Preset, results: Results) -> None:
    rows = preset.answered(results)
    printed = [as_json(_data(preset, *row)) for row in rows] if args.json else lines(preset, results, rows)
    print("\n".join(printed), flush=True)


def lines(preset: Preset, results: Results, rows: Sequence[Row]) -> list[str]:
    """The printed report of one document."""
    where = results.model.gpu.name if results.model.gpu is not None else "no GPU"
    cells = [COLUMNS, *((c.id, c.words, c.document, a.value, a.verdict) for c, a in rows)]
    out = [
        f"{preset.title}, here: {where}",
        "",
        *table(cells, ("document",), [COLUMNS.index(title) for title in ("claim", "here")], words=True),
    ]
    why = [f"{c.id} {word}: {a.reason}" for word in (REFUTED, UNTESTABLE) for c, a in rows if a.verdict == word and a.reason]
    out += folded([*why, *(f"{c.id} note: {a.note}" for c, a in rows if a.note)])
    for figure in preset.figures(results):
        out += ["", figure.title, *table(figure.rows)]
    return [*out, "", *folded([f"Rule: {RULE}.", *(f"Left out: {text}" for text in results.left_out)]), ""]


def _data(preset: Preset, claim: Claim, answer: ClaimAnswer) -> dict[str, str]:
    return {
        "preset": preset.name,
        "id": claim.id,
        "claim": claim.words,
        "document": claim.document,
        "how": claim.how,
        "here": answer.value,
        "answer": answer.verdict,
        "reason": answer.reason,
        "note": answer.note,
    }
