"""Export a table of a session (runs, phases, telemetry ...) as CSV, JSON lines or Markdown, the session as a Perfetto
trace (x.perfetto.json), or its replay as a web page (talk.html), animated picture (talk.svg) or asciinema file (talk.cast).
"""

from __future__ import annotations

import argparse
import io
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from fwtui.analysis import export, trace_events
from fwtui.analysis.export import FORMATS, TABLES, Row
from fwtui.commands import add_force_option
from fwtui.commands.support.display_options import (
    add_display_options,
    add_screen_options,
    check_speed,
    merge_settings,
    parse_screen,
)
from fwtui.commands.support.stderr_reporter import drawing_progress, print_message, session_exit_code
from fwtui.common import gc_pause, units
from fwtui.common.atomic_file import atomic_write, check_writable
from fwtui.common.errors import Refused
from fwtui.common.text import quoted
from fwtui.machine.settings import Settings
from fwtui.sessions.library import load_model, resolve
from fwtui.sessions.reader import LoadedSession, load, open_session
from fwtui.stream import events
from fwtui.tui.export import KINDS, encode

if TYPE_CHECKING:
    from fwtui.tui.export.film import Film, FilmCut

WRITERS: dict[str, Callable[[Iterable[Row], TextIO], None]] = {
    "csv": export.write_csv,
    "jsonl": export.write_json_lines,
    "md": export.write_markdown,
}
ENDINGS = (*FORMATS.values(), trace_events.ENDING, *KINDS)
MIN_RATE, MAX_RATE = 0.1, 10  # pictures a second
DEFAULT_GAP = 1.0
OF_A_REPLAY = ("size", "screen", "start", "stop", "speed", "fps", "max_gap", "theme", "present")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", help="session file, or a name from `fwtui list`")
    parser.add_argument("what", nargs="?", choices=TABLES, help="table to export (default: runs)")
    parser.add_argument("--format", choices=tuple(FORMATS), help="format of a table (default: that of the file name, else csv)")
    endings = ", ".join(ENDINGS)
    parser.add_argument("-o", "--out", metavar="FILE", help=f"output file ({endings}); tables go to standard output by default")
    add_force_option(parser)
    group = parser.add_argument_group("replay (.html, .cast, .svg)")
    add_screen_options(group)
    group.add_argument(
        "--from", dest="start", type=float, metavar="SECONDS", help="start of the replay (default: the first activity)"
    )
    group.add_argument("--to", dest="stop", type=float, metavar="SECONDS", help="end of the replay (default: end of the session)")
    group.add_argument("--speed", type=float, metavar="TIMES", help="playback speed, 0.25 to 64 (default: 1)")
    rates = ", ".join(f"{kind.rate:g} in {suffix}" for suffix, kind in KINDS.items())
    group.add_argument("--fps", type=float, metavar="RATE", help=f"pictures per second, at most {MAX_RATE} (default: {rates})")
    about = f"longest idle gap in the replay; 0 leaves gaps unchanged (default: {DEFAULT_GAP:g})"
    group.add_argument("--max-gap", type=float, metavar="SECONDS", help=about)
    add_display_options(parser)


@gc_pause.paused()  # results are many, and none is freed before the end
def execute(args: argparse.Namespace) -> int:
    if args.format is None and Path(args.out or "").suffix in KINDS:
        return _replay(args)
    for name in OF_A_REPLAY:
        if getattr(args, name):
            option = {"start": "from", "stop": "to"}.get(name, name).replace("_", "-")
            endings = " or ".join(KINDS)
            raise Refused(f"--{option} applies only to a replay; pass an output file that ends in {endings}")
    if args.format is None and (args.out or "").endswith(trace_events.ENDING):
        return _trace(args)
    form = _format(args)
    path = resolve(args.session)
    if args.out is not None:
        check_writable(args.out, str(path), force=args.force)
    what = args.what or "runs"
    if form in ("md", "jsonl") and what == "runs":
        model, complete = load_model(path)
        rows: Iterable[Row] = export.human_rows(model) if form == "md" else export.complete_rows(model)
    else:
        rows, complete = export.read_rows(path, what)
    if args.out is None:
        WRITERS[form](rows, sys.stdout)
    else:
        with _text_file(args.out, args.force) as file:
            WRITERS[form](rows, file)
    return session_exit_code(path, complete)


def _trace(args: argparse.Namespace) -> int:
    """Write the session as a trace and report its size."""
    if args.what is not None:
        raise Refused(f"{quoted(Path(args.out).name)} contains the whole session, not one table; omit {args.what!r}")
    path = resolve(args.session)
    check_writable(args.out, str(path), force=args.force)
    with open_session(path) as session, _text_file(args.out, args.force) as file:
        # except kinds of a newer version
        all_events = (line.event for line in session.lines() if isinstance(line.event, events.Event))
        count = trace_events.write(session.header, all_events, file)
    print_message(f"{Path(args.out).name} is a trace of {units.counted(count, 'event')} for ui.perfetto.dev or chrome://tracing")
    return session_exit_code(path, session.condition.complete)


def _format(args: argparse.Namespace) -> str:
    if args.out is None:
        return args.format or "csv"
    out = Path(args.out)
    if args.format is not None:
        other = next((end for end in ENDINGS if out.name.endswith(end) and end != FORMATS[args.format]), None)
        if other is not None:
            raise Refused(f"{quoted(out.name)} ends in {other}, but --format is {args.format}; pass only one")
        return args.format
    if out.suffix not in FORMATS.values():
        raise Refused(f"{quoted(out.name)} ends in none of {', '.join(ENDINGS)}; choose one of them or give --format")
    return next(name for name, ending in FORMATS.items() if out.suffix == ending)


def _replay(args: argparse.Namespace) -> int:
    """Write the session's replay into a file of one of these kinds and report its size."""
    if args.what is not None:
        raise Refused(f"{quoted(Path(args.out).name)} contains the whole replay, not one table; omit {args.what!r}")
    out = Path(args.out)
    check_writable(out, str(resolve(args.session)), force=args.force)
    kind = KINDS[out.suffix]
    path, session, whole = filmed_session(args, kind.rate)
    content, film = encode(whole, out.suffix)
    with atomic_write(out, force=args.force) as file:
        file.write(content)
    result = f"{units.counted(len(film.frames), 'picture')} of {units.duration(film.duration)}, {units.memory(len(content))}"
    print_message(f"{out.name} is {kind.title}: {result}")
    if less := len(whole.frames) - len(film.frames):
        left_out = f"{units.counted(less, 'picture')} {'is' if less == 1 else 'are'} omitted"
        print_message(f"{left_out} to stay below {kind.most / 1e6:g} MB")
    for part in whole.left_out:
        print_message(f"it shows only {part}")
    return session_exit_code(path, session.complete)


def filmed_session(args: argparse.Namespace, rate: float) -> tuple[Path, LoadedSession, Film]:
    """Return the path, the session and its film, of `rate` pictures a second without --fps. Raises Refused."""
    from fwtui.tui import filmed

    cut = _cut(args, rate)
    screen, size = parse_screen(args)
    look = merge_settings(args, Settings(Path()))  # only options, not settings, as in a picture
    path = resolve(args.session)
    session = load(path, for_screen=True)
    if cut.begin > session.duration:
        raise Refused(f"--from {cut.begin:g} is after the end of the session, {session.duration:g} s; pass an earlier time")
    small = args.size is None and Path(args.out).suffix == ".html"
    return path, session, filmed(path, session, size, cut, screen, look, drawing_progress(), small)


def _cut(args: argparse.Namespace, rate: float) -> FilmCut:
    from fwtui.tui.export.film import FilmCut

    start, stop = args.start or 0.0, math.inf if args.stop is None else args.stop
    if not (math.isfinite(start) and 0 <= start <= stop):  # NaN fails too
        raise Refused(f"from {start:g} to {stop:g} is not a range of seconds; pass something like --from 10 --to 20")
    rate = rate if args.fps is None else args.fps
    if not MIN_RATE <= rate <= MAX_RATE:
        raise Refused(f"{rate:g} pictures a second is outside {MIN_RATE} to {MAX_RATE}; pass something like --fps 5")
    speed = 1.0 if args.speed is None else args.speed
    gap = DEFAULT_GAP if args.max_gap is None else args.max_gap or None
    check_speed(speed, gap)
    return FilmCut(start, stop, rate, gap, speed)


@contextmanager
def _text_file(name: str, force: bool) -> Iterator[io.TextIOWrapper]:
    """Open a text file that replaces the old one only when it is complete."""
    with atomic_write(name, force=force) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
        yield text
