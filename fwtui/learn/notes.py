"""The cue cards of a lecture as a Markdown file; sessions/README.md defines the format.

A heading gives the moment of a cue card; the lines below it are its content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from fwtui.analysis.compare import run_name
from fwtui.analysis.recorded_source import MAX as MAX_SOURCE
from fwtui.analysis.recorded_source import excerpt
from fwtui.common.errors import Refused, as_refused
from fwtui.common.small_file import read_beginning
from fwtui.common.text import MAX_LENGTH, quoted, sanitise, truncate
from fwtui.learn.questions import KINDS, PANELS, POINT, Cue, QuestionKind, answer_of, cue_of
from fwtui.sessions.folders import stem
from fwtui.sessions.library import load_model
from fwtui.sessions.markers import LinePosition, Mark, Places, places
from fwtui.sessions.reader import SessionFile, open_session
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run

LARGEST_FILE = 2**18  # bytes
MAX_TITLE, MAX_TEXT = 60, 200  # characters of a card that is read from afar
MAX_NOTED = 8000  # characters of a card's notes
MAX_SKETCHED = 40  # runs in a skeleton
SKETCHED = {  # by kind of question: the title of its card, and the panel that shows its answer
    "speedup": ("Was it worth it?", "total"),
    "seconds": ("How fast is it?", "total"),
    "phase": ("Per-phase times", "phases"),
    "peak": ("Effective bandwidth", "meters"),
    "limiter": ("Occupancy", "meters"),
    "limit": ("How much is left", "meters"),
}
KEYS = ("point", "question", "answer", "notes")
PASSING = (events.Notice, events.Round, events.Progress, events.Telemetry)  # they affect no result
PLACES = "12.5s, run 2, run 2 end or after run 2"
_PLACE = re.compile(r"(?:(run|end|after +run) +(\d{1,9})( +end)?)|(\d{1,9}(?:\.\d{1,9})?) ?(s?)", re.ASCII)
_POINT = re.compile(r"[-*] +")
_SPAN = re.compile(r"source +(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_KEY = re.compile(r"([A-Za-z]+):(?:\s+(.*))?")


class Notes(NamedTuple):
    title: str
    cues: tuple[tuple[Mark, events.Marker], ...]


def place(text: str, unit: bool = False, label: str = "") -> Mark | None:
    """Parse the moment of a cue card, such as `run 2 end`; None if it is none. With `unit` a number needs its s."""
    found = _PLACE.fullmatch(text.strip().lower())
    if found is None or (found[1] not in (None, "run") and found[3]):
        return None
    if found[1]:
        return Mark(run=int(found[2]), end=found[1] != "run" or bool(found[3]), source=label)
    return Mark(seconds=float(found[4]), source=label) if found[5] or not unit else None


def read(path: str | os.PathLike[str]) -> Notes:
    """Read the cue cards of a file. Raises Refused with the number of an incorrect line."""
    name = sanitise(os.path.basename(os.fspath(path)))
    with as_refused(f"{name} cannot be read", "choose a text file with cue cards", ValueError):
        content = read_beginning(path, LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise Refused(f"{name} has more than {LARGEST_FILE:,} bytes; shorten it, or choose a file with only cue cards")
    try:
        return parse(content.decode("utf-8-sig"), name)
    except UnicodeDecodeError:
        raise Refused(f"{name} is not UTF-8 text; save it as UTF-8") from None


def parse(text: str, name: str = "the text") -> Notes:
    """Parse the cue cards of a text. Raises Refused with `name` and the number of an incorrect line."""
    title, before, sections = "", list[str](), list[_Section]()
    for number, raw in enumerate(text.split("\n"), 1):
        line, where = sanitise(raw).strip(), f"{name}, line {number}: "
        if len(raw) > MAX_LENGTH:
            raise Refused(f"{where}the line has {len(raw):,} characters, more than {MAX_LENGTH:,}; split it")
        if line.startswith("## "):
            sections.append(_Section(where, line[3:].strip()))
        elif line.startswith("# ") and not sections and not title:
            title = line[2:].strip()
        elif line.startswith("#"):
            raise Refused(
                f"{where}only the title, before all cards, begins with #; begin a card with ## and a moment, and a text with \\#"
            )
        elif line:
            sections[-1].take(where, line) if sections else before.append(line)
    if not sections:
        raise Refused(f"{name} has no cue cards; begin each with a heading such as `## run 1 end`")
    sections[0].notes[:0] = before
    return Notes(title, tuple((section.place, section.marker()) for section in sections))


class _Section:
    """The lines of one cue card."""

    def __init__(self, where: str, heading: str):
        before, _, title = heading.partition(":")
        found = place(before, unit=True, label=where)
        if found is None:
            raise Refused(f"{where}{quoted(before.strip())} is not a moment of a session; write {PLACES}")
        self.where, self.place, self.title = where, found, _within(where, "title", title.strip(), MAX_TITLE)
        self.body: list[str] = []
        self.notes: list[str] = []
        self.keys: dict[str, str] = {}
        self.answered = where  # position of its answer, for errors

    def take(self, where: str, line: str) -> None:
        keyed = _KEY.fullmatch(line)
        if keyed is None or line.startswith("\\"):
            point = _POINT.match(line)
            self.body.append(POINT + line[point.end() :] if point is not None else line.removeprefix("\\"))
            return
        key, value = keyed[1].lower(), (keyed[2] or "").strip()
        if key not in KEYS:
            if similar := get_close_matches(key, KEYS, 1, 0.75):
                raise Refused(f"{where}did you mean `{similar[0]}:`? Write \\ before {quoted(keyed[1])} for a plain line")
            self.body.append(line)
        elif key == "notes" and value:
            self.notes.append(value)
        elif key in self.keys:
            raise Refused(f"{where}this cue card already has a line `{key}:`; begin another card with a heading")
        elif not value:
            raise Refused(f"{where}`{key}:` has no value; write it on the same line")
        elif key == "point" and (span := _SPAN.fullmatch(value)) is not None:
            _check_span(where, int(span[1]), int(span[2] or span[1]))
            self.keys[key] = value
        elif key == "point" and value not in PANELS:
            raise Refused(f"{where}there is no panel {quoted(value)}; choose one of {', '.join(PANELS)}")
        else:
            self.keys[key] = _within(where, key, value, MAX_TEXT)
            self.answered = where if key == "answer" else self.answered

    def marker(self) -> events.Marker:
        text = _within(self.where, "text", " ".join(self.body), MAX_TEXT)
        pointed, question, answer = (self.keys.get(key, "") for key in ("point", "question", "answer"))
        kind = KINDS.get(answer.lower())
        if kind is None and (similar := _nearly(answer)):
            kinds = f"the run answers {', '.join(KINDS)}"
            raise Refused(
                f"{self.answered}did you mean `answer: {similar}`? {kinds}; write \\ before {quoted(answer)} for a text"
            )
        if text and (question or answer):
            raise Refused(f"{self.where}this cue card has a text and a question; begin a separate card for the question")
        if answer and not (question or kind):
            raise Refused(f"{self.answered}this answer has no question; write one above it, or choose one of {', '.join(KINDS)}")
        if not (text or question or kind or self.title):
            raise Refused(f"{self.where}this cue card is empty; write its text below the heading")
        if len(self.notes) > events.MAX_NOTES or sum(map(len, self.notes)) > MAX_NOTED:
            most = f"{events.MAX_NOTES} lines or {MAX_NOTED:,} characters"
            raise Refused(f"{self.where}the notes have more than {most}; shorten them, or move some to another card")
        panel, _, span = pointed.partition(" ")
        first, _, last = span.strip().partition("-")
        lines = int(first or 0), int(last or first or 0)
        cue_read = Cue(text or question, panel, bool(question or kind), kind, "", "", *lines)
        answer = "" if kind else answer.removeprefix("\\")
        return events.Marker(t=0.0, text=cue_read.text, title=self.title, answer=answer, notes=tuple(self.notes))


def _check_span(where: str, first: int, last: int) -> None:
    if not 1 <= first <= last < first + MAX_SOURCE:
        raise Refused(f"{where}{first}-{last} is not a range of 1 to {MAX_SOURCE} lines; write one such as 12-20")


def _within(where: str, part: str, text: str, most: int) -> str:
    if len(text) > most:
        raise Refused(f"{where}the {part} has {len(text)} characters; shorten it to {most}, so that it is legible from afar")
    return text


class SessionText(NamedTuple):
    """The cue cards of a session as a text; a skeleton if it has no cue cards, but at most other markers."""

    text: str
    sketched: bool


def text_of(path: Path) -> SessionText:
    """Return the cue cards of a session as a text. Raises Refused for a session with neither markers nor runs."""
    with open_session(path) as session:
        there, sketched = places(session, unmarked=True), True
        parts = [f"# {session.header.title or stem(path)}\n"]
        index, run = -1, None  # position and run of the previous line that is not a marker
        for line in session.lines():
            event = line.event
            if not isinstance(event, events.Marker):
                index, run = index + 1, getattr(event, "run", None)
                continue
            cue = cue_of(event)
            sketched = sketched and not cue.directed
            if cue.title or cue.body:
                head = f"## {_place(there, LinePosition(index, event.t), run)}" + (f": {cue.title}" if cue.title else "")
                card = ("", head, *_lines(cue), *(f"notes: {note}" for note in event.notes))
                parts += [f"{line}\n" for line in card]
        if sketched:
            parts += _skeleton(_first_runs(session))
    if len(parts) == 1:
        raise Refused(f"{stem(path)} has neither cue cards nor runs; record some runs first")
    return SessionText("".join(parts), sketched)


def check_source(path: Path, cards: Sequence[tuple[Mark, events.Marker]]) -> None:
    """Raise Refused for a card with source lines that the recorded source of its run does not have."""
    about = [(mark, cue) for mark, marker in cards if (cue := cue_of(marker)).first]
    runs = load_model(path)[0].runs if about else {}
    for mark, cue in about:
        begun = [run for run in runs.values() if mark.seconds is not None and run.started <= mark.seconds]
        run = runs.get(mark.run) or (begun[-1] if begun else None)
        if run is None or not run.source:
            continue
        try:
            for number in (cue.first, cue.last):
                excerpt(runs.values(), run, number, number)
        except Refused as refusal:
            raise Refused(f"{mark.source}{refusal}") from None


def _first_runs(session: SessionFile) -> Model:
    """Build the model of the first MAX_SKETCHED runs, without the events that affect no result."""
    model = Model()
    for line in session.lines():
        if isinstance(line.event, events.RunStarted) and len(model.runs) == MAX_SKETCHED:
            break
        if line.kind not in PASSING:
            model.apply(line.event)
    return model


def _skeleton(model: Model) -> Iterator[str]:
    """Yield a cue card for the start of each run, and one at its end for each of the questions that it answers."""
    note = "notes: Lines like this one are yours: no card shows them.\n"
    for run in model.runs.values():
        title = truncate(run_name(run), MAX_TITLE)
        yield f"\n## run {run.id}: {title}\nn = {run.n:,}, {run.experiment.dtype}\n{note}"
        note = ""
        if run.done is None:
            continue
        if run.wrong or run.state != "done":
            why = "Its distances are incorrect, so its time does not count." if run.wrong else "It did not finish."
            yield f"\n## run {run.id} end: No time\npoint: check\n{why}\n"
            continue
        for kinds in (("speedup", "seconds"), ("phase",), ("peak", "limiter", "limit")):
            kind = next((kind for kind in kinds if _answers(KINDS[kind], model, run)), None)
            if kind is not None:
                title, panel = SKETCHED[kind]
                question = f"point: {panel}\nquestion: {KINDS[kind].ask}\nanswer: {kind}\n"
                yield f"\n## run {run.id} end: {title}\n{question}"


def _answers(kind: QuestionKind, model: Model, run: Run) -> bool:
    with suppress(Refused):
        return bool(answer_of(kind, model, run))
    return False


def _place(there: Places, here: LinePosition, run: int | None) -> str:
    """Format a position so that `place` parses it to the same position."""
    for runs, moment in ((there.begins, f"run {run}"), (there.ends, f"run {run} end")):
        if run is not None and runs.get(run) == here and place(moment) is not None:
            return moment
    return f"{here.t:.9f}".rstrip("0").rstrip(".") + "s"


def _lines(cue: Cue) -> Iterator[str]:
    if cue.panel:
        yield f"point: {cue.panel} {cue.span}".rstrip()
    if cue.asks and cue.body:
        yield f"question: {cue.body}"
        if cue.answered:
            yield f"answer: {cue.kind.name if cue.kind is not None else _escaped(cue.answer)}"
    elif cue.body:
        for line in cue.lines:
            special = line.startswith(("#", "\\")) or _POINT.match(line) or _KEY.fullmatch(line)
            yield f"- {line.removeprefix(POINT)}" if line.startswith(POINT) else f"\\{line}" if special else line


def _escaped(answer: str) -> str:
    """Escape an answer that could be taken for a kind of question."""
    return f"\\{answer}" if answer.startswith("\\") or _nearly(answer) else answer


def _nearly(answer: str) -> str:
    """Return the kind of question with a name similar to the answer; empty if there is none."""
    return next(iter([] if answer.startswith("\\") or " " in answer else get_close_matches(answer.lower(), KINDS, 1, 0.75)), "")
