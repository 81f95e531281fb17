"""The guesses of a lecture room at one question, and how they are spread around the answer."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

from fwtui.common.errors import Refused
from fwtui.learn.cue import Cue
from fwtui.learn.questions import CLOSE, GuessChoice, QuestionAnswer, QuestionKind, parse_guess, pick

MOST_GUESSES = 1000
FACTORS = (CLOSE, 2.0, 4.0, 16.0)  # from the answer to the edges of the bars


class GuessBar(NamedTuple):
    """How many have guessed it."""

    title: str
    guesses: int
    right: bool


class Ballot:
    """One guess of each visitor, which may be changed."""

    def __init__(self, kind: QuestionKind, answer: QuestionAnswer):
        self.kind = kind
        self.choices = [] if kind.hint else [GuessChoice(part.key, part.title) for part in answer.parts]
        self.answer = answer
        self._guesses: dict[str, float | str] = {}

    def __len__(self) -> int:
        return len(self._guesses)

    def take(self, visitor: str, text: str) -> None:
        """Take a guess as it was typed, or the number of a choice. Raises Refused."""
        guess = pick(self.choices, text) if self.choices else parse_guess(self.kind, text)
        if visitor not in self._guesses and len(self) >= MOST_GUESSES:
            raise Refused(f"{MOST_GUESSES} visitors have guessed, and no more guesses are taken")
        self._guesses[visitor] = guess

    def bars(self) -> list[GuessBar]:
        """A bar for each choice, or for each range of numbers from the lowest guess to the highest; the right one is marked."""
        if self.choices:
            counts = Counter(self._guesses.values())
            return [GuessBar(choice.words, counts[choice.key], choice.key in self.answer.right) for choice in self.choices]
        number = self.answer.number or 0.0
        edges = sorted(edge for factor in FACTORS for edge in (number / factor, number * factor))
        places = Counter(bisect(edges, guess) for guess in self._guesses.values() if isinstance(guess, float))
        right, said = len(FACTORS), [self.kind.say(edge) for edge in edges]
        titles = [
            f"below {said[0]}",
            *(f"{low} to {high}" for low, high in pairwise(said)),
            f"above {said[-1]}",
        ]
        shown = range(min(right, *places), max(right, *places) + 1) if places else range(right, right + 1)
        return [GuessBar(titles[place], places[place], place == right) for place in shown]


def ballot(cue: Cue, answer: QuestionAnswer | str | None) -> Ballot | None:
    """One for this question, if it is answered by one of several things or by a number."""
    if cue.kind is None or not isinstance(answer, QuestionAnswer) or not (answer.parts or answer.number):
        return None
    return Ballot(cue.kind, answer)
