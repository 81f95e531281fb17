"""Write a session with further markers in it; sessions/README.md says how one points at a panel and asks a question."""

from __future__ import annotations

import argparse
import math
import re

from fwtui.commands.merge import told
from fwtui.common.errors import Refused
from fwtui.common.text import shown
from fwtui.sessions.library import resolve
from fwtui.sessions.rewrite import Mark, mark

ORDER = 140
MOST_WORDS = 200  # as the dashboard's own markers
_RUN = re.compile(r"(run|end) +(\d{1,9})", re.ASCII)
_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", help="a file, or the name of a session that `fwtui list` shows")
    about = "seconds (12.5), 'run 3' for where that run begins or 'end 3' for where it ends, and the words; may be repeated"
    parser.add_argument("--at", nargs=2, action="append", required=True, metavar=("PLACE", "WORDS"), help=about)
    parser.add_argument("--title", default="", help="title of the new session; default: as it was")
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="a new file")


def execute(given: argparse.Namespace) -> int:
    markers = [(_place(place), _words(words)) for place, words in given.at]
    written = mark(resolve(given.session), markers, given.out, given.title)
    return told(written, given.out, "1 marker more is" if len(markers) == 1 else f"{len(markers)} markers more are")


def _place(text: str) -> Mark:
    run = _RUN.fullmatch(text.strip().lower())
    if run is not None:
        return Mark(run=int(run[2]), end=run[1] == "end")
    if not _SECONDS.fullmatch(text.strip()) or not math.isfinite(float(text)):
        raise Refused(f"{shown(text)} is no place in a session; give seconds (12.5), 'run 3' or 'end 3'")
    return Mark(seconds=float(text))


def _words(text: str) -> str:
    if not 1 <= len(text.strip()) <= MOST_WORDS:
        raise Refused(f"a marker of {len(text.strip())} characters is outside 1 to {MOST_WORDS}; say it in a line")
    return text.strip()
