"""The guesses of a lecture room: one a visitor, bounded in number, and spread around the answer."""

from __future__ import annotations

import pytest

from fwtui.common.errors import Refused
from fwtui.learn.ballot import MOST_GUESSES, Ballot, GuessBar, ballot
from fwtui.learn.cue import Cue
from fwtui.learn.questions import KINDS, AnswerBar, QuestionAnswer


def test_numbers_are_counted_in_ranges_choices_each_and_guesses_are_bounded() -> None:
    room = Ballot(KINDS["speedup"], QuestionAnswer("3.2x as fast", 3.2))
    assert room.bars() == [GuessBar("2.56x to 4.00x", 0, True)]
    for visitor, guess in enumerate(("3", "3.2x", "1", "5", "999999999")):
        room.take(str(visitor), guess)
    room.take("3", "6")  # instead of 5
    assert [bar.guesses for bar in room.bars()] == [1, 0, 2, 1, 0, 0, 1]
    assert [bar.right for bar in room.bars()].index(True) == 2
    parts = (AnswerBar("a", "pivot", 0.1, "10 %"), AnswerBar("b", "rest", 0.9, "90 %"))
    room = Ballot(KINDS["phase"], QuestionAnswer("rest", None, ("b",), parts))
    for visitor in [*range(MOST_GUESSES), 0]:
        room.take(str(visitor), "2")
    with pytest.raises(Refused, match="no more guesses"):
        room.take("z", "1")
    with pytest.raises(Refused, match="a number from 1 to 2"):
        room.take("0", "3")
    assert room.bars() == [GuessBar("pivot", 0, False), GuessBar("rest", MOST_GUESSES, True)]


@pytest.mark.parametrize("answer", [None, "not measured", QuestionAnswer("as it is written")])
def test_what_has_no_answer_of_several_and_no_number_takes_no_guesses(answer: QuestionAnswer | str | None) -> None:
    assert ballot(Cue("Why?", asks=True, kind=KINDS["seconds"]), answer) is None
    assert ballot(Cue("Why?", asks=True), QuestionAnswer("Because.", 2.0)) is None
