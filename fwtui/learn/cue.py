"""What a marker of a lecture asks for: `@panel ?kind words` points at a panel and asks a question that the run answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from fwtui.learn.questions import KINDS, Kind

PANELS: Mapping[str, str] = {
    "total": "the total and its rate",
    "phases": "the phases",
    "meters": "the meters",
    "outside": "what is outside the clock",
    "check": "how it was checked",
    "matrix": "the matrix",
    "runs": "the table of runs",
    "telemetry": "the telemetry",
}
_POINTED = re.compile(r"@([a-z]+)(?:\s+|$)", re.ASCII)
_ASKED = re.compile(r"\?([a-z]*)(?:\s+|$)", re.ASCII)


class Cue(NamedTuple):
    """A marker's words in parts. A question without a kind is answered by the reader alone."""

    words: str
    panel: str = ""
    asks: bool = False
    kind: Kind | None = None

    @property
    def directed(self) -> bool:
        """Whether it is more than a few words at a place."""
        return bool(self.panel) or self.asks

    @property
    def said(self) -> str:
        """The panel by its name, and the words."""
        return f"{PANELS[self.panel]}: {self.words}" if self.panel else self.words


def cue(text: str) -> Cue:
    """The parts of a marker's text; what is no panel or no kind of question stays words.

    A question in the very words of a kind is of that kind.
    """
    rest, panel = text.strip(), ""
    pointed = _POINTED.match(rest)
    if pointed is not None and pointed[1] in PANELS:
        panel, rest = pointed[1], rest[pointed.end() :]
    asked = _ASKED.match(rest)
    if asked is None or asked[1] not in ("", *KINDS):
        return Cue(rest, panel)
    words = rest[asked.end() :].strip()
    kind = KINDS.get(asked[1]) or next((kind for kind in KINDS.values() if kind.ask.lower() == words.lower()), None)
    return Cue(words or (kind.ask if kind is not None else ""), panel, True, kind)
