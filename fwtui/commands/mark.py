"""Add markers to a session, replace its cue cards, or write them as text (see sessions/README.md)."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from fwtui.commands import add_force_option
from fwtui.commands.support.stderr_reporter import print_message
from fwtui.common.atomic_file import atomic_write, check_writable
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK, WRONG
from fwtui.common.text import quoted, sanitise
from fwtui.common.units import counted
from fwtui.learn import notes
from fwtui.sessions.library import resolve
from fwtui.sessions.markers import Mark, mark
from fwtui.sessions.recorder import in_use
from fwtui.stream.events import Marker


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", help="session file, or a name from `fwtui list`")
    what = parser.add_mutually_exclusive_group(required=True)
    about = "add a marker at a moment (12.5s, 'run 3' for its start, 'run 3 end') with this text; repeatable"
    what.add_argument("--at", nargs=2, action="append", metavar=("PLACE", "WORDS"), help=about)
    about = "replace all markers of the session by the cue cards in this text file"
    what.add_argument("--from", dest="notes", metavar="FILE", help=about)
    about = "write the cue cards of the session to a new text file; without cue cards, a skeleton of its runs"
    what.add_argument("--to", metavar="FILE", help=about)
    parser.add_argument("--title", default="", help="title of the new session (default: that of the text, else of the session)")
    parser.add_argument("-o", "--out", metavar="FILE", help="output session; not with --to")
    add_force_option(parser)


def execute(args: argparse.Namespace) -> int:
    source = resolve(args.session)
    if args.to is not None:
        if args.out is not None or args.title:
            raise Refused("--to writes a text file, not a session; omit --out and --title")
        return _write(source, args.to, args.force)
    if args.out is None:
        raise Refused("--out is missing; pass the path of the new session, such as -o talk.fwt.jsonl")
    if args.notes is None:
        title, markers = "", [(_place(place), Marker(t=0.0, text=_marker_text(text))) for place, text in args.at]
        noun = ("marker more", "markers more")
    else:
        title, markers = notes.read(args.notes)
        noun = ("cue card", "cue cards")
    if in_use(Path(args.out)):
        raise Refused(f"{sanitise(os.path.basename(args.out))} is being recorded; wait for its end, or pass another --out")
    notes.check_source(source, markers)
    complete = mark(source, markers, args.out, args.title or title, instead=args.notes is not None, replaces=args.force)
    lost = "" if complete else "; events lost in the source are missing here too"
    print_message(f"{counted(len(markers), *noun)} {'is' if len(markers) == 1 else 'are'} in {args.out}{lost}")
    return OK if complete else WRONG


def _write(session: Path, out: str, force: bool = False) -> int:
    """Write the text of a session."""
    check_writable(out, str(session), force=force)
    text, sketched = notes.text_of(session)
    with atomic_write(out, force=force) as file:
        file.write(text.encode())
    print_message(f"{'a skeleton of cue cards is' if sketched else 'the cue cards are'} in {sanitise(out)}")
    return OK


def _place(text: str) -> Mark:
    found = notes.place(text)
    if found is None:
        raise Refused(f"{quoted(text)} is not a position in a session; pass {notes.PLACES}")
    return found


def _marker_text(text: str) -> str:
    content = sanitise(text).strip()
    if not 1 <= len(content) <= notes.MAX_TEXT:
        raise Refused(f"a marker of {len(content)} characters is outside 1 to {notes.MAX_TEXT}; shorten it")
    return content
