"""A film as one web page that loads nothing else: screens, timeline, questions and a table of the runs."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from string import Template

from fwtui.analysis.columns import COLUMNS, NONE
from fwtui.analysis.html import escaped, head_row, table_row
from fwtui.common import units
from fwtui.common.version import __version__
from fwtui.learn.questions import POINT, QuestionAnswer
from fwtui.sessions.player import SPEEDS
from fwtui.tui.export.drawing import HEIGHT, WIDTH, parts, row_svg, style_sheet
from fwtui.tui.export.film import Film, FilmFrame, FilmStop, Lines, row_text

HERE = Path(__file__).parent
# colours of kernels on the timeline; neighbours differ on light and on dark backgrounds
COLOURS = ("#1f7a89", "#9a5f14", "#7a55c4", "#3f7d34", "#b8437a", "#3c66bf", "#7d6122", "#237a64")  # white letters are legible
BAD = "#b8323d"
REASON = COLUMNS["why"].title
PIN = 13  # pixels of a marker on the timeline


def page(film: Film) -> str:
    """Return the page as HTML."""
    script, last = _part("page.js"), film.frames[-1]
    screen = (row_svg(film.rows[line], film) for line in last.lines)
    title, cards = "Lecture" if film.directed else "Markers", "".join(_cards(film))
    return Template(_part("page.html")).substitute(
        policy=_policy(script),
        version=escaped(__version__),
        title=escaped(film.title),
        origin=escaped(film.origin),
        problems="".join(
            f'<p class="problem">This recording is incomplete: {escaped(problem)}.</p>' for problem in film.problems
        ),
        style=_part("page.css"),
        inks=style_sheet(*film.sizes),
        ground=film.ground,
        scheme="dark" if film.dark else "light",
        width=film.width * WIDTH,
        height=_height(film),
        kind="marked" if film.stops else "",
        rows="".join(f'<g transform="translate(0 {HEIGHT * y})">{row}</g>' for y, row in enumerate(screen)),
        text="".join(f"{escaped(row_text(film.rows[line]))}\n" for line in last.lines).rstrip() + "\n",
        duration=f"{film.duration:.3f}",
        clock=_clock(last.recorded),
        marks="".join(chain(_bars(film), _ticks(film))),
        legend="".join(f'<li style="--run:{colour}">{escaped(kernel)}</li>' for kernel, colour in _colours(film).items()),
        runs="".join(_runs(film)),
        warps="".join(_warps(film)),
        cards=f'<section><h2>{title}</h2><ol id="stops">{cards}</ol></section>' if film.stops else "",
        left_out="".join(f"<p>Only {escaped(part)} are shown.</p>" for part in film.left_out),
        film=_payload(film),
        script=script,
    )


def _policy(script: str) -> str:
    """Return the content security policy: only this script runs, and nothing is fetched, whatever a session contains."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"


def _part(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _payload(film: Film) -> str:
    """Return the data that the script plays: packed, since browsers can unpack it, in letters that end no element."""
    whole = {
        "sizes": [_size(one) for one in film.sizes],
        "runs": [(run.run, run.title, run.begin, run.end) for run in film.runs],
        "stops": [stop.played for stop in film.stops],
        "duration": film.duration,
        "directed": film.directed and bool(film.stops),
        "speeds": SPEEDS,
    }
    return base64.b64encode(zlib.compress(json.dumps(whole, separators=(",", ":")).encode(), 9)).decode()


def _size(film: Film) -> dict[str, object]:
    """Return the frames and markers in one size: each row is a list of parts, and each part is stored once."""
    numbers: dict[str, int] = {}
    return {
        "width": film.width * WIDTH,
        "height": _height(film),
        "rows": [[numbers.setdefault(part, len(numbers)) for part in parts(row, film)] for row in film.rows],
        "parts": [*numbers],
        "texts": [row_text(row) for row in film.rows],
        "frames": [*_changes(film.frames)],
        "stops": {number: (stop.lines, stop.answered) for number, stop in enumerate(film.stops, 1)},
    }


def _changes(frames: Sequence[FilmFrame]) -> Iterator[list[int]]:
    """Yield for each frame the recorded and played milliseconds since the previous frame, then index and row of changed lines."""
    recorded = played = 0
    before: Lines = ()
    for frame in frames:
        times = round(1000 * frame.recorded), round(1000 * frame.played)
        changed = ((y, line) for y, line in enumerate(frame.lines) if not before or line != before[y])
        yield [times[0] - recorded, times[1] - played, *chain.from_iterable(changed)]
        (recorded, played), before = times, frame.lines


def _height(film: Film) -> int:
    """Return the visible height of a screen in pixels: without its last line, which lists the terminal's keys."""
    return (film.height - 1) * HEIGHT


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{seconds % 60:04.1f}"


def _colours(film: Film) -> dict[str, str]:
    kernels = dict.fromkeys(run.kernel for run in film.runs)
    return {kernel: COLOURS[place % len(COLOURS)] for place, kernel in enumerate(kernels)}


def _share(film: Film, played: float) -> str:
    return f"{100 * min(played / film.duration, 1.0) if film.duration else 0:.3f}%"


def _bars(film: Film) -> Iterator[str]:
    colours = _colours(film)
    for run in film.runs:
        tooltip = escaped(f"run {run.run}: {run.title}, {run.outcome}")
        place = f"left:{_share(film, run.begin)};width:{_share(film, run.end - run.begin)}"
        colour = BAD if run.bad else colours[run.kernel]
        label = f"<span>{escaped(run.title)}</span>"
        yield f'<a class="bar" tabindex="-1" href="#run={run.run}" title="{tooltip}" style="{place};--run:{colour}">{label}</a>'


def _ticks(film: Film) -> Iterator[str]:
    for number, stop in enumerate(film.stops, 1):
        tooltip = escaped(f"marker {number}: {stop.cue.in_short}")
        kind = "tick asks" if stop.cue.asks else "tick"
        same = [n for n, other in enumerate(film.stops, 1) if other.played == stop.played]  # drawn next to each other
        side = PIN * (same.index(number) - (len(same) - 1) * (stop.played > film.duration / 2))
        left = f"calc({_share(film, stop.played)} + {side}px)"
        yield f'<a class="{kind}" tabindex="-1" href="#marker={number}" title="{tooltip}" style="left:{left}"></a>'


def _runs(film: Film) -> Iterator[str]:
    if not film.table:
        yield "<p>There is no run.</p>"
        return
    yield '<div class="wide" tabindex="0" role="region" aria-labelledby="runs-caption"><table><caption id="runs-caption">'
    yield f"{units.counted(len(film.table), 'run')}. A number in the first column leads to where that run ends.</caption>"
    attributes = {place: f' class="{kind}"' for place, title in enumerate(film.head) if (kind := _kind(film, place, title))}
    yield f"<thead>{head_row(film.head, attributes)}</thead><tbody>"
    reason = film.head.index(REASON) if REASON in film.head else None
    ends = {str(run.run): run.recorded[1] for run in film.runs}
    for row in film.table:
        number, text = row[0], escaped(row[0])
        yield table_row(f'<a href="#t={ends[number]:.3f}">{text}</a>' if number in ends else text, row[1:], attributes)
        if reason is not None and row[reason] != NONE:
            yield f'<tr class="because"><td colspan="{len(row)}">{REASON}: {escaped(row[reason])}</td></tr>'
    yield "</tbody></table></div>"


def _warps(film: Film) -> Iterator[str]:
    if not film.warps:
        return
    yield "<h2>Warp stall reasons</h2>"
    yield "<p>PC samples from separate launches. Below each run: its hotspots, the source lines with the most samples.</p>"
    head = "".join(f'<th scope="col">{title}</th>' for title in ("phase", "line", "% of samples", "main stall reason", "source"))
    for one in film.warps:
        yield f'<details><summary>{escaped(one.summary)}</summary><div class="wide" tabindex="0">'
        yield f"<table><thead><tr>{head}</tr></thead><tbody>"
        for line in one.lines:
            *facts, text = map(escaped, line)
            yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in facts)}<td><code>{text}</code></td></tr>"
        yield "</tbody></table></div></details>"


def _kind(film: Film, place: int, title: str) -> str:
    """Return the class of a column's cells; empty for plain text."""
    return "number" if place in film.numbers else "wordy" if title == REASON else ""


def _cards(film: Film) -> Iterator[str]:
    for number, stop in enumerate(film.stops, 1):
        link = f'<a class="when" href="#marker={number}">{_clock(stop.recorded)}</a>'
        yield f"<li>{_question(stop, link)}{''.join(_answer(stop))}</li>"


def _question(stop: FilmStop, when: str) -> str:
    """Return the HTML of a card without its answer."""
    cue = stop.cue
    title = f"<h3>{escaped(cue.title)}</h3>" if cue.title and cue.body else ""
    lines = cue.lines or [cue.title]
    text = " ".join(line for line in lines if not line.startswith(POINT))
    points = "".join(f"<li>{escaped(line.removeprefix(POINT))}</li>" for line in lines if line.startswith(POINT))
    return f"{title}<p>{when} {escaped(cue.pointer + text)}</p>" + (f"<ul>{points}</ul>" if points else "")


def _answer(stop: FilmStop) -> Iterator[str]:
    answer = stop.answer
    if answer is None:
        if stop.cue.asks:
            yield '<p class="open">An open question: the recording has no answer.</p>'
        return
    if isinstance(answer, QuestionAnswer):
        yield _guess(answer)
    yield '<details class="answer"><summary>Show the answer</summary>'
    if isinstance(answer, QuestionAnswer):
        yield '<p class="guessed" hidden></p>'
        yield f"<p>{escaped(answer.text)}</p>"
        if answer.parts:
            marks = (' class="right"' * (part.key in answer.right) for part in answer.parts)
            parts = (f"<li{m}>{escaped(p.title)}: {escaped(p.text)}</li>" for p, m in zip(answer.parts, marks, strict=True))
            yield f"<ul>{''.join(parts)}</ul>"
    else:
        yield f"<p>The recording does not say: {escaped(answer)}.</p>"
    yield "</details>"


def _guess(answer: QuestionAnswer) -> str:
    """Return the HTML in which a visitor chooses or types a guess. It does not reveal the answer."""
    if not answer.parts:
        return '<label class="guess">Your guess <input maxlength="60" autocomplete="off"></label>'
    options = "".join(f"<option>{escaped(part.title)}</option>" for part in answer.parts)
    return f'<label class="guess">Your guess <select><option value=""></option>{options}</select></label>'
