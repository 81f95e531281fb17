"""The bars of an answer that is one of several parts."""

from __future__ import annotations

from textual.content import Content

from fwtui.common.text import shortened
from fwtui.learn.questions import Answer
from fwtui.tui.widgets.drawn import STRONG, line
from fwtui.tui.widgets.readout import meter

WORDS = 18  # cells of a bar's number
LEAST_BAR, MOST_BAR = 8, 30


def parts_lines(answer: Answer, guess: object, width: int) -> list[Content]:
    """One bar for each part; a tick is at what the run says, and words at what was guessed."""
    most = max((part.amount for part in answer.parts), default=0.0) or 1.0
    label = min(max((len(part.title) for part in answer.parts), default=0), width - WORDS - LEAST_BAR - 18)
    room = max(LEAST_BAR, min(MOST_BAR, width - label - WORDS - 18))
    rows: list[Content] = []
    for part in answer.parts:
        right, guessed = part.key in answer.right, part.key == guess
        rows.append(
            line(
                ("✓ " if right else "  ", f"{STRONG} $text-success"),
                (f"{shortened(part.title, label):<{label}}  ", STRONG if right else ""),
                *meter(part.amount / most, room),
                f" {part.words:<{WORDS - 2}} " if guessed else f" {part.words}",
                ("your guess" if guessed else "", "$text-primary"),
            )
        )
    return rows
