"""Add markers to a session, replace its cue cards, or write them as text; sessions/README.md says how."""

from __future__ import annotations

import argparse
import os

from fwtui.commands.merge import told
from fwtui.commands.support.narrating import say
from fwtui.common.atomic_file import new_whole_file
from fwtui.common.errors import Refused
from fwtui.common.exit_codes import OK
from fwtui.common.text import clean, shown
from fwtui.common.units import counted
from fwtui.learn import notes
from fwtui.sessions.library import resolve
from fwtui.sessions.reader import open_session
from fwtui.sessions.rewrite import Mark, mark
from fwtui.stream.events import Marker

ORDER = 140
GROUP = "record"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", help="a file, or the name of a session that `fwtui list` shows")
    what = parser.add_mutually_exclusive_group(required=True)
    about = "a place (12.5s, 'run 3' for its beginning, 'run 3 end'), and the words; may be repeated"
    what.add_argument("--at", nargs=2, action="append", metavar=("PLACE", "WORDS"), help=about)
    about = "take all cue cards from this text, in place of the session's markers"
    what.add_argument("--from", dest="notes", metavar="FILE", help=about)
    what.add_argument("--to", metavar="FILE", help="write the session's cue cards as such a text, a new file")
    parser.add_argument("--title", default="", help="title of the new session; default: the text's, else the session's")
    parser.add_argument("-o", "--out", metavar="FILE", help="a new session; not with --to")


def execute(given: argparse.Namespace) -> int:
    if given.to is not None:
        if given.out is not None or given.title:
            raise Refused("--to writes a text and no session; leave --out and --title away")
        return _write(resolve(given.session), given.to)
    if given.out is None:
        raise Refused("--out is missing; say where the new session goes, such as -o talk.fwt.jsonl")
    if given.notes is None:
        title, markers = given.title, [(_place(place), Marker(t=0.0, text=_words(words))) for place, words in given.at]
        what = "1 marker more is" if len(markers) == 1 else f"{len(markers)} markers more are"
    else:
        title, markers = notes.read(given.notes)
        title, what = given.title or title, f"{counted(len(markers), 'cue card')} {'is' if len(markers) == 1 else 'are'}"
    written = mark(resolve(given.session), markers, given.out, title, instead=given.notes is not None)
    return told(written, given.out, what)


def _write(session: str | os.PathLike[str], out: str) -> int:
    with open_session(session) as opened, new_whole_file(out) as file:
        for part in notes.written(opened):
            file.write(part.encode())
    say(f"the cue cards are in {clean(out)}")
    return OK


def _place(text: str) -> Mark:
    found = notes.place(text)
    if found is None:
        raise Refused(f"{shown(text)} is not a place in a session; give {notes.PLACES}")
    return found


def _words(text: str) -> str:
    words = clean(text).strip()
    if not 1 <= len(words) <= notes.MOST_WORDS:
        raise Refused(f"a marker of {len(words)} characters is outside 1 to {notes.MOST_WORDS}; say it in a line")
    return words
