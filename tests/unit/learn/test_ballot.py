"""The guesses of a lecture room: one a visitor, bounded in number, and spread around the answer."""

from __future__ import annotations

import pytest

from fwtui.common.errors import Refused
from fwtui.learn import ballot as module
from fwtui.learn.ballot import Ballot, GuessBar
from fwtui.learn.cue import Cue
from fwtui.learn.questions import KINDS, AnswerBar, QuestionAnswer


def test_numbers_are_counted_in_ranges_around_the_answer() -> None:
    ballot = Ballot(KINDS["speedup"], QuestionAnswer("3.2x as fast", 3.2))
    assert ballot.bars() == [GuessBar("2.56x to 4.00x", 0, True)]
    for visitor, guess in enumerate(("3", "3.2x", "1", "5", "999999999")):
        ballot.take(str(visitor), guess)
    ballot.take("3", "6")  # instead of 5
    assert [bar.guesses for bar in ballot.bars()] == [1, 0, 2, 1, 0, 0, 1]
    assert [bar.right for bar in ballot.bars()].index(True) == 2


def test_choices_are_counted_each_and_guesses_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_GUESSES", 2)
    parts = (AnswerBar("a", "pivot", 0.1, "10 %"), AnswerBar("b", "rest", 0.9, "90 %"))
    ballot = Ballot(KINDS["phase"], QuestionAnswer("rest", None, ("b",), parts))
    for visitor in "xyx":
        ballot.take(visitor, "2")
    with pytest.raises(Refused, match="no more guesses"):
        ballot.take("z", "1")
    with pytest.raises(Refused, match="a number from 1 to 2"):
        ballot.take("x", "3")
    assert ballot.bars() == [GuessBar("pivot", 0, False), GuessBar("rest", 2, True)]


@pytest.mark.parametrize("answer", [None, "not measured", QuestionAnswer("as it is written")])
def test_what_has_no_answer_of_several_and_no_number_takes_no_guesses(answer: QuestionAnswer | str | None) -> None:
    assert module.ballot(Cue("Why?", asks=True, kind=KINDS["seconds"]), answer) is None
    assert module.ballot(Cue("Why?", asks=True), QuestionAnswer("Because.", 2.0)) is None
