"""What a lecture says where it stands: the marker's words, its question, and the run's answer once it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from textual.content import Content

from fwtui.analysis.compare import Entrant
from fwtui.common.errors import Refused
from fwtui.learn.cue import PANELS, Cue, cue
from fwtui.learn.questions import Answer
from fwtui.stream.run import Run
from fwtui.tui.frame.view import View
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, line
from fwtui.tui.widgets.readout import parts_lines


class Card(NamedTuple):
    number: int  # of the marker
    of: int
    cue: Cue
    answer: Answer | str | None  # words where the run does not say; None until the user asks
    key: str  # the name of the key that shows the answer
    on: str  # and the one that goes on


class CueCard(Drawn["Card | None"]):
    DEFAULT_CSS = "CueCard { padding: 0 1; background: $panel; max-height: 50%; }"

    def draw(self, subject: Card | None, width: int) -> Sequence[Content]:
        if subject is None:
            return []
        said = subject.cue
        rows = line(
            ("? " if said.asks else "◆ ", f"{STRONG} $text-primary"),
            (f"{PANELS[said.panel]}: " if said.panel else "", "$text-primary"),
            (said.words, STRONG),
            (f"  {subject.number} of {subject.of}", MUTED),
        ).wrap(width)
        match subject.answer:
            case Answer() as answer:
                rows += parts_lines(answer, None, width) if answer.parts else []
                rows += line(("= ", f"{STRONG} $text-primary"), answer.words).wrap(width)
            case str() as why:
                rows += line((why, "$text-warning")).wrap(width)
            case None if said.kind is not None:
                rows.append(line((f"{subject.key} shows what the run says, {subject.on} goes on", MUTED)))
        return rows


def card(view: View, key_of: Callable[[str], str]) -> Card | None:
    """What is to be shown at the view's place in its recording; None where no marker stands.

    `key_of` gives the name of a binding's key.
    """
    if view.marker is None:
        return None
    number, of, marker = view.marker
    said = cue(marker.text)
    answer = _answer(view, said) if view.answered == number else None
    return Card(number, of, said, answer, key_of("marker.answer"), key_of("play"))


def _answer(view: View, said: Cue) -> Answer | str | None:
    run = view.run
    if said.kind is None:
        return None
    if run is None:
        return "no run has begun here, so there is nothing to answer from"
    before = view.baseline_run or _before(view, run)
    try:
        return said.kind.answer(Entrant(view.model, run), Entrant(view.model, before) if before is not None else None)
    except Refused as refusal:
        return str(refusal)


def _before(view: View, run: Run) -> Run | None:
    """The last run of that n that had ended before this one began."""
    there = [r for r in view.model.runs.values() if r.n == run.n and r.finished is not None and r.finished <= run.started]
    return max((r for r in there if r.seconds and not r.wrong), key=lambda r: r.started, default=None)
