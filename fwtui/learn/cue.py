"""What a cue card of a lecture says. A marker's text `@panel ?kind words` points at a panel and asks what the run answers.

`@source 12-20` shows these lines of the run's recorded source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from fwtui.learn.questions import KINDS, QuestionKind
from fwtui.stream.events import Marker

PANELS: Mapping[str, str] = {
    "total": "the total and its rate",
    "phases": "the phases",
    "meters": "the meters",
    "outside": "what is outside the clock",
    "check": "how it was checked",
    "matrix": "the matrix",
    "runs": "the table of runs",
    "telemetry": "the telemetry",
    "source": "the source",
}
SOURCE = "source"  # the panel that is on the card itself
POINT = "• "  # begins each point of a list in a card's words, which are one line
_POINTED = re.compile(r"@([a-z]+)(?:\s+|$)", re.ASCII)
_LINES = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?(?:\s+|$)", re.ASCII)
_ASKED = re.compile(r"\?([a-z]*)(?:\s+|$)", re.ASCII)


class Cue(NamedTuple):
    """A marker in parts. A question without a kind has the answer that is written with it, if any."""

    words: str
    panel: str = ""
    asks: bool = False
    kind: QuestionKind | None = None
    title: str = ""
    answer: str = ""
    first: int = 0  # line of the source, if the card is about that; 0: what is most telling
    last: int = 0

    @property
    def lines(self) -> list[str]:
        """The words as a card shows them: each point of a list in a line of its own."""
        first, *points = self.words.split(POINT)
        return [line.strip() for line in (first, *(POINT + point for point in points)) if line.strip()]

    @property
    def directed(self) -> bool:
        """Whether it is more than a few words at a place."""
        return bool(self.panel or self.title) or self.asks

    @property
    def answered(self) -> bool:
        """Whether there is an answer to show."""
        return self.kind is not None or (self.asks and bool(self.answer))

    @property
    def said(self) -> str:
        """The panel by its name, and the words, else the title."""
        words = self.words or self.title
        return f"{PANELS[self.panel]}: {words}" if self.panel else words

    @property
    def span(self) -> str:
        """The lines of the source in words: 12-20, or 12; empty if the card names none."""
        return "" if not self.first else f"{self.first}-{self.last}" if self.last > self.first else str(self.first)

    @property
    def text(self) -> str:
        """The text that cue() reads as these parts, without title and answer."""
        pointed = f"@{self.panel} " * bool(self.panel) + f"{self.span} " * bool(self.span)
        asked = f"?{self.kind.name if self.kind is not None else ''} " * self.asks
        return f"{pointed}{asked}{self.words}".strip()


def cue(text: str, title: str = "", answer: str = "") -> Cue:
    """The parts of a marker; what is neither a panel nor a kind of question stays words.

    A question in the very words of a kind is of that kind.
    """
    rest, panel = text.strip(), ""
    pointed = _POINTED.match(rest)
    if pointed is not None and pointed[1] in PANELS:
        panel, rest = pointed[1], rest[pointed.end() :]
    first = last = 0
    if panel == SOURCE and (span := _LINES.match(rest)) is not None:
        first, last, rest = int(span[1]), int(span[2] or span[1]), rest[span.end() :]
    asked = _ASKED.match(rest)
    if asked is None or asked[1] not in ("", *KINDS):
        return Cue(rest, panel, title=title, answer=answer, first=first, last=last)
    words = rest[asked.end() :].strip()
    kind = KINDS.get(asked[1]) or next((kind for kind in KINDS.values() if kind.ask.lower() == words.lower()), None)
    return Cue(words or (kind.ask if kind is not None else ""), panel, True, kind, title, answer, first, last)


def cue_of(marker: Marker) -> Cue:
    """The cue card that a marker is."""
    return cue(marker.text, marker.title, marker.answer)
