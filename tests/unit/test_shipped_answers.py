"""The five documents answered from the sessions that are shipped: all that could be answered is, and every no has a cause."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from fwtui.reproduce import presets
from fwtui.reproduce.campaign import held
from fwtui.reproduce.claim import HOLDS, REFUTED, UNKNOWN, UNTESTABLE, Answer
from fwtui.sessions.library import load_model

SESSIONS = Path(__file__).parents[2] / "sessions"
UNANSWERED = {"CA8", "SF11"}  # a graph that took too long, and a second GPU


@cache
def answers(name: str) -> dict[str, Answer]:
    model, complete = load_model(SESSIONS / f"h200-reproduce-{name}.fwt.jsonl")
    assert complete
    return {claim.id: claim.answer(held(model, name)) for claim in presets()[name].claims}


def test_every_document_is_shipped() -> None:
    shipped = {path.name.removeprefix("h200-reproduce-").split(".")[0] for path in SESSIONS.glob("h200-reproduce-*")}
    assert shipped == set(presets())


@pytest.mark.parametrize("name", presets())
def test_what_was_run_is_found(name: str) -> None:
    for claim, answer in answers(name).items():
        assert "was not run" not in answer.reason and "no option" not in answer.reason, claim
        assert (answer.verdict == UNTESTABLE) == (claim in UNANSWERED), (claim, answer)


@pytest.mark.parametrize("name", presets())
def test_every_refuted_claim_has_a_cause(name: str) -> None:
    for claim, answer in answers(name).items():
        if answer.verdict == REFUTED:
            assert answer.reason and UNKNOWN not in answer.reason, (claim, answer)


@pytest.mark.parametrize(
    ("name", "claim", "words"),
    [
        ("catinello", "CA3", "1.53 billion blocks of 256 threads a second and 1.65 billion of 64"),
        ("catinello", "CA4", "h = 4 still has 1,048,576 threads"),
        ("catinello", "CA5", "1.53 billion blocks of 256 threads a second and 1.65 billion of 64"),
        ("catinello", "CA6", "the memory 2.2 %"),
        ("catinello", "CA7", "so it is not they"),
        ("catinello", "CA9", "plain rows start 1.52 billion"),
        ("lund-smith", "LS1", "8.43x by optimized (LS2) and 0.94x by the staged load (LS3)"),
        ("lund-smith", "LS2", "integer units 100 % busy"),
        ("lund-smith", "LS3", "1.20x as fast as optimized (n 8192) and 1.29x as fast as staged-load"),
        ("lund-smith", "LS4", "optimized, the same algorithm with cheaper indices, is 24.2x"),
        ("lund-smith", "LS6", "without the bus it is hardly faster"),
        ("lund-smith", "LS13", "two k at once"),
        ("cs542200", "CS2", "1 at 8, 1 at 16, 4 at 32"),
        ("cs542200", "CS6", "The file is text: reading it takes 13.3x"),
        ("henriod", "HE2", "4 results a thread take 1.18x the time of one"),
        ("henriod", "HE5", "only 16 of 64 threads are left"),
        ("sing", "SF10", "two addresses for a cell"),
    ],
)
def test_the_cause_is_what_the_session_holds(name: str, claim: str, words: str) -> None:
    answer = answers(name)[claim]
    assert answer.verdict == REFUTED and words in answer.reason, answer


def test_arrays_in_registers_are_compared_where_there_is_an_array() -> None:
    answer = answers("henriod")["HE6"]
    assert answer.verdict == HOLDS and "1.09x with 4, 1.58x with 16" in answer.value


def test_the_limiter_is_read_by_gpm() -> None:
    answer = answers("lund-smith")["LS7"]
    assert "integer units 100 % busy" in answer.value and not answer.note


def test_times_are_told_as_times() -> None:
    assert answers("sing")["SF8"].value.startswith("time over device memory's: 1.89x")
