"""A film for asciinema's player, in version 2 of its format. An event has only the rows that changed."""

from __future__ import annotations

import json
from collections.abc import Iterator

from fwtui.common.text import sanitise
from fwtui.tui.export.film import Film, Lines, Span

CLEAR = "\x1b[?25l\x1b[2J"  # without a cursor


def cast(film: Film) -> str:
    head = {
        "version": 2,
        "width": film.width,
        "height": film.height,
        "title": sanitise(film.title),
        "env": {"TERM": "xterm-256color"},
        "duration": film.duration,
    }
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in (head, *_events(film)))


def _events(film: Film) -> Iterator[tuple[float, str, str]]:
    labels = [(run.begin, f"run {run.run}: {run.title}") for run in film.runs]
    labels += [(stop.played, stop.cue.in_short) for stop in film.stops]
    entries: list[tuple[float, str, str]] = [(round(played, 3), "m", sanitise(label)) for played, label in sorted(labels)]
    before: Lines = ()
    for frame in film.frames:
        changed = [y for y, line in enumerate(frame.lines) if not before or before[y] != line]
        if changed:
            rows = ((y, film.rows[frame.lines[y]]) for y in changed)
            text = "".join(f"\x1b[{y + 1};1H{''.join(_span(span, film) for span in row)}\x1b[0m" for y, row in rows)
            entries.append((frame.played, "o", text if before else CLEAR + text))
        before = frame.lines
    yield from sorted(entries, key=lambda event: event[0])


def _span(span: Span, film: Film) -> str:
    ink = film.inks[span.ink]
    flags = {"1": ink.bold, "3": ink.italic, "4": ink.underline, "9": ink.strike}
    colours = (f"{what};2;{';'.join(map(str, bytes.fromhex(c[1:])))}" for what, c in ((38, ink.colour), (48, ink.ground)))
    codes = ";".join([*(code for code, holds in flags.items() if holds), *colours])
    return f"\x1b[0;{codes}m{sanitise(span.text)}"
