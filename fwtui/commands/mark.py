"""Add markers to a session, replace its cue cards, or write or edit them as text (see sessions/README.md)."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from fwtui.commands import add_force_option
from fwtui.commands.support.stderr_reporter import print_message
from fwtui.common.atomic_file import atomic_write, check_writable
from fwtui.common.errors import Refused, os_error_reason
from fwtui.common.exit_codes import OK, SIGNALLED, USAGE, WRONG
from fwtui.common.signals import Stopped, on_signals, stop
from fwtui.common.text import quoted, sanitise
from fwtui.common.units import counted
from fwtui.learn import notes
from fwtui.sessions.folders import PACKED, SUFFIX, stem
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
    about = "open the text in $VISUAL or $EDITOR and apply each save to the session (or --out); without an editor, only watch it"
    what.add_argument("--edit", action="store_true", help=about)
    parser.add_argument("--title", default="", help="title of the new session (default: that of the text, else of the session)")
    parser.add_argument("-o", "--out", metavar="FILE", help="output session; not with --to")
    add_force_option(parser)


def execute(args: argparse.Namespace) -> int:
    source = resolve(args.session)
    if args.to is not None:
        if args.out is not None or args.title:
            raise Refused("--to writes a text file, not a session; omit --out and --title")
        return _write(source, args.to, args.force)
    if args.edit:
        return _edit(args, source)
    if args.out is None:
        raise Refused("--out is missing; pass the path of the new session, such as -o talk.fwt.jsonl")
    if args.notes is None:
        title, markers = "", [(_place(place), Marker(t=0.0, text=_marker_text(text))) for place, text in args.at]
        noun = ("marker more", "markers more")
    else:
        title, markers = notes.read(args.notes)
        noun = ("cue card", "cue cards")
    _check_out(args.out)
    notes.check_source(source, markers)
    complete = mark(source, markers, args.out, args.title or title, instead=args.notes is not None, replaces=args.force)
    print_message(f"{counted(len(markers), *noun)} {'is' if len(markers) == 1 else 'are'} in {args.out}{_lost(complete)}")
    return OK if complete else WRONG


def _lost(complete: bool) -> str:
    return "" if complete else "; events lost in the source are missing here too"


def _write(session: Path, out: str, force: bool = False) -> int:
    """Write the text of a session."""
    check_writable(out, str(session), force=force)
    text, sketched = notes.text_of(session)
    with atomic_write(out, force=force) as file:
        file.write(text.encode())
    print_message(f"{'a skeleton of cue cards is' if sketched else 'the cue cards are'} in {sanitise(out)}")
    return OK


def _missing(session: Path, text: Path) -> int:
    """Count the session's cue cards that a text lacks; 0 if the text is invalid, since it is not applied then."""
    source = notes.text_of(session)
    try:
        there = {(marker.title, marker.text) for _, marker in notes.read(text).cues}
    except Refused:
        return 0
    return 0 if source.sketched else sum((marker.title, marker.text) not in there for _, marker in notes.parse(source.text).cues)


def _edit(args: argparse.Namespace, source: Path) -> int:
    """Edit the text of a session in a file next to it and apply each save, until the editor or a signal ends it."""
    from fwtui.live.watch_events import FileWatcher  # late import: only --edit needs it

    out = Path(args.out or source)
    _check_out(out)
    if args.out:
        check_writable(out, force=args.force)
    text = out.with_name(f"{stem(out)}.md")
    if not os.path.exists(text):
        _write(source, str(text))
    elif not args.force and (missing := _missing(source, text)):
        cards = counted(missing, "cue card")
        raise Refused(
            f"{sanitise(text.name)} lacks {cards} of the session, which would be lost; move the file away, or add --force"
        )
    watched, ended, code, message = FileWatcher(text), Event(), OK, ""

    def apply() -> tuple[int, str]:
        """Apply the text; return the exit code and a message."""
        watched.take()
        try:
            title, markers = notes.read(text)
            notes.check_source(source, markers)
            complete = mark(source, markers, out, args.title or title, instead=True, replaces=True)
        except Refused as refusal:
            return USAGE, str(refusal)
        return OK if complete else WRONG, f"{counted(len(markers), 'cue card')} in {sanitise(out.name)}{_lost(complete)}"

    if args.out:
        code, done = apply()
        print_message(done)
    watched.take()
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    on_signals(stop)
    try:
        if not editor:
            saves = f"edit {sanitise(text.name)}: each save changes {sanitise(out.name)}"
            print_message(f"{saves}; press Ctrl-C to stop, or set EDITOR to open an editor here")
            while watched.wait(ended):
                code, message = apply()
                print_message(message)
            return code
        with _opened(editor, text, ended) as process:
            while watched.wait(ended):
                code, message = apply()
        if watched.changed:
            code, message = apply()
        if not os.path.exists(text):
            stays = f"{sanitise(out.name)} is unchanged"
            raise Refused(f"{sanitise(text.name)} was deleted, and {stays}; `fwtui mark --to` writes the text again")
        if process.returncode:
            raise Refused(
                f"{sanitise(editor)} ended with {process.returncode}; {message or f'{sanitise(text.name)} was not changed'}"
            )
        print_message(message or f"{sanitise(text.name)} was not changed")
    except Stopped as stopped:
        on_signals(signal.SIG_IGN)
        return SIGNALLED + stopped.signum
    return code


@contextmanager
def _opened(editor: str, text: Path, ended: Event) -> Iterator[subprocess.Popen[bytes]]:
    """Run the editor, which owns the terminal, and set `ended` when it ends. Raises Refused."""
    try:
        process = subprocess.Popen([*shlex.split(editor), str(text)])
    except (OSError, ValueError) as error:
        raise Refused(
            f"{sanitise(editor)} did not start: {os_error_reason(error)}; set EDITOR, or unset it to edit elsewhere"
        ) from None
    Thread(target=lambda: (process.wait(), ended.set()), daemon=True).start()
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()


def _check_out(out: str | os.PathLike[str]) -> None:
    """Raise Refused if this path cannot be the output session."""
    if os.fspath(out).endswith(PACKED):
        raise Refused(
            f"{sanitise(os.path.basename(out))} would be compressed, but sessions are written uncompressed; pass -o talk{SUFFIX}"
        )
    if in_use(Path(out)):
        raise Refused(f"{sanitise(os.path.basename(out))} is being recorded; wait for its end, or pass -o talk{SUFFIX}")


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
